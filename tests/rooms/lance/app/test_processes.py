# SPDX-License-Identifier: Apache-2.0
"""Worker processes for Lance tables: started on demand, ended over their limits, with failures isolated from the
server.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import lance
import msgspec
import pyarrow as pa
import pytest

from limnos.config.settings import LanceSection
from limnos.formats.lance_contents import LanceDescription
from limnos.model.errors import BadRequest, NotFound, PermissionDenied, ServiceUnavailable, StateUnknown, TooLarge
from limnos.rooms.lance.app import processes as lance_processes_module
from limnos.rooms.lance.app.processes import LanceProcesses
from limnos.rooms.lance.app.worker_pool import lance_processes
from limnos.rooms.lance.services.workers import WorkerTask, storage_options_of
from limnos.rooms.lance.sources.questions import Describe, LanceWriteResult, Query, Write

pytestmark = pytest.mark.slow

T = TypeVar("T")


@pytest.fixture
def location(tmp_path: Path) -> str:
    """A table of two columns."""
    place = f"file://{tmp_path}/t"
    lance.write_dataset(pa.table({"id": [1], "name": ["a"]}), place)
    return place


def run(story: Callable[[LanceProcesses], Awaitable[T]], **settings: int) -> T:
    """Run a scenario with processes, and end them afterwards."""

    async def whole() -> T:
        processes = lance_processes(LanceSection(**settings))
        try:
            return await story(processes)
        finally:
            processes.close()

    return asyncio.run(whole())


async def described(processes: LanceProcesses, location: str, version: int | None = None) -> LanceDescription | None:
    """Request the description of a table."""
    response = await processes.ask(WorkerTask(Describe(location=location, options={}, version=version), caller="ana"))
    return msgspec.json.decode(response, type=LanceDescription | None)


def test_a_process_describes_a_table(location: str) -> None:
    """A worker process returns version, columns and counts. For a table without data it returns nothing."""

    async def story(processes: LanceProcesses) -> tuple[object, object]:
        return await described(processes, location), await described(processes, f"{location}x")

    description, nothing = run(story)

    assert (description.version, description.stats["num_fragments"], nothing) == (1, 1, None)  # type: ignore[attr-defined]


def test_missing_version_raises_same_error_as_in_process(location: str) -> None:
    """A missing version raises the same error as without a worker process."""
    with pytest.raises(NotFound) as caught:
        run(lambda processes: described(processes, location, 9))

    assert (caught.value.kind, caught.value.message) == ("version", "9")


def test_a_process_that_grows_too_large_is_ended(location: str) -> None:
    """A process that exceeds its memory limit is ended, and its caller gets an error immediately."""
    with pytest.raises(TooLarge, match="more memory"):
        run(lambda processes: described(processes, location), worker_bytes_max=1)


def test_a_dead_process_is_replaced(location: str) -> None:
    """A process that died while it was idle is replaced without an error."""

    async def story(processes: LanceProcesses) -> int:
        await described(processes, location)
        (pid,) = processes.pids()
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        description = await described(processes, location)
        return 0 if description is None else description.version

    assert run(story) == 1


def test_catalog_properties_become_lance_storage_options() -> None:
    """A catalog's properties for object stores are passed to Lance under its own names."""
    options = storage_options_of(
        {
            "s3.endpoint": "http://minio:9000",
            "s3.access-key-id": "k",
            "warehouse": "s3://b",
            "s3.path-style-access": "true",
        }
    )

    assert options == {"aws_endpoint": "http://minio:9000", "aws_access_key_id": "k", "allow_http": "true"}


def stream(rows: int = 100, batches: int = 4) -> bytes:
    """Return an Arrow stream of several batches of rows."""
    sink = pa.BufferOutputStream()
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "name": ["b"] * rows})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=rows // batches):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


