# SPDX-License-Identifier: Apache-2.0
"""`CacheMiss`: the exception by which a synchronous reader names missing facts, and the functions that raise it.

After a cache miss the facts are loaded and the reader runs again, so it must have no side effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from limnos.view.keys import ABSENT, Key
from limnos.view.view import StoreView

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")


class CacheMiss(Exception):
    """Raised by a reader if it needs facts that are not cached.

    The caller loads the facts and runs the reader again. `missing_keys` maps each missing key to its zone. `goes_on`
    marks one part of a long read: many cache misses may follow, and other requests run between them.
    """

    def __init__(self, requested: dict[Key, int], *, goes_on: bool = False) -> None:
        super().__init__()
        self.missing_keys = requested
        self.goes_on = goes_on


def require_fact(view: StoreView, key: Key[V], *, zone: int) -> V:
    """Return a cached fact. Raises CacheMiss if it is not cached."""
    result = view.get(key)
    if result is ABSENT:
        raise CacheMiss({key: zone})
    return result


def require_facts(view: StoreView, keys: list[Key[V]], *, zone: int, at_once: int | None = None) -> list[V]:
    """Return several cached facts of one zone, in the order of `keys`.

    With `at_once`, a cache miss names at most that many facts, so that a long read is loaded in parts.

    Raises:
        CacheMiss: Some facts are not cached. It names all of them (or the first `at_once`), so one load reads them
            together.
    """
    results: list[Any] = [view.get(key) for key in keys]
    absent_keys = (
        [key for key, value in zip(keys, results, strict=True) if value is ABSENT] if ABSENT in results else []
    )
    if absent_keys:
        raise CacheMiss(
            dict.fromkeys(absent_keys[:at_once], zone), goes_on=at_once is not None and len(absent_keys) > at_once
        )
    return results


def for_each(items: Iterable[T], read: Callable[[T], R]) -> list[R]:
    """Call `read` for each item and return the results.

    Raises:
        CacheMiss: At least one call raised it. It names the missing facts of all calls, so many items need few loads.
    """
    results: list[R] = []
    requested: dict[Key, int] = {}
    goes_on = False
    for item in items:
        try:
            results.append(read(item))
        except CacheMiss as cold:
            requested |= cold.missing_keys
            goes_on = goes_on or cold.goes_on
    if requested:
        raise CacheMiss(requested, goes_on=goes_on)
    return results
