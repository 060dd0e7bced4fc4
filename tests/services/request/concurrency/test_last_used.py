# SPDX-License-Identifier: Apache-2.0
"""Caches that evict the least recently used value."""

from __future__ import annotations

from limnos.services.request.concurrency.last_used import LastUsed


def test_least_recently_used_value_is_evicted() -> None:
    """The cache has a limited number of values and evicts the least recently used."""
    last_used = LastUsed[str, int](2)
    last_used.put("a", 1)
    last_used.put("b", 2)
    last_used.get("a")
    last_used.put("c", 3)

    assert [last_used.get(key) for key in "abc"] == [1, None, 3]
    assert len(last_used) == 2


def test_replaced_value_counts_as_used() -> None:
    """A value that replaces another one is the most recently used."""
    last_used = LastUsed[str, int](2)
    last_used.put("a", 1)
    last_used.put("b", 2)
    last_used.put("a", 3)
    last_used.put("c", 4)

    assert [last_used.get(key) for key in "abc"] == [3, None, 4]
