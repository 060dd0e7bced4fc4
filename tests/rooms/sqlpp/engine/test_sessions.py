# SPDX-License-Identifier: Apache-2.0
"""The settings with which the engine's Spark application starts."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from msgspec import structs

from limnos.rooms.sqlpp.engine import sessions
from limnos.rooms.sqlpp.engine.sessions import StatementSessions, broadcast_bytes_max, client_settings
from limnos.rooms.sqlpp.language.jobs import EngineJob
from tests.rooms.sqlpp.engine.test_failures import START


def started_with(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the settings of an engine's Spark application."""
    started: list[dict[str, str]] = []

    def session(*_: object, config: dict[str, str], **_more: object) -> SimpleNamespace:
        started.append(config)
        return SimpleNamespace(sparkContext=MagicMock(), _jvm=MagicMock())

    monkeypatch.setattr(sessions, "session", session)
    StatementSessions(START).begin()

    return started[0]


def test_the_engine_writes_no_event_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's event log is off even if its own configuration enables it, because the log would contain statements'
    tokens.
    """
    assert started_with(monkeypatch)["spark.eventLog.enabled"] == "false"


def test_the_parsers_cache_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both settings that limit the cache of Spark's parser are set; without them it grows with each statement."""
    settings = started_with(monkeypatch)

    assert settings["spark.sql.parser.manageParserCaches"] == "true"
    assert 0 < int(settings["spark.sql.parser.parserDfaCacheFlushRatio"]) <= 25


@pytest.mark.parametrize(
    "memory,statements_max,size",
    [("1g", 8, 64_424_509), ("512m", 8, 32_212_254), ("16g", 8, 512 << 20), ("450m", 64, 16 << 20)],
)
def test_broadcasts_of_all_statements_fit_into_the_heap(memory: str, statements_max: int, size: int) -> None:
    """The broadcast tables of all concurrent statements are together smaller than the heap, up to a maximum for each
    and down to a minimum.
    """
    start = structs.replace(START, memory=memory, statements_max=statements_max)

    assert broadcast_bytes_max(start) == size


def test_results_and_broadcasts_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broadcast table is limited to a statement's share of the heap; a piece of a result to 512 MiB, for exports."""
    settings, size = started_with(monkeypatch), str(broadcast_bytes_max(START))

    assert (settings["spark.driver.maxResultSize"], settings["spark.sql.maxBroadcastTableSize"]) == (
        str(512 << 20),
        size,
    )


def test_job_tags_are_removed_after_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that a thread runs later do not have the tags of earlier jobs, also after a failure."""
    spark = MagicMock()
    monkeypatch.setattr(sessions, "session", lambda *_, **__: spark)
    monkeypatch.setattr(sessions, "another_session", lambda *_, **__: spark)
    monkeypatch.setattr(sessions, "library_of", lambda _: MagicMock())
    engine = StatementSessions(START)
    engine.begin()
    job = EngineJob(
        id="job-7",
        kind="query",
        plan=b"",
        slots=0,
        reads=(),
        target=None,
        returning=None,
        returning_slots=0,
        credential="x",
        deadline_ms=1,
    )

    def fail() -> None:
        with engine.of(job):
            spark.sparkContext.addJobTag.assert_called_once_with("job-7")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    spark.sparkContext.removeJobTag.assert_called_once_with("job-7")


@pytest.mark.parametrize("deadline_ms", [1, 500, 8_000, 300_000, 86_400_000])
def test_client_times_out_before_the_deadline(deadline_ms: int) -> None:
    """A statement's requests to the server end before its deadline, and after a minute at most."""
    settings = client_settings(deadline_ms)
    waits_ms = int(settings["rest.client.socket-timeout-ms"])

    assert 0 < waits_ms <= min(max(1, 0.8 * deadline_ms), 60_000)
    assert 0 < int(settings["rest.client.connection-timeout-ms"]) <= min(waits_ms, 5_000)


def test_memory_error_of_a_task_does_not_end_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark ends its JVM for an error of memory in a task, unless the depth of causes that it looks at is 0."""
    assert started_with(monkeypatch)["spark.executor.killOnFatalError.depth"] == "0"
