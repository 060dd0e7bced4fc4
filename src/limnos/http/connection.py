"""One HTTP connection: uvicorn's HTTP/1.1 protocol with a lane of its own for ordinary requests.

May import uvicorn and the application. An ordinary request (HTTP/1.1, kept alive, its body complete and short, nothing
before it on the connection unanswered) goes straight to the application, and its answer leaves in one write; where the
application answers at once, that happens inside the parser's callback, without a task. Everything else goes uvicorn's
way through ASGI, to the same answers: with `server.lane = false` all requests do. This leans on uvicorn's internals, so
its minor version is pinned and `tests/http/test_connection.py` runs both ways.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Generator
    from typing import Any

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from limnos.http.application import Application

    Answer = tuple[int, list[tuple[bytes, bytes]], bytes]

BODY_BYTES_MAX: Final = 1 << 20
"""Longer bodies are received through ASGI, which slows a sender down as they are read."""
log = get_logger("limnos.http")


class GatheringTransport:
    """A transport that writes once per turn of the loop. Everything else is the transport's own."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Hold the bytes until the turn ends."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def write_whole(self, data: bytes) -> None:
        """Send a whole answer now, behind what is held."""
        if self._held:
            self._held.append(data)
            self.flush()
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, []
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


class GatheringProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 protocol over a gathering transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the transport of a new connection."""
        super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]


class _Nobody:
    """Stands where uvicorn wakes the ASGI application: nobody waits there."""

    @staticmethod
    def set() -> None:
        """Wake nobody."""


class Exchange:
    """A request of the lane and the state of its answer, with the names that uvicorn's protocol looks for."""

    __slots__ = ("body", "disconnected", "headers", "keep_alive", "more_body", "response_complete", "task")

    message_event = _Nobody

    def __init__(self, headers: dict[bytes, bytes]) -> None:
        self.headers = headers
        self.body = bytearray()
        self.more_body = True
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False
        self.task: asyncio.Task[None] | None = None


class LaneProtocol(GatheringProtocol):
    """The protocol with the lane. `cycle` is uvicorn's word for the exchange under way."""

    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _busy = False

    # -- a request comes in ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a request; its ASGI scope is made only when it goes that way."""
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Choose the way."""
        headers = dict(self.headers)
        if self._is_ordinary(headers):
            self.cycle = Exchange(headers)  # type: ignore[assignment]
            return
        url, fields, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += fields  # the scope holds this very list
        super().on_headers_complete()

    def _is_ordinary(self, headers: dict[bytes, bytes]) -> bool:
        before, parser = cast("RequestResponseCycle | None", self.cycle), self.parser
        return (
            (before is None or before.response_complete)
            and not self.expect_100_continue
            and not self.flow.write_paused
            and self.limit_concurrency is None
            and b"transfer-encoding" not in headers
            and self.url.startswith(b"/")
            and b"#" not in self.url
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and (b"content-length" not in headers or int(headers[b"content-length"]) <= BODY_BYTES_MAX)
        )

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body; it is short, so the sender need not be slowed down."""
        exchange: object = self.cycle
        if isinstance(exchange, Exchange):
            exchange.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answer a request of the lane, now that it is whole."""
        exchange: object = self.cycle
        if not isinstance(exchange, Exchange):
            super().on_message_complete()
            return
        exchange.more_body = False
        try:
            self._begin(exchange)
        except Exception:
            log.exception("unexpected failure in the lane")
            self.transport.close()

    def _begin(self, exchange: Exchange) -> None:
        application: Application = self.config.app  # type: ignore[assignment]
        method = self.parser.get_method().decode("ascii")
        path, _, query = self.url.partition(b"?")
        work = application.respond(method, path, query, exchange.headers, bytes(exchange.body))
        if application.answers_at_once(method):
            try:
                waits_for = work.send(None)
            except StopIteration as ended:
                self._write(exchange, ended.value)
                return
            work = self._resume(work, waits_for)
        exchange.task = self.loop.create_task(self._finish(exchange, work))
        self.tasks.add(exchange.task)

    # -- its answer goes out -----------------------------------------------------------------------------------

    @staticmethod
    async def _resume(work: Coroutine[Any, Any, Answer], waits_for: object) -> Answer:
        return await _resumed(work, waits_for)

    async def _finish(self, exchange: Exchange, work: Coroutine[Any, Any, Answer]) -> None:
        try:
            answer = await work
            if self.flow.write_paused and not exchange.disconnected:
                await self.flow.drain()
            self._write(exchange, answer)
        except Exception:
            log.exception("unexpected failure in the lane")
        finally:
            self.tasks.discard(cast("asyncio.Task[None]", exchange.task))
            if not exchange.response_complete:
                self.transport.close()

    def _write(self, exchange: Exchange, answer: Answer) -> None:
        if exchange.disconnected or self.transport.is_closing():
            exchange.response_complete = True
            return
        status, headers, body = answer
        parts = [STATUS_LINE[status]]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"\r\n" if exchange.keep_alive else b"connection: close\r\n\r\n")
        head = b"".join(parts)
        if head.count(b"\n") != len(headers) + (2 if exchange.keep_alive else 3):
            raise RuntimeError("A header of an answer holds a line break")
        self.transport.write_whole(b"".join((head, body)))  # type: ignore[attr-defined]
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()

    # -- between requests --------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Go on with what was pipelined, or wait. One timer for each connection: it looks when the last request ended."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._busy = False
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)

    def _unset_keepalive_if_required(self) -> None:
        """Bytes came in, or the connection is lost."""
        self._busy = True

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timer with the connection."""
        super().connection_lost(exc)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _look_whether_idle(self) -> None:
        left = self.timeout_keep_alive - (0 if self._busy else self.loop.time() - self._idle_since)
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_whether_idle)
            return
        self._idle_timer = None
        self.timeout_keep_alive_handler()


@types.coroutine
def _resumed(work: Coroutine[Any, Any, Answer], waits_for: object) -> Generator[object, Any, Answer]:
    """Go on with a coroutine that was begun outside a task and has to wait after all."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the coroutine's affair
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as ended:
        answer: Answer = ended.value
        return answer
