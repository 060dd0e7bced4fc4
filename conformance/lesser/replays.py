# SPDX-License-Identifier: Apache-2.0
"""Repeats requests of tests with a lowered use, and compares the answers. The repeated request commits nothing.

May import `pytest`, `limnos` and the driver of `tests.http`, after the hook of `sites`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from conformance.lesser.sites import Planter
from limnos.http import application
from limnos.model.errors import ServiceUnavailable
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from tests.http.driver import DriverNode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterator

    from conformance.lesser.recording import Recorder
    from tests.http.driver import DriverAnswer

TRIES_MAX: Final = 60
"""Maximum number of requests that are repeated for one use, until an answer differs."""
DEPTH_MAX: Final = 4
"""Maximum number of successive uses that require the same."""
LOOKS: Final = ("GET", "HEAD")


class ReplayResult(NamedTuple):
    """The request with another answer, and the other uses that had to be lowered together with this one."""

    test: str
    request: str
    answers: str
    again: tuple[int, ...]


class Replays:
    """A pytest plugin that repeats requests of tests, each with the lowered uses that change a decision in it."""

    def __init__(self, planter: Planter, recorder: Recorder, numbers: Collection[int]) -> None:
        self.planter, self.wanted = planter, numbers
        self._recorder = recorder
        self._plain = DriverNode._ask
        self._await_write = Context._await_write
        self._replaying = False
        self._test = ""
        self._shapes: set[tuple[int, str, str]] = set()
        """Tried uses and requests, without the caller's name: after a use that is noticed another may refuse."""
        self.noticed: dict[int, ReplayResult] = {}
        self.again: dict[int, ReplayResult] = {}
        self.reached: dict[int, str] = {}
        self.tries: dict[int, int] = {}

    def install(self) -> None:
        """Replace the functions that send requests to in-process nodes, and that commit."""
        outer = self

        async def ask(node: DriverNode, *request: object, **options: object) -> DriverAnswer:
            return await outer.asked(node, *request, **options)

        async def await_write(ctx: Context, writing: Awaitable[object], *, is_told: bool) -> object:
            if outer._replaying:
                writing.close()  # type: ignore[attr-defined]
                raise ServiceUnavailable("Nothing is committed by a request that is sent again")
            return await outer._await_write(ctx, writing, is_told=is_told)

        # Decisions are not cached, because cached ones would hide later uses.
        RequestView.decide = lambda request_view, action, chain: request_view.decide_for(
            request_view.user, action, chain
        )  # type: ignore[method-assign]
        DriverNode._ask = ask  # type: ignore[method-assign, assignment]
        Context._await_write = await_write  # type: ignore[method-assign, assignment]
        application.key_of = lambda *_: None  # type: ignore[assignment]  # no answer is kept: the next may be of a lowered use

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Record the running test."""
        self._test = item.nodeid

    async def asked(self, node: DriverNode, *request: object, **options: object) -> DriverAnswer:
        """Send the request, then repeat it with each lowered use that may change the answer."""
        self._recorder.take()
        answer = await self._plain(node, *request, **options)  # type: ignore[arg-type]
        uses, decisive = self._recorder.take()
        for number in uses:
            self.reached.setdefault(number, self._test)
        if self._replaying or (answer.status < 400 and request[0] not in LOOKS):
            return answer
        shape = str(request[0]), str(request[1]).replace(str(request[3]), "")
        for number in sorted(decisive):
            is_new = (
                (number, *shape) not in self._shapes
                if number in self.noticed
                else self.tries.get(number, 0) < TRIES_MAX
            )
            if is_new and number in self.wanted:
                self._shapes.add((number, *shape))
                self.tries[number] = self.tries.get(number, 0) + 1
                await self._try(node, number, answer, *request, **options)
        return answer

    async def _try(
        self, node: DriverNode, number: int, answer: DriverAnswer, *request: object, **options: object
    ) -> None:
        """Lower a use, then together with it the later uses whose decision refuses in its place."""
        lowered, last = (number,), answer
        while len(lowered) <= DEPTH_MAX:
            with self._lowered(lowered):
                other = await self._plain(node, *request, **options)  # type: ignore[arg-type]
            _, decisive = self._recorder.take()
            replay = ReplayResult(
                self._test,
                f"{request[0]} {request[1]} by {request[3]}",
                f"{last.status} became {other.status}",
                lowered[:-1],
            )
            if differs(last, other):
                if len(lowered) == 1:
                    self.noticed.setdefault(number, replay)
                else:
                    self.again.setdefault(lowered[-1], replay)
                    if last.status == answer.status:
                        for each in lowered[:-1]:
                            self.again.setdefault(each, replay._replace(again=tuple(n for n in lowered if n != each)))
            more = sorted(decisive - set(lowered))
            if not more:
                return
            lowered, last = (*lowered, more[0]), other

    @contextmanager
    def _lowered(self, numbers: tuple[int, ...]) -> Iterator[None]:
        self._replaying = True
        self.planter.plant(*numbers)
        try:
            yield
        finally:
            self.planter.restore(*numbers)
            self._replaying = False


def differs(first: DriverAnswer, second: DriverAnswer) -> bool:
    """Return whether two answers differ in status, or in the lengths of lists."""
    if first.status != second.status:
        return True
    return first.status < 400 and len(first.body) != len(second.body)
