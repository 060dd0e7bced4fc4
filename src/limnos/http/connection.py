# SPDX-License-Identifier: Apache-2.0
"""One HTTP connection: uvicorn's HTTP/1.1 protocol with a fast path for ordinary requests.

Must not know routes. An ordinary request is HTTP/1.1 on a persistent connection, its body is short and complete, and no
earlier request on the connection is unanswered. It goes directly to the application, and its response is sent in one
write. If the application answers at once, that happens inside the parser's callback, without a task. All other requests
go through ASGI, with the same responses; with `server.lane = false` all requests do. This depends on uvicorn's
internals, so its minor version is pinned and `tests/http/test_connection.py` tests both paths (docs/decisions/0028).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from limnos.http.admission_protocol import AdmissionProtocol
from limnos.http.client_timeouts import ConnectionPhase
from limnos.http.head_admission import HEAD_BYTES_MAX
from limnos.http.request import next_request_id
from limnos.http.response import Answer
from limnos.http.response_cache import (
    METHODS,
    CacheableRequest,
    CachedResponse,
    ResponseCacheKey,
    dependencies_of,
    key_of,
)
from limnos.http.streamed_body import StreamTruncated
from limnos.model.errors import ServiceUnavailable
from limnos.telemetry.current_request import current_request
from limnos.telemetry.logs import get_logger


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


BODY_BYTES_MAX: Final = 1 << 16
"""The maximum length of a body on the fast path, in bytes; longer ones are received through ASGI, which can apply
backpressure.
"""
BEHIND_ADDRESS: Final = b" HTTP/1.1\r\n"
_METHODS: Final = {name.encode(): name for name in METHODS}
CHUNKED: Final = (b"transfer-encoding", b"chunked")
_IDLE, _HEAD, _BODY = ConnectionPhase.IDLE, ConnectionPhase.HEAD, ConnectionPhase.BODY
log = get_logger("limnos.http")


class FreshnessCallback:
    """A cached response that waits for the freshness gate.

    The freshness gate calls this object directly, without a task or a future. It implements `GateWaiter`, and
    `Deadlines` may cancel it.
    """

    __slots__ = ("_done", "_exchange", "_key", "_lane", "_response", "_started")

    def __init__(
        self,
        lane: FastPathProtocol,
        exchange: FastPathExchange,
        response: CachedResponse,
        key: ResponseCacheKey,
        started: float,
    ) -> None:
        self._lane, self._exchange = lane, exchange
        self._response, self._key, self._started = response, key, started
        self._done = False

    def done(self) -> bool:
        """Return whether the callback has run or was cancelled."""
        return self._done

    def set_result(self, _: object) -> None:
        """Handle a completed freshness check: send the cached response if it is still valid, else run the handler."""
        self._end(is_valid=self._lane.application.response_cache.is_valid_after_gate(self._response))

    def set_exception(self, error: Exception) -> None:
        """Handle a failed freshness check: send its error. The handler would only wait for the store once more."""
        self._refuse(error)

    def cancel(self) -> None:
        """Send 503, because the request's deadline has passed."""
        self._refuse(
            ServiceUnavailable("The store did not answer in time, and nothing was changed: try again", retry_after_s=5)
        )

    def _refuse(self, failure: Exception) -> None:
        self._done = True
        self._lane.application.deadlines.release(self)
        try:
            self._lane.send_refusal(self._exchange, failure, key=self._key, started=self._started)
        except Exception as error:  # noqa: BLE001 - other waiters and other deadlines come next
            self._fail(error)

    def _end(self, *, is_valid: bool) -> None:
        self._done = True
        lane, key = self._lane, self._key
        lane.application.deadlines.release(self)
        try:
            if is_valid:
                lane.send_cached(self._exchange, self._response, key, self._started)
            else:
                lane.run_handler(self._exchange, key[0], key[1], lane.application.response_cache.begin(key))
        except Exception as error:  # noqa: BLE001 - other waiters of the gate must be called
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("unexpected failure in the fast path", exc_info=error)
        self._lane.transport.close()


