# SPDX-License-Identifier: Apache-2.0
"""The engine process: started on demand, killed if it does not respond, and replaced after it has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from limnos.app.engine_files import RETRY_S, EngineFiles
from limnos.model.errors import ServiceUnavailable
from limnos.rooms.sqlpp.app import engines as module
from limnos.rooms.sqlpp.app.engines import SparkEngine
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language.errors import EngineFailed, EngineUnavailable, OutcomeUnknown, SqlppError, TextPosition
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.spark.files import SparkFiles

START = EngineStart(
    uri="http://h",
    metalake="lake",
    master="local",
    memory="1g",
    slots=3,
    statements_max=2,
    scratch="",
    readable=(),
    writable=(),
    closed=(),
)
Story = Callable[[SparkEngine], Awaitable[object]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], object]:
    """Run a scenario with an engine that does not have Spark, and end its process afterwards."""
    monkeypatch.setattr("limnos.rooms.sqlpp.app.engine_process.MODULE", "tests.rooms.sqlpp.engine.fake_engine")
    monkeypatch.setattr(module, "GRACE_S", 0.3)
    monkeypatch.setattr(module, "START_S", 0)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.setenv("LIMNOS__DATABASE__URL", "postgresql://secret@h/x")

    def go(story: Story) -> object:
        async def whole() -> object:
            engine = SparkEngine(START, idle_s=60)
            try:
                return await story(engine)
            finally:
                engine.close()

        return asyncio.run(whole())

    return go


def job(id: str, *, kind: str = "query", deadline_s: float = 30, user: str = "") -> EngineJob:
    """A job that the stand-in knows by its id."""
    return EngineJob(
        id=id,
        kind=kind,
        plan=b"",
        slots=0,
        reads=(),
        target=None,
        returning=None,
        returning_slots=0,
        credential="token",
        deadline_ms=int(deadline_s * 1000),
        user=user,
    )  # type: ignore[arg-type]


async def lines(rows: AsyncIterator[bytes]) -> list[bytes]:
    """Return all results of a job."""
    return [line async for line in rows]


def pid_of(engine: SparkEngine) -> int:
    """Return the id of the engine's process."""
    assert engine._process is not None
    return engine._process.pid


def test_results_are_lines_for_any_split_into_frames(run: Callable[[Story], object]) -> None:
    """Results are lines, however they were split into frames. Several jobs run concurrently in one process."""

    async def story(engine: SparkEngine) -> None:
        first, second = await asyncio.gather(lines(engine.run(job("rows 2"))), lines(engine.run(job("rows 0"))))

        assert first == [b'{"at":0}', b'"x"', b'{"at":1}', b'"x"']
        assert second == []

    run(story)


def test_language_error_is_returned_unchanged(run: Callable[[Story], object]) -> None:
    """An error of the language is returned unchanged, and the process continues."""

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(SqlppError) as refused:
            await lines(engine.run(job("refuse")))
        pid = pid_of(engine)

        assert (refused.value.number, refused.value.place) == (1077, TextPosition(2, 5))
        assert await lines(engine.run(job("rows 1"))) == [b'{"at":0}', b'"x"']
        assert pid_of(engine) == pid

    run(story)


