# SPDX-License-Identifier: Apache-2.0
"""Literals in row filters: values of times."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.literals import to_json_literal
from limnos.model.errors import BadRequest


@pytest.mark.parametrize(
    "kind, value, written",
    [
        ("time", "10:00:00.123456", "10:00:00.123456"),
        ("timestamp", "2026-01-31T10:00:00.1234560", "2026-01-31T10:00:00.123456"),
        ("timestamptz", "2026-01-31T10:00:00.123456+02:00", "2026-01-31T08:00:00.123456+00:00"),
        ("timestamp_ns", "2026-01-31T10:00:00.123456000", "2026-01-31T10:00:00.123456"),
    ],
)
def test_zeros_beyond_microseconds_are_ignored(kind: str, value: str, written: str) -> None:
    """Zeros beyond microseconds change nothing."""
    assert to_json_literal(value, kind, about="Column c") == written


@pytest.mark.parametrize(
    "kind, value",
    [
        ("time", "10:00:00.1234567"),
        ("timestamp", "2026-01-31T10:00:00.000000001"),
        ("timestamp_ns", "2026-01-31T10:00:00,000000001"),
        ("timestamptz_ns", "2026-01-31T10:00:00.123456001Z"),
    ],
)
def test_nanoseconds_are_refused(kind: str, value: str) -> None:
    """A time with nonzero digits beyond microseconds is refused, so no filter compares with a truncated value."""
    with pytest.raises(BadRequest, match="Column c is"):
        to_json_literal(value, kind, about="Column c")
