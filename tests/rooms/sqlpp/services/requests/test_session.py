# SPDX-License-Identifier: Apache-2.0
"""The deadline of a request of the query service does not move with the wall clock."""

from __future__ import annotations

import time

import pytest

from limnos.rooms.sqlpp.services.requests.session import StatementSession
from tests.backends import StoreLab
from tests.inprocess import Node

DAY_MS = 86_400_000


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS], ids=["back", "ahead"])
def test_deadline_stays_when_the_clock_jumps(lab: StoreLab, monkeypatch: pytest.MonkeyPatch, jump_ms: int) -> None:
    """A request has the same time left after the store's clock went back or ahead by a day."""
    node = Node(lab.open())
    clock = node.services.store.time
    now_ms = clock.now_ms()
    session = StatementSession(ctx=node.ctx("ana"), now_ms=now_ms, parameters={}, ends_at=time.monotonic() + 300)
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + jump_ms)

    assert 0 < session.seconds_left <= 300
