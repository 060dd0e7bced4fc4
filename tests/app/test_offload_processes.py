# SPDX-License-Identifier: Apache-2.0
"""Processes for offloaded work: started on demand, ended with their last caller, and replaced when they die."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

import msgspec
import pytest
from structlog.testing import capture_logs

from limnos.app import offload_processes as module
from limnos.app import worker_process
from limnos.app.offload_processes import OffloadProcesses
from limnos.formats.iceberg import metadata, read_restrictions
from limnos.formats.iceberg.offloaded import OFFLOADED_WORK
from limnos.model.errors import BadRequest, CommitConflict, ServiceUnavailable, UnsupportedOperation
from limnos.rooms.sqlpp.language import EmptyNameResolver, bind, parse_body
from limnos.rooms.sqlpp.language.offloaded_work import EVALUATE, PLAIN
from limnos.rooms.sqlpp.language.plan import wire
from limnos.telemetry.logs import configure
from tests.formats.iceberg.samples import appended, table

pytestmark = pytest.mark.slow

BODY = metadata.encode(appended(3))
REFS = "iceberg-refs-only"
COMMIT = "iceberg-commit"
TERMS = b'{"uuid":"x","now_ms":1,"previous_location":"s3://a/b"}'


@pytest.fixture
def run() -> Callable[[Callable[[OffloadProcesses], Awaitable[object]]], object]:
    """Run a scenario with at most one process, and end it afterwards."""

    def go(story: Callable[[OffloadProcesses], Awaitable[object]]) -> object:
        async def whole() -> object:
            offloader = OffloadProcesses(processes_max=1)
            try:
                return await story(offloader)
            finally:
                offloader.close()

        return asyncio.run(whole())

    return go


def is_alive(pid: int) -> bool:
    """Say whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def stuck(offloader: OffloadProcesses) -> tuple[int, asyncio.Task[list[bytes]]]:
    """Begin offloaded work in a process that hangs. Returns the process and the waiting task."""
    await offloader.do(REFS, BODY)
    (pid,) = offloader.pids()
    os.kill(pid, signal.SIGSTOP)
    task = asyncio.create_task(offloader.do(REFS, BODY))
    await asyncio.sleep(0)
    return pid, task


def test_no_process_is_started_before_work_is_offloaded(run: Callable[..., object]) -> None:
    """Without offloaded work the server has no further processes."""

    async def story(offloader: OffloadProcesses) -> list[int]:
        return offloader.pids()

    assert run(story) == []


def test_offloaded_work_returns_the_functions_result(run: Callable[..., object]) -> None:
    """The result is what the function returns, and one process does one work item after the other."""

    async def story(offloader: OffloadProcesses) -> tuple[list[list[bytes]], int]:
        return [await offloader.do(REFS, BODY) for _ in range(3)], len(offloader.pids())

    assert run(story) == ([OFFLOADED_WORK[REFS](BODY)] * 3, 1)


@pytest.mark.parametrize(
    "request_body,error",
    [
        (b'{"updates":[{"action":"frobnicate"}]}', BadRequest),
        (b'{"requirements":[{"type":"assert-table-uuid","uuid":"y"}]}', CommitConflict),
        (b"nonsense", BadRequest),
        (b'{"updates":' + b"[" * 5_000 + b"]" * 5_000 + b"}", BadRequest),
    ],
)
def test_error_of_offloaded_work_is_raised_unchanged(
    run: Callable[..., object], request_body: bytes, error: type[Exception]
) -> None:
    """An error of offloaded work is raised with the same message, and the process continues."""

    async def story(offloader: OffloadProcesses) -> str:
        with pytest.raises(error) as caught:
            await offloader.do(COMMIT, metadata.encode(table()), request_body, TERMS)
        await offloader.do(REFS, BODY)
        return str(caught.value)

    message = run(story)

    with pytest.raises(error) as caught:
        OFFLOADED_WORK[COMMIT](metadata.encode(table()), request_body, TERMS)
    assert message == str(caught.value)


