# SPDX-License-Identifier: Apache-2.0
"""Admission control over real sockets: large heads, slow clients, foreign host names, on the fast path and through
ASGI.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from limnos.http.head_admission import FIELDS_MAX, HEAD_BYTES_MAX
from tests.http.sockets import ServedNode, SocketAnswer, SocketWire, request

pytestmark = pytest.mark.integration

LIVE = "/health/live"
SPACES = "/iceberg/v1/lake.main/namespaces"
SOON_S = 0.3
LIMITS = {"head_timeout_s": SOON_S, "body_timeout_s": SOON_S}


@pytest.fixture(scope="module", params=[True, False], ids=["lane", "no lane"])
def lane(request: pytest.FixtureRequest) -> bool:
    """Run each test on the fast path and through ASGI, which must answer alike."""
    return bool(request.param)


CONSOLE = "https://console.example.com"
"""An origin whose pages may send requests."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, lane: bool) -> Iterator[ServedNode]:
    """A node with long timeouts."""
    node = ServedNode(tmp_path_factory.mktemp("guarded"), lane=lane, hosts=("lake.example.com",), origins=(CONSOLE,))
    yield node
    node.stop()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, lane: bool) -> Iterator[ServedNode]:
    """A node with very short timeouts for heads and bodies."""
    node = ServedNode(tmp_path_factory.mktemp("hasty"), lane=lane, **LIMITS)
    yield node
    node.stop()


@pytest.fixture
def wire(served: ServedNode) -> Iterator[SocketWire]:
    """A new connection."""
    with closing(SocketWire(served.port)) as connection:
        yield connection


def last(wire: SocketWire) -> SocketAnswer:
    """Read an answer, after which the server must close the connection."""
    answer = wire.answer()
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"]
    assert wire.ended()
    return answer


def is_served(node: ServedNode) -> bool:
    """Return whether another connection is answered."""
    with closing(SocketWire(node.port)) as wire:
        wire.send(request("GET", LIVE))
        return wire.answer().status == 200


def padded(size: int, path: str = LIVE) -> bytes:
    """Return a request whose head has about this number of bytes."""
    return request("GET", path, x="y" * (size - len(request("GET", path, x=""))))


# -- heads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [LIVE, "/iceberg/v1/config", "/api/metalakes", "/nowhere"])
def test_head_over_the_limit_returns_431(wire: SocketWire, path: str) -> None:
    """A complete head over the limit is refused with 431 in its protocol's error format. A head just below the limit is
    accepted.
    """
    wire.send(padded(HEAD_BYTES_MAX - 100, path))
    accepted_status = wire.answer().status
    wire.send(padded(HEAD_BYTES_MAX + 100, path))

    answer = last(wire)

    assert accepted_status in (200, 404)
    assert answer.status == 431
    assert "65536 bytes" in answer.body.decode()
    assert json.loads(answer.body)


@pytest.mark.parametrize(
    "begins",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
    ],
    ids=["value", "address", "name", "trailer"],
)
@pytest.mark.parametrize("piece", [1_000, 1 << 20])
def test_endless_head_is_cut_after_the_limit(served: ServedNode, wire: SocketWire, begins: bytes, piece: int) -> None:
    """An endless head, path or trailer is cut soon after the limit, however it is sent."""
    sent = 0
    wire.send(begins)
    with suppress(BrokenPipeError, ConnectionResetError):
        while sent < 1 << 28:
            wire.send(b"y" * piece)
            sent += piece

    assert sent < 1 << 28
    assert is_served(served)


def test_refusal_of_an_oversized_head_is_readable(wire: SocketWire) -> None:
    """A client that sends only a head over the limit can read the refusal."""
    wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (HEAD_BYTES_MAX + 1))

    assert last(wire).status == 431


