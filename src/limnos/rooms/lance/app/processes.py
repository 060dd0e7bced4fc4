# SPDX-License-Identifier: Apache-2.0
"""Worker processes for Lance tables: started on demand, watched, killed and replaced.

Must not know operations; it passes requests, bodies and responses. The server watches the memory of workers, because a
limit inside the process would kill it in the middle of a library call. A write begins when the process has received all
of its input. Before that nothing has changed; after that the outcome is unknown unless the process reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final

from limnos.app.fair_queue import FairQueue, Key
from limnos.app.worker_process import IdleWorkers, WorkerProcess
from limnos.model.errors import BadRequest, LimnosError, ServiceUnavailable, StateUnknown, TooLarge
from limnos.rooms.lance.services.workers import WorkerTask
from limnos.rooms.lance.sources.questions import START
from limnos.sources.wire import CALL, COMPLETE, CUT, MORE
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.lance")
START_MAX_S: Final = 120.0
"""Seconds that a process has to become ready. If its caller leaves earlier, the next caller gets the process."""
LOOK_S: Final = 0.1
"""Seconds between two memory checks of busy processes."""
DONE = Counter(
    "limnos_lance_work_total",
    "Operations on Lance tables in worker processes, by kind and outcome.",
    ("kind", "outcome"),
)


def stopping_error() -> ServiceUnavailable:
    """Return the error for requests while the server is stopping and starts no more processes."""
    return ServiceUnavailable("The server is stopping, and nothing was changed: try again")


class BodyFeed:
    """Sends a request body to a worker process, in one task for all of its chunks."""

    def __init__(self, worker: WorkerProcess, body: AsyncGenerator[bytes, None]) -> None:
        self._worker = worker
        self._body = body
        self._is_sending = False

    async def pass_on(self, answer: asyncio.Task[list[bytes]]) -> None:
        """Send chunks until the body ends or the process sends its response `answer`."""
        async for piece in self._body:
            self._is_sending = True
            await self._worker.send([MORE, piece])
            self._is_sending = False
            if answer.done():
                return

    def stop(self, feeding: asyncio.Task[None]) -> None:
        """Stop waiting for further chunks of the body.

        A partly sent chunk is sent completely, because the process reads it to the end.
        """
        if not self._is_sending:
            feeding.cancel()


class LanceProcesses:
    """A pool of worker processes for Lance tables."""

    def __init__(
        self,
        *,
        processes_max: int,
        resident_bytes_max: int,
        module: str,
        refusals: Mapping[str, Callable[[str], LimnosError]],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        half = max(1, processes_max // 2)
        self._turns = FairQueue(
            processes_max, limits={"slow": max(1, processes_max - 1), "table": half, "caller": half}
        )
        self._resident_bytes_max = resident_bytes_max
        self._module = module
        self._refusals = refusals
        self._environment = environment
        self._idle = IdleWorkers()
        self._busy: dict[WorkerProcess, bool] = {}
        """Busy processes, and whether each was killed for its memory use."""
        self._starting: dict[WorkerProcess, asyncio.Task[bool]] = {}
        """Processes that are not ready yet, with or without waiting callers."""
        self._next_look: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """Send a request to a worker process and return the response. Cancelling the caller kills the process.

        Raises the error that the process reports; if the process dies, BadRequest, TooLarge, ServiceUnavailable or
        StateUnknown.
        """
        async with self._acquire(worker_task) as worker:
            await worker_task.begin()
            worker_task.is_open = True
            await worker.send([worker_task.name, worker_task.question])
            return self._decode_answer(worker_task, await self._response(worker_task, worker))

    async def feed(self, worker_task: WorkerTask, body: AsyncGenerator[bytes, None]) -> bytes:
        """Send a request with a body. The process begins its work only after the complete body has arrived.

        Raises the errors of `ask`, and the error that interrupted the body.
        """
        async with aclosing(body), self._acquire(worker_task) as worker:
            worker_task.is_open = True
            await worker.send([worker_task.name, worker_task.question, MORE])
            answer = asyncio.create_task(self._response(worker_task, worker))
            try:
                cut = await self._pass_on(worker_task, worker, body=body, answer=answer)
                entries = await answer
            finally:
                answer.cancel()
            if cut is not None:
                worker_task.is_open = False
                raise cut
            return self._decode_answer(worker_task, entries)

    @staticmethod
    async def _response(worker_task: WorkerTask, worker: WorkerProcess) -> list[bytes]:
        """Wait for the worker's response; until then, execute the calls that the worker makes back to the server."""
        while True:
            entries = await worker.receive()
            if entries[0] != CALL:
                return entries
            await worker.send(await worker_task.handle_callback(entries[1].decode(), entries[2]))

    @staticmethod
    async def _pass_on(
        worker_task: WorkerTask,
        worker: WorkerProcess,
        *,
        body: AsyncGenerator[bytes, None],
        answer: asyncio.Task[list[bytes]],
    ) -> LimnosError | None:
        """Send a body until it ends or a response arrives. Returns the error that interrupted the body, if any."""
        feed = BodyFeed(worker, body)
        feeding = asyncio.create_task(feed.pass_on(answer))
        try:
            await asyncio.wait({feeding, answer}, return_when=asyncio.FIRST_COMPLETED)
            if not feeding.done():
                feed.stop(feeding)
            await asyncio.wait({feeding})
        finally:
            if not feeding.done():  # the caller was cancelled; its process is killed, too
                feeding.cancel()
                await asyncio.wait({feeding})
        if answer.done():
            if not feeding.cancelled():
                feeding.exception()  # retrieve the exception; the answer already reports it
            if answer.exception() is None:
                await worker.send([CUT])
            return None
        try:
            feeding.result()
            await worker_task.begin()
        except LimnosError as error:
            await worker.send([CUT])
            return error
        await LanceProcesses._complete(worker_task, worker)
        return None

    @staticmethod
    async def _complete(worker_task: WorkerTask, worker: WorkerProcess) -> None:
        """Send the end-of-body marker to the process. If the process has died before, the request has changed
        nothing.
        """
        try:
            await worker.send([COMPLETE])
        except ConnectionError:
            worker_task.mark_unchanged()
            raise

    async def stream(self, worker_task: WorkerTask) -> AsyncGenerator[bytes, None]:
        """Send a request and yield the response in chunks. The process sends the first chunk only after the
        operation has succeeded. Raises the errors of `ask`.
        """
        async with self._acquire(worker_task) as worker:
            await worker_task.begin()
            worker_task.is_open = True
            await worker.send([worker_task.name, worker_task.question])
            while True:
                entries = await worker.receive()
                if entries[0] != MORE:
                    self._decode_answer(worker_task, entries)
                    return
                yield entries[1]

    # -- the processes -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _acquire(self, worker_task: WorkerTask) -> AsyncIterator[WorkerProcess]:
        """Acquire a worker process for the body of the `with`. It is killed unless it has completed its work."""
        async with self._turns.turn(self._keys(worker_task)):
            worker = self._next_worker()
            self._busy[worker] = False
            self._schedule_memory_check()
            try:
                await self._wait_until_ready(worker)
                yield worker
            except LimnosError:
                self._release(worker, worker_task)
                raise
            except ConnectionError as error:
                grown = self._busy.pop(worker)
                worker.end()
                raise self._lost_error(worker_task, grown=grown, crashed=worker.has_crashed) from error
            except BaseException:
                DONE[worker_task.kind, "ended"] += 1
                self._release(worker, worker_task)
                raise
            self._release(worker, worker_task)

    def _release(self, worker: WorkerProcess, worker_task: WorkerTask) -> None:
        """Return a process to the pool if it has completed its response or received no request; kill it otherwise."""
        self._busy.pop(worker, None)
        if worker in self._starting:
            return  # the process is still starting; the next caller can use it
        if worker_task.is_open:
            worker.end()
        else:
            self._rest(worker)

    def _lost_error(self, worker_task: WorkerTask, *, grown: bool, crashed: bool) -> LimnosError:
        """Return the error for a request whose process has died.

        `grown`: it was killed because of its memory. For a write that had begun it may be StateUnknown.
        """
        DONE[worker_task.kind, "too large" if grown else "died"] += 1
        log.warning(
            "a worker process for a table has ended unexpectedly",
            kind=worker_task.kind,
            grown=grown,
            crashed=crashed,
            begun=worker_task.is_begun,
        )
        why = (
            "This operation needs more memory than a request may use"
            if grown
            else "The process of this operation has crashed"
        )
        if worker_task.writes and worker_task.is_begun:
            failure = worker_task.failure()
            if failure is None and not worker_task.commits_here:
                return StateUnknown(f"{why}, and the change may have been made: check before you repeat it")
            if not isinstance(failure, StateUnknown):
                worker_task.mark_unchanged()
            if failure is not None:
                return failure
        if grown:
            return TooLarge(f"{why}; nothing was changed: request less at once, or send smaller batches")
        if crashed:
            return BadRequest(
                "Lance's library crashed in this operation, and nothing was changed: send a simpler request, or request"
                " less"
            )
        return ServiceUnavailable(f"{why}, and nothing was changed: try again, or request less")

    @staticmethod
    def _keys(worker_task: WorkerTask) -> tuple[Key, ...]:
        if worker_task.is_quick:
            return ()
        return ("slow", ""), ("table", worker_task.table), ("caller", worker_task.caller)

    def _next_worker(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return worker
            worker.end()
        if self._is_closed:
            raise stopping_error()
        return self._half_started() or self._new()

    def _half_started(self) -> WorkerProcess | None:
        """Return a starting process that no caller waits for, or None. Kills those that take too long to start."""
        now = asyncio.get_running_loop().time()
        for worker in [each for each in self._starting if each not in self._busy]:
            if now - worker.used_at < START_MAX_S:
                return worker
            self._starting.pop(worker).cancel()
            worker.end()
        return None

    def _new(self) -> WorkerProcess:
        loop = asyncio.get_running_loop()
        worker = WorkerProcess(self._module, self._environment)
        worker.used_at = loop.time()
        self._starting[worker] = loop.create_task(self._start(worker))
        return worker

    async def _start(self, worker: WorkerProcess) -> bool:
        """Wait until a process has loaded its libraries, even if callers leave. Returns whether it is alive then."""
        try:
            await worker.ask([START, b""])
        except ConnectionError:
            if worker not in self._busy:
                worker.end()
            return False
        finally:
            self._starting.pop(worker, None)
        if worker not in self._busy:
            self._rest(worker)
        return True

    async def _wait_until_ready(self, worker: WorkerProcess) -> None:
        """Wait until a process is ready. Raises ConnectionError if it died, ServiceUnavailable if the server stops."""
        task = self._starting.get(worker)
        if task is None:
            return
        await asyncio.wait({task})
        if task.cancelled():
            raise stopping_error()
        if not task.result():
            raise ConnectionResetError("The process has ended")

    def _decode_answer(self, worker_task: WorkerTask, entries: list[bytes]) -> bytes:
        outcome, *parts = entries
        worker_task.is_open = False
        DONE[worker_task.kind, outcome.decode()] += 1
        if outcome == b"done":
            return parts[0]
        failure = worker_task.failure()
        if not isinstance(failure, StateUnknown):
            worker_task.mark_unchanged()
        if failure is not None:
            raise failure
        if outcome == b"refused":
            raise self._refusals.get(parts[0].decode(), BadRequest)(parts[1].decode())
        raise RuntimeError(f"{worker_task.kind} failed: {parts[0].decode()}")

    def _schedule_memory_check(self) -> None:
        if self._next_look is None:
            self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._check_memory)

    def _check_memory(self) -> None:
        """Kill busy processes whose resident memory exceeds the limit."""
        self._next_look = None
        for worker, grown in tuple(self._busy.items()):
            if not grown and worker.resident_bytes() > self._resident_bytes_max:
                self._busy[worker] = True
                worker.kill()
        if self._busy:
            self._schedule_memory_check()

    def _rest(self, worker: WorkerProcess) -> None:
        """Return a process to the pool of idle ones, or end it if it uses more than half of the memory limit."""
        if self._is_closed or worker.resident_bytes() > self._resident_bytes_max // 2:
            worker.end()  # a process does not return memory to the system
        else:
            self._idle.add_idle(worker)

    def pids(self) -> list[int]:
        """Return the ids of all processes."""
        return [worker.pid for worker in {**self._busy, **self._starting, **dict.fromkeys(self._idle)}]

    def close(self) -> None:
        """Kill all processes, and start none for waiting callers."""
        self._is_closed = True
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = None
        for task in self._starting.values():
            task.cancel()
        for worker in {**self._busy, **self._starting}:
            worker.end()
        self._idle.end_all()
        self._starting.clear()