def test_a_process_that_dies_is_replaced(run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process dies, its callers get an error, which differs for statements that change data. The next job starts
    another process. The log has the exit code of each process that ended by itself, and of no other.
    """
    codes: list[object] = []
    monkeypatch.setattr(
        "limnos.rooms.sqlpp.app.engine_process.log.warning", lambda _event, **fields: codes.append(fields["exit_code"])
    )

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(SqlppError, match="try again"):
            await lines(engine.run(job("die")))
        with pytest.raises(SqlppError, match="completely or not at all"):
            await lines(engine.run(job("die", kind="insert")))

        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)
    assert codes == [3, 3]


def test_ended_process_is_not_killed_again(run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second end of a process does nothing: its id may be another's by then."""
    killed = []

    async def story(engine: SparkEngine) -> None:
        await lines(engine.run(job("rows 1")))
        process = engine._process
        assert process is not None
        process.end()
        monkeypatch.setattr("limnos.rooms.sqlpp.app.engine_process.os.killpg", lambda *args: killed.append(args))
        process.end()

    run(story)
    assert killed == []


def test_only_safe_failures_allow_a_retry(run: Callable[[Story], object]) -> None:
    """The error for a query whose engine died allows a retry. The error for a change with unknown outcome does not, and
    neither does a failure of the engine itself.
    """

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(
            EngineUnavailable, match="ASX3102: The engine ended in the middle of the statement: try again"
        ):
            await lines(engine.run(job("die")))
        with pytest.raises(OutcomeUnknown):
            await lines(engine.run(job("die", kind="upsert")))
        with pytest.raises(EngineFailed, match="odd"):
            await lines(engine.run(job("unforeseen")))

    run(story)


def test_an_engine_that_cannot_start_is_not_tried_at_each_statement(run: Callable[[Story], object]) -> None:
    """If an engine cannot start, statements get the reason and a time to retry. Until then no process is started."""

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(EngineUnavailable, match="could not be started: no Java") as first:
            await lines(engine.run(job("unstarted")))
        engine._engines.end_all()  # it ends by itself soon
        with pytest.raises(EngineUnavailable, match="could not be started: no Java") as second:
            await lines(engine.run(job("rows 1")))

        assert first.value.retry_after_s == RETRY_S
        assert 1 <= second.value.retry_after_s <= RETRY_S
        assert engine._process is None
        engine._refused_until = 0.0  # as if the time had passed
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def test_uncreatable_engine_directory_is_reported(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the engine's directory cannot be created, statements get the reason and a time to retry. The engine starts
    once there is space.
    """

    async def story(engine: SparkEngine) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(tempfile, "tempdir", str(tmp_path / "none"))
            with pytest.raises(EngineUnavailable, match=r"No such file or directory.*try again") as refused:
                await lines(engine.run(job("rows 1", kind="insert")))
        assert refused.value.retry_after_s == RETRY_S
        engine._refused_until = 0.0  # as if the time had passed
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


class Files(EngineFiles):
    """Files in a directory, which exist once they are prepared."""

    def __init__(self, directory: Path, *, fetched: bool = True) -> None:
        super().__init__(self._made, are_fetched=lambda: fetched)
        (directory / "bin").mkdir()
        (directory / "bin/java").touch()
        (directory / "a.jar").touch()
        self.directory = directory
        self.count = 0

    def _made(self, _progress: object) -> SparkFiles:
        self.count += 1
        return SparkFiles((f"{self.directory}/a.jar",), str(self.directory), "/runtime")


def test_engine_gets_paths_of_archives_java_and_spark_settings(run: Callable[[Story], object], tmp_path: Path) -> None:
    """The engine gets the paths of its archives and its Java, and the Spark settings. Concurrent statements start one
    engine.
    """

    async def story(_: SparkEngine) -> None:
        files = Files(tmp_path)
        engine = SparkEngine(START, idle_s=60, files=files, settings={"LIMNOS__SPARK__CACHE": "/cache"})
        try:
            outputs = await asyncio.gather(*(lines(engine.run(job("told"))) for _ in range(2)))
        finally:
            engine.close()

        assert outputs == [[f'[["{tmp_path}/a.jar"],"{tmp_path}","/runtime","/cache"]'.encode()]] * 2
        assert files.count == 1

    run(story)


@pytest.mark.parametrize("fetched", [True, False])
def test_server_start_downloads_archives_and_deletes_old_dirs(
    run: Callable[[Story], object], fetched: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A start of the server deletes directories of killed servers and downloads missing archives, without a
    statement.
    """
    looked = threading.Event()
    monkeypatch.setattr(module, "remove_stale", lambda: looked.set() or 1)

    async def story(_: SparkEngine) -> None:
        files = Files(tmp_path, fetched=fetched)
        engine = SparkEngine(START, idle_s=60, files=files)
        engine.begin()
        for thread in (each for each in threading.enumerate() if each.name == "engine-begin"):
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        if not fetched:
            await files.get(within_s=60)
        engine.close()

        assert looked.is_set()
        assert files.count == (0 if fetched else 1)

    run(story)


def test_a_warm_engine_starts_with_the_server(run: Callable[[Story], object]) -> None:
    """With a warm engine, the engine starts with the server, and the first statement uses it."""

    async def story(_: SparkEngine) -> None:
        engine = SparkEngine(START, idle_s=60, warm=True)
        engine.begin()
        for thread in (each for each in threading.enumerate() if each.name == "engine-begin"):
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        await asyncio.gather(*module._KEPT)
        pid = pid_of(engine)
        output_lines = await lines(engine.run(job("rows 1")))

        assert len(output_lines) == 2
        assert pid_of(engine) == pid
        engine.close()

    run(story)


def test_a_warm_engine_that_cannot_start_is_logged(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a warm engine cannot start, the server logs that and serves, and the first statement gets the reason."""

    def fail(_progress: object) -> SparkFiles:
        raise ServiceUnavailable("no Java")

    async def story(_: SparkEngine) -> None:
        engine = SparkEngine(START, idle_s=60, warm=True, files=EngineFiles(fail))
        engine.begin()
        for thread in (each for each in threading.enumerate() if each.name == "engine-begin"):
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        await asyncio.gather(*module._KEPT)

        with pytest.raises(EngineUnavailable, match="no Java"):
            await lines(engine.run(job("rows 1")))
        engine.close()

    monkeypatch.setattr(module, "START_S", 60)
    run(story)


def test_next_job_replaces_a_killed_idle_process(run: Callable[[Story], object]) -> None:
    """If an idle process was killed, the next job notices it and runs in a new process."""

    async def story(engine: SparkEngine) -> None:
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        assert len(await lines(engine.run(job("rows 1")))) == 2
        assert pid_of(engine) != pid

    run(story)


def test_cancelled_job_ends_and_its_process_continues(run: Callable[[Story], object]) -> None:
    """A job that is cancelled ends with an error for its caller, and its process continues."""

    async def story(engine: SparkEngine) -> None:
        task = asyncio.create_task(lines(engine.run(job("obey"))))
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        await engine.cancel("obey")
        (error,) = await asyncio.gather(task, return_exceptions=True)

        assert isinstance(error, SqlppError)
        assert error.number == 41
        assert pid_of(engine) == pid

    run(story)


def test_job_is_cancelled_if_caller_stops_reading(run: Callable[[Story], object]) -> None:
    """If a caller stops reading results, the job is cancelled and its process continues."""

    async def story(engine: SparkEngine) -> None:
        task = asyncio.create_task(lines(engine.run(job("obey"))))
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.gather(*module._KEPT)

        assert task.cancelled()
        assert pid_of(engine) == pid
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def is_alive(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def leave_stuck(engine: SparkEngine, name: str, *, user: str = "") -> int:
    """Run a job that ignores its deadline, until the engine knows that it is stuck. Returns the process's id."""
    with pytest.raises(SqlppError, match="ASX0030"):
        await lines(engine.run(job(name, deadline_s=-0.9, user=user)))
    pid = pid_of(engine)
    await asyncio.gather(*module._KEPT)
    return pid


async def begun(engine: SparkEngine, name: str) -> asyncio.Task[list[bytes]]:
    """Start a job that runs until it is cancelled."""
    task = asyncio.create_task(lines(engine.run(job(name))))
    async with asyncio.timeout(30):
        while engine._jobs.get(name) is None:  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0.01)
    return task


async def cancelled(engine: SparkEngine, name: str, task: asyncio.Task[list[bytes]]) -> str:
    """Cancel a running job. Returns its error."""
    await engine.cancel(name)
    (error,) = await asyncio.gather(task, return_exceptions=True)
    return str(error)


def test_process_that_ignores_a_deadline_is_replaced_behind_others(run: Callable[[Story], object]) -> None:
    """A job past its deadline gets an error. If its process does not end the job, the next job gets another process,
    and the process ends when its other jobs have ended, which get their own results.
    """

    async def story(engine: SparkEngine) -> None:
        other = await begun(engine, "obey")
        pid = await leave_stuck(engine, "deaf")

        assert len(await lines(engine.run(job("rows 1")))) == 2
        assert pid_of(engine) != pid
        assert is_alive(pid)
        assert not other.done()
        assert "cancelled" in await cancelled(engine, "obey", other)
        assert not is_alive(pid)
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def test_process_with_only_stuck_jobs_ends_at_once(run: Callable[[Story], object]) -> None:
    """A process whose other jobs have ended is killed with its stuck job."""

    async def story(engine: SparkEngine) -> None:
        assert not is_alive(await leave_stuck(engine, "deaf"))

    run(story)


def test_stuck_job_counts_for_its_user_until_its_process_ends(run: Callable[[Story], object]) -> None:
    """While a replaced process runs, its stuck jobs use slots of their user alone: the user's next job waits, others
    have all slots of the new process.
    """

    async def story(engine: SparkEngine) -> None:
        other = await begun(engine, "obey")
        await leave_stuck(engine, "deaf", user="ann")
        with pytest.raises(SqlppError, match="ASX0030"):
            await lines(engine.run(job("rows 1", deadline_s=0.2, user="ann")))

        assert len(await lines(engine.run(job("rows 1", user="ben")))) == 2
        await cancelled(engine, "obey", other)
        assert len(await lines(engine.run(job("rows 1", user="ann")))) == 2

    run(story)


def test_second_process_is_replaced_after_the_first_has_ended(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one replaced process runs, another one with a stuck job takes jobs further, and is replaced afterwards."""
    monkeypatch.setattr("tests.rooms.sqlpp.app.test_engines.START", structs.replace(START, statements_max=6))

    async def story(engine: SparkEngine) -> None:
        first = await begun(engine, "obey 1")
        await leave_stuck(engine, "deaf 1", user="ann")
        second = await begun(engine, "obey 2")
        pid = await leave_stuck(engine, "deaf 2", user="ann")

        await lines(engine.run(job("rows 1")))
        assert pid_of(engine) == pid
        await cancelled(engine, "obey 1", first)
        await lines(engine.run(job("rows 1")))
        assert pid_of(engine) != pid
        assert is_alive(pid)
        await cancelled(engine, "obey 2", second)
        assert not is_alive(pid)

    run(story)


def test_unread_result_keeps_no_slot_after_its_deadline(run: Callable[[Story], object]) -> None:
    """A client that does not read its results loses the slot at the deadline of its statement, and gets an error when
    it reads on. The process continues.
    """

    async def story(engine: SparkEngine) -> None:
        rows = engine.run(job("rows 5000", deadline_s=0.5, user="ann"))
        first = await anext(rows)
        pid = pid_of(engine)

        assert first == b'{"at":0}'
        assert len(await lines(engine.run(job("rows 1", deadline_s=20, user="ann")))) == 2
        assert pid_of(engine) == pid
        with pytest.raises(SqlppError, match="ASX0030"):
            await lines(rows)

    run(story)


def test_damaged_process_is_replaced_behind_others(run: Callable[[Story], object]) -> None:
    """After an error that every later job would get, the next job gets another process, and running jobs go on."""

    async def story(engine: SparkEngine) -> None:
        other = await begun(engine, "obey")
        pid = pid_of(engine)
        with pytest.raises(EngineFailed, match="odd"):
            await lines(engine.run(job("damaged")))

        await lines(engine.run(job("rows 1")))
        assert pid_of(engine) != pid
        assert "cancelled" in await cancelled(engine, "obey", other)
        assert not is_alive(pid)

    run(story)


def test_statement_timeout_does_not_end_a_starting_engine(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement whose time ends while a new engine starts ends alone. When the engine has answered another one, it is
    replaced if it does not end that statement.
    """
    monkeypatch.setattr(module, "START_S", 60)

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(SqlppError, match="ASX0030"):
            await lines(engine.run(job("deaf", deadline_s=-0.9)))
        pid = pid_of(engine)
        assert len(await lines(engine.run(job("rows 1")))) == 2
        assert pid_of(engine) == pid
        await asyncio.gather(*module._KEPT)
        await lines(engine.run(job("rows 1")))

        assert pid_of(engine) != pid

    run(story)


def test_user_cannot_occupy_the_last_slot(run: Callable[[Story], object]) -> None:
    """Of two slots a user can have one. A second statement of that user waits up to its deadline, and other users'
    statements do not wait.
    """

    async def story(engine: SparkEngine) -> None:
        long = asyncio.create_task(lines(engine.run(job("obey", user="ana"))))
        await asyncio.sleep(0)
        behind = asyncio.create_task(lines(engine.run(job("rows 1", user="ana"))))
        with pytest.raises(SqlppError, match="ASX0030"):
            await lines(engine.run(job("rows 3", user="ana", deadline_s=0.01)))
        for _ in range(2):
            assert len(await lines(engine.run(job("rows 2", user="bob")))) == 4

        assert not behind.done()
        await engine.cancel("obey")
        await asyncio.gather(long, return_exceptions=True)
        assert len(await behind) == 2

    run(story)


def test_waiting_statements_of_a_user_are_limited(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a user has as many waiting statements as allowed, the next one is refused with an error that allows a retry.
    Another user's statement can still wait.
    """
    monkeypatch.setattr(module, "USER_WAITING_MAX", 1)
    monkeypatch.setattr(module, "GRACE_S", 60.0)  # a process that is only starting obeys later

    async def story(engine: SparkEngine) -> None:
        busy = [asyncio.create_task(lines(engine.run(job("obey", user=who)))) for who in ("ana", "bob")]
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(lines(engine.run(job("rows 1", user="ana"))))]
        await asyncio.sleep(0)
        with pytest.raises(ServiceUnavailable, match="nothing was changed: try again"):
            await lines(engine.run(job("rows 1", user="ana")))
        waiting.append(asyncio.create_task(lines(engine.run(job("rows 1", user="eve")))))
        await asyncio.sleep(0)
        for each in busy:
            each.cancel()

        assert [len(each) for each in await asyncio.gather(*waiting)] == [2, 2]
        await asyncio.gather(*module._KEPT)

    run(story)


def test_an_engine_is_given_no_secret(run: Callable[[Story], object]) -> None:
    """The environment of an engine has only the necessary variables, and its own directory. Both contain no secret, and
    the directory is deleted with the engine.
    """

    async def story(engine: SparkEngine) -> str:
        (text,) = await lines(engine.run(job("environment")))
        assert engine._process is not None
        scratch = engine._process.scratch
        engine.close()

        assert b"LIMNOS" not in text
        assert scratch.encode() in text
        assert not Path(scratch).exists()
        return scratch

    run(story)


def test_idle_engine_is_ended(run: Callable[[Story], object]) -> None:
    """An engine without a job for its idle time is ended, but never while a job runs."""

    async def story(engine: SparkEngine) -> None:
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        engine._end_if_idle()

        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert engine._process is None

    run(story)