def test_too_many_header_fields_return_431(wire: SocketWire) -> None:
    """The maximum number of fields is accepted, more are 431."""
    fields = {f"x{number}": "" for number in range(FIELDS_MAX - 2)}  # besides host and authorization
    wire.send(request("GET", LIVE, **fields))
    accepted_status = wire.answer().status
    wire.send(request("GET", LIVE, **fields, more=""))

    assert accepted_status == 200
    assert last(wire).status == 431


def test_many_oversized_heads_do_not_block_other_requests(served: ServedNode) -> None:
    """A hundred connections with heads of a megabyte do not block other requests."""
    for _ in range(100):
        with closing(SocketWire(served.port)) as flood, suppress(BrokenPipeError, ConnectionResetError):
            flood.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (1 << 20))

    assert is_served(served)


# -- names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [LIVE, "/iceberg/v1/config", "/api/metalakes", "/api/limnos/v1/whoami"])
def test_foreign_host_is_refused_with_421_on_every_route(wire: SocketWire, path: str) -> None:
    """On every route, a request with a foreign host name that resolves to this server is refused with 421 and the
    setting's name.
    """
    wire.send(request("GET", path, host="evil.example.com"))

    answer = last(wire)

    assert answer.status == 421
    assert "server.hosts" in answer.body.decode()


def test_host_of_the_settings_is_accepted(served: ServedNode, wire: SocketWire) -> None:
    """A request with a host name of the settings is answered, also with the port of the connection, but not with
    another one.
    """
    wire.send(request("GET", LIVE, host=f"lake.example.com:{served.port}"))
    own_port = wire.answer().status
    wire.send(request("GET", LIVE, host="lake.example.com"))
    no_port = wire.answer().status
    wire.send(request("GET", LIVE, host="lake.example.com:1"))

    assert (own_port, no_port, last(wire).status) == (200, 200, 421)


def test_cross_site_page_gets_403_before_its_body_is_read(wire: SocketWire) -> None:
    """A request from a page of another site is 403, and its body is not read."""
    body = json.dumps({"namespace": ["theirs"]}).encode()
    wire.send(request("POST", SPACES, body, origin="http://evil.example.com"))

    answer = last(wire)

    assert answer.status == 403
    assert json.loads(answer.body)["error"]["type"] == "ForbiddenException"


def test_cross_site_page_is_refused_on_a_reused_connection(wire: SocketWire) -> None:
    """A request of a page of another site is also refused on a connection that had an accepted head before."""
    marks = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    wire.send(request("GET", LIVE, **marks))
    linked = wire.answer()
    wire.send(request("POST", SPACES, b'{"namespace": ["theirs"]}', **marks))

    assert (linked.status, last(wire).status) == (200, 403)


def test_page_of_an_allowed_origin_is_answered(wire: SocketWire) -> None:
    """A page of an origin in the settings may send requests and read answers and refusals, which allow only that
    origin.
    """
    wire.send(request("GET", SPACES, origin=CONSOLE))
    allowed = wire.answer()
    wire.send(request("GET", f"{SPACES}/none", origin=CONSOLE))
    refused = wire.answer()

    assert (allowed.status, refused.status) == (200, 404)
    for each in (allowed, refused):
        assert each.headers["access-control-allow-origin"] == CONSOLE
        assert "x-request-id" in each.headers["access-control-expose-headers"].lower()
        assert "access-control-allow-credentials" not in each.headers
    assert allowed.headers["vary"] == "Origin"


def test_answers_with_and_without_origin_are_not_shared(wire: SocketWire) -> None:
    """Equal requests with and without an origin, in both orders, get separate answers: only the page's names its
    origin.
    """
    path = "/iceberg/v1/config?warehouse=main"
    answers = []
    for origin in ({}, {"origin": CONSOLE}, {}):
        wire.send(request("GET", path, **origin))
        answers.append(wire.answer())

    assert [each.status for each in answers] == [200, 200, 200]
    assert ["access-control-allow-origin" in each.headers for each in answers] == [False, True, False]
    assert {each.headers["vary"] for each in answers} == {"Origin"}


