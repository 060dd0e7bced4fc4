# SPDX-License-Identifier: Apache-2.0
"""One request on the fast path: its state in addition to uvicorn's, and the continuation of its coroutine in a task.

Must not know the parser, routes or the application.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

from limnos.http.response import Answer


class _NullWaiter:
    """A no-op in place of the event by which uvicorn wakes an ASGI application: the fast path has none."""

    @staticmethod
    def set() -> None:
        """No-op: no application waits."""


class FastPathExchange:
    """A request on the fast path and the state of its response, with the attributes that uvicorn's protocol expects."""

    __slots__ = ("body", "disconnected", "headers", "keep_alive", "more_body", "response_complete")

    message_event = _NullWaiter

    def __init__(self, headers: dict[bytes, bytes]) -> None:
        self.headers = headers
        self.body: bytes | bytearray = b""
        self.more_body = True
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False

    def is_gone(self) -> bool:
        """Return whether the client has disconnected."""
        return self.disconnected


async def return_answer(answer: Answer) -> Answer:
    """Wrap an existing response in a coroutine, for callers that expect a coroutine."""
    return answer


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
