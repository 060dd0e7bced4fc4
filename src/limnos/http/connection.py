"""One HTTP connection: uvicorn's HTTP/1.1 protocol with a lane of its own for ordinary requests.

May import `model`, `telemetry`, uvicorn and the application. An ordinary request (HTTP/1.1, kept alive, its body complete and
short, nothing before it on the connection unanswered) goes straight to the application, and its answer leaves in one
write; where the application answers at once, that happens inside the parser's callback, without a task. Everything
else goes uvicorn's way through ASGI, to the same answers: with `server.lane = false` all requests do. This leans on
uvicorn's internals, so its minor version is pinned and `tests/http/test_connection.py` runs both ways (docs/decisions/0028).
"""

from __future__ import annotations

import asyncio
import time
import types
from typing import TYPE_CHECKING, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from limnos.http.admission_protocol import AdmissionProtocol
from limnos.http.client_timeouts import ConnectionPhase
from limnos.http.head_admission import HEAD_BYTES_MAX
from limnos.http.response_cache import METHODS, dependencies_of, key_of
from limnos.http.streamed_body import StreamTruncated
from limnos.model.errors import ServiceUnavailable
from limnos.telemetry.logs import get_logger
from limnos.telemetry.request_ids import current_request_id, next_request_id

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from typing import Any

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from limnos.http.response import Answer
    from limnos.http.response_cache import CacheableRequest, CachedResponse, ResponseCacheKey

BODY_BYTES_MAX: Final = 1 << 16
"""Longer bodies are received through ASGI, which slows a sender down as they are read."""
BEHIND_ADDRESS: Final = b" HTTP/1.1\r\n"
_METHODS: Final = {name.encode(): name for name in METHODS}
CHUNKED: Final = (b"transfer-encoding", b"chunked")
_IDLE, _HEAD, _BODY = ConnectionPhase.IDLE, ConnectionPhase.HEAD, ConnectionPhase.BODY
log = get_logger("limnos.http")


class _NullWaiter:
    """Stands where uvicorn wakes the ASGI application: nobody waits there."""

    @staticmethod
    def set() -> None:
        """Do nothing: no application waits here."""


class FastPathExchange:
    """A request of the lane and the state of its answer, with the names that uvicorn's protocol looks for."""

    __slots__ = ("body", "disconnected", "headers", "keep_alive", "more_body", "response_complete", "task")

    message_event = _NullWaiter

    def __init__(self, headers: dict[bytes, bytes]) -> None:
        self.headers = headers
        self.body: bytes | bytearray = b""
        self.more_body = True
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False
        self.task: asyncio.Task[None] | None = None

    def is_gone(self) -> bool:
        """Say whether the client has left."""
        return self.disconnected


class FreshnessCallback:
    """A kept answer that waits for the gate: called back within the gate's own turn, without a task or a future.

    It is a waiter to the gate, and what the deadlines watch.
    """

    __slots__ = ("_done", "_exchange", "_kept", "_key", "_lane", "_started")

    def __init__(
        self,
        lane: FastPathProtocol,
        exchange: FastPathExchange,
        kept: CachedResponse,
        key: ResponseCacheKey,
        started: float,
    ) -> None:
        self._lane, self._exchange = lane, exchange
        self._kept, self._key, self._started = kept, key, started
        self._done = False

    def done(self) -> bool:
        """Say whether it is waited no longer."""
        return self._done

    def set_result(self, _: object) -> None:
        """The gate was asked: send what is kept if it holds, and answer afresh otherwise."""
        self._end(holds=self._lane.application.kept.holds_after_gate(self._kept))

    def set_exception(self, _: Exception) -> None:
        """The gate could not be asked: whoever answers afresh finds out, and says so."""
        self._end(holds=False)

    def cancel(self) -> None:
        """The time for the request is over."""
        self._done = True
        self._lane.application.deadlines.release(self)
        method, url, _ = self._key
        try:
            self._lane.say_late(self._exchange, url, method)
        except Exception as error:  # noqa: BLE001 - the deadlines go on
            self._fail(error)

    def _end(self, *, holds: bool) -> None:
        self._done = True
        lane, key = self._lane, self._key
        lane.application.deadlines.release(self)
        try:
            if holds:
                lane.send_again(self._exchange, self._kept, key, self._started)
            else:
                lane.answer_afresh(self._exchange, key[0], key[1], lane.application.kept.keeping(key))
        except Exception as error:  # noqa: BLE001 - others wait for the gate as well
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("unexpected failure in the lane", exc_info=error)
        self._lane.transport.close()


