# SPDX-License-Identifier: Apache-2.0
"""Another Iceberg REST catalog as a source: requests to it and the interpretation of its answers, including malformed
and hostile ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    CommitConflict,
    LimnosError,
    MissingFile,
    NotEmpty,
    NotFound,
    PropertyConflict,
    ServiceUnavailable,
    SourceFailed,
    SourceRefused,
    StateUnknown,
    UnsupportedOperation,
)
from limnos.rooms.connectors.sources import iceberg_rest, rest_session
from limnos.rooms.connectors.sources.iceberg_rest import RestSource
from limnos.rooms.connectors.sources.registry import check_source, open_source
from limnos.sources.connectors.capabilities import RestCall, SourceNames
from limnos.sources.connectors.opening import SourceLimits
from limnos.sources.connectors.rest_terms import NAMESPACE, NAMESPACES, TABLE, TABLES, VIEW
from tests.scripted_server import ScriptedAnswer, ScriptedServer, scripted

LOAD = RestCall(endpoint=f"GET {TABLE}", namespace=("a",), name="t", missing="table")
COMMIT = RestCall(endpoint=f"POST {TABLE}", namespace=("a",), name="t", body=b"{}", missing="table")
CREATE = RestCall(endpoint=f"POST {TABLES}", namespace=("a",), name="t", body=b"{}", conflict_meaning="table")
DROP = RestCall(endpoint=f"DELETE {NAMESPACE}", namespace=("a",), conflict_meaning="empty")


@pytest.fixture
def script() -> Iterator[ScriptedServer]:
    """A scripted server with an empty configuration."""
    with scripted() as server:
        server.answers["GET /v1/config"] = ScriptedAnswer(body={"defaults": {}, "overrides": {}})
        yield server


Opener = Callable[..., RestSource]


@pytest.fixture
def opened(script: ScriptedServer) -> Iterator[Opener]:
    """Open the source with additional properties."""
    sources: list[RestSource] = []

    def make(*, timeout_s: float = 60.0, **properties: str) -> RestSource:
        stated = {"uri": f"http://127.0.0.1:{script.port}", **properties}
        limits = SourceLimits((f"127.0.0.1:{script.port}",), timeout_s=timeout_s)
        check_source("iceberg-rest", stated, limits=limits)
        source = open_source("iceberg-rest", stated, limits=limits)
        assert isinstance(source, RestSource)
        sources.append(source)
        return source

    yield make
    for each in sources:
        each.close()


def test_paths_use_the_sources_prefix_and_separator(script: ScriptedServer, opened: Opener) -> None:
    """Paths are spelled with the source's prefix and separator; a namespace level with its separator does not exist
    there.
    """
    overrides = {"prefix": "ws/a b", "namespace-separator": "%2E"}
    script.answers["GET /v1/config?warehouse=w+1"] = ScriptedAnswer(
        body={"defaults": {"prefix": "no"}, "overrides": overrides}
    )
    script.answers["GET /v1/ws/a%20b/namespaces/x.y%2Fz%2Eä".replace("ä", "%C3%A4")] = ScriptedAnswer(body={})
    source = opened(warehouse="w 1", token="word")

    with pytest.raises(NotFound):
        source.exchange(RestCall(endpoint=f"GET {NAMESPACE}", namespace=("x.y/z", "ä")))
    with pytest.raises(NotFound):
        source.names(RestCall(endpoint=f"GET {NAMESPACES}", namespace=("x", "y.z")))
    assert script.targets() == []
    for levels in (("a.b",), ("a", "b.c"), ("a.b", "c")):
        with pytest.raises(BadRequest, match="separates names by"):
            source.exchange(
                RestCall(endpoint=f"POST {NAMESPACES}", namespace=levels, body=b"{}", conflict_meaning="namespace")
            )
        with pytest.raises(BadRequest, match="separates names by"):
            source.schema_create(levels, comment=None, properties={})
    assert script.targets() == []
    script.answers["GET /v1/ws/a%20b/namespaces/x%2Ey%2Fz"] = ScriptedAnswer(body={})
    source.exchange(RestCall(endpoint=f"GET {NAMESPACE}", namespace=("x", "y/z")))
    script.answers["GET /v1/ws/a%20b/namespaces"] = ScriptedAnswer(body={"namespaces": [["x", "y", "z"]]})
    assert source.names(RestCall(endpoint=f"GET {NAMESPACES}", namespace=("x", "y"))).names == ["z"]
    assert script.targets()[1] == "GET /v1/ws/a%20b/namespaces?parent=x.y&pageToken="
    assert {each.headers["authorization"] for each in script.asked} == {"Bearer word"}


def test_source_without_endpoint_list_gets_the_defaults(script: ScriptedServer, opened: Opener) -> None:
    """If the source lists no endpoints, the defaults apply: HEAD becomes GET, and there are no views."""
    source = opened()
    script.answers["GET /v1/namespaces/a/tables/t"] = ScriptedAnswer(body={"metadata": {}})

    assert source.table_exists(("a",), "t")
    assert not source.table_exists(("a",), "none")
    with pytest.raises(UnsupportedOperation):
        source.exchange(RestCall(endpoint=f"GET {VIEW}", namespace=("a",), name="v"))
    assert script.targets() == ["GET /v1/namespaces/a/tables/t", "GET /v1/namespaces/a/tables/none"]


def test_oauth_token_is_renewed_after_a_401(script: ScriptedServer, opened: Opener) -> None:
    """OAuth's client credentials: one token is requested, and another after a 401; a second 401 is the source's
    refusal.
    """
    script.answers["POST /v1/oauth/tokens"] = [ScriptedAnswer(body={"access_token": f"t{at}"}) for at in range(9)]
    source = opened(credential="me:s3:cret", scope="all of it")
    script.answers["GET /v1/namespaces/a/tables/t"] = [
        ScriptedAnswer(body={}),
        ScriptedAnswer(401, {}),
        ScriptedAnswer(body={}),
        ScriptedAnswer(401, {}),
    ]

    for _ in range(2):
        source.exchange(LOAD)

    sent = [each.headers.get("authorization") for each in script.asked]
    assert sent == [None, "Bearer t0", "Bearer t0", "Bearer t0", None, "Bearer t1"]
    assert script.asked[0].body == b"grant_type=client_credentials&scope=all+of+it&client_secret=s3%3Acret&client_id=me"
    with pytest.raises(SourceRefused) as refused:
        source.exchange(LOAD)
    assert "cret" not in str(refused.value)
    script.answers["POST /v1/oauth/tokens"] = ScriptedAnswer(400, {"error": "invalid_client"})
    with pytest.raises(SourceRefused):
        opened(credential="me:other").exchange(LOAD)


def _error(kind: str = "", message: str = "so it is") -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "code": 0}}


@pytest.mark.parametrize(
    "call, answer, expected",
    [
        (LOAD, ScriptedAnswer(404, _error("NoSuchTableException")), NotFound),
        (LOAD, ScriptedAnswer(404, b""), NotFound),
        (LOAD, ScriptedAnswer(404, _error("NotFoundException")), MissingFile),
        (LOAD, ScriptedAnswer(404, _error("NoSuchWarehouseException")), SourceFailed),
        (LOAD, ScriptedAnswer(400, _error()), BadRequest),
        (LOAD, ScriptedAnswer(401, _error()), SourceRefused),
        (LOAD, ScriptedAnswer(403, b"<html>"), SourceRefused),
        (LOAD, ScriptedAnswer(406, _error()), UnsupportedOperation),
        (LOAD, ScriptedAnswer(422, _error()), PropertyConflict),
        (LOAD, ScriptedAnswer(500, _error()), SourceFailed),
        (LOAD, ScriptedAnswer(503, _error()), ServiceUnavailable),
        (LOAD, ScriptedAnswer(429, b"", {"retry-after": "7"}), ServiceUnavailable),
        (LOAD, ScriptedAnswer(302, b"", {"location": "/v1/namespaces/a/tables/other"}), SourceFailed),
        (LOAD, ScriptedAnswer(200, b"x", {"content-encoding": "gzip"}), SourceFailed),
        (COMMIT, ScriptedAnswer(409, _error("CommitFailedException")), CommitConflict),
        (COMMIT, ScriptedAnswer(409, b""), CommitConflict),
        (COMMIT, ScriptedAnswer(409, _error("AlreadyExistsException")), AlreadyExists),
        (COMMIT, ScriptedAnswer(404, _error("NoSuchTableException")), NotFound),
        (COMMIT, ScriptedAnswer(403, b""), SourceRefused),
        (COMMIT, ScriptedAnswer(429, b""), ServiceUnavailable),
        (COMMIT, ScriptedAnswer(503, b"", {"retry-after": "1"}), ServiceUnavailable),
        (COMMIT, ScriptedAnswer(503, b""), StateUnknown),
        (COMMIT, ScriptedAnswer(500, _error("CommitStateUnknownException")), StateUnknown),
        (COMMIT, ScriptedAnswer(502, b""), StateUnknown),
        (COMMIT, ScriptedAnswer(302, b"", {"location": "/x"}), StateUnknown),
        (CREATE, ScriptedAnswer(409, b""), AlreadyExists),
        (CREATE, ScriptedAnswer(404, b""), NotFound),
        (DROP, ScriptedAnswer(409, b""), NotEmpty),
        (DROP, ScriptedAnswer(400, _error("NamespaceNotEmptyException")), NotEmpty),
    ],
    ids=lambda value: (
        value.endpoint if isinstance(value, RestCall) else str(value[0]) if isinstance(value, ScriptedAnswer) else ""
    ),
)
def test_source_errors_are_mapped_to_server_errors(
    script: ScriptedServer, opened: Opener, call: RestCall, answer: ScriptedAnswer, expected: type[LimnosError]
) -> None:
    """Errors of the source are mapped to errors of this server; a commit whose outcome is unknown is not reported as
    refused.
    """
    method, path = call.endpoint.split()
    script.answers[f"{method} /v1{path.replace('{namespace}', 'a').replace('{table}', 't')}"] = answer

    with pytest.raises(LimnosError) as raised:
        opened().exchange(call)

    assert type(raised.value) is expected
    assert len(script.targets()) == 1


def _drips(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 65536)
        handler.wfile.flush()


def _breaks_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")


def _says_no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")


@pytest.mark.parametrize("writes", [_drips, _breaks_off, _says_no_http], ids=lambda each: each.__name__)
def test_oversized_truncated_or_non_http_answer_is_a_failure(
    script: ScriptedServer,
    opened: Opener,
    monkeypatch: pytest.MonkeyPatch,
    writes: Callable[[BaseHTTPRequestHandler], None],
) -> None:
    """An answer that is too large, truncated or not HTTP is a failure; for a commit the outcome is unknown."""
    monkeypatch.setattr(rest_session, "REPLY_BYTES_MAX", 1 << 20)
    for method in ("GET", "POST"):
        script.answers[f"{method} /v1/namespaces/a/tables/t"] = ScriptedAnswer(writes=writes)
    source = opened()

    with pytest.raises(SourceFailed):
        source.exchange(LOAD)
    with pytest.raises(StateUnknown):
        source.exchange(COMMIT)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        {"identifiers": 1},
        {"identifiers": [{"namespace": ["b"], "name": "t"}]},
        {"identifiers": [{"namespace": ["a"], "name": 1}]},
        b"[" * 100_000,
    ],
    ids=range(6),
)
def test_malformed_lists_are_refused(script: ScriptedServer, opened: Opener, body: object) -> None:
    """Malformed lists, and lists with names outside of the request, are refused."""
    script.answers["GET /v1/namespaces/a/tables"] = ScriptedAnswer(body=body)

    with pytest.raises(SourceFailed):
        opened().table_names(("a",))


def test_all_pages_are_requested_and_endless_pages_stopped(
    script: ScriptedServer, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pages are requested for complete lists, one for a page; endless pages are stopped."""

    def page(name: str, token: str | None) -> ScriptedAnswer:
        return ScriptedAnswer(body={"identifiers": [{"namespace": ["a"], "name": name}], "next-page-token": token})

    script.answers["GET /v1/namespaces/a/tables"] = [page("u", "p/2&x=1"), page("t", None)]
    source = opened()

    assert source.table_names(("a",)) == ["t", "u"]
    assert script.targets()[1] == "GET /v1/namespaces/a/tables?pageToken=p%2F2%26x%3D1"
    script.answers["GET /v1/namespaces/a/tables"] = page("t", "again")
    one = RestCall(endpoint=f"GET {TABLES}", namespace=("a",), query=(("pageToken", ""),))
    assert source.names(one) == SourceNames(["t"], "again")
    monkeypatch.setattr(iceberg_rest, "_NAMES_MAX", 50)
    with pytest.raises(SourceFailed):
        source.table_names(("a",))


