"""Locations in normal form, as parameters of the looks above and below them.

May import this room's `sql`. Knows no table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from limnos.store.sql import Value

_SLASH = re.compile("(?<=[^/:])/")


def parent_locations(location: str) -> tuple[str, ...]:
    """List the places that a location in normal form lies in, outermost first."""
    return _down_to(location[: location.rfind("/")])[0]


@lru_cache(maxsize=1024)
def _down_to(parent: str) -> tuple[tuple[str, ...], str]:
    """List a place and those it lies in, as values and as JSON: most tables of a catalog have one parent."""
    places = tuple(f"{parent}/"[: slash.start()] for slash in _SLASH.finditer(f"{parent}/"))
    return places, msgspec.json.encode(places).decode()


def overlap_params(location: str) -> dict[str, Value]:
    """The parameters of the looks above and below a location: what lies in it sorts between its slash and the next sign."""
    return {"above": _down_to(location[: location.rfind("/")])[1], "low": f"{location}/", "high": f"{location}0"}
