# SPDX-License-Identifier: Apache-2.0
"""The store's time: read from the store, advanced by a monotonic clock, and read again when the machine's clock
is set.
"""

from __future__ import annotations

import time

import pytest

from limnos.store.time_sources import OFFSET, StoreTime

HOUR_MS = 3_600_000


def test_node_with_a_fast_clock_uses_the_store_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose clock is an hour ahead uses the store's time, and reports the difference."""
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600)
    store_time = StoreTime()

    store_time.learn(int(real * 1000), time.monotonic())

    assert abs(store_time.now_ms() - real * 1000) < 60_000
    assert abs(store_time.offset_ms - HOUR_MS) < 60_000
    assert 3500 < OFFSET[()] < 3700


def test_node_time_does_not_jump_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the machine's clock is set while a node runs, the node's times do not jump, and the store's time is read again
    at once.
    """
    store_time = StoreTime()
    store_ms = time.time_ns() // 1_000_000
    store_time.learn(store_ms, time.monotonic())
    before = store_time.is_old()
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600)

    assert not before
    assert store_time.is_old()
    assert abs(store_time.now_ms() - store_ms) < 60_000


def test_machine_clock_is_used_before_the_first_store_time() -> None:
    """Before the store's time was read, the machine's clock is used, and a read is due."""
    store_time = StoreTime()

    assert store_time.is_old()
    assert abs(store_time.now_ms() - time.time() * 1000) < 60_000
