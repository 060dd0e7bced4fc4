# SPDX-License-Identifier: Apache-2.0
"""LRU caches of a node, bounded by their number of values.

Must not know what is cached.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LastUsed(Generic[K, V]):
    """A cache that evicts the least recently used value when it is full."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def values(self) -> list[V]:
        """Return the cached values, the least recently used first."""
        return list(self._kept.values())

    def get(self, key: K) -> V | None:
        """Return a value and make it the most recently used one; None if it is not cached."""
        result = self._kept.get(key)
        if result is not None:
            self._kept.move_to_end(key)
        return result

    def put(self, key: K, value: V) -> None:
        """Cache a value; the least recently used value is evicted if the cache is full."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._count_max:
            self._kept.popitem(last=False)
