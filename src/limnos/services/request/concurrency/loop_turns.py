# SPDX-License-Identifier: Apache-2.0
"""Turns on the event loop, and deadlines: requests that use much of the loop run step by step, and their callers take
turns; a late task is cancelled.

Must not know requests or protocols. A step is the part of a coroutine between two suspensions. Steps are measured, so
nothing states in advance what a request costs: after `FREE_S` on the loop a request waits for a turn, which gives it as
much again. In one pass of the loop, all requests of a caller share that time. One turn is given in every second pass of
the loop, to the waiting callers in rotation. Short requests run in between, and wait for one step of all others, not
for one of each. Among the requests of one caller, those with the fewest turns go first, and long ones one after the
other, in the order of their arrival.
"""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.telemetry.current_request import CurrentRequest, current_request
from limnos.telemetry.metrics import Counter

FREE_S: Final = 0.005
"""The time on the event loop, in seconds, that a request has before its first turn, and from each turn."""
SHORT_S: Final = 0.0005
"""Steps that are shorter, in seconds, use none of the time that a caller's requests share."""
LONG_TURNS: Final = 20
"""The number of turns, 100 ms of the loop, after which a request is long.

Long requests of a caller run one after the other. If they shared the turns, all would end at the same time: sixteen of
two seconds each after 32 seconds, and none before its deadline.
"""
WAITING_MAX: Final = 64
"""The maximum number of requests of one caller that wait for a turn; further ones that would wait are refused."""
DEAR_MAX: Final = 10_000
RETRY_AFTER_S: Final = 2
TURNS = Counter(
    "limnos_loop_turns_total",
    "Turns on the event loop of requests that use much of it: given, or refused because the caller has too many.",
    ("outcome",),
)
T = TypeVar("T")
Caller = tuple[str, str]
"""Who shares turns: a kind (`user` or `address`) and the name."""
_Waiter = tuple[int, float, int, asyncio.Future[None]]
"""A request that waits: its turns so far, the time of its arrival, a distinct number, and the future that the turn
completes.
"""