class FastPathProtocol(AdmissionProtocol):
    """The protocol with the lane.

    What a connection sends is much the same each time: a head whose fields are those of the last one was looked at
    already, and found ordinary.
    """

    _usual_fields: list[tuple[bytes, bytes]] | None = None
    _usual_headers: dict[bytes, bytes]
    _usual_depends: tuple[bytes | None, ...] = ()
    """What answers that are kept depend on, of the usual head."""
    _usual_rest = b""
    """How the usual head goes on behind its address, to its end, where it was a whole request and all that came at once."""
    _begun = 0
    _peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember who it is."""
        super().connection_made(transport)
        self._usual_headers = {}
        self._peer = self.client[0] if self.client else ""

    # -- a request comes in ------------------------------------------------------------------------------------

    def data_received(self, data: bytes | memoryview) -> None:
        """Answer what was asked before, byte for byte, by what is kept; parse everything else."""
        if self._phase is not _IDLE or self._parting or type(data) is not bytes or len(data) > HEAD_BYTES_MAX:
            super().data_received(data)
            return
        end = data.find(BEHIND_ADDRESS)
        if end > 0 and self._usual_rest == data[end:] and self._asked_before(data[:end]):
            return
        begun = self._begun
        super().data_received(data)
        if end > 0 and self._begun == begun + 1:
            self._learn(data, end)

    def _asked_before(self, line: bytes) -> bool:
        """Answer a request whose address has an answer that is kept, and the rest of which is as it was on this connection.

        What such bytes are to the parser was seen before, so it is not asked again. Says no where that can't be said.
        """
        before = cast("RequestResponseCycle | None", self.cycle)
        if self._unparsed_bytes or (before is not None and not before.response_complete) or self.flow.write_paused:
            return False
        name, _, url = line.partition(b" ")
        method = _METHODS.get(name)
        if method is None or not self.application.kept.is_on:
            return False
        key, started = (method, url, self._usual_depends), time.perf_counter()
        kept = self.application.kept.find(key)
        if kept is None or self.transport.is_closing():
            return False
        self._steps += 1
        self.url = url
        exchange = FastPathExchange(self._usual_headers)
        exchange.more_body = False
        self.cycle = exchange  # type: ignore[assignment]
        try:
            self._answer_kept(exchange, kept, key=key, started=started)
        except Exception:
            log.exception("unexpected failure in the lane")
            self.transport.close()
        return True

    def _learn(self, data: bytes, end: int) -> None:
        """Remember how a request went on behind its address, if it was ordinary, without a body, and all that came."""
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
        """Begin a request; its ASGI scope is made only when it goes that way."""
        self._steps += 1
        self._begun += 1
        self._phase = _HEAD
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Choose the way."""
        may = self._may_go_straight()
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
        self.headers += fields  # the scope holds this very list
        HttpToolsProtocol.on_headers_complete(self)
        self._phase = _BODY
        self.headers = []

    def _may_go_straight(self) -> bool:
        """Say whether the connection, and the request's first line, are fit for the lane."""
        before, url = cast("RequestResponseCycle | None", self.cycle), self.url
        return (
            (before is None or before.response_complete)
            and not self.flow.write_paused
            and self.limit_concurrency is None
            and url[:1] == b"/"
            and b"#" not in url
            and self.parser.get_http_version() == "1.1"
            and not self.parser.should_upgrade()
        )

    def _is_ordinary(self, headers: dict[bytes, bytes]) -> bool:
        """Say whether the fields of an HTTP/1.1 head are fit for the lane. Those of browsers are looked at in each request."""
        return (
            not self.expect_100_continue
            and b"origin" not in headers
            and b"sec-fetch-site" not in headers
            and b"transfer-encoding" not in headers
            and self.parser.should_keep_alive()
            and (b"content-length" not in headers or int(headers[b"content-length"]) <= BODY_BYTES_MAX)
        )

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body; it is short, so the sender need not be slowed down."""
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
        """Answer a request of the lane, now that it is whole."""
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
            log.exception("unexpected failure in the lane")
            self.transport.close()

    def _begin(self, exchange: FastPathExchange) -> None:
        """Answer with what is kept, if it holds; else afresh."""
        answers, method, url, keeping = self.application.kept, self.parser.get_method().decode("ascii"), self.url, None
        if answers.is_on and (key := key_of(method, url, self._usual_depends)) is not None:
            started, kept = time.perf_counter(), answers.find(key)
            if kept is not None:
                self._answer_kept(exchange, kept, key=key, started=started)
                return
            keeping = answers.keeping(key)
        self.answer_afresh(exchange, method, url, keeping)

    def _answer_kept(
        self, exchange: FastPathExchange, kept: CachedResponse, *, key: ResponseCacheKey, started: float
    ) -> None:
        """Answer with what is kept, if it holds, now or when the gate was asked; else afresh."""
        answers = self.application.kept
        if answers.inline:
            if answers.holds_now(kept):
                self.send_again(exchange, kept, key, started)
                return
        elif answers.ask(kept, waiting := FreshnessCallback(self, exchange, kept, key, started)):
            self.application.deadlines.watch(waiting)
            return
        self.answer_afresh(exchange, key[0], key[1], answers.keeping(key))

    def answer_afresh(
        self, exchange: FastPathExchange, method: str, url: bytes, keeping: CacheableRequest | None
    ) -> None:
        """Have the application answer; at once, if it can."""
        application = self.application
        path, _, query = url.partition(b"?")
        at_once = application.answers_at_once(method)
        request_id = next_request_id()
        mine = current_request_id.set(request_id)
        try:
            work = application.respond(
                method, path, query, exchange.headers, bytes(exchange.body), request_id=request_id,
                peer=self._peer, at_once=at_once, keeping=keeping, is_gone=exchange.is_gone,
            )  # fmt: skip
            if at_once:
                try:
                    waits_for = work.send(None)
                except StopIteration as ended:
                    if isinstance(ended.value[2], bytes):
                        self._write(exchange, ended.value)
                        return
                    work = _return_answer(ended.value)
                else:
                    work = self._resume(work, waits_for, application.seconds_of(method, path))
            exchange.task = self.loop.create_task(self._finish(exchange, work))
            self.tasks.add(exchange.task)
        finally:
            current_request_id.reset(mine)

    def send_again(
        self, exchange: FastPathExchange, kept: CachedResponse, key: ResponseCacheKey, started: float
    ) -> None:
        """Send an answer that is kept, under this request's own id."""
        application, request_id = self.application, next_request_id()
        if exchange.disconnected or not exchange.keep_alive or self.transport.is_closing():
            answer = application.again(
                kept, key, started, request_id=request_id, peer=self._peer, headers=exchange.headers
            )
            self._write(exchange, answer)
            return
        application.count_again(kept, key, started, request_id=request_id, peer=self._peer, headers=exchange.headers)
        head = kept.head
        if head is None:
            head = kept.head = self._head_around_id(exchange, kept)
        self.transport.write_whole(b"".join((head[0], request_id.encode(), head[1], kept.body)))  # type: ignore[attr-defined]
        self._complete(exchange)

    def say_late(self, exchange: FastPathExchange, url: bytes, method: str) -> None:
        """Answer that the time is over."""
        late = ServiceUnavailable(
            "The store did not answer in time, and nothing was changed: try again", retry_after_s=5
        )
        self._write(exchange, self.application.refusal(method, url, late, peer=self._peer))

    def _head_around_id(self, exchange: FastPathExchange, kept: CachedResponse) -> tuple[bytes, bytes]:
        headers = kept.headers_with(b"\0")
        before, _, after = self._head(exchange, kept.status, headers).partition(b"\0")
        return before, after

    # -- its answer goes out -----------------------------------------------------------------------------------

    async def _resume(self, work: Coroutine[Any, Any, Answer], waits_for: object, seconds: float | None) -> Answer:
        """Go on, in this task and until its deadline, with what was to be answered at once and has to wait."""
        deadlines, task = self.application.deadlines, self.application.watch(seconds)
        try:
            return await _resume_coroutine(work, waits_for)
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
            log.exception("unexpected failure in the lane")
        finally:
            self.tasks.discard(cast("asyncio.Task[None]", exchange.task))
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
                await asyncio.sleep(0)  # the turn's end sends it
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
            raise RuntimeError("A header of an answer holds a line break")
        return head

    def _complete(self, exchange: FastPathExchange) -> None:
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()


async def _return_answer(answer: Answer) -> Answer:
    return answer


@types.coroutine
def _resume_coroutine(work: Coroutine[Any, Any, Answer], waits_for: object) -> Generator[object, Any, Answer]:
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
