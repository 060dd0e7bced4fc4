# SPDX-License-Identifier: Apache-2.0
"""The server's own connection class over real sockets: all features of HTTP/1.1, with answers in order."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from limnos.http.request import Request
from tests.http.iceberg.wire import SCHEMA
from tests.http.sockets import ServedNode, SocketWire, request

pytestmark = pytest.mark.integration

SPACES = "/iceberg/v1/lake.main/namespaces"
TABLES = f"{SPACES}/a/tables"
TABLE = f"{TABLES}/t"


@pytest.fixture(scope="module", params=[True, False], ids=["lane", "no lane"])
def lane(request: pytest.FixtureRequest) -> bool:
    """Run each test on the fast path and through ASGI, which must answer alike."""
    return bool(request.param)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, lane: bool) -> Iterator[ServedNode]:
    """A node with table `a.t`, and `a.big` whose metadata has several megabytes."""
    node = ServedNode(tmp_path_factory.mktemp("served"), lane=lane)
    with closing(SocketWire(node.port)) as wire:
        big = {f"k{number}": "x" * 1000 for number in range(6000)}
        for path, body in (
            (SPACES, {"namespace": ["a"]}),
            (TABLES, {"name": "t", "schema": SCHEMA}),
            (TABLES, {"name": "big", "schema": SCHEMA, "properties": big}),
        ):
            wire.send(request("POST", path, json.dumps(body).encode()))
            assert wire.answer().status == 200
    yield node
    node.stop()


@pytest.fixture
def wire(served: ServedNode) -> Iterator[SocketWire]:
    """A new connection."""
    connection = SocketWire(served.port)
    yield connection
    connection.close()


def still_serves(served: ServedNode) -> bool:
    """Return whether a new connection is answered."""
    with closing(SocketWire(served.port)) as wire:
        wire.send(request("GET", TABLE))
        return wire.answer().status == 200


COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
ASKS = {
    "load": ("GET", TABLE, None),
    "missing": ("GET", f"{TABLES}/gone", None),
    "commit": ("POST", TABLE, COMMIT),
    "list": ("GET", "/api/metalakes/lake/catalogs", None),
    "search": ("GET", "/api/limnos/v1/metalakes/lake/search?q=t", None),
    "lance": ("GET", "/lance/v1/namespace/main/list", None),
}
"""Requests that are answered at once, that wait, and that fail."""


def _is_one_of(request: Request, others: list[Request]) -> bool:
    return any(request is other for other in others)


@pytest.mark.parametrize(
    "ask", [pytest.param(each, marks=pytest.mark.room(each)) if each in ("search", "lance") else each for each in ASKS]
)
def test_answered_request_is_freed_without_the_garbage_collector(wire: SocketWire, ask: str) -> None:
    """A request is in no reference cycle, so its body and its answer are not kept until a collection."""
    method, path, body = ASKS[ask]
    gc.collect()
    before = [each for each in gc.get_objects() if type(each) is Request]  # of other tests, which failures may keep
    gc.disable()
    try:
        for number in range(20):
            sent = None if body is None else json.dumps(body).replace('"1"', f'"{number}"').encode()
            wire.send(request(method, path, sent))
            assert wire.answer().status == (404 if ask == "missing" else 200)
        requests = [each for each in gc.get_objects() if type(each) is Request and not _is_one_of(each, before)]
    finally:
        gc.enable()

    assert len(requests) <= 2  # the last one may still be written to the log


def test_keep_alive(wire: SocketWire) -> None:
    """One connection carries several requests with every kind of answer."""
    seen = []
    for method, path in (
        ("GET", TABLE),
        ("HEAD", TABLE),
        ("GET", f"{TABLES}/gone"),
        ("GET", TABLES),
        ("HEAD", f"{TABLES}/gone"),
        ("GET", TABLE),
    ):
        wire.send(request(method, path))
        seen.append(wire.answer(bodiless=method == "HEAD").status)

    assert seen == [200, 204, 404, 200, 404, 200]
    assert wire.held == b""


def test_pipelined_requests_are_answered_in_order(wire: SocketWire) -> None:
    """Pipelined requests are answered in order, with nothing between the answers."""
    paths = [TABLE, f"{TABLES}/gone", SPACES, TABLES] * 5

    wire.send(b"".join(request("GET", path) for path in paths))
    answers = [wire.answer() for _ in paths]

    assert [answer.status for answer in answers] == [200, 404, 200, 200] * 5
    assert b'"namespaces":[["a"]]' in answers[2].body
    assert len({answer.headers["x-request-id"] for answer in answers}) == len(paths)
    assert wire.held == b""


def test_pipelined_read_returns_the_effect_of_the_write(wire: SocketWire) -> None:
    """A read that is pipelined behind a write sees the write's effect."""
    name = json.dumps({"namespace": ["pipelined"]}).encode()

    wire.send(
        request("POST", SPACES, name)
        + request("HEAD", f"{SPACES}/pipelined")
        + request("DELETE", f"{SPACES}/pipelined")
        + request("HEAD", f"{SPACES}/pipelined")
    )
    answers = [wire.answer(bodiless=bodiless).status for bodiless in (False, True, True, True)]

    assert answers == [200, 204, 204, 404]


