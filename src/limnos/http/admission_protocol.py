"""One HTTP connection, guarded: uvicorn's HTTP/1.1 protocol with limits on heads, patience with slow clients, and
refusals.

May import `model`, `telemetry`, uvicorn, httptools and the shared modules of `limnos.http`. Every connection is one
of these or of its child in `http.connection`. What is refused here never becomes a request: its answer says
`connection: close`, and what the client still sends is passed over for a moment, so that it can read the answer
before the connection ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from limnos.http.client_timeouts import ConnectionPhase, ConnectionProgress
from limnos.http.head_admission import HEAD_BYTES_MAX, size_of, too_large
from limnos.http.request import IS_GONE
from limnos.http.streamed_body import StreamTruncated
from limnos.model.errors import BadRequest, LimnosError, TooSlow
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from limnos.http.application import Application, AsgiScope, Send
    from limnos.http.request import Receive

PIECE_BYTES: Final = HEAD_BYTES_MAX
"""What came in at once is parsed in pieces of this length, so that a head over the limit is seen before all of it is read."""
UNWANTED_BYTES_MAX: Final = 1 << 26
"""How much of a body that nobody wants any more is passed over, for the sake of the connection."""
STEP_BYTES: Final = 1 << 20
"""How much of a long body has to come within the time for a body: a client that sends so much is not slow."""
_IDLE, _HEAD, _BODY = ConnectionPhase.IDLE, ConnectionPhase.HEAD, ConnectionPhase.BODY
"""Names of their own: to take one from its enum costs a tenth of a microsecond, and each request goes through all three."""
log = get_logger("limnos.http")


class GatheringTransport:
    """A transport that writes once per turn of the loop. Everything else is the transport's own."""

    __slots__ = ("_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self.is_closing = transport.is_closing
        """Asked twice a request, so without a way round."""

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

    def write_eof(self) -> None:
        """Send what is held, then say that nothing more will come."""
        self.flush()
        self._transport.write_eof()

    def get_write_buffer_size(self) -> int:
        """Return how much the client has not taken yet."""
        return self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


class AdmissionProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 protocol over a gathering transport, with a door and with patience.

    `cycle` is uvicorn's word for the exchange under way.
    """

    application: Application
    """What answers."""
    _phase = ConnectionPhase.IDLE
    _steps = 0
    _unparsed_bytes = 0
    """Bytes that came since the last head, piece of a body or message was complete: never more than a head may have."""
    _unwanted_bytes = 0
    _body_bytes = 0
    """Of the body that is coming, since the last step."""
    _parting = False
    _wishes_to_upgrade = False
    """The head that is being read asks for another protocol, of which none is spoken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the transport of a new connection, and begin to look at it."""
        super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]
        self.application = cast("Application", self.config.app)
        self.application.patience.watch(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look at it no longer."""
        self.application.patience.forget(self)
        super().connection_lost(exc)

    # -- bytes come in -----------------------------------------------------------------------------------------

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse what came, in pieces if it is much."""
        size = len(data)
        if size > PIECE_BYTES:
            view = memoryview(data)
            for start in range(0, size, PIECE_BYTES):
                if self.transport.is_closing():
                    return
                self.data_received(view[start : start + PIECE_BYTES])
            return
        if self._parting:
            self._pass_over(size)
            return
        self._unparsed_bytes += size
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self.refuse(_failure_of(error))
        else:
            if self._unparsed_bytes > HEAD_BYTES_MAX:
                self.refuse(too_large())

    def _feed(self, data: bytes | memoryview) -> None:
        """Parse. The parser ends with a head that asks for another protocol: it is read anew without that wish, and what is behind it.

        Java's own client asks so with each request, and a server is free to go on as before (RFC 9110, 7.8).
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as ended:
                if not self._wishes_to_upgrade:
                    self._unsupported_upgrade_warning()
                    return
                self._wishes_to_upgrade = False
                data = self._head_without_wish() + bytes(data[ended.args[0] :])
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _head_without_wish(self) -> bytes:
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        return b"".join((line, *fields, b"\r\n"))

    def _is_read_anew(self) -> bool:
        """Say whether this head is to be read again without its wish for another protocol. CONNECT is no wish but a method."""
        self._wishes_to_upgrade = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        return self._wishes_to_upgrade

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._steps += 1
        self._phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Look at the head, then let it in."""
        if self._is_read_anew():
            return
        self._enter(dict(self.headers))
        super().on_headers_complete()
        self._phase = _BODY  # from here on there is a cycle, which a refusal is about
        self.headers = []  # fields behind a body are no part of the head that was looked at

    def _enter(self, headers: dict[bytes, bytes]) -> None:
        if self._unparsed_bytes > HEAD_BYTES_MAX and size_of(self.url, self.headers) > HEAD_BYTES_MAX:
            raise too_large()
        door = self.application.door
        if not door.knows(self.headers, headers, self.url):
            local, version = None if self.server is None else self.server[0], self.parser.get_http_version()
            method = self.parser.get_method().decode("latin-1")
            door.check(self.headers, headers, method=method, url=self.url, version=version, local=local)
        self._unparsed_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body, or pass it over when its request is answered already."""
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= STEP_BYTES:
            self._body_bytes = 0
            self._steps += 1
        if self.cycle.response_complete:
            self._pass_over(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        if self._wishes_to_upgrade:
            return
        self._unparsed_bytes = 0
        self._phase = _IDLE
        super().on_message_complete()

    def _pass_over(self, size: int) -> None:
        self._unwanted_bytes += size
        if self._unwanted_bytes > UNWANTED_BYTES_MAX:
            self.transport.abort()

    # -- how far it has come -----------------------------------------------------------------------------------

    def step(self) -> ConnectionProgress:
        """Say how far this connection has come, for whoever is patient with it."""
        return ConnectionProgress(self._now(), self._steps, self.transport.get_write_buffer_size())

    def _now(self) -> ConnectionPhase:
        phase, cycle = self._phase, cast("RequestResponseCycle | None", self.cycle)
        if self._parting and phase is not ConnectionPhase.PARTING:
            return ConnectionPhase.ANSWER
        if self.flow.write_paused:
            return ConnectionPhase.TAKING
        if phase is ConnectionPhase.BODY:
            return ConnectionPhase.ANSWER if self.flow.read_paused else phase
        if phase is ConnectionPhase.IDLE and cycle and not cycle.response_complete:
            return ConnectionPhase.ANSWER
        return phase

    def overdue(self, phase: ConnectionPhase) -> None:
        """End a connection whose client was waited for long enough: with 408 where that can still be said."""
        if phase is ConnectionPhase.HEAD or phase is ConnectionPhase.BODY:
            seconds = self.application.patience.limits[phase]
            what = "head (address and headers)" if phase is ConnectionPhase.HEAD else "body"
            self.refuse(TooSlow(f"The {what} of this request was not complete within {seconds:g} s: send it again"))
        elif phase is ConnectionPhase.IDLE and self.transport.get_write_buffer_size() == 0:
            self.transport.close()
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Go on with what was pipelined, or wait."""
        self._steps += 1
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - any ASGI application
        super()._start_asgi_task(cycle, partial(self._run, app, cycle))

    async def _run(self, app: Any, cycle: RequestResponseCycle, scope: AsgiScope, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Run an application. Where the client is gone it learns that, so that it does not go on making pieces for nobody."""

        async def sending(message: MutableMapping[str, object]) -> None:
            if cycle.disconnected and message.get("more_body"):
                raise StreamTruncated
            await send(message)

        scope[IS_GONE] = lambda: cycle.disconnected
        await app(scope, receive, sending)

    # -- refusals ----------------------------------------------------------------------------------------------

    def refuse(self, failure: LimnosError) -> None:
        """Answer what cannot become a request, or cannot remain one, and end the connection.

        What was asked before it on this connection is answered first; then nothing is said about what came behind.
        """
        if self._parting or self.transport.is_closing():
            return
        self._parting = True
        cycle = cast("Any", self.cycle)
        if cycle is None or cycle.response_complete:
            if self._phase is ConnectionPhase.BODY:
                self.transport.close()  # a body that nobody wanted any more
            else:
                self._say_last(failure)
        elif self._phase is not ConnectionPhase.BODY:
            cycle.keep_alive = False
        elif self.pipeline and self.pipeline[0][0] is cycle:
            cycle.keep_alive = False
            self.pipeline[0] = (cycle, self._refusing(failure))  # type: ignore[assignment]
        elif getattr(cycle, "response_started", False):
            self.transport.abort()
        else:
            self._say_last(failure)
            cycle.disconnected = True
            cycle.message_event.set()

    def _say_last(self, failure: LimnosError) -> None:
        status, headers, body = self._refusal(failure)
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join((STATUS_LINE[status], *lines, b"connection: close\r\n\r\n", body)))
        self.flow.resume_reading()
        self._phase = ConnectionPhase.PARTING
        self._steps += 1
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _refusal(self, failure: LimnosError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        url = self.url if self._steps else b""
        method = self.parser.get_method().decode("latin-1") if url else "GET"
        peer = self.client[0] if self.client else ""
        status, headers, body = self.application.refusal(method, url, failure, peer=peer)
        return status, headers, cast("bytes", body)

    def _refusing(self, failure: LimnosError) -> Callable[[AsgiScope, Receive, Send], Any]:
        """An application that refuses, for a request that waits in the pipeline."""

        async def refuse(_scope: AsgiScope, _receive: Receive, send: Send) -> None:
            status, headers, body = self._refusal(failure)
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        return refuse


def _failure_of(error: httptools.HttpParserError) -> LimnosError:
    """What to say about bytes that the parser, or one of its callbacks, did not take."""
    cause = error.__context__
    if isinstance(cause, LimnosError):
        return cause
    if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(cause, httptools.HttpParserError):
        log.error("unexpected failure in the parser's callback", exc_info=cause)
    return BadRequest("These bytes are no HTTP/1.1 request that can be read")
