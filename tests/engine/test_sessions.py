"""The settings with which the engine's Spark application starts."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from limnos.engine import sessions
from limnos.engine.sessions import StatementSessions
from tests.engine.test_failures import START


def test_the_engine_writes_no_event_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's own configuration may switch one on, and the tokens of statements would be in it."""
    started: list[dict[str, str]] = []

    def session(*_: object, config: dict[str, str], **_more: object) -> SimpleNamespace:
        started.append(config)
        return SimpleNamespace(sparkContext=MagicMock())

    monkeypatch.setattr(sessions, "session", session)
    StatementSessions(START).begin()

    assert started[0]["spark.eventLog.enabled"] == "false"