async def pieces(data: bytes, *, then: Callable[[], object] = lambda: None) -> AsyncGenerator[bytes, None]:
    """Yield a body in two pieces, and run a callback between them."""
    yield data[: len(data) // 2]
    await asyncio.sleep(0.05)
    then()
    yield data[len(data) // 2 :]


def inserting(location: str, *, settled: Callable[[], Awaitable[None]] | None = None) -> tuple[WorkerTask, list[bool]]:
    """Return an insert into a table in progress, and whether it may have changed something."""

    async def still() -> None:
        """Check nothing: the insert is allowed."""

    marks: list[bool] = []
    question = Write(location=location, options={}, mode="append", batch_bytes_max=1 << 20)
    return WorkerTask(question, caller="ana", settled=settled or still, mark=marks.append), marks


def versions(location: str) -> int:
    """Return the number of versions of a table."""
    return len(lance.dataset(location).versions())


def test_rows_are_written_after_the_body_has_ended(location: str) -> None:
    """The rows of a body are written after the body has ended, the caller gets the result, and the process
    continues.
    """

    async def story(processes: LanceProcesses) -> tuple[LanceWriteResult, int]:
        worker_task, _ = inserting(location)
        response = await processes.feed(worker_task, pieces(stream()))
        return msgspec.json.decode(response, type=LanceWriteResult), len(processes.pids())

    done, left = run(story)
    assert (done.inserted, done.version, versions(location), left) == (100, 2, 2, 1)


def test_interrupted_body_writes_nothing(location: str) -> None:
    """If a body breaks off, the caller gets the error, nothing is written, and the process serves the next request."""

    def broken() -> None:
        raise BadRequest("The client disconnected")

    async def story(processes: LanceProcesses) -> list[int]:
        worker_task, marks = inserting(location)
        before = processes.pids()
        for _ in range(3):
            with pytest.raises(BadRequest, match="disconnected"):
                await processes.feed(worker_task, pieces(stream(), then=broken))
        assert marks == []
        await processes.feed(inserting(location)[0], pieces(stream()))
        return [*before, *processes.pids()]

    assert len(run(story)) == 1
    assert versions(location) == 2


def test_privileges_are_checked_after_the_whole_body(location: str) -> None:
    """The caller's privileges are checked after the whole body has arrived. Without them nothing is written."""

    async def refused() -> None:
        raise PermissionDenied("Not any more")

    async def story(processes: LanceProcesses) -> None:
        worker_task, marks = inserting(location, settled=refused)
        with pytest.raises(PermissionDenied):
            await processes.feed(worker_task, pieces(stream()))
        assert marks == []

    run(story)
    assert versions(location) == 1


def test_process_killed_before_whole_body_changes_nothing(location: str) -> None:
    """If a process is killed before it has the whole body, nothing was changed for certain, and the next request gets
    another process.
    """

    async def story(processes: LanceProcesses) -> None:
        def kill() -> None:
            (pid,) = processes.pids()
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        with pytest.raises(ServiceUnavailable, match="nothing was changed"):
            await processes.feed(inserting(location)[0], pieces(stream(), then=kill))
        assert versions(location) == 1
        await processes.feed(inserting(location)[0], pieces(stream()))

    run(story)
    assert versions(location) == 2


def test_process_death_after_whole_request_is_unknown_outcome(location: str) -> None:
    """If a process dies after it has the whole request, the outcome is reported as unknown."""

    async def story(processes: LanceProcesses) -> list[bool]:
        await described(processes, location)
        (pid,) = processes.pids()
        os.kill(pid, signal.SIGSTOP)
        worker_task, marks = inserting(location)
        task = asyncio.create_task(processes.feed(worker_task, pieces(stream())))
        await asyncio.wait({task}, timeout=0.5)
        assert worker_task.is_begun
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(StateUnknown, match="may have been made"):
            await task
        return marks

    assert run(story) == [True]


def test_request_timeout_ends_its_process_and_frees_its_slot(location: str) -> None:
    """A request whose time ends takes its process along, also in the middle of a body, and its slot is free again."""

    async def story(processes: LanceProcesses) -> None:
        task = asyncio.create_task(
            processes.feed(inserting(location)[0], pieces(stream(), then=lambda: task.cancel() and None))
        )
        with pytest.raises(asyncio.CancelledError):
            await task
        assert processes.pids() == []
        await described(processes, location)

    run(story, workers_max=1)
    assert versions(location) == 1


def test_process_is_ended_if_caller_stops_reading(location: str) -> None:
    """If a caller stops reading an answer, the process that produces it is ended."""

    async def story(processes: LanceProcesses) -> None:
        chunks = processes.stream(WorkerTask(Query(location=location, options={}), caller="ana"))
        assert (await anext(chunks))[:6] == b"ARROW1"
        await chunks.aclose()
        assert processes.pids() == []

    run(story)


def test_request_waiting_for_slot_is_refused_at_server_stop(location: str) -> None:
    """A request that waits for a slot when the server stops is refused, and no process is started for it."""

    async def story(processes: LanceProcesses) -> BaseException | None:
        chunks = processes.stream(WorkerTask(Query(location=location, options={}), caller="ana"))
        await anext(chunks)
        waiting = asyncio.create_task(described(processes, location))
        await asyncio.sleep(0)
        processes.close()
        await chunks.aclose()
        await asyncio.wait({waiting})
        assert processes.pids() == []
        return waiting.exception()

    assert isinstance(run(story, workers_max=1), ServiceUnavailable)


def test_worker_process_ends_with_its_server(location: str) -> None:
    """A worker process ends when its server has ended, also in the middle of work."""

    async def story(processes: LanceProcesses) -> None:
        await described(processes, location)
        (worker,) = processes._idle
        worker._wire.close()
        await asyncio.wait_for(asyncio.to_thread(os.waitpid, worker.pid, 0), 300)
        worker._ended = True

    run(story)


def test_process_start_continues_after_request_timeout(location: str) -> None:
    """A process that is still starting when its request's time ends continues to start, and serves the next request."""

    async def story(processes: LanceProcesses) -> None:
        impatient = asyncio.create_task(described(processes, location))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first = processes.pids()
        impatient.cancel()
        await asyncio.wait({impatient})
        assert processes.pids() == first
        description = await described(processes, location)
        assert description is not None
        assert processes.pids() == first

    run(story, workers_max=1)


def test_request_waiting_for_start_is_refused_at_server_stop(location: str) -> None:
    """A request that waits for a starting process when the server stops is refused, and no process remains."""

    async def story(processes: LanceProcesses) -> BaseException | None:
        waiting = asyncio.create_task(described(processes, location))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(processes.pids()) == 1
        processes.close()
        await asyncio.wait({waiting})
        assert processes.pids() == []
        return waiting.exception()

    assert isinstance(run(story), ServiceUnavailable)


def test_process_started_without_request_becomes_idle(location: str) -> None:
    """A process that has started without a waiting request becomes idle and serves later ones."""

    async def story(processes: LanceProcesses) -> None:
        impatient = asyncio.create_task(described(processes, location))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        impatient.cancel()
        (start,) = processes._starting.values()
        assert await start
        assert [worker.pid for worker in processes._idle] == processes.pids()

    run(story)


def test_process_that_never_becomes_ready_is_replaced(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that never becomes ready is replaced by another one."""

    async def story(processes: LanceProcesses) -> None:
        impatient = asyncio.create_task(described(processes, location))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (pid,) = processes.pids()
        os.kill(pid, signal.SIGSTOP)
        impatient.cancel()
        await asyncio.wait({impatient})
        monkeypatch.setattr(lance_processes_module, "START_MAX_S", 0.0)
        assert await described(processes, location) is not None
        assert pid not in processes.pids()

    run(story)


def test_early_refusal_is_answered_while_body_is_sent(location: str) -> None:
    """A request that is refused at once gets the answer while the client is still sending. The process serves the next
    request.
    """

    async def endless() -> AsyncGenerator[bytes, None]:
        yield b"no stream at all"
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)

    async def silent() -> AsyncGenerator[bytes, None]:
        yield b"no stream at all"
        await asyncio.Event().wait()

    async def story(processes: LanceProcesses) -> int:
        for body in (endless(), silent()):
            with pytest.raises(BadRequest, match="not an Arrow IPC stream"):
                await processes.feed(inserting(location)[0], body)
        await processes.feed(inserting(location)[0], pieces(stream()))
        return len(processes.pids())

    assert run(story) == 1
    assert versions(location) == 2
