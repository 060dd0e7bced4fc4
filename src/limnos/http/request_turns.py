# SPDX-License-Identifier: Apache-2.0
"""How requests use the event loop: a short request is answered in one step, and a longer one takes turns.

Must not know protocols, or what a handler does.
"""

from __future__ import annotations

import time
import types
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
from typing import Any, cast

from limnos.access.authentication import ANONYMOUS, known_user
from limnos.http.request import Request
from limnos.http.response import Answer, Response
from limnos.http.route_targets import Handler, RouteTarget
from limnos.http.throttle import address_of
from limnos.services.request.concurrency.loop_turns import SHORT_S, Caller, LoopTurns, LoopUse
from limnos.services.request.context import Context
from limnos.telemetry.current_request import current_request
from limnos.view.view import StoreView


class RequestTurns:
    """The turns of a node's requests."""

    def __init__(self, view: StoreView) -> None:
        self.loop_turns = LoopTurns()
        self._view = view

    @property
    def is_quiet(self) -> bool:
        """Whether no caller has used its time, so that a request may begin at once."""
        turns = self.loop_turns
        return not turns.spent and not turns.waiting and not turns.dear

    def handle(self, request: Request, ctx: Context, *, target: RouteTarget) -> Awaitable[Response]:
        """Return the work of a request's handler, which takes turns if it uses much of the event loop."""
        handler = cast("Handler", target.handler)
        if not target.takes_turns:
            return handler(request, ctx)
        use = self.use_of(request)
        if self.loop_turns.dear:
            return use.run_in_turn(partial(handler, request, ctx), waits=not target.anonymous)
        return use.run(handler(request, ctx))

    def use_of(self, request: Request) -> LoopUse:
        """Return the use of the event loop by a request."""
        use = request.loop_use
        if use is None:
            caller = partial(self.caller_of, request)
            use = LoopUse(self.loop_turns, caller, operation=request.target, arrival_s=request.started)
            request.loop_use = use
        return use

    def record_step(self, request: Request, target: RouteTarget) -> None:
        """Record the only step of a request that was begun at once; `continued` has recorded that of others."""
        used_s = time.perf_counter() - request.started
        if used_s > SHORT_S and request.loop_use is None and target.takes_turns:
            self.use_of(request).record(used_s)

    def resume_work(
        self, work: Coroutine[Any, Any, Answer], waits_for: object, *, target: RouteTarget
    ) -> Awaitable[Answer]:
        """Return the rest of the current request's work, which was begun at once and waits for `waits_for`.

        If its handler was begun, it takes turns from here.
        """
        request = cast("Request", current_request.get())
        if request.credential is None or request.loop_use is not None or not target.takes_turns:
            return resume_coroutine(work, waits_for)
        use = self.use_of(request)
        use.record(time.perf_counter() - request.started)
        return use.resume(work, waits_for)

    def caller_of(self, request: Request) -> Caller:
        """Return who takes turns on the event loop for a request: its user, or its address if no user is known."""
        user = known_user(self._view, request.credential)
        return ("address", address_of(request.peer)) if user is None or user == ANONYMOUS else ("user", user)


@types.coroutine
def resume_coroutine(work: Coroutine[Any, Any, Answer], waits_for: object) -> Generator[object, Any, Answer]:
    """Continue, in the current task, a coroutine that was started outside a task and waits for `waits_for`."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is passed to the coroutine
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as ended:
        answer: Answer = ended.value
        return answer
