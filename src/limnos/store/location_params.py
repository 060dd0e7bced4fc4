"""Locations in normal form, as parameters of statements that look above and below them.

May import this room's `sql`. Knows no table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from limnos.store.sql import Value

_SLASH = re.compile("(?<=[^/:])/")


def parent_locations(location: str) -> tuple[str, ...]:
    """Return the locations above a location in normal form, outermost first."""
    return _down_to(location[: location.rfind("/")])[0]


@lru_cache(maxsize=1024)
def _down_to(parent: str) -> tuple[tuple[str, ...], str]:
    """Return a location and those above it, as values and as JSON. Cached: most tables of a catalog have one parent."""
    places = tuple(f"{parent}/"[: slash.start()] for slash in _SLASH.finditer(f"{parent}/"))
    return places, msgspec.json.encode(places).decode()


def location_locks(locations: Iterable[str]) -> dict[str, bool]:
    """Return the locks of new locations: each exclusive (true), and those above it shared unless new as well."""
    own = dict.fromkeys(locations, True)
    return dict.fromkeys((above for each in own for above in parent_locations(each)), False) | own


def overlap_params(location: str) -> dict[str, Value]:
    """Return the parameters of the searches above and below a location.

    Locations in it sort between `/` and the next sign.
    """
    return {"above": _down_to(location[: location.rfind("/")])[1], "low": f"{location}/", "high": f"{location}0"}