def test_preflight_of_an_allowed_origin_needs_no_credentials(wire: SocketWire) -> None:
    """A preflight request of an origin in the settings is answered without credentials, with the allowed methods and
    headers.
    """
    wire.send(
        request(
            "OPTIONS",
            SPACES,
            origin=CONSOLE,
            authorization="",
            access_control_request_method="DELETE",
            access_control_request_headers="authorization,content-type",
        )
    )

    answer = wire.answer()

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == CONSOLE
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization,content-type"
    assert answer.headers["vary"] == "Origin"


def test_preflight_of_another_origin_is_refused(wire: SocketWire) -> None:
    """A preflight request of another origin is refused. OPTIONS without an origin is not a preflight request."""
    fields = {"access_control_request_method": "DELETE"}
    wire.send(request("OPTIONS", SPACES, **fields))
    plain = wire.answer()
    wire.send(request("OPTIONS", SPACES, origin="https://evil.example.com", **fields))
    foreign = last(wire)

    assert plain.status >= 400
    assert foreign.status == 403
    assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize("name", [b"authorization", b"host", b"content-length"])
def test_repeated_unique_headers_return_400(wire: SocketWire, name: bytes) -> None:
    """Two credentials, hosts or lengths are 400."""
    whole = request("POST", SPACES, b"{}")
    (line,) = [line for line in whole.split(b"\r\n") if line.startswith(name)]
    wire.send(whole.replace(line, line + b"\r\n" + line))

    assert last(wire).status == 400


def test_http_1_1_without_host_returns_400(wire: SocketWire) -> None:
    """HTTP/1.1 without a Host is 400."""
    wire.send(request("GET", LIVE).replace(b"host: localhost\r\n", b""))

    assert last(wire).status == 400


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_media_types_without_preflight_return_415(wire: SocketWire, kind: str) -> None:
    """Media types that pages can send without a preflight are 415, and nothing is changed."""
    body = json.dumps({"namespace": ["page"]}).encode()
    wire.send(request("POST", SPACES, body, content_type=kind) + request("HEAD", f"{SPACES}/page"))

    assert [wire.answer().status, wire.answer(bodiless=True).status] == [415, 404]


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.gravitino.v1+json", None]
)
def test_json_and_missing_media_types_are_accepted(wire: SocketWire, kind: str | None) -> None:
    """JSON media types, and a missing media type, are accepted."""
    fields = {} if kind is None else {"content_type": kind}
    wire.send(request("POST", f"{SPACES}/gone/properties", b'{"updates":{"a":"b"}}', **fields))

    assert wire.answer().status == 404


# -- slow clients ----------------------------------------------------------------------------------------------


def test_incomplete_head_times_out_with_408(hasty: ServedNode) -> None:
    """An incomplete head is answered with 408 after its timeout, and the connection is closed."""
    with closing(SocketWire(hasty.port)) as wire:
        wire.send(b"GET /iceberg/v1/config HTTP/1.1\r\nHost: local")

        answer = last(wire)

    assert answer.status == 408
    assert json.loads(answer.body)["error"]["code"] == 408


@pytest.mark.parametrize("size", [100, 200_000])
@pytest.mark.parametrize("path", [SPACES, "/api/metalakes"])
def test_incomplete_body_times_out_with_408(hasty: ServedNode, path: str, size: int) -> None:
    """An incomplete body is 408 after its timeout, and nothing is changed."""
    with closing(SocketWire(hasty.port)) as wire:
        wire.send(request("POST", path, content_length=str(size)) + b"{")

        assert last(wire).status == 408


def test_head_sent_byte_by_byte_times_out(hasty: ServedNode) -> None:
    """A head that arrives byte by byte is cut after the same timeout."""
    with closing(SocketWire(hasty.port)) as wire, suppress(BrokenPipeError, ConnectionResetError):
        wire.send(b"GET /")
        until = time.monotonic() + 300
        while time.monotonic() < until:
            wire.send(b"y")
            time.sleep(SOON_S / 10)
            wire.socket.setblocking(False)
            with suppress(BlockingIOError):
                assert wire.socket.recv(1 << 16).startswith(b"HTTP/1.1 4")
                return
            wire.socket.setblocking(True)

    raise AssertionError("the server went on waiting")