def test_log_has_file_name_that_a_refusal_omits(run: Callable[..., object], tmp_path: Path) -> None:
    """A file that cannot be rewritten for a restricted reader is refused without its name. The log has the name and the
    cause.
    """
    place = tmp_path.resolve()
    (place / "City=Rome.parquet").write_bytes(b"no file of that kind")
    at = f"file://{place}/City=Rome.parquet"
    file = {
        "content": "data",
        "file-path": at,
        "file-format": "parquet",
        "partition": [],
        "spec-id": 0,
        "record-count": 1,
        "file-size-in-bytes": 20,
    }
    shape = {"metadata": read_restrictions.reading_shape(table()), "row_filter": None, "masks": {}}
    arguments = {
        "shape": shape,
        "task": {"data-file": file},
        "deletes": [],
        "roots": [f"file://{place}"],
        "into": f"file://{place}/shown",
        "name": "n",
        "properties": {},
        "kept": [],
        "open_within": [str(place)],
        "span": None,
    }

    async def story(offloader: OffloadProcesses) -> str:
        with pytest.raises(UnsupportedOperation) as caught:
            await offloader.do("restrict-file", msgspec.json.encode(arguments))
        return str(caught.value)

    configure("info")  # by default nothing below a warning is logged
    with capture_logs() as logs:
        message = run(story)

    (line,) = [each for each in logs if each["event"] == "offloaded work was refused"]
    assert "Rome" not in str(message)
    assert at in line["cause"]
    assert "Parquet" in line["cause"]


def test_cancelled_request_ends_its_process(run: Callable[..., object]) -> None:
    """A request that is cancelled at its deadline takes its process along, and the next work gets another one."""

    async def story(offloader: OffloadProcesses) -> tuple[bool, list[bytes], bool]:
        pid, task = await stuck(offloader)
        task.cancel()
        await asyncio.wait({task})
        return is_alive(pid), await offloader.do(REFS, BODY), pid in offloader.pids()

    assert run(story) == (False, OFFLOADED_WORK[REFS](BODY), False)


def test_request_waiting_for_slot_is_refused_at_server_stop(run: Callable[..., object]) -> None:
    """A request that waits for a slot when the server stops is refused, and no process is started for it."""

    async def story(offloader: OffloadProcesses) -> tuple[BaseException | None, list[int]]:
        _, task = await stuck(offloader)
        waiting = asyncio.create_task(offloader.do(REFS, BODY))
        await asyncio.sleep(0)
        offloader.close()
        task.cancel()
        await asyncio.wait({task, waiting})
        return waiting.exception(), offloader.pids()

    error, pids = cast("tuple[BaseException, list[int]]", run(story))
    assert isinstance(error, ServiceUnavailable)
    assert "stopping" in str(error)
    assert pids == []


def test_killed_idle_process_is_replaced(run: Callable[..., object]) -> None:
    """If an idle process was killed, it is replaced without an error."""

    async def story(offloader: OffloadProcesses) -> list[bytes]:
        await offloader.do(REFS, BODY)
        os.kill(offloader.pids()[0], signal.SIGKILL)
        return await offloader.do(REFS, BODY)

    assert run(story) == OFFLOADED_WORK[REFS](BODY)


