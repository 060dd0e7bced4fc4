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

from limnos.app import engines as module
from limnos.app.engine_files import RETRY_S, EngineFiles
from limnos.app.engines import SparkEngine
from limnos.engine.wire import EngineStart
from limnos.model.errors import ServiceUnavailable
from limnos.spark.files import SparkFiles
from limnos.sqlpp.errors import EngineFailed, EngineUnavailable, OutcomeUnknown, SqlppError, TextPosition
from limnos.sqlpp.jobs import EngineJob

START = EngineStart("http://h", "lake", "local", "1g", 3, 2, "", (), (), ())
Story = Callable[[SparkEngine], Awaitable[object]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], object]:
    """Run a story with an engine that has no Spark, and leave no process."""
    monkeypatch.setattr("limnos.app.engine_process.MODULE", "tests.engine.fake_engine")
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
    return EngineJob(id, kind, b"", 0, (), None, None, 0, "token", int(deadline_s * 1000), user)  # type: ignore[arg-type]


async def lines(rows: AsyncIterator[bytes]) -> list[bytes]:
    """All results."""
    return [line async for line in rows]


def pid_of(engine: SparkEngine) -> int:
    """The process that is there."""
    assert engine._process is not None
    return engine._process.pid


def test_rows_come_line_by_line(run: Callable[[Story], object]) -> None:
    """Results are lines, whatever frames they came in; several jobs go on at once in one process."""

    async def story(engine: SparkEngine) -> None:
        first, second = await asyncio.gather(lines(engine.run(job("rows 2"))), lines(engine.run(job("rows 0"))))

        assert first == [b'{"at":0}', b'"x"', b'{"at":1}', b'"x"']
        assert second == []

    run(story)


def test_a_refusal_keeps_its_place(run: Callable[[Story], object]) -> None:
    """An error of the language comes back as it was, and the process goes on."""

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(SqlppError) as told:
            await lines(engine.run(job("refuse")))
        pid = pid_of(engine)

        assert (told.value.number, told.value.place) == (1077, TextPosition(2, 5))
        assert await lines(engine.run(job("rows 1"))) == [b'{"at":0}', b'"x"']
        assert pid_of(engine) == pid

    run(story)


def test_a_process_that_dies_is_replaced(run: Callable[[Story], object]) -> None:
    """Whoever was at it is told so, in other words when data was to be changed; the next job has another process."""

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(SqlppError, match="try again"):
            await lines(engine.run(job("die")))
        with pytest.raises(SqlppError, match="completely or not at all"):
            await lines(engine.run(job("die", kind="insert")))

        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def test_who_is_told_to_try_again_may_do_so(run: Callable[[Story], object]) -> None:
    """A query whose engine dies may be sent again, and a change whose outcome nobody knows may not; a failure of
    the engine's own is neither.
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
    """Statements are told the reason and when to come again; until then no process is started, and after it one is."""

    async def story(engine: SparkEngine) -> None:
        with pytest.raises(EngineUnavailable, match="could not be started: no Java") as first:
            await lines(engine.run(job("unstarted")))
        engine._forget(engine._process)  # type: ignore[arg-type]  # it ends by itself soon
        with pytest.raises(EngineUnavailable, match="could not be started: no Java") as second:
            await lines(engine.run(job("rows 1")))

        assert first.value.retry_after_s == RETRY_S
        assert 1 <= second.value.retry_after_s <= RETRY_S
        assert engine._process is None
        engine._refused_until = 0.0  # as if its time were over
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def test_an_engine_without_a_place_to_work_is_told(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where its directory cannot be made a statement is told why and when to come again; it heals once there is
    room.
    """

    async def story(engine: SparkEngine) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(tempfile, "tempdir", str(tmp_path / "none"))
            with pytest.raises(EngineUnavailable, match=r"No such file or directory.*try again") as told:
                await lines(engine.run(job("rows 1", kind="insert")))
        assert told.value.retry_after_s == RETRY_S
        engine._refused_until = 0.0  # as if its time were over
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


class Files(EngineFiles):
    """Files that are there, in a directory, once they are prepared."""

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


def test_the_server_fetches_what_the_engine_is_given(run: Callable[[Story], object], tmp_path: Path) -> None:
    """An engine is told where its archives and its Java lie, and has the settings of Spark; statements that come
    together start one.
    """

    async def story(_: SparkEngine) -> None:
        files = Files(tmp_path)
        engine = SparkEngine(START, idle_s=60, files=files, settings={"LIMNOS__SPARK__CACHE": "/cache"})
        try:
            found = await asyncio.gather(*(lines(engine.run(job("told"))) for _ in range(2)))
        finally:
            engine.close()

        assert found == [[f'[["{tmp_path}/a.jar"],"{tmp_path}","/runtime","/cache"]'.encode()]] * 2
        assert files.count == 1

    run(story)


