"""`CacheMiss`: how a synchronous reader says which facts it lacks; and the accessor that raises it.

May import this room only. The reader is run again when the facts are there, so it must have no effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from limnos.view.keys import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limnos.view.keys import Key
    from limnos.view.view import StoreView

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")


class CacheMiss(Exception):
    """Facts (key → zone) that must be loaded before the answer can be given.

    `goes_on`: they are the next part of something long. Others have their turn between the parts, and there may be many.
    """

    def __init__(self, wanted: dict[Key, int], *, goes_on: bool = False) -> None:
        super().__init__()
        self.wanted = wanted
        self.goes_on = goes_on


def require_fact(view: StoreView, key: Key[V], *, zone: int) -> V:
    """Return a cached fact. Raises Cold for it when it is not cached."""
    found = view.get(key)
    if found is ABSENT:
        raise CacheMiss({key: zone})
    return found


def require_facts(view: StoreView, keys: list[Key[V]], *, zone: int, at_once: int | None = None) -> list[V]:
    """Return cached facts. Raises Cold for all that are not cached, or the first `at_once` of them, so that they are read together."""
    found: list[Any] = [view.get(key) for key in keys]
    lacking = [key for key, value in zip(keys, found, strict=True) if value is ABSENT] if ABSENT in found else []
    if lacking:
        raise CacheMiss(dict.fromkeys(lacking[:at_once], zone), goes_on=at_once is not None and len(lacking) > at_once)
    return found


def for_each(items: Iterable[T], read: Callable[[T], R]) -> list[R]:
    """Read something for each item. Raises Cold for what any of them lacks, so that many items cost few rounds."""
    found: list[R] = []
    wanted: dict[Key, int] = {}
    goes_on = False
    for item in items:
        try:
            found.append(read(item))
        except CacheMiss as cold:
            wanted |= cold.wanted
            goes_on = goes_on or cold.goes_on
    if wanted:
        raise CacheMiss(wanted, goes_on=goes_on)
    return found
