# SPDX-License-Identifier: Apache-2.0
"""Locations in normal form, as parameters of statements that search their parent locations and the locations inside
them.

Must not know tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from limnos.store.sql import Value

_SLASH = re.compile("(?<=[^/:])/")


def parent_locations(location: str) -> tuple[str, ...]:
    """Return the parent locations of a location in normal form, outermost first."""
    return _down_to(location[: location.rfind("/")])[0]


@lru_cache(maxsize=1024)
def _down_to(parent: str) -> tuple[tuple[str, ...], str]:
    """Return a location and its parent locations, as a tuple and as a JSON array.

    Cached, since most tables of a catalog share a parent.
    """
    parent_paths = tuple(f"{parent}/"[: slash.start()] for slash in _SLASH.finditer(f"{parent}/"))
    return parent_paths, msgspec.json.encode(parent_paths).decode()


def location_locks(locations: Iterable[str]) -> dict[str, bool]:
    """Return the locks to take for new locations: exclusive (True) for each new location, shared (False) for its parent
    locations.
    """
    lock_modes = dict.fromkeys(locations, True)
    return dict.fromkeys((above for each in lock_modes for above in parent_locations(each)), False) | lock_modes


def overlap_params(location: str) -> dict[str, Value]:
    """Return the query parameters that find the parent locations of a location and the locations inside it.

    Locations below it sort between `<location>/` and `<location>0`, the next character.
    """
    return {"above": _down_to(location[: location.rfind("/")])[1], "low": f"{location}/", "high": f"{location}0"}


def lower_params(location: str, *, but: int, limit: int, after: tuple[str, int, int] | None = None) -> dict[str, Value]:
    """Return the query parameters that find a page of the locations inside a location, without those of owner `but`,
    after a row (location, owner, kind).
    """
    low, owner_id, kind = (f"{location}/", -1, -1) if after is None else after
    return {"low": low, "after_id": owner_id, "after_kind": kind, "high": f"{location}0", "id": but, "limit": limit}