@pytest.mark.parametrize("fetched", [True, False])
def test_what_is_missing_is_fetched_at_the_start(
    run: Callable[[Story], object], fetched: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server that starts removes what killed ones left, and fetches archives that are not there, without a
    statement that asks.
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
    """The engine runs before any statement, and the first statement uses it."""

    async def story(_: SparkEngine) -> None:
        engine = SparkEngine(START, idle_s=60, warm=True)
        engine.begin()
        for thread in (each for each in threading.enumerate() if each.name == "engine-begin"):
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        await asyncio.gather(*module._KEPT)
        pid = pid_of(engine)
        found = await lines(engine.run(job("rows 1")))

        assert len(found) == 2
        assert pid_of(engine) == pid
        engine.close()

    run(story)


def test_a_warm_engine_that_cannot_start_is_logged(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server serves, and the first statement gets the reason."""

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


def test_a_killed_process_is_found_out_by_the_next_job(run: Callable[[Story], object]) -> None:
    """A process that was killed while nothing was asked of it costs nobody a statement."""

    async def story(engine: SparkEngine) -> None:
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        assert len(await lines(engine.run(job("rows 1")))) == 2
        assert pid_of(engine) != pid

    run(story)


def test_who_leaves_is_obeyed(run: Callable[[Story], object]) -> None:
    """A job that somebody ends is told so to who waits for it, and its process stays."""

    async def story(engine: SparkEngine) -> None:
        task = asyncio.create_task(lines(engine.run(job("obey"))))
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        await engine.cancel("obey")
        (told,) = await asyncio.gather(task, return_exceptions=True)

        assert isinstance(told, SqlppError)
        assert told.number == 41
        assert pid_of(engine) == pid

    run(story)


def test_who_takes_no_more_ends_a_job(run: Callable[[Story], object]) -> None:
    """Whoever stops taking results has ended the job, and its process stays."""

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


def test_who_does_not_obey_is_ended(run: Callable[[Story], object]) -> None:
    """A job past its deadline is told so; a process that does not end it is replaced, and its other jobs are told
    to try again.
    """

    async def story(engine: SparkEngine) -> None:
        other = asyncio.create_task(lines(engine.run(job("obey"))))
        with pytest.raises(SqlppError, match="ASX0030"):
            await lines(engine.run(job("deaf", deadline_s=-0.9)))
        pid = pid_of(engine)
        await asyncio.gather(*module._KEPT)
        (told,) = await asyncio.gather(other, return_exceptions=True)

        assert isinstance(told, SqlppError)
        assert "try again" in told.text
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert len(await lines(engine.run(job("rows 1")))) == 2

    run(story)


def test_an_engine_that_starts_is_left_to_start(
    run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement whose time ends before a new engine has answered anything ends alone; a later one replaces it."""
    monkeypatch.setattr(module, "START_S", 60)

    async def story(engine: SparkEngine) -> None:
        pids = []
        for target in ("deaf", "rows 1", "deaf"):
            if target == "deaf":
                with pytest.raises(SqlppError, match="ASX0030"):
                    await lines(engine.run(job(target, deadline_s=-0.9)))
                pids.append(pid_of(engine))
                await asyncio.gather(*module._KEPT)
            else:
                assert len(await lines(engine.run(job(target)))) == 2
                pids.append(pid_of(engine))
        await lines(engine.run(job("rows 1")))

        assert pids[0] == pids[1] == pids[2] != pid_of(engine)

    run(story)


def test_no_user_takes_the_last_place(run: Callable[[Story], object]) -> None:
    """Of two places a user has one: who asks for more waits, within the time of the statement, and others do not."""

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


def test_no_user_fills_the_queue(run: Callable[[Story], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where many statements of a user wait, the next one is told to come again, and one of somebody else still
    waits for its turn.
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
    """Its environment is what it needs, its directory its own; both are gone with it."""

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


def test_an_engine_that_nobody_needs_goes(run: Callable[[Story], object]) -> None:
    """When nothing has been asked of it for its time, the process is ended; never while a job is at work."""

    async def story(engine: SparkEngine) -> None:
        await lines(engine.run(job("rows 1")))
        pid = pid_of(engine)
        engine._tire()

        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert engine._process is None

    run(story)
