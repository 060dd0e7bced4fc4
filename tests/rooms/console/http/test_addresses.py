# SPDX-License-Identifier: Apache-2.0
"""Console URLs of objects: every name has a URL, and parsing the URL returns the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address

PART = st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=("Cs",)))


@given(st.lists(PART, min_size=1, max_size=4), st.sampled_from([Kind.NAMESPACE, Kind.TABLE, Kind.VIEW, Kind.MODEL]))
def test_address_round_trip_with_special_characters(levels: list[str], kind: Kind) -> None:
    """Each part of a name is exactly one segment of the URL, also with slashes, dots, tildes and spaces."""
    address = ObjectAddress(kind, "lake", "main", tuple(levels))

    segments = address.path.encode("ascii").split(b"/")[2:]

    assert parse_address(segments) == address
    assert b"" not in segments
    assert b"." not in segments
    assert b".." not in segments


@pytest.mark.parametrize(
    "path", [b"catalog/lake", b"catalog/lake/main/a", b"table/lake/main", b"role/lake/main/a", b"x/a/b/c"]
)
def test_invalid_address_is_404(path: bytes) -> None:
    """A URL with an unknown kind, or with too few or too many parts for its kind, is 404."""
    with pytest.raises(NotFound):
        parse_address(path.split(b"/"))


def test_containers_are_the_namespaces_and_catalog() -> None:
    """The containers of an object are its namespaces and its catalog."""
    table = ObjectAddress(Kind.TABLE, "lake", "main", ("raw", "flights"))

    assert table.parent == ObjectAddress(Kind.NAMESPACE, "lake", "main", ("raw",))
    assert table.parent.parent == ObjectAddress(Kind.CATALOG, "lake", "main", ())
    assert table.parent.parent.parent is None
