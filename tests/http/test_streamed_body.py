# SPDX-License-Identifier: Apache-2.0
"""Routes that wait, have their own deadline, or answer in pieces: over real sockets, on the fast path and through
ASGI.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing

import pytest

from limnos.http.admin.errors import error_response
from limnos.http.request import Request
from limnos.http.response import Response, stream_response
from limnos.http.routing import Route, Router
from limnos.model.errors import LimnosError
from limnos.services.request.context import Context
from limnos.telemetry.metrics import requests
from tests.http.sockets import WAIT_S, ServedNode, SocketWire, request

pytestmark = pytest.mark.integration

LIMIT_S = 0.4
LONG_S = 1000.0
PIECES = 50
PIECE = b"0123456789" * 1_000


class Slow:
    """A protocol with slow routes."""

    name = "slow"
    anonymous = frozenset({"wait", "wait-short", "wait-long", "pieces", "endless", "broken", "stuck"})

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.made = 0
        self.router: Router[object] = Router(
            "/slow",
            [
                Route(method="GET", path="/wait", handler=self.wait, operation="wait"),
                Route(method="POST", path="/wait", handler=self.wait, operation="wait"),
                Route(method="GET", path="/short", handler=self.wait, operation="wait-short", deadline_s=LIMIT_S / 4),
                Route(method="GET", path="/long", handler=self.nap, operation="wait-long", deadline_s=LONG_S),
                Route(method="GET", path="/pieces", handler=self.pieces, operation="pieces"),
                Route(method="GET", path="/endless", handler=self.endless, operation="endless", deadline_s=LONG_S),
                Route(method="GET", path="/broken", handler=self.broken, operation="broken"),
                Route(method="GET", path="/stuck", handler=self.stuck, operation="stuck"),
            ],
        )

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return the error of the admin API."""
        return error_response(error, request_id=request_id)

    async def wait(self, _request: Request, _ctx: Context) -> Response:
        """Wait until cancelled."""
        try:
            await asyncio.sleep(LONG_S)
        finally:
            self.closed.append("wait")
        return Response(200)

    async def nap(self, _request: Request, _ctx: Context) -> Response:
        """Answer after the default deadline."""
        await asyncio.sleep(LIMIT_S * 1.5)
        return Response(200, b"rested")

    async def pieces(self, _request: Request, _ctx: Context) -> Response:
        """Yield many pieces, some empty, with and without waits."""

        async def source() -> AsyncGenerator[bytes, None]:
            for number in range(PIECES):
                yield PIECE
                yield b""
                if number % 10 == 0:
                    await asyncio.sleep(0.001)

        return stream_response(source())

    async def endless(self, _request: Request, _ctx: Context) -> Response:
        """Yield pieces until the client has disconnected."""

        async def source() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    self.made += 1
                    yield PIECE
            finally:
                self.closed.append("endless")

        return stream_response(source())

    async def broken(self, _request: Request, _ctx: Context) -> Response:
        """Fail after the first piece."""

        async def source() -> AsyncGenerator[bytes, None]:
            yield PIECE
            raise RuntimeError("broken")

        return stream_response(source())

    async def stuck(self, _request: Request, _ctx: Context) -> Response:
        """Wait instead of yielding the second piece."""

        async def source() -> AsyncGenerator[bytes, None]:
            yield PIECE
            await asyncio.sleep(LONG_S)
            yield PIECE

        return stream_response(source())


@pytest.fixture(scope="module", params=[True, False], ids=["lane", "no lane"])
def lane(request: pytest.FixtureRequest) -> bool:
    """Run each test on the fast path and through ASGI, which must answer alike."""
    return bool(request.param)


@pytest.fixture(scope="module")
def slow() -> Slow:
    """The protocol."""
    return Slow()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, lane: bool, slow: Slow) -> Iterator[ServedNode]:
    """A node on SQLite with the slow protocol besides the others, and a short deadline."""
    node = ServedNode(tmp_path_factory.mktemp("pieces"), lane=lane, request_timeout_s=LIMIT_S)
    node.built.application.protocols.insert(0, slow)
    yield node
    node.stop()


@pytest.fixture
def wire(served: ServedNode) -> Iterator[SocketWire]:
    """A new connection."""
    with closing(SocketWire(served.port)) as connection:
        yield connection