class FastPathProtocol(AdmissionProtocol):
    """Uvicorn's HTTP/1.1 protocol with a fast path for ordinary requests.

    Requests on one connection have mostly the same head fields. A head whose fields equal those of the last ordinary
    request needs no further check.
    """

    _usual_fields: list[tuple[bytes, bytes]] | None = None
    _usual_headers: dict[bytes, bytes]
    _usual_depends: tuple[bytes | None, ...] = ()
    """The values of the usual head that cached responses depend on."""
    _usual_rest = b""
    """The bytes of the usual request after its request target; set only if it was a complete request and nothing else
    was received with it.
    """
    _begun = 0
    _peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Store the client's address when a connection is accepted."""
        super().connection_made(transport)
        self._usual_headers = {}
        self._peer = self.client[0] if self.client else ""

    # -- requests ----------------------------------------------------------------------------------------------

    def data_received(self, data: bytes | memoryview) -> None:
        """Answer a byte-for-byte repeated request from the response cache; parse everything else."""
        if self._phase is not _IDLE or self._is_closing or type(data) is not bytes or len(data) > HEAD_BYTES_MAX:
            super().data_received(data)
            return
        end = data.find(BEHIND_ADDRESS)
        if end > 0 and self._usual_rest == data[end:] and self._answer_repeated_request(data[:end]):
            return
        started_at = self._begun
        super().data_received(data)
        if end > 0 and self._begun == started_at + 1:
            self._store_request_bytes(data, end)

    def _answer_repeated_request(self, line: bytes) -> bool:
        """Answer a request from the response cache if its bytes after the request target equal those of the last
        ordinary request.

        The parser has accepted these bytes before, so it is not called again. Returns False if they differ.
        """
        former_cycle = cast("RequestResponseCycle | None", self.cycle)
        if (
            self._unparsed_bytes
            or (former_cycle is not None and not former_cycle.response_complete)
            or self.flow.write_paused
        ):
            return False
        name, _, url = line.partition(b" ")
        method = _METHODS.get(name)
        if method is None or not self.application.response_cache.is_on:
            return False
        key, started = (method, url, self._usual_depends), time.perf_counter()
        response = self.application.response_cache.find(key)
        if response is None or self.transport.is_closing():
            return False
        self._steps += 1
        self.url = url
        exchange = FastPathExchange(self._usual_headers)
        exchange.more_body = False
        self.cycle = exchange  # type: ignore[assignment]
        try:
            self._answer_cached(exchange, response, key=key, started=started)
        except Exception:
            log.exception("unexpected failure in the fast path")
            self.transport.close()
        return True

    def _store_request_bytes(self, data: bytes, end: int) -> None:
        """Store the bytes of a request after its request target, if it was ordinary, had no body, and nothing else was
        received with it.
        """
        exchange: object = self.cycle
        if (
            self._phase is _IDLE
            and not self._unparsed_bytes
            and self.headers == self._usual_fields
            and isinstance(exchange, FastPathExchange)
            and not exchange.body
            and data[:end] == self.parser.get_method() + b" " + self.url
        ):
            self._usual_rest = data[end:]

    def on_message_begin(self) -> None:
        """Begin a request. Its ASGI scope is created only if it goes through ASGI."""
        self._steps += 1
        self._begun += 1
        self._phase = _HEAD
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Choose the fast path or ASGI."""
        may = self._may_use_fast_path()
        if may and self.headers == self._usual_fields and self._unparsed_bytes <= HEAD_BYTES_MAX:
            self._unparsed_bytes = 0
            self.cycle = FastPathExchange(self._usual_headers)  # type: ignore[assignment]
            self._phase = _BODY
            return
        if not may and self._is_read_anew():
            return
        headers = dict(self.headers)
        self._enter(headers)
        if may and self._is_ordinary(headers):
            self._usual_fields, self._usual_headers, self._usual_rest = self.headers, headers, b""
            self._usual_depends = dependencies_of(headers)
            self.cycle = FastPathExchange(headers)  # type: ignore[assignment]
            self._phase = _BODY
            return
        url, fields, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url, expects
        self.headers += fields  # the scope refers to this list object
        HttpToolsProtocol.on_headers_complete(self)
        self._phase = _BODY
        self.headers = []

    def _may_use_fast_path(self) -> bool:
        """Return whether the state of the connection and the request line allow the fast path."""
        former_cycle, url = cast("RequestResponseCycle | None", self.cycle), self.url
        return (
            (former_cycle is None or former_cycle.response_complete)
            and not self.flow.write_paused
            and self.limit_concurrency is None
            and url[:1] == b"/"
            and b"#" not in url
            and self.parser.get_http_version() == "1.1"
            and not self.parser.should_upgrade()
        )

    def _is_ordinary(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether the fields of an HTTP/1.1 head allow the fast path.

        Requests with `Origin` or `Sec-Fetch-Site`, which browsers send, are excluded: their heads are checked each
        time.
        """
        return (
            not self.expect_100_continue
            and b"origin" not in headers
            and b"sec-fetch-site" not in headers
            and b"transfer-encoding" not in headers
            and self.parser.should_keep_alive()
            and (b"content-length" not in headers or int(headers[b"content-length"]) <= BODY_BYTES_MAX)
        )

    def on_body(self, body: bytes) -> None:
        """Store a chunk of the body. It is short, so no backpressure is needed."""
        exchange: object = self.cycle
        if isinstance(exchange, FastPathExchange) and not exchange.response_complete:
            self._unparsed_bytes = 0
            if not exchange.body:
                exchange.body = body
                return
            if isinstance(exchange.body, bytes):
                exchange.body = bytearray(exchange.body)
            exchange.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answer a complete request on the fast path."""
        exchange: object = self.cycle
        if not isinstance(exchange, FastPathExchange) or self._wishes_to_upgrade:
            super().on_message_complete()
            return
        self._unparsed_bytes = 0
        self._phase = _IDLE
        exchange.more_body = False
        try:
            self._begin(exchange)
        except Exception:
            log.exception("unexpected failure in the fast path")
            self.transport.close()

    def _begin(self, exchange: FastPathExchange) -> None:
        """Answer from the response cache if its entry is valid; otherwise run the handler."""
        answers, method, url, cacheable = (
            self.application.response_cache,
            self.parser.get_method().decode("ascii"),
            self.url,
            None,
        )
        if answers.is_on and method in METHODS and (key := key_of(method, url, self._usual_depends)) is not None:
            started, response = time.perf_counter(), answers.find(key)
            if response is not None:
                self._answer_cached(exchange, response, key=key, started=started)
                return
            cacheable = answers.begin(key)
        self.run_handler(exchange, method, url, cacheable)

    def _answer_cached(
        self, exchange: FastPathExchange, response: CachedResponse, *, key: ResponseCacheKey, started: float
    ) -> None:
        """Send the cached response if it is valid, immediately or after a freshness check; otherwise run the
        handler.
        """
        answers = self.application.response_cache
        if answers.inline:
            if answers.is_valid_now(response):
                self.send_cached(exchange, response, key, started)
            else:
                self.run_handler(exchange, key[0], key[1], answers.begin(key))
            return
        waiting = FreshnessCallback(lane=self, exchange=exchange, response=response, key=key, started=started)
        answers.start_check(response, waiting)
        self.application.deadlines.watch(waiting)

    def run_handler(
        self, exchange: FastPathExchange, method: str, url: bytes, cacheable: CacheableRequest | None
    ) -> None:
        """Run the application's handler for a request. A task is started only if the handler has to wait."""
        application = self.application
        path, _, query = url.partition(b"?")
        at_once = application.answers_at_once(method)
        request_id = next_request_id()
        try:
            work = application.respond(
                method,
                path,
                query,
                exchange.headers,
                bytes(exchange.body),
                request_id=request_id,
                peer=self._peer,
                at_once=at_once,
                cacheable=cacheable,
                is_gone=exchange.is_gone,
            )
            if at_once:
                try:
                    waits_for = work.send(None)
                except StopIteration as ended:
                    if isinstance(ended.value[2], bytes):
                        self._write(exchange, ended.value)
                        return
                    work = return_answer(ended.value)
                else:
                    rest, seconds = application.resume_response(work, waits_for, method=method, raw=path)
                    work = self._resume(rest, seconds)
            self.tasks.add(self.loop.create_task(self._finish(exchange, work)))
        finally:
            current_request.set(None)

    def send_cached(
        self, exchange: FastPathExchange, response: CachedResponse, key: ResponseCacheKey, started: float
    ) -> None:
        """Send a cached response with this request's id."""
        application, request_id = self.application, next_request_id()
        if exchange.disconnected or not exchange.keep_alive or self.transport.is_closing():
            answer = application.answer_from_cache(
                response, key, started, request_id=request_id, peer=self._peer, headers=exchange.headers
            )
            self._write(exchange, answer)
            return
        application.outcomes.record_cached(
            response, key, started=started, request_id=request_id, peer=self._peer, headers=exchange.headers
        )
        head = response.head
        if head is None:
            head = response.head = self._head_around_id(exchange, response)
        self.transport.write_whole(b"".join((head[0], request_id.encode(), head[1], response.body)))  # type: ignore[attr-defined]
        self._complete(exchange)

    def send_refusal(
        self, exchange: FastPathExchange, failure: Exception, *, key: ResponseCacheKey, started: float
    ) -> None:
        """Send the error of a request that waited for its freshness check since `started`."""
        self._write(exchange, self.application.refusal(key[0], key[1], failure, peer=self._peer, started=started))

    def _head_around_id(self, exchange: FastPathExchange, response: CachedResponse) -> tuple[bytes, bytes]:
        headers = response.headers_with(b"\0")
        before, _, after = self._head(exchange, response.status, headers).partition(b"\0")
        return before, after

    # -- responses ---------------------------------------------------------------------------------------------

    async def _resume(self, rest: Awaitable[Answer], seconds: float | None) -> Answer:
        """Await what is left of work that had to wait, in this task and until its deadline."""
        deadlines, task = self.application.deadlines, self.application.watch(seconds)
        try:
            return await rest
        finally:
            deadlines.release(task)

    async def _finish(self, exchange: FastPathExchange, work: Coroutine[Any, Any, Answer]) -> None:
        try:
            answer = await work
            if self.flow.write_paused and not exchange.disconnected:
                await self.flow.drain()
            await self._send(exchange, answer)
        except StreamTruncated:
            exchange.keep_alive = False
        except Exception:
            log.exception("unexpected failure in the fast path")
        finally:
            self.tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            if not exchange.response_complete:
                self.transport.close()

    async def _send(self, exchange: FastPathExchange, answer: Answer) -> None:
        status, headers, pieces = answer
        if isinstance(pieces, bytes):
            self._write(exchange, answer)
            return
        try:
            self.transport.write(self._head(exchange, status, [*headers, CHUNKED]))
            async for piece in pieces:
                if exchange.disconnected:
                    raise StreamTruncated
                self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await asyncio.sleep(0)  # let the event loop send, so that `write_paused` is current
                if self.flow.write_paused:
                    await self.flow.drain()
            self.transport.write(b"0\r\n\r\n")
        finally:
            await pieces.close()
        self._complete(exchange)

    def _write(self, exchange: FastPathExchange, answer: Answer) -> None:
        if exchange.disconnected or self.transport.is_closing():
            exchange.response_complete = True
            return
        status, headers, body = answer
        head = self._head(exchange, status, headers)
        self.transport.write_whole(b"".join((head, body)))  # type: ignore[attr-defined, arg-type]
        self._complete(exchange)

    @staticmethod
    def _head(exchange: FastPathExchange, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        parts = [STATUS_LINE[status]]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"\r\n" if exchange.keep_alive else b"connection: close\r\n\r\n")
        head = b"".join(parts)
        if head.count(b"\n") != len(headers) + (2 if exchange.keep_alive else 3):
            raise RuntimeError("A header of a response contains a line break")
        return head

    def _complete(self, exchange: FastPathExchange) -> None:
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()
