# SPDX-License-Identifier: Apache-2.0
"""Type strings of columns."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.types import parse_primitive, plain_primitive
from limnos.model.errors import BadRequest


@pytest.mark.parametrize(
    "text,canonical,version",
    [
        ("boolean", "boolean", 1),
        ("timestamptz", "timestamptz", 1),
        ("timestamp_ns", "timestamp_ns", 3),
        ("timestamptz_ns", "timestamptz_ns", 3),
        ("unknown", "unknown", 3),
        ("variant", "variant", 3),
        ("fixed[16]", "fixed[16]", 1),
        ("fixed[ 016 ]", "fixed[16]", 1),
        ("decimal(9,2)", "decimal(9, 2)", 1),
        ("decimal( 38 , 38 )", "decimal(38, 38)", 1),
        ("geometry", "geometry", 3),
        ("geometry( srid:4326 )", "geometry(srid:4326)", 3),
        ("geography", "geography", 3),
        ("geography(OGC:CRS84)", "geography(OGC:CRS84)", 3),
        ("geography(OGC:CRS84,karney)", "geography(OGC:CRS84, karney)", 3),
    ],
)
def test_known_type_has_canonical_spelling_and_version(text: str, canonical: str, version: int) -> None:
    """A type of the specification is parsed to its canonical spelling and the format version that introduced it."""
    parsed = parse_primitive(text)

    assert (parsed.text, parsed.version) == (canonical, version)
    assert plain_primitive(text) == (parsed if version == 1 else None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "STRING",
        "varchar",
        "struct",
        "list",
        "decimal(39, 2)",
        "decimal(0, 0)",
        "decimal(4, 5)",
        "decimal(-1, 2)",
        "fixed[]",
        "fixed[-1]",
        "geography(a, square)",
        "geometry(a, b)",
        "x" * 10000,
        "geometry(" + " " * 9000,
    ],
)
def test_unknown_type_is_refused(text: str) -> None:
    """Any other text is refused with a message that has the text and the valid types."""
    with pytest.raises(BadRequest) as caught:
        parse_primitive(text)

    assert text[:20] in caught.value.message
    assert len(caught.value.message) < 600
