# SPDX-License-Identifier: Apache-2.0
"""Worker processes for offloaded work: started on demand, killed at the request's deadline, replaced when they die.

Must not know the work: it passes function names and arguments as bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from limnos.app.fair_queue import FairQueue
from limnos.app.worker_process import IdleWorkers, WorkerProcess
from limnos.model import errors
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.chores")
WAITING_MAX = 64
CALLER_WAITING_MAX = 32
WAITING_BYTES_MAX = 256 << 20
DONE = Counter("limnos_chores_total", "Heavy requests in worker processes, by kind and outcome.", ("kind", "outcome"))
REFUSALS: Mapping[str, Callable[[str], errors.LimnosError]] = {
    errors.BadRequest.code: errors.BadRequest,
    errors.CommitConflict.code: errors.CommitConflict,
    errors.InvalidTable.code: errors.InvalidTable,
    errors.UnsupportedOperation.code: errors.UnsupportedOperation,
    errors.StorageFailed.code: errors.StorageFailed,
    errors.StorageMisconfigured.code: errors.StorageMisconfigured,
    errors.ServiceUnavailable.code: errors.ServiceUnavailable,
    errors.NoSpace.code: errors.NoSpace,
}
WORKER_MODULE = "limnos.app.offload_worker"
CLOSING = "The server is stopping, and nothing was changed: try again"


class OffloadProcesses:
    """A pool of worker processes for offloaded work. A user may occupy all processes except one.

    Callers wait while all processes are busy, and are refused if too many wait.
    """

    def __init__(self, *, processes_max: int, memory_bytes_max: int = 4 << 30) -> None:
        self._environment = {"CHORE_MEMORY_BYTES": str(memory_bytes_max)}
        self._turns = FairQueue(
            processes_max, limits={"caller": max(1, processes_max - 1)}, waits={"caller": CALLER_WAITING_MAX}
        )
        self._idle = IdleWorkers()
        self._busy: set[WorkerProcess] = set()
        self._waiting = 0
        self._bytes = 0
        self._is_closed = False

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Run a function in a worker process. Cancelling the caller kills the process.

        `name` is the function, `parts` are its arguments; `caller` is the user for the limit per user. Raises the
        function's error, ServiceUnavailable if the queue is full or the process died, RuntimeError for a bug.
        """
        size = sum(map(len, parts))
        if self._waiting >= WAITING_MAX or self._bytes + size > WAITING_BYTES_MAX:
            DONE[name, "no room"] += 1
            raise errors.ServiceUnavailable(
                "The server has too many heavy requests in progress; nothing was changed: try again", retry_after_s=1
            )
        self._waiting += 1
        self._bytes += size
        try:
            async with self._turns.turn((("caller", caller),) if caller else ()):
                answer = await self._ask([name.encode(), *parts])
        finally:
            self._waiting -= 1
            self._bytes -= size
        return self._decode_answer(name, answer)

    async def _ask(self, parts: list[bytes]) -> list[bytes]:
        """Send a function call to a process and return the result. An idle process that has died is replaced without an
        error. Raises ServiceUnavailable if a new process dies, or the server is stopping.
        """
        while self._idle:
            try:
                return await self._ask_one(self._idle.pop(), parts)
            except ConnectionError:
                continue
        if self._is_closed:
            raise errors.ServiceUnavailable(CLOSING)
        try:
            return await self._ask_one(WorkerProcess(WORKER_MODULE, self._environment), parts)
        except (ConnectionError, OSError) as error:
            DONE[parts[0].decode(), "died"] += 1
            if error.errno in errors.OUT_OF_DESCRIPTORS:
                text = f"{errors.DESCRIPTORS}, and nothing was changed: try again"
                raise errors.ServiceUnavailable(text) from error
            log.warning("a worker process has crashed", chore=parts[0].decode(), error=str(error))
            raise errors.ServiceUnavailable(
                "The process that executed the request ended, and nothing was changed: try again, or send a smaller"
                " request"
            ) from error

    async def _ask_one(self, worker: WorkerProcess, parts: list[bytes]) -> list[bytes]:
        self._busy.add(worker)
        try:
            answer = await worker.ask(parts)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                DONE[parts[0].decode(), "ended"] += 1
                log.warning("offloaded work was ended at its deadline", chore=parts[0].decode(), pid=worker.pid)
            worker.end()
            raise
        finally:
            self._busy.discard(worker)
        self._rest(worker)
        return answer

    def _decode_answer(self, name: str, answer: list[bytes]) -> list[bytes]:
        outcome, *parts = answer
        DONE[name, outcome.decode()] += 1
        if outcome == b"done":
            return parts
        if outcome == b"refused":
            cause = b"".join(parts[2:]).decode()
            if cause:  # only for the log: the caller must not see it
                log.info("offloaded work was refused", chore=name, why=parts[1].decode(), cause=cause)
            raise REFUSALS.get(parts[0].decode(), errors.BadRequest)(parts[1].decode())
        raise RuntimeError(f"Offloaded work {name} failed: {parts[0].decode()}")

    def _rest(self, worker: WorkerProcess) -> None:
        """Return a process to the pool; it ends after an idle time."""
        if self._is_closed:
            worker.end()
        else:
            self._idle.add_idle(worker)

    def pids(self) -> list[int]:
        """Return the ids of all processes."""
        return [worker.pid for worker in (*self._busy, *self._idle)]

    def close(self) -> None:
        """Kill all processes, and start none for waiting callers."""
        self._is_closed = True
        for worker in tuple(self._busy):
            worker.end()
        self._idle.end_all()