def test_repeated_process_death_is_reported_as_unavailable(
    run: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a new process dies, too, the caller gets an error which says that nothing was changed."""

    class DyingWorker(module.WorkerProcess):
        def __init__(self, module: str, environment: Mapping[str, str]) -> None:
            super().__init__(module, environment)
            os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(module, "WorkerProcess", DyingWorker)

    async def story(offloader: OffloadProcesses) -> str:
        with pytest.raises(ServiceUnavailable) as caught:
            await offloader.do(REFS, BODY)
        return str(caught.value)

    assert "nothing was changed" in str(run(story))


def test_caller_cannot_occupy_the_last_process() -> None:
    """Of two processes a caller can have one. Another caller gets the other one at once, even if more work of the first
    one waits.
    """

    async def story() -> list[bool]:
        offloader = OffloadProcesses(processes_max=2)
        try:
            await offloader.do(REFS, BODY, caller="ana")
            (pid,) = offloader.pids()
            os.kill(pid, signal.SIGSTOP)
            tasks = [asyncio.create_task(offloader.do(REFS, BODY, caller="ana")) for _ in range(3)]
            await asyncio.sleep(0)
            others = [await offloader.do(REFS, BODY, caller=who) for who in ("bob", "eve", "")]
            completions = [each == OFFLOADED_WORK[REFS](BODY) for each in others] + [each.done() for each in tasks]
            os.kill(pid, signal.SIGCONT)
            await asyncio.gather(*tasks)
            return completions
        finally:
            offloader.close()

    assert asyncio.run(story()) == [True, True, True, False, False, False]


@pytest.mark.parametrize("limit", ["WAITING_MAX", "WAITING_BYTES_MAX"])
def test_requests_over_the_limit_are_refused(
    run: Callable[..., object], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Requests beyond the limit are refused with an error that allows a retry and says that nothing was changed."""

    async def story(offloader: OffloadProcesses) -> str:
        _, first = await stuck(offloader)
        monkeypatch.setattr(module, limit, 1)
        with pytest.raises(ServiceUnavailable) as caught:
            await offloader.do(REFS, BODY)
        first.cancel()
        await asyncio.wait({first})
        monkeypatch.undo()
        await offloader.do(REFS, BODY)
        return str(caught.value)

    assert "try again" in str(run(story))


def test_idle_process_is_ended(run: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without work for some time is ended."""

    async def story(offloader: OffloadProcesses) -> list[int]:
        monkeypatch.setattr(worker_process, "IDLE_S", 0.0)
        await offloader.do(REFS, BODY)
        while offloader.pids():  # noqa: ASYNC110 - no event tells that the process has ended
            await asyncio.sleep(0)
        return offloader.pids()

    assert run(story) == []


def test_process_ends_when_server_connection_closes(run: Callable[..., object]) -> None:
    """A process whose server has closed the connection ends by itself, also while it is not reading."""

    async def story(offloader: OffloadProcesses) -> int:
        await offloader.do(REFS, BODY)
        worker = offloader._idle.pop()
        worker._wire.close()
        return os.waitpid(worker.pid, 0)[1]  # noqa: ASYNC222 - nothing else runs here

    assert run(story) == 0


def test_process_environment_contains_no_secret(run: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a process has none of the server's credentials or settings."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("LIMNOS__DATABASE__URL", "hidden")

    async def story(offloader: OffloadProcesses) -> bytes:
        await offloader.do(REFS, BODY)
        with open(f"/proc/{offloader.pids()[0]}/environ", "rb") as file:  # noqa: PTH123
            return file.read()

    assert b"hidden" not in bytes(run(story))  # type: ignore[call-overload]


def test_work_over_memory_limit_is_refused() -> None:
    """Work that exceeds the memory limit of its process is refused, and the process continues."""
    text = "array_length([" + ", ".join(f"repeat('{at}', 8000000)" for at in range(10, 60)) + "])"
    large, little = (bind(parse_body(each), EmptyNameResolver()) for each in (text, "1"))

    async def story() -> tuple[str, list[bytes]]:
        offloader = OffloadProcesses(processes_max=1, memory_bytes_max=600 << 20)
        try:
            with pytest.raises(BadRequest) as refused:
                await offloader.do(EVALUATE, wire.encode(large.expression), b"0", PLAIN, b"{}")
            return refused.value.message, await offloader.do(
                EVALUATE, wire.encode(little.expression), b"0", PLAIN, b"{}"
            )
        finally:
            offloader.close()

    message, after = asyncio.run(story())

    assert "needs more memory" in message
    assert after == [b"done", b"[]", b"1"]