def test_head_returns_the_length_without_a_body(wire: SocketWire) -> None:
    """HEAD of a GET route returns the length of the body without the body, and the next answer follows immediately."""
    wire.send(request("GET", TABLES) + request("HEAD", TABLES) + request("GET", TABLE))

    full, head, following = wire.answer(), wire.answer(bodiless=True), wire.answer()

    assert head.status == full.status == 200
    assert head.headers["content-length"] == full.headers["content-length"] == str(len(full.body))
    assert following.status == 200
    assert json.loads(following.body)["metadata"]


@pytest.mark.parametrize("piece", [1_000_000, 1, 50])
def test_http_2_upgrade_request_is_ignored(wire: SocketWire, piece: int) -> None:
    """An upgrade to HTTP/2, which Java's client requests each time, is ignored. Bodies and following requests are read,
    however they are split.
    """
    privilege_request = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAEAAEAA"}
    name = f"wished_{piece}"
    body = json.dumps({"namespace": [name], "properties": {"k": "v" * 2000}}).encode()
    sent = b"".join(
        (
            request("POST", SPACES, body, **privilege_request),
            request("GET", f"{SPACES}/{name}", **privilege_request),
            request("GET", TABLE),
            request("DELETE", f"{SPACES}/{name}", **privilege_request),
            request("HEAD", f"{SPACES}/{name}"),
        )
    )

    for start in range(0, len(sent), piece):
        wire.send(sent[start : start + piece])
    answers = [wire.answer(bodiless=bodiless) for bodiless in (False, False, False, True, True)]

    assert [answer.status for answer in answers] == [200, 200, 200, 204, 404]
    assert json.loads(answers[1].body)["properties"]["k"] == "v" * 2000
    assert wire.held == b""


def test_304_has_no_body_and_keeps_the_connection(wire: SocketWire) -> None:
    """304 has neither a body nor a length, and the connection stays open."""
    wire.send(request("GET", TABLE))
    etag = wire.answer().headers["etag"]

    wire.send(request("GET", TABLE, if_none_match=etag) + request("GET", TABLE))
    same, following = wire.answer(), wire.answer()

    assert (same.status, same.headers["etag"]) == (304, etag)
    assert "content-length" not in same.headers
    assert following.status == 200


def test_identical_requests_get_separate_answers(wire: SocketWire) -> None:
    """Repeated identical requests, alone, pipelined or in pieces, each get an answer with its own request id."""
    load, head, other = request("GET", TABLE), request("HEAD", TABLE), request("GET", f"{TABLES}/gone")
    ids = set[str]()
    for _ in range(4):
        for sent in ((load,), (head,), (load, load), (load, other, load), (head, load), (other,), (load,)):
            wire.send(b"".join(sent))
            for each in sent:
                answer = wire.answer(bodiless=each is head)
                assert answer.status == {load: 200, head: 204, other: 404}[each]
                assert each is not load or json.loads(answer.body)["metadata-location"]
                ids.add(answer.headers["x-request-id"])
        for place in (1, 4, 30, len(load) - 2):
            wire.send(load[:place])
            time.sleep(0.01)
            wire.send(load[place:])
            ids.add(wire.answer().headers["x-request-id"])

    assert len(ids) == 4 * (11 + 4)
    assert wire.held == b""


def test_slightly_different_request_is_parsed_again(served: ServedNode) -> None:
    """A request that differs from the last one in a few bytes is parsed again and gets its own answer."""
    usual = request("GET", TABLE)
    for other, status in (
        (request("GET", TABLE, authorization="Bearer nobody"), 401),
        (usual.replace(b"GET ", b"PUT "), 405),
        (usual.replace(b"/t HTTP", b"/u HTTP"), 404),
        (usual.replace(b"GET ", b"GET  "), 200),
        (usual.replace(b"\r\n", b"\r\nx-more: 1\r\n", 1), 200),
        (b"\r\n" + usual, 200),
        (usual.replace(b"GET ", b" "), 400),
        (usual.replace(b"/t HTTP", b"/t\0 HTTP"), 400),
        (request("GET", TABLE, b"\r\n\r\n"), 200),
    ):
        with closing(SocketWire(served.port)) as each:
            for sent in (usual, usual, usual, other):
                each.send(sent)
                answer = each.answer()
            assert answer.status == status, other
            if status != 400:
                each.send(usual)
                assert each.answer().status == 200


