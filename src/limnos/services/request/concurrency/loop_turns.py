# SPDX-License-Identifier: Apache-2.0
"""Turns on the event loop: requests that use much of it run step by step, and their callers take turns.

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
from typing import Any, Final, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.telemetry.metrics import Counter
from limnos.telemetry.request_ids import CurrentRequest, current_request

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
