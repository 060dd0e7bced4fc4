# SPDX-License-Identifier: Apache-2.0
"""Turns on the event loop: requests that use much of it run step by step, and their callers take turns.

May import `model`, `telemetry` and the standard library. Must not know requests or protocols. A step is the part of a
coroutine between two suspensions. Steps are measured, so nothing states in advance what a request costs: after
`FREE_S` on the loop a request waits for a turn, which gives it as much again. In one pass of the loop, all requests of
a caller share that time. One turn is given in every second pass
of the loop, to one request of each waiting caller in rotation. Short requests run in between, and wait for one step
of all others, not for one of each.
"""

from __future__ import annotations

import asyncio
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from limnos.model.errors import ServiceUnavailable
from limnos.telemetry.metrics import Counter

FREE_S: Final = 0.005
"""The time on the event loop, in seconds, that a request has before its first turn, and from each turn."""
SHORT_S: Final = 0.0005
"""Steps that are shorter, in seconds, use none of the time that a caller's requests share."""
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


class LoopTurns:
    """The requests of a node that wait for a turn on the event loop, by caller."""

    def __init__(self, *, now: Callable[[], float] = time.perf_counter, waiting_max: int = WAITING_MAX) -> None:
        self.now = now
        self._waiting_max = waiting_max
        self._waiting: dict[Caller, deque[asyncio.Future[None]]] = {}
        self.dear: dict[tuple[Caller, object], None] = {}
        """Callers with an operation that last used more than `FREE_S`, the least recent first."""
        self.spent: dict[Caller, float] = {}
        """The time that requests of callers used in this pass of the loop, or since one of the caller waits."""
        self.in_pass: dict[Caller, float] = {}
        """The time that requests of callers used in this pass of the loop."""
        self._is_giving = False

    def spend(self, caller: Caller, used_s: float) -> None:
        """Record a step of a request. After `FREE_S`, the caller's further requests wait: those without a turn for
        one, the others for the next pass of the loop.
        """
        if not self.spent:
            asyncio.get_running_loop().call_soon(self._end_pass)
        self.spent[caller] = self.spent.get(caller, 0.0) + used_s
        self.in_pass[caller] = self.in_pass.get(caller, 0.0) + used_s

    def has_spent(self, caller: Caller) -> bool:
        """Return whether the caller's requests have used their time in this pass of the loop."""
        return self.spent.get(caller, 0.0) >= FREE_S

    def _end_pass(self) -> None:
        self.in_pass.clear()
        self.spent = {caller: used_s for caller, used_s in self.spent.items() if caller in self._waiting}
        if self.spent:
            asyncio.get_running_loop().call_soon(self._end_pass)

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
        if len(self._waiting.get(caller, ())) >= self._waiting_max:
            TURNS["refused",] += 1
            raise ServiceUnavailable(
                f"{self._waiting_max} of your requests are waiting for this server, and nothing was changed: wait for "
                "their answers, then try again",
                retry_after_s=RETRY_AFTER_S,
            )

    def turn(self, caller: Caller) -> asyncio.Future[None]:
        """Return a future that is done when the caller gets a turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(caller, deque()).append(future)
        if not self._is_giving:
            self._is_giving = True
            loop.call_soon(self._give)
        return future

    def _give(self) -> None:
        """Give one turn to the caller who has waited longest since its last one."""
        while self._waiting:
            caller = next(iter(self._waiting))
            queue = self._waiting.pop(caller)
            future = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the other callers
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
    """The use of the event loop by one request. `caller` returns who sent it, as far as is known by then."""

    __slots__ = ("_caller", "_has_turn", "_operation", "_turns", "_used_s", "_was_dear")

    def __init__(self, turns: LoopTurns, caller: Callable[[], Caller], *, operation: object) -> None:
        self._turns = turns
        self._caller = caller
        self._operation = operation
        self._used_s = 0.0
        self._has_turn = False
        self._was_dear = False

    async def begin(self) -> None:
        """Wait for a turn if the caller's last request of this operation needed turns.

        Raises ServiceUnavailable if too many requests of the caller wait. Without `LoopTurns.dear` there is no need to
        call it.
        """
        caller = self._caller()
        if (caller, self._operation) in self._turns.dear:
            self._turns.require_room(caller)
            await self._turns.turn(caller)
            self._has_turn = True

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

    @types.coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[object, Any, T]:
        """Run a coroutine of the request, with a turn before each step that begins after the free time was used.

        Parts of the request in other tasks may run at the same time, and use the same free time.
        """
        advance: Callable[[Any], object] = work.send
        value: BaseException | None = None
        turns = self._turns
        now = turns.now
        if turns.spent and not self._has_turn and turns.has_spent(self._caller()):
            try:
                yield from turns.turn(self._caller())
                self._has_turn = True
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is passed to the coroutine
                advance, value = cast("Callable[[Any], object]", work.throw), error
        try:
            while True:
                began = now()
                try:
                    waits_for = advance(value)
                finally:
                    value = None  # an error refers to this frame
                    step_s = now() - began
                    self._used_s += step_s
                    if step_s > SHORT_S:
                        turns.spend(self._caller(), step_s)
                    if self._used_s >= FREE_S and not self._was_dear:
                        self._was_dear = True
                        turns.mark(self._caller(), self._operation, is_dear=True)
                try:
                    yield waits_for
                    if self._used_s >= FREE_S or (
                        turns.spent and not self._has_turn and turns.has_spent(self._caller())
                    ):
                        yield from turns.turn(self._caller())
                        self._used_s, self._has_turn = 0.0, True
                    while turns.in_pass and turns.in_pass.get(self._caller(), 0.0) >= FREE_S:
                        yield None  # in the next pass
                except BaseException as error:  # noqa: BLE001 - a cancellation, too, is passed to the coroutine
                    advance, value = cast("Callable[[Any], object]", work.throw), error
                else:
                    advance = work.send
        except StopIteration as ended:
            result: T = ended.value
            return result


current_loop_use: Final[ContextVar[LoopUse | None]] = ContextVar("loop_use", default=None)
"""The use of the event loop by the current request; None outside of requests."""


def in_turns(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine of the current request that takes its turns, for a task of its own."""
    use = current_loop_use.get()
    return work if use is None else _in_turns(use, work)


async def _in_turns(use: LoopUse, work: Coroutine[Any, Any, T]) -> T:
    return await use.run(work)