def test_pages_without_names_are_stopped(script: ScriptedServer, opened: Opener) -> None:
    """A list of pages without names that always have another token ends with an error after a bounded number of
    requests, and so does one that repeats a page. A list of 150 pages with ten names each is complete.
    """
    source = opened()

    def page(names: int, number: int, token: str | None) -> ScriptedAnswer:
        entries = [{"namespace": ["a"], "name": f"t{number}-{each}"} for each in range(names)]
        return ScriptedAnswer(body={"identifiers": entries, "next-page-token": token})

    script.answers["GET /v1/namespaces/a/tables"] = [page(0, each, f"p{each}") for each in range(500)]
    before = len(script.targets())
    with pytest.raises(SourceFailed, match="another object"):
        source.table_names(("a",))
    assert len(script.targets()) - before <= 102
    script.answers["GET /v1/namespaces/a/tables"] = page(10, 1, "again")
    before = len(script.targets())
    with pytest.raises(SourceFailed, match="another object"):
        source.table_names(("a",))
    assert len(script.targets()) - before == 2
    pages = [page(10, each, f"p{each}") for each in range(149)] + [page(10, 149, None)]
    script.answers["GET /v1/namespaces/a/tables"] = pages
    assert len(source.table_names(("a",))) == 1500


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer(body=b"<html>"),
        ScriptedAnswer(body={"overrides": {"prefix": "../x"}}),
        ScriptedAnswer(404, b""),
        ScriptedAnswer(400, b""),
        ScriptedAnswer(500, b""),
        ScriptedAnswer(body={"endpoints": 1}),
    ],
    ids=range(6),
)
def test_invalid_configuration_fails_every_request(
    script: ScriptedServer, opened: Opener, answer: ScriptedAnswer
) -> None:
    """If the configuration is invalid, every request fails as a failure of the source."""
    script.answers["GET /v1/config"] = answer

    for call in (LOAD, COMMIT):
        with pytest.raises(SourceFailed):
            opened().exchange(call)
    assert script.targets() == []


