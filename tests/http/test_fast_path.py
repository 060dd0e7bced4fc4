# SPDX-License-Identifier: Apache-2.0
"""The fast path: answers that have to wait, answers that fail, and the effect on other connections.

`test_connection` tests the client's side, with and without the fast path.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
import uvloop

from limnos.http.client_timeouts import client_timeouts_of
from limnos.http.connection import FastPathProtocol
from limnos.http.head_admission import HeadAdmission
from limnos.http.request_turns import resume_coroutine
from limnos.services.request.concurrency.loop_turns import Deadlines

if TYPE_CHECKING:
    from limnos.http.response import Answer

GOOD: Answer = (200, [(b"content-length", b"2")], b"ok")


async def begin_outside_task(work: Callable[[], Awaitable[object]]) -> object:
    """Begin a coroutine outside of any task, as the fast path does, and continue it in a task."""
    coroutine = work()
    waits_for = coroutine.send(None)  # type: ignore[attr-defined]

    async def rest() -> object:
        return await resume_coroutine(coroutine, waits_for)  # type: ignore[arg-type]

    return await asyncio.create_task(rest())


def test_coroutine_begun_outside_a_task_continues_in_a_task() -> None:
    """A coroutine that began outside of a task can wait in a task, and returns its value."""

    async def work() -> str:
        await asyncio.sleep(0.001)
        seen = await asyncio.to_thread(lambda: "thread")
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(begin_outside_task(work)) == "thread"


def test_failure_of_coroutine_begun_outside_a_task_is_raised() -> None:
    """A failure of an awaited future is raised inside the coroutine, and the coroutine's own failure is raised to its
    caller.
    """

    async def work() -> str:
        with pytest.raises(KeyError):
            await asyncio.to_thread(lambda: {}["absent"])
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        asyncio.run(begin_outside_task(work))


def test_coroutine_begun_outside_a_task_can_be_cancelled() -> None:
    """A cancellation is raised in the coroutine where it waits."""
    seen = []

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def story() -> bool:
        task = asyncio.create_task(begin_outside_task(work))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return True

    assert asyncio.run(story())
    assert seen == ["cancelled"]


class Application:
    """A fake application behind the fast path, with scripted answers."""

    def __init__(self, answer: Callable[[], Awaitable[Answer]], *, at_once: bool) -> None:
        self._answer = answer
        self._at_once = at_once
        self.admission = HeadAdmission()
        self.client_timeouts = client_timeouts_of(10, 10)
        self.deadlines = Deadlines(10)
        self.response_cache = SimpleNamespace(is_on=False, inline=at_once)

    def answers_at_once(self, method: str) -> bool:
        """Return the scripted answer, like the real application."""
        return self._at_once

    def resume_response(
        self, work: Coroutine[Any, Any, Answer], waits_for: object, **_: object
    ) -> tuple[Awaitable[Answer], None]:
        """Return what is left of the answer, and no time limit, like the real application."""
        return resume_coroutine(work, waits_for), None

    def watch(self, seconds: float | None) -> asyncio.Task[object]:
        """Watch the deadline, like the real application."""
        task = asyncio.current_task()
        assert task is not None
        self.deadlines.watch(task, seconds)
        return task

    async def respond(self, *_: object, **__: object) -> Answer:
        """Answer a request, like the real application."""
        return await self._answer()

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        """Fail: no request of these tests uses ASGI."""
        raise AssertionError("not through ASGI")


def served(application: Application, *requests: bytes) -> list[bytes]:
    """Serve the application, send each request on a new connection, and return all bytes received before the end."""

    async def story() -> list[bytes]:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(application, http=FastPathProtocol, loop="none", lifespan="off", log_config=None)  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        answers = await asyncio.gather(
            *(asyncio.to_thread(_ask, listening.getsockname()[1], request) for request in requests)
        )
        server.should_exit = True
        await serving
        return answers

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(story())


def _ask(port: int, request: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as wire:
        wire.sendall(request)
        received = b""
        while data := wire.recv(65536):
            received += data
            if received.endswith(b"ok"):
                break
        return received


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_delayed_answer_is_sent_when_complete() -> None:
    """An answer that has to wait is sent when it is complete."""

    async def answer() -> Answer:
        await asyncio.sleep(0.01)
        return GOOD

    assert served(Application(answer, at_once=True), REQUEST)[0].endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_answer_that_fails_ends_its_connection(at_once: bool, waits: bool) -> None:
    """An answer that fails ends its own connection, and no other."""
    left = [True]

    async def answer() -> Answer:
        fails = left.pop() if left else False
        if waits:
            await asyncio.sleep(0.01)
        if fails:
            raise RuntimeError("cannot be")
        return GOOD

    answers = served(Application(answer, at_once=at_once), REQUEST, REQUEST)

    assert sorted(received[-2:] for received in answers) == [b"", b"ok"]


@pytest.mark.parametrize("at_once", [True, False])
def test_line_break_in_a_header_is_never_sent(at_once: bool) -> None:
    """A header value with a line break is never sent."""

    async def answer() -> Answer:
        return 200, [(b"etag", b"a\r\nset-cookie: b"), (b"content-length", b"2")], b"ok"

    assert served(Application(answer, at_once=at_once), REQUEST) == [b""]