def test_idle_keep_alive_connection_is_not_timed_out(hasty: ServedNode) -> None:
    """The timeouts of heads and bodies do not close a connection that is idle between two requests."""
    with closing(SocketWire(hasty.port)) as wire:
        for _ in range(3):
            wire.send(request("GET", LIVE))
            assert wire.answer().status == 200
            time.sleep(SOON_S * 2)


def test_many_incomplete_heads_do_not_block_other_requests(hasty: ServedNode) -> None:
    """Many connections with half a head are all closed after the timeout; other requests are served meanwhile."""
    crowd = []
    for _ in range(300):
        half = socket.create_connection(("127.0.0.1", hasty.port), timeout=20)
        half.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        crowd.append(half)
    meanwhile = is_served(hasty)
    answers = [half.recv(1 << 16) for half in crowd]
    for half in crowd:
        half.close()

    assert meanwhile
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 408"}


# -- the order of answers ----------------------------------------------------------------------------------------


def test_earlier_requests_are_answered_before_a_refusal(served: ServedNode, wire: SocketWire) -> None:
    """Requests before a refused head are answered first. The refusal is never the answer to an earlier request."""
    body = json.dumps({"namespace": ["before"]}).encode()
    wire.send(request("POST", SPACES, body) + request("GET", LIVE, host="evil.example.com"))

    first = wire.answer()
    with closing(SocketWire(served.port)) as other:
        other.send(request("HEAD", f"{SPACES}/before"))
        head_status = other.answer(bodiless=True).status

    assert (first.status, head_status) == (200, 204)
    assert json.loads(first.body)["namespace"] == ["before"]
    assert wire.ended() or wire.answer().status == 421


def test_request_before_invalid_bytes_is_answered_first(wire: SocketWire) -> None:
    """A request before bytes that are not HTTP is answered first."""
    body = json.dumps({"namespace": ["junk"]}).encode()
    wire.send(request("POST", SPACES, body) + b"\x00\x01\x02junk\r\n\r\n")

    assert wire.answer().status == 200
    assert wire.ended() or wire.answer().status == 400


def test_credential_in_a_trailer_is_ignored(wire: SocketWire) -> None:
    """A credential in a trailer is ignored."""
    chunks = b"2\r\n{}\r\n0\r\nAuthorization: Basic YWRtaW46eA==\r\n\r\n"
    whole = request("POST", "/api/limnos/v1/tokens", chunks, transfer_encoding="chunked")
    (line,) = [line for line in whole.split(b"\r\n") if line.startswith(b"authorization")]
    wire.send(whole.replace(line + b"\r\n", b"") + request("GET", LIVE))

    refused, after = wire.answer(), wire.answer()

    assert refused.status in (401, 403)
    assert after.status == 200


# -- status lines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none", "a%0D%0AX-Evil:%201", "%C3%A9", "%E6%B9%96"])
def test_refusals_have_the_standard_phrase(wire: SocketWire, name: str) -> None:
    """The status line of a refusal has the standard phrase, whatever the request contains, and the next request is
    answered.
    """
    wire.send(request("HEAD", f"{SPACES}/{name}") + request("GET", LIVE))

    line = wire.first_line()
    head = wire.answer(bodiless=True)
    after = wire.answer()

    assert line in (b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request")
    assert "x-evil" not in head.headers
    assert after.status == 200


def test_other_answers_have_the_customary_phrase(wire: SocketWire) -> None:
    """The status lines of other answers have the standard phrase, too."""
    wire.send(request("GET", f"{SPACES}/none"))
    refused = wire.first_line()
    wire.answer()
    wire.send(request("HEAD", SPACES))

    assert (refused, wire.first_line()) == (b"HTTP/1.1 404 Not Found", b"HTTP/1.1 200 OK")
