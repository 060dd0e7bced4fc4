# SPDX-License-Identifier: Apache-2.0
"""The settings with which the engine's Spark application starts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import MagicMock

import pytest
from msgspec import structs

from limnos.rooms.sqlpp.engine import sessions
from limnos.rooms.sqlpp.engine.sessions import StatementSessions, broadcast_bytes_max, client_settings
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language.jobs import EngineJob
from tests.rooms.sqlpp.engine.test_failures import START


def started_with(monkeypatch: pytest.MonkeyPatch, start: EngineStart = START) -> dict[str, str]:
    """Return the settings of an engine's Spark application."""
    started: list[dict[str, str]] = []

    def session(*_: object, config: dict[str, str], **_more: object) -> SimpleNamespace:
        started.append(config)
        return SimpleNamespace(sparkContext=MagicMock(), _jvm=MagicMock())

    monkeypatch.setattr(sessions, "session", session)
    StatementSessions(start).begin()

    return started[0]


def test_the_engine_writes_no_event_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's event log is off even if its own configuration enables it, because the log would contain statements'
    tokens.
    """
    assert started_with(monkeypatch)["spark.eventLog.enabled"] == "false"


def test_operator_settings_add_to_those_of_the_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings of an operator place the engine on a cluster and may enable its pages. They do not replace a setting of
    the engine, and the log says so.
    """
    config = {"spark.cores.max": "2", "spark.ui.enabled": "true", "spark.eventLog.enabled": "true"}

    settings = started_with(monkeypatch, structs.replace(START, config=config))

    assert (settings["spark.cores.max"], settings["spark.ui.enabled"]) == ("2", "true")
    assert settings["spark.eventLog.enabled"] == "false"
    assert "engine.conf: spark.eventLog.enabled is left out" in caplog.text
    assert started_with(monkeypatch)["spark.ui.enabled"] == "false"


class FakeStage(NamedTuple):
    """The tasks of a stage."""

    numTasks: int  # noqa: N815 - the names of Spark
    numCompletedTasks: int  # noqa: N815
    numActiveTasks: int = 0  # noqa: N815


@pytest.mark.parametrize(
    "master,executors,stages,lacks",
    [
        ("spark://h:1", 0, [FakeStage(2, 2), FakeStage(3, 1)], True),
        ("spark://h:1", 0, [FakeStage(2, 2)], False),
        ("spark://h:1", 0, [], False),
        ("spark://h:1", 1, [FakeStage(2, 0)], False),
        ("local[3]", 0, [FakeStage(2, 0)], False),
    ],
)
def test_job_lacks_executor_only_if_its_tasks_wait(
    monkeypatch: pytest.MonkeyPatch, master: str, executors: int, *, stages: list[FakeStage], lacks: bool
) -> None:
    """A job lacks an executor if it has tasks that are not done, and the engine's application on a cluster has none."""
    context = MagicMock(master=master)
    context._jsc.sc().getExecutorMemoryStatus().size.return_value = 1 + executors
    context._jsc.sc().statusTracker().getJobIdsForTag.return_value = [7]
    context.statusTracker().getJobInfo.return_value = SimpleNamespace(stageIds=range(len(stages)))
    context.statusTracker().getStageInfo.side_effect = lambda number: stages[number]
    monkeypatch.setattr(sessions, "session", lambda *_, **__: MagicMock(sparkContext=context))
    engine = StatementSessions(structs.replace(START, master=master))
    engine.begin()

    assert engine.lacks_executor("job") is lacks


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