def chunks(wire: SocketWire) -> tuple[bytes, bool]:
    """Read a chunked body. Returns its bytes, and whether it was complete."""
    _, headers = wire.head()
    assert headers["transfer-encoding"] == "chunked"
    assert "content-length" not in headers
    data, body = wire.held, b""
    wire.held = b""
    while True:
        while b"\r\n" not in data:
            more = wire.socket.recv(1 << 16)
            if not more:
                return body, False
            data += more
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        while len(data) < size + 2:
            more = wire.socket.recv(1 << 16)
            if not more:
                return body + data, False
            data += more
        body, data = body + data[:size], data[size + 2 :]
        if size == 0:
            wire.held = data
            return body, True


def until(done: object) -> bool:
    """Wait until a condition is true."""
    ends = time.monotonic() + WAIT_S
    while not done():  # type: ignore[operator]
        if time.monotonic() > ends:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_request_past_its_deadline_returns_503(wire: SocketWire, slow: Slow, method: str) -> None:
    """A request past its deadline is 503 with `Retry-After`, also on SQLite. The handler is cancelled, and the
    connection continues.
    """
    slow.closed.clear()
    wire.send(request(method, "/slow/wait") + request("GET", "/health/live"))

    answer, after = wire.answer(bodiless=method == "HEAD"), wire.answer()

    assert (answer.status, after.status) == (503, 200)
    assert answer.headers["retry-after"] == "5"
    assert slow.closed == ["wait"]


def test_route_may_have_its_own_deadline(wire: SocketWire) -> None:
    """A route may have a shorter or longer deadline."""
    wire.send(request("GET", "/slow/short") + request("GET", "/slow/long"))

    short, long = wire.answer(), wire.answer()

    assert short.status == 503
    assert b"within 0.1 s" in short.body
    assert (long.status, long.body) == (200, b"rested")


def test_streamed_body_is_complete_and_counted_once(wire: SocketWire) -> None:
    """A streamed body is complete and counted once. The next request's answer follows it, also if the request was
    pipelined.
    """
    wire.send(request("GET", "/slow/pieces") + request("GET", "/health/live"))
    first, complete = chunks(wire)
    pipelined = wire.answer()
    before = requests["slow", "pieces", 200]
    wire.send(request("GET", "/slow/pieces"))
    second, again = chunks(wire)
    wire.send(request("HEAD", "/slow/pieces") + request("GET", "/health/live"))
    head, after = wire.answer(bodiless=True), wire.answer()

    assert (complete, again) == (True, True)
    assert first == second == PIECE * PIECES
    assert (pipelined.status, head.status, after.status) == (200, 200, 200)
    assert requests["slow", "pieces", 200] == before + 2


def test_disconnect_stops_producing_pieces(served: ServedNode, slow: Slow) -> None:
    """After the client disconnects, the route produces no further pieces."""
    slow.closed.clear()
    with closing(SocketWire(served.port)) as socket_wire:
        socket_wire.send(request("GET", "/slow/endless"))
        socket_wire.socket.recv(1 << 16)

    assert until(lambda: slow.closed == ["endless"])


def test_stream_waits_for_a_client_that_does_not_read(served: ServedNode, slow: Slow) -> None:
    """The route does not produce pieces that the client does not read, so that memory is limited for an endless
    answer.
    """
    slow.made = 0
    with closing(SocketWire(served.port, receive_bytes=4096)) as slothful:
        slothful.send(request("GET", "/slow/endless"))
        time.sleep(0.3)
        piece_count = slow.made
        time.sleep(0.3)

        assert slow.made == piece_count < 2_000


@pytest.mark.parametrize("path", ["/slow/broken", "/slow/stuck"])
def test_failed_stream_ends_before_the_last_piece(served: ServedNode, wire: SocketWire, path: str) -> None:
    """If a piece fails or is late, the connection ends before the last one, so that no client takes the body as
    complete.
    """
    wire.send(request("GET", path))

    assert chunks(wire) == (PIECE, False)
    with closing(SocketWire(served.port)) as other:
        other.send(request("GET", "/health/live"))
        assert other.answer().status == 200


def test_connection_close_gets_a_complete_body(wire: SocketWire) -> None:
    """With `Connection: close`, the body is complete before the server closes the connection."""
    wire.send(request("GET", "/slow/pieces", connection="close"))

    body, complete = chunks(wire)

    assert (len(body), complete) == (PIECES * len(PIECE), True)
    assert wire.ended()
