# SPDX-License-Identifier: Apache-2.0
"""One HTTP connection with admission control: uvicorn's HTTP/1.1 protocol with limits on heads, timeouts and refusals.

Must not know routes. Every connection is an instance of this class or of its subclass in `http.connection`. A refused
request never reaches the application. Its response has the header `Connection: close`. Further input is discarded for a
moment, so that the client can read the answer before the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from limnos.http.application import Application, AsgiScope, Send
from limnos.http.client_timeouts import BODY_BYTES_PER_S, ConnectionPhase, ConnectionProgress
from limnos.http.head_admission import HEAD_BYTES_MAX, size_of, too_large
from limnos.http.request import IS_GONE, Receive
from limnos.http.streamed_body import StreamTruncated
from limnos.model.errors import BadRequest, LimnosError, TooSlow
from limnos.telemetry.logs import get_logger

PIECE_BYTES: Final = HEAD_BYTES_MAX
"""The length of the chunks, in bytes, in which input is parsed, so that an oversized head is detected before all of it
is read.
"""
UNWANTED_BYTES_MAX: Final = 1 << 26
"""The maximum number of discarded bytes per connection; the connection is aborted beyond it."""
_IDLE, _HEAD, _BODY = ConnectionPhase.IDLE, ConnectionPhase.HEAD, ConnectionPhase.BODY
"""Module constants: reading an enum member costs a tenth of a microsecond, and every request needs all three."""
log = get_logger("limnos.http")


class GatheringTransport:
    """A transport that collects writes, and sends them once per iteration of the event loop.

    Everything else is delegated to the wrapped transport.
    """

    __slots__ = ("_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self.is_closing = transport.is_closing
        """The method of the transport, bound directly because it is called twice per request."""

    def write(self, data: bytes) -> None:
        """Buffer the bytes until the end of the event loop's iteration."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def write_whole(self, data: bytes) -> None:
        """Send a complete response now, after the buffered bytes."""
        if self._held:
            self._held.append(data)
            self.flush()
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send the buffered bytes."""
        if self._held:
            entries, self._held = self._held, []
            self._transport.write(entries[0] if len(entries) == 1 else b"".join(entries))

    def close(self) -> None:
        """Send the buffered bytes, then close."""
        self.flush()
        self._transport.close()

    def write_eof(self) -> None:
        """Send the buffered bytes, then signal the end of output."""
        self.flush()
        self._transport.write_eof()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that are not yet written to the socket."""
        return self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


class AdmissionProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 protocol over a gathering transport, with admission control and client timeouts.

    `cycle` is uvicorn's name for the current request and its response.
    """

    application: Application
    """The application that answers requests."""
    _phase = ConnectionPhase.IDLE
    _steps = 0
    _unparsed_bytes = 0
    """The number of bytes since the last complete head, chunk of a body, or message. Never more than the limit of a
    head.
    """
    _unwanted_bytes = 0
    _body_bytes = 0
    """The number of bytes of the current body since the last step."""
    _is_closing = False
    _wishes_to_upgrade = False
    """Whether the current head requests an upgrade to another protocol; none is supported."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the transport of a new connection, and start to monitor the connection."""
        super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]
        self.application = cast("Application", self.config.app)
        self.application.client_timeouts.watch(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop monitoring the connection."""
        self.application.client_timeouts.forget(self)
        super().connection_lost(exc)

    # -- input -------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse the received bytes, split into chunks if they are long."""
        size = len(data)
        if size > PIECE_BYTES:
            view = memoryview(data)
            for start in range(0, size, PIECE_BYTES):
                if self.transport.is_closing():
                    return
                self.data_received(view[start : start + PIECE_BYTES])
            return
        if self._is_closing:
            self._discard_input(size)
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
        """Parse bytes, and ignore requests for an upgrade.

        The parser stops at a head with an upgrade. It is restarted with that head without the upgrade, and the bytes
        after it. Java's own client sends an upgrade with each request, and a server is free to ignore it (RFC 9110,
        section 7.8).
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as ended:
                if not self._wishes_to_upgrade:
                    self._unsupported_upgrade_warning()
                    return
                self._wishes_to_upgrade = False
                data = self._head_without_upgrade() + bytes(data[ended.args[0] :])
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _head_without_upgrade(self) -> bytes:
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        return b"".join((line, *fields, b"\r\n"))

    def _is_read_anew(self) -> bool:
        """Return whether this head must be parsed again without its upgrade request. CONNECT is a method, not an
        upgrade.
        """
        self._wishes_to_upgrade = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        return self._wishes_to_upgrade

    def on_message_begin(self) -> None:
        """Reset the checks for the head of the next request on this connection."""
        self._steps += 1
        self._phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the request's head, then pass the request on to uvicorn, or refuse it."""
        if self._is_read_anew():
            return
        self._enter(dict(self.headers))
        super().on_headers_complete()
        self._phase = _BODY  # from here on uvicorn's request cycle exists, and a refusal is sent through it
        self.headers = []  # trailer fields are not part of the head that was checked

    def _enter(self, headers: dict[bytes, bytes]) -> None:
        if self._unparsed_bytes > HEAD_BYTES_MAX and size_of(self.url, self.headers) > HEAD_BYTES_MAX:
            raise too_large()
        admission = self.application.admission
        if not admission.is_accepted(self.headers, headers, self.url):
            version = self.parser.get_http_version()
            method = self.parser.get_method().decode("latin-1")
            admission.check(self.headers, headers, method=method, url=self.url, version=version, local=self.server)
        self._unparsed_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Pass on a chunk of a body, or discard it if its request has been answered already."""
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._discard_input(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of a request, whose body is complete."""
        if self._wishes_to_upgrade:
            return
        self._unparsed_bytes = 0
        self._phase = _IDLE
        super().on_message_complete()

    def _discard_input(self, size: int) -> None:
        self._unwanted_bytes += size
        if self._unwanted_bytes > UNWANTED_BYTES_MAX:
            self.transport.abort()

    # -- progress and timeouts ---------------------------------------------------------------------------------

    def step(self) -> ConnectionProgress:
        """Return the connection's phase and its progress, for `ClientTimeouts`."""
        return ConnectionProgress(
            self._current_phase(), self._steps, self.transport.get_write_buffer_size(), self._body_bytes
        )

    def _current_phase(self) -> ConnectionPhase:
        phase, cycle = self._phase, cast("RequestResponseCycle | None", self.cycle)
        if self._is_closing and phase is not ConnectionPhase.CLOSING:
            return ConnectionPhase.ANSWER
        if self.flow.write_paused:
            return ConnectionPhase.READING_RESPONSE
        if phase is ConnectionPhase.BODY:
            return ConnectionPhase.ANSWER if self.flow.read_paused else phase
        if phase is ConnectionPhase.IDLE and cycle and not cycle.response_complete:
            return ConnectionPhase.ANSWER
        return phase

    def overdue(self, phase: ConnectionPhase) -> None:
        """End a connection after a client timeout, with 408 if a response can still be sent."""
        if phase is ConnectionPhase.HEAD or phase is ConnectionPhase.BODY:
            seconds = self.application.client_timeouts.limits[phase]
            what, rate = "head (address and headers)", ""
            if phase is ConnectionPhase.BODY:
                what, rate = "body", f" and a second more for every {BODY_BYTES_PER_S} bytes"
            self.refuse(
                TooSlow(f"The {what} of this request was not complete within {seconds:g} s{rate}: send it again")
            )
        elif phase is ConnectionPhase.IDLE and self.transport.get_write_buffer_size() == 0:
            self.transport.close()
        else:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Continue with a pipelined request, or wait for the next one."""
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
        """Run an ASGI application for a request.

        If the client has disconnected, `send` raises StreamTruncated, so that no more chunks are produced.
        """

        async def sending(message: MutableMapping[str, object]) -> None:
            if cycle.disconnected and message.get("more_body"):
                raise StreamTruncated
            await send(message)

        scope[IS_GONE] = lambda: cycle.disconnected
        await app(scope, receive, sending)

    # -- refusals ----------------------------------------------------------------------------------------------

    def refuse(self, failure: LimnosError) -> None:
        """Refuse a request that cannot be accepted or completed, and close the connection.

        Earlier requests on this connection are answered first; in that case the refused one gets no response.
        """
        if self._is_closing or self.transport.is_closing():
            return
        self._is_closing = True
        cycle = cast("Any", self.cycle)
        if cycle is None or cycle.response_complete:
            if self._phase is ConnectionPhase.BODY:
                self.transport.close()  # the request is answered; the rest of its body is not read
            else:
                self._send_refusal(failure)
        elif self._phase is not ConnectionPhase.BODY:
            cycle.keep_alive = False
        elif self.pipeline and self.pipeline[0][0] is cycle:
            cycle.keep_alive = False
            self.pipeline[0] = (cycle, self._refusing(failure))  # type: ignore[assignment]
        elif getattr(cycle, "response_started", False):
            self.transport.abort()
        else:
            self._send_refusal(failure)
            cycle.disconnected = True
            cycle.message_event.set()

    def _send_refusal(self, failure: LimnosError) -> None:
        status, headers, body = self._refusal(failure)
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join((STATUS_LINE[status], *lines, b"connection: close\r\n\r\n", body)))
        self.flow.resume_reading()
        self._phase = ConnectionPhase.CLOSING
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
        """Return an ASGI application that sends the refusal, for a request that waits in the pipeline."""

        async def refuse(_scope: AsgiScope, _receive: Receive, send: Send) -> None:
            status, headers, body = self._refusal(failure)
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        return refuse


def _failure_of(error: httptools.HttpParserError) -> LimnosError:
    """Return the error for bytes that the parser, or one of its callbacks, rejected."""
    cause = error.__context__
    if isinstance(cause, LimnosError):
        return cause
    if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(cause, httptools.HttpParserError):
        log.error("unexpected failure in the parser's callback", exc_info=cause)
    return BadRequest("These bytes are not a valid HTTP/1.1 request")