def test_invalid_table_metadata_is_a_failure_of_the_source(script: ScriptedServer, opened: Opener) -> None:
    """Over Gravitino REST, invalid table metadata is a failure of the source, not of the caller."""
    for metadata in ({}, {"format-version": 2, "location": "x", "current-schema-id": 1, "schemas": []}, 7):
        script.answers["GET /v1/namespaces/a/tables/t"] = ScriptedAnswer(body={"metadata": metadata})
        with pytest.raises(SourceFailed):
            opened().table_load(("a",), "t")


@pytest.mark.parametrize(
    "name, value",
    [
        ("uri", "ftp://127.0.0.1/x"),
        ("uri", "http://me:word@127.0.0.1/x"),
        ("uri", "http://127.0.0.1/x?y=1"),
        ("uri", "http://127.0.0.1/a/../b"),
        ("uri", "http://127.0.0.1:99999/"),
        ("uri", "http:///x"),
        ("uri", "http://other.example.com/"),
        ("uri", ""),
        ("token", "a\nb"),
        ("token", "wörd"),
        ("credential", "x:y"),
        ("oauth2-server-uri", "http://other.example.com/token"),
        ("vended-credentials", "yes"),
        ("warehouse", ""),
    ],
)
def test_invalid_properties_are_refused_before_a_request(name: str, value: str) -> None:
    """Each wrong property is refused before a request is sent."""
    properties = {"uri": "http://127.0.0.1/x", "token": "word", name: value}

    with pytest.raises(BadRequest, match=name.replace("credential", "credential|token")):
        check_source("iceberg-rest", properties, limits=SourceLimits(("127.0.0.1:80",), timeout_s=1.0))