@pytest.mark.parametrize("second, holds", [(TABLE, b"metadata-location"), (SPACES, b"namespaces")])
def test_two_requests_in_one_piece_get_two_answers(wire: SocketWire, second: str, holds: bytes) -> None:
    """Two requests that arrive in one piece are answered as two requests, also when the same piece arrives again."""
    two = request("GET", TABLE) + request("GET", second)
    for _ in range(4):
        wire.send(two)
        assert b"metadata-location" in wire.answer().body
        assert holds in wire.answer().body
    assert wire.held == b""


@pytest.mark.parametrize("path", [TABLE, f"{TABLES}/big", f"{TABLES}/gone"])
def test_connection_close_gets_a_complete_answer(wire: SocketWire, path: str) -> None:
    """With `Connection: close`, the answer is complete before the server closes the connection."""
    wire.send(request("GET", path, connection="close"))

    answer = wire.answer()

    assert answer.status in (200, 404)
    assert json.loads(answer.body)
    assert answer.headers["connection"] == "close"
    assert wire.ended()


def test_http_1_0_connection_is_closed_after_the_answer(wire: SocketWire) -> None:
    """An HTTP/1.0 client gets its answer, and the server closes the connection."""
    wire.send(request("GET", TABLE).replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert wire.answer().status == 200
    assert wire.ended()


def test_cached_head_check_applies_only_to_equal_heads(served: ServedNode, wire: SocketWire) -> None:
    """The cached check of a connection's head applies only to a head with exactly the same fields and version."""
    usual = request("GET", TABLE)
    for other, status in (
        (usual.replace(b"host: localhost", b"host: evil.example.com"), 421),
        (usual.replace(b"\r\n\r\n", b"\r\norigin: http://evil.example.com\r\n\r\n"), 403),
        (usual.replace(b"GET ", b"GET http://evil.example.com", 1), 421),
    ):
        with closing(SocketWire(served.port)) as each:
            for _ in range(2):
                each.send(usual)
                assert each.answer().status == 200
            each.send(other)
            assert each.answer().status == status

    wire.send(usual)
    assert wire.answer().status == 200
    wire.send(usual.replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    assert wire.answer().status == 200
    assert wire.ended()


def test_large_answers_are_complete(wire: SocketWire) -> None:
    """Answers of several megabytes are complete, also pipelined with small ones."""
    wire.send(request("GET", f"{TABLES}/big") + request("GET", TABLE) + request("GET", f"{TABLES}/big"))

    first, small, second = wire.answer(), wire.answer(), wire.answer()

    assert len(first.body) > 6_000_000
    assert json.loads(first.body)["metadata"]["properties"]["k5999"] == "x" * 1000
    assert first.body == second.body
    assert len(small.body) < 10_000


@pytest.mark.parametrize("size", [60_000, 200_000, 1_048_000, 1_049_000, 4_000_000])
def test_large_request_body_is_read_completely(wire: SocketWire, size: int) -> None:
    """A body of any length is read completely, in one piece or many."""
    body = json.dumps({"updates": [{"action": "set-properties", "updates": {"k": "y" * size}}]}).encode()
    data = request("POST", TABLE, body)

    wire.send(data)
    whole = wire.answer()
    for start in range(0, len(data), 500_000):
        wire.send(data[start : start + 500_000])
    pieces = wire.answer()

    assert (whole.status, pieces.status) == (200, 200)
    assert len(json.loads(whole.body)["metadata"]["properties"]["k"]) == size


def test_chunked_body_is_reassembled_from_any_pieces(wire: SocketWire) -> None:
    """A chunked body is reassembled from any pieces."""
    body = json.dumps({"removals": [], "updates": {"way": "chunked"}}).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:1], body[1:7], body[7:]))
    path = f"{SPACES}/a/properties"

    wire.send(request("POST", path, chunks + b"0\r\n\r\n", transfer_encoding="chunked") + request("GET", f"{SPACES}/a"))
    changed, loaded = wire.answer(), wire.answer()

    assert json.loads(changed.body)["updated"] == ["way"]
    assert json.loads(loaded.body)["properties"]["way"] == "chunked"


def test_chunked_body_over_the_limit_returns_413(served: ServedNode, wire: SocketWire) -> None:
    """A chunked body over the limit is 413 immediately."""
    wire.send(request("POST", SPACES, b"", transfer_encoding="chunked"))
    piece = b"x" * (1 << 20)
    with suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(33):
            wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))

    answer = wire.answer()

    assert answer.status == 413
    assert json.loads(answer.body)["error"]["code"] == 413
    assert still_serves(served)


def test_declared_length_over_the_limit_returns_413(served: ServedNode, wire: SocketWire) -> None:
    """A body whose declared length is over the limit is 413 before it is sent."""
    wire.send(request("POST", SPACES, content_length=str(1 << 30)))

    answer = wire.answer()

    assert answer.status == 413
    assert still_serves(served)