class LoopTurns:
    """The requests of a node that wait for a turn on the event loop, by caller."""

    def __init__(self, *, now: Callable[[], float] = time.perf_counter, waiting_max: int = WAITING_MAX) -> None:
        self.now = now
        self._waiting_max = waiting_max
        self.waiting: dict[Caller, list[_Waiter]] = {}
        """Heaps of requests. The first caller has waited longest since its last turn."""
        self.dear: dict[tuple[Caller, object], None] = {}
        """Callers with an operation that last used more than `FREE_S`, the least recent first."""
        self.spent: dict[Caller, float] = {}
        """The time that requests of callers used in this pass of the loop."""
        self._numbers = count(1)
        self._is_giving = False

    def spend(self, caller: Caller, used_s: float) -> None:
        """Record a step of a request. After `FREE_S`, the caller's other requests wait for a turn."""
        if not self.spent:
            asyncio.get_running_loop().call_soon(self.spent.clear)
        self.spent[caller] = self.spent.get(caller, 0.0) + used_s

    def must_wait(self, caller: Caller, *, has_turn: bool) -> bool:
        """Return whether a request waits before its next step: the caller's requests have used their time in this pass
        of the loop, or others of them wait and this one has no turn.
        """
        return self.spent.get(caller, 0.0) >= FREE_S or (not has_turn and caller in self.waiting)

    def mark(self, caller: Caller, operation: object, *, is_dear: bool) -> None:
        """Record whether an operation of a caller uses more than `FREE_S`: its next request then begins with a turn."""
        key = (caller, operation)
        if not is_dear:
            self.dear.pop(key, None)
            return
        self.dear[key] = None
        if len(self.dear) > DEAR_MAX:
            del self.dear[next(iter(self.dear))]

    def require_room(self, caller: Caller) -> None:
        """Refuse a new request that would wait. Raises ServiceUnavailable if too many of the caller wait already."""
        if len(self.waiting.get(caller, ())) >= self._waiting_max:
            TURNS["refused",] += 1
            raise ServiceUnavailable(
                f"{self._waiting_max} of your requests are waiting for this server, and nothing was changed: wait for "
                "their answers, then try again",
                retry_after_s=RETRY_AFTER_S,
            )

    def turn(self, caller: Caller, use: LoopUse) -> asyncio.Future[None]:
        """Return a future that is done when a request of the caller gets a turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        waiter = (min(use.turns_taken, LONG_TURNS), use.arrival_s, next(self._numbers), future)
        heappush(self.waiting.setdefault(caller, []), waiter)
        if not self._is_giving:
            self._is_giving = True
            loop.call_soon(self._give)
        return future

    def _give(self) -> None:
        """Give one turn to the caller who has waited longest since its last one."""
        while self.waiting:
            caller = next(iter(self.waiting))
            queue = self.waiting.pop(caller)
            *_, future = heappop(queue)
            if queue:
                self.waiting[caller] = queue  # behind the other callers
            if not future.done():  # a request that was cancelled meanwhile
                TURNS["given",] += 1
                future.set_result(None)
                # The step runs in the next pass of the loop; the pass after it belongs to short requests.
                asyncio.get_running_loop().call_soon(self._pause)
                return
        self._is_giving = False

    def _pause(self) -> None:
        asyncio.get_running_loop().call_soon(self._give)


class LoopUse:
    """The use of the event loop by one request. `caller` returns who sent it, as far as is known by then; `arrival_s`
    is when it arrived.
    """

    __slots__ = ("_caller", "_operation", "_turns", "_used_s", "_was_dear", "arrival_s", "turns_taken")

    def __init__(self, turns: LoopTurns, caller: Callable[[], Caller], *, operation: object, arrival_s: float) -> None:
        self._turns = turns
        self._caller = caller
        self._operation = operation
        self._used_s = 0.0
        self._was_dear = False
        self.arrival_s = arrival_s
        self.turns_taken = 0

    async def begin(self) -> None:
        """Wait for a turn if the caller's last request of this operation needed turns.

        Raises ServiceUnavailable if too many requests of the caller wait. Without `LoopTurns.dear` there is no need to
        call it.
        """
        caller = self._caller()
        if (caller, self._operation) in self._turns.dear:
            self._turns.require_room(caller)
            self.turns_taken = 1  # behind requests of other operations
            await self._turns.turn(caller, self)

    async def run_in_turn(self, start: Callable[[], Coroutine[Any, Any, T]], *, waits: bool) -> T:
        """Start a coroutine of the request and run it, and record whether the operation needed turns.

        `waits`: it does not start before its first turn. Without `LoopTurns.dear`, `run` is enough.
        """
        if waits:
            await self.begin()
        result = await self.run(start())
        if not self._was_dear:
            self._turns.mark(self._caller(), self._operation, is_dear=False)
        return result

    def record(self, step_s: float) -> None:
        """Record the time, in seconds, that a step of the request used."""
        self._used_s += step_s
        if step_s > SHORT_S or self._used_s >= FREE_S:
            self._charge(step_s)

    def _charge(self, step_s: float) -> None:
        if step_s > SHORT_S:
            self._turns.spend(self._caller(), step_s)
        if self._used_s >= FREE_S and not self._was_dear:
            self._was_dear = True
            self._turns.mark(self._caller(), self._operation, is_dear=True)

    @types.coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[object, Any, T]:
        """Run a coroutine of the request, with a turn before each step that begins after the free time was used.

        Parts of the request in other tasks may run at the same time, and use the same free time.
        """
        turns = self._turns
        if turns.spent or turns.waiting:
            try:
                yield from self._wait()
            except BaseException:
                work.close()
                raise
        began = turns.now()
        try:
            waits_for = work.send(None)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            self.record(turns.now() - began)
        return (yield from self.resume(work, waits_for))

    @types.coroutine
    def resume(self, work: Coroutine[Any, Any, T], waits_for: object) -> Generator[object, Any, T]:
        """Continue, as `run` does, a coroutine of the request whose first step has run: it waits for `waits_for`."""
        turns = self._turns
        now = turns.now
        value: BaseException | None = None
        try:
            while True:
                try:
                    yield waits_for
                    if turns.spent or turns.waiting or self._used_s >= FREE_S:
                        yield from self._wait()
                except BaseException as error:  # noqa: BLE001 - a cancellation, too, is passed to the coroutine
                    value = error
                began = now()
                try:
                    waits_for = work.send(None) if value is None else work.throw(value)
                finally:
                    value = None  # an error refers to this frame
                    step_s = now() - began
                    self._used_s += step_s
                    if step_s > SHORT_S or self._used_s >= FREE_S:  # `record`, without a call for each step
                        self._charge(step_s)
        except StopIteration as ended:
            result: T = ended.value
            return result

    def _wait(self) -> Generator[object, Any, None]:
        """Wait for turns until the next step may begin."""
        turns, caller = self._turns, self._caller()
        while self._used_s >= FREE_S or turns.must_wait(caller, has_turn=self.turns_taken > 0):
            yield from turns.turn(caller, self)
            self._used_s = 0.0
            self.turns_taken += 1


def in_turns(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine of the current request that takes its turns, for a task of its own."""
    request = current_request.get()
    return work if request is None else _run_in_turns(request, work)


