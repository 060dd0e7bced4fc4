# SPDX-License-Identifier: Apache-2.0
"""Paths of objects by their ids."""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.ancestry import path_of

NODES = {
    5: (0, Kind.METALAKE, "lake"),
    9: (5, Kind.CATALOG, "main"),
    11: (9, Kind.NAMESPACE, "a"),
    13: (12, Kind.TABLE, "t"),
}


def test_path_omits_the_metalake_and_ends_at_dropped_objects() -> None:
    """The path omits the metalake, unless the object is the metalake. An object below a dropped one has no path."""
    assert path_of(11, NODES) == ("main", "a")
    assert path_of(5, NODES) == ("lake",)
    assert path_of(13, NODES) is None