def test_expect_continue_gets_100_and_an_answer(wire: SocketWire) -> None:
    """A client with `Expect: 100-continue` gets 100 and then its answer."""
    body = json.dumps({"removals": ["way"]}).encode()

    wire.send(request("POST", f"{SPACES}/a/properties", content_length=str(len(body)), expect="100-continue"))
    interim = wire.head()
    wire.send(body)
    answer = wire.answer()

    assert interim[0] == 100
    assert answer.status == 200


def test_refused_expect_continue_gets_no_100(wire: SocketWire) -> None:
    """A client with `Expect: 100-continue` whose headers are refused gets the refusal instead of 100."""
    wire.send(request("POST", SPACES, content_length=str(1 << 30), expect="100-continue"))

    assert wire.head()[0] == 413


def test_slow_reader_gets_the_whole_answer(served: ServedNode) -> None:
    """A client that reads slowly gets the whole answer. Other requests are answered meanwhile."""
    with closing(SocketWire(served.port, receive_bytes=4096)) as slow:
        slow.send(request("GET", f"{TABLES}/big") * 3)
        time.sleep(0.2)
        others = [still_serves(served) for _ in range(5)]
        answers = [slow.answer() for _ in range(3)]

    assert others == [True] * 5
    assert [len(answer.body) for answer in answers] == [len(answers[0].body)] * 3
    assert len(answers[0].body) > 6_000_000


def test_request_sent_byte_by_byte_is_answered(wire: SocketWire) -> None:
    """A request that arrives byte by byte is answered."""
    for byte in request("GET", TABLE):
        wire.send(bytes([byte]))

    assert wire.answer().status == 200


@pytest.mark.parametrize("read", [0, 100_000])
def test_disconnect_during_an_answer_affects_no_other_request(served: ServedNode, read: int) -> None:
    """A client that disconnects during a large answer affects no other request."""
    for _ in range(5):
        with closing(SocketWire(served.port, receive_bytes=4096)) as client:
            client.send(request("GET", f"{TABLES}/big") * 4)
            if read:
                client.socket.recv(read)

    assert still_serves(served)


def test_disconnect_before_the_body_ends_changes_nothing(served: ServedNode, wire: SocketWire) -> None:
    """A request with an incomplete body changes nothing."""
    body = json.dumps({"namespace": ["half"]}).encode()
    with closing(SocketWire(served.port)) as client:
        client.send(request("POST", SPACES, body)[:-5])
        time.sleep(0.05)

    wire.send(request("HEAD", f"{SPACES}/half"))

    assert wire.answer(bodiless=True).status == 404


def test_disconnect_after_a_request_keeps_the_change_atomic(served: ServedNode) -> None:
    """A change whose client disconnects is made completely or not at all: then the next attempt makes it."""
    body = json.dumps({"name": "unheard", "schema": SCHEMA}).encode()
    with closing(SocketWire(served.port)) as client:
        client.send(request("POST", TABLES, body))

    with closing(SocketWire(served.port)) as wire:
        wire.send(request("POST", TABLES, body))
        again = wire.answer().status
        wire.send(request("GET", f"{TABLES}/unheard"))
        status = wire.answer().status

    assert (again in {200, 409}, status) == (True, 200)


@pytest.mark.parametrize(
    "junk",
    [
        b"frobnicate\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_invalid_http_returns_400_and_ends_the_connection(served: ServedNode, wire: SocketWire, junk: bytes) -> None:
    """Bytes that are not HTTP are answered with 400 and end the connection. Other requests are answered."""
    wire.send(junk)

    assert wire.socket.recv(1 << 16).startswith(b"HTTP/1.1 400")
    assert still_serves(served)


def test_raw_path_reaches_the_routes(wire: SocketWire) -> None:
    """Routes get paths with their escapes: `%2F` in a name is not a slash, and `%1F` separates levels."""
    body = json.dumps({"namespace": ["sla/sh", "b"]}).encode()

    wire.send(
        request("POST", SPACES, body)
        + request("GET", f"{SPACES}/sla%2Fsh%1Fb?x=%2F")
        + request("GET", f"{SPACES}/sla/sh")
    )
    answers = [wire.answer() for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 404]
    assert json.loads(answers[1].body)["namespace"] == ["sla/sh", "b"]


def test_unread_body_does_not_become_a_request(wire: SocketWire) -> None:
    """If a route does not read its body, the server skips the body and parses the next request correctly."""
    wire.send(
        request("GET", TABLE, b"GET /nonsense HTTP/1.1\r\n\r\n")
        + request("POST", "/nowhere", b"x" * 100)
        + request("GET", TABLE)
    )

    assert [wire.answer().status for _ in range(3)] == [200, 404, 200]