async def _run_in_turns(request: CurrentRequest, work: Coroutine[Any, Any, T]) -> T:
    """The request's use of the event loop may be made only when the request waits for the first time."""
    use: LoopUse | None = request.loop_use
    return await (work if use is None else use.run(work))


_CHECKS: Final = 16
"""The number of checks per time limit: a late task is cancelled at most a sixteenth of its limit after its deadline."""


class Cancellable(Protocol):
    """A task, or another object that can be cancelled."""

    def cancel(self) -> object:
        """Cancel the task, because it missed its deadline."""


class Deadlines:
    """Running tasks and their deadlines. `seconds` is the default time limit of a task.

    One timer watches all tasks: a timer per request would cost ten times as much. Tasks with the same time limit are in
    one queue, in the order in which they began; there are few different limits.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._queues: dict[float, dict[Cancellable, float]] = {}
        self._late: set[Cancellable] = set()
        self._next_look: asyncio.TimerHandle | None = None

    def watch(self, task: Cancellable, seconds: float | None = None) -> None:
        """Cancel the task after its time limit unless it is released before."""
        loop = asyncio.get_running_loop()
        timeout_s = self.seconds if seconds is None else seconds
        queue = self._queues.get(timeout_s)
        if queue is None:
            queue = self._queues[timeout_s] = {}
        queue[task] = until = loop.time() + timeout_s
        every = timeout_s / _CHECKS
        if self._next_look is None or self._next_look.when() > until:
            self._schedule_check(loop, every)

    def release(self, task: Cancellable) -> None:
        """Remove the deadline of a task."""
        for queue in self._queues.values():
            if queue.pop(task, None) is not None:
                return
        self._late.discard(task)

    def was_late(self, task: asyncio.Task[object]) -> bool:
        """Return whether a missed deadline alone caused the cancellation of a task; if so, clear the task's
        cancellation request.
        """
        return task in self._late and task.uncancel() == 0

    def _schedule_check(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = loop.call_later(seconds, self._cancel_late_tasks, loop)

    def _cancel_late_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_look = None
        now = loop.time()
        for queue in self._queues.values():
            for task, until in tuple(queue.items()):
                if until > now:
                    break  # one limit per queue, so deadlines are in the order of start
                del queue[task]
                self._late.add(task)
                task.cancel()
        waiting = [seconds for seconds, queue in self._queues.items() if queue]
        if waiting:
            self._schedule_check(loop, min(waiting) / _CHECKS)
