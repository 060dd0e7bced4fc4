"""Paths of objects that are known by their ids."""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.ancestry import path_of

NODES = {
    5: (0, Kind.METALAKE, "lake"),
    9: (5, Kind.CATALOG, "main"),
    11: (9, Kind.NAMESPACE, "a"),
    13: (12, Kind.TABLE, "t"),
}


def test_path_goes_up_to_the_metalake() -> None:
    """The metalake is left out, except where it is the object itself; below something dropped there is no path."""
    assert path_of(11, NODES) == ("main", "a")
    assert path_of(5, NODES) == ("lake",)
    assert path_of(13, NODES) is None
