"""The store's time: learned from the store, counted on, asked for again when the clock on the wall was set."""

from __future__ import annotations

import time

import pytest

from limnos.store.time_sources import OFFSET, StoreTime

HOUR_MS = 3_600_000


def test_clock_ahead_is_known_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node an hour ahead goes by the store's time, and says by how much it is off."""
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600)
    found = StoreTime()

    found.learn(int(real * 1000), time.monotonic())

    assert abs(found.now_ms() - real * 1000) < 60_000
    assert abs(found.offset_ms - HOUR_MS) < 60_000
    assert 3500 < OFFSET[()] < 3700


def test_clock_that_is_set_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets the machine's clock while a node runs does not move its times; the store is asked again at once."""
    found = StoreTime()
    store_ms = time.time_ns() // 1_000_000
    found.learn(store_ms, time.monotonic())
    before = found.is_old()
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600)

    assert not before
    assert found.is_old()
    assert abs(found.now_ms() - store_ms) < 60_000


def test_store_that_was_never_asked() -> None:
    """Before anything was learned the machine's clock is all there is, and asking is due."""
    found = StoreTime()

    assert found.is_old()
    assert abs(found.now_ms() - time.time() * 1000) < 60_000
