# SPDX-License-Identifier: Apache-2.0
"""The adapter without an implementation: the calls to implementations, and the answers to callers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from limnos.model.errors import LimnosError, UnsupportedOperation
from limnos.rooms.lance.formats.layouts import DirectoryLayout
from limnos.rooms.lance.http.adapter import LanceAdapter
from limnos.rooms.lance.http.adapter_rows import ROWS
from limnos.rooms.lance.http.operations import OPERATIONS
from limnos.rooms.lance.services.directory_tables import FolderLimits, FolderTables
from limnos.rooms.lance.services.workers import WorkerTask
from limnos.rooms.lance.sources.delegate import DelegateRefusal
from limnos.rooms.lance.sources.directories import LanceDirectory
from tests.rooms.lance.services.workers import FakeLanceWorkers, lay

Call = Callable[..., object]


class JsonResponse:
    """An answer: status, JSON and headers."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        start, body = messages
        self.status: int = start["status"]
        self.headers: dict[bytes, bytes] = dict(start["headers"])
        self.body: bytes = body["body"]

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever was answered
        return json.loads(self.body)


def ask(
    call: Call,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    cut: bool = False,
) -> JsonResponse:
    """Send a request to an adapter over ASGI."""
    raw, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1:1"), *headers],
    }
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": body, "more_body": cut}, {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    adapter = LanceAdapter(call)
    asyncio.run(adapter(scope, receive, send))  # type: ignore[arg-type]
    adapter.close()
    return JsonResponse(sent)


def capture_call(
    path: str, *, method: str = "POST", body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[str, dict[str, object], bytes | None]:
    """Return the operation, the fields and the rows that an implementation receives."""
    seen: list[tuple[str, dict[str, object], bytes | None]] = []

    def call(name: str, fields: dict[str, object], data: bytes | None = None) -> object:
        seen.append((name, fields, data))
        return {}

    answer = ask(call, method, path, body=body, headers=headers)
    assert answer.status < 300, answer.body
    return seen[0]


def test_every_operation_has_its_route() -> None:
    """Each operation is routed by its method, below /v1 and /lance/v1, also with doubled and final slashes."""
    for each in OPERATIONS:
        path = each.path.replace("{id}", "a%24b").replace("{index_name}", "i")
        for place in (f"/v1{path}", f"/lance/v1{path}/", f"//v1{path}"):
            name, fields, data = capture_call(place, method=each.method)

            assert name == each.call
            assert fields.get("id", ["a", "b"]) == ["a", "b"]
            assert (data is not None) == (each.takes == "rows")


def test_root_and_custom_delimiters_are_parsed() -> None:
    """The root is the delimiter or omitted; names may be joined by any delimiter, and a plus is a space."""
    assert capture_call("/v1/namespace/%24/list", method="GET")[1]["id"] == []
    assert capture_call("/v1/namespace/list?delimiter=.", method="GET")[1]["id"] == []
    assert capture_call("/v1/namespace/describe?delimiter=.")[1]["id"] == []
    assert capture_call("/v1/table/a::b+c/describe?delimiter=::")[1]["id"] == ["a", "b c"]
    assert capture_call("/v1/table/a$b+c/describe", body=b'{"id": ["a", "b c"]}')[1]["id"] == ["a", "b c"]


def test_query_and_body_fields_are_combined() -> None:
    """Fields of query and body are combined: flags, numbers, maps and repeated parameters are typed, and nulls omitted.
    The caller's identity is passed on.
    """
    _, fields, data = capture_call(
        "/v1/table/t/merge_insert?on=id&on=text&when_matched_update_all=true&timeout=30s",
        body=b"rows",
        headers=((b"x-api-key", b"k"),),
    )
    assert (fields["on"], fields["when_matched_update_all"], fields["timeout"], data) == (
        ["id", "text"],
        True,
        "30s",
        b"rows",
    )
    assert fields["identity"] == {"api_key": "k"}
    assert capture_call("/v1/table/t/create?properties=%7B%22k%22%3A%22v%22%7D")[1]["properties"] == {"k": "v"}
    assert capture_call("/v1/table?limit=3&include_declared=false", method="GET")[1] == {
        "limit": 3,
        "include_declared": False,
    }
    assert capture_call("/v1/table/t/schema_metadata/update", body=b'{"a": "b"}')[1]["metadata"] == {"a": "b"}
    assert "version" not in capture_call("/v1/table/t/describe", body=b'{"version": null}')[1]


@pytest.mark.parametrize(
    "method, path, body, status, code",
    [
        ("POST", "/v1/nothing", b"", 404, 0),
        ("GET", "/v1/table/t/describe", b"", 405, 0),
        ("POST", "/v1/table/t/describe", b"{", 400, 13),
        ("POST", "/v1/table/t/describe", b'{"id": "t"}', 400, 13),
        ("POST", "/v1/table/t/describe", b'{"id": ["u"]}', 400, 13),
        ("POST", "/v1/table/a%24%24b/describe", b"", 400, 13),
        ("GET", "/v1/table?limit=some", b"", 400, 13),
        ("GET", "/v1/table?include_declared=maybe", b"", 400, 13),
    ],
)
def test_invalid_requests_are_refused_in_protocol_format(
    method: str, path: str, body: bytes, status: int, code: int
) -> None:
    """Invalid requests are refused in the protocol's error format before the implementation is called."""
    answer = ask(lambda *_: pytest.fail("asked"), method, path, body=body)

    assert (answer.status, answer.json["code"]) == (status, code)
    assert set(answer.json) == {"error", "code", "detail", "instance"}


def test_incomplete_body_is_refused_with_400() -> None:
    """A request with an incomplete body is refused with 400, and the implementation is not called."""
    answer = ask(lambda *_, **__: pytest.fail("asked"), "POST", "/v1/table/t/insert", body=b"half", cut=True)

    assert answer.status == 400


def test_cross_site_requests_are_refused() -> None:
    """Requests from pages of other sites, and for foreign host names, are refused."""
    for headers in (((b"origin", b"http://evil.example"),),):
        assert ask(lambda *_: {}, "GET", "/v1/table", headers=headers).status == 403


def test_implementation_errors_keep_their_codes() -> None:
    """Errors of the implementation keep their codes. An unexpected error has code 18 and does not reveal its
    message.
    """

    def failing(error: Exception) -> JsonResponse:
        def call(*_: object) -> object:
            raise error

        return ask(call, "POST", "/v1/table/t/describe")

    assert (failing(DelegateRefusal("t", number=22)).status, failing(DelegateRefusal("t", number=22)).json["code"]) == (
        404,
        22,
    )
    assert (failing(UnsupportedOperation("no")).status, failing(UnsupportedOperation("no")).json["code"]) == (406, 0)
    unknown = failing(RuntimeError("secret path"))
    assert (unknown.status, unknown.json["code"], "secret" in str(unknown.json)) == (500, 18, False)


@pytest.mark.parametrize(
    "path, value, body",
    [
        ("/v1/table/t/count_rows", {"count": 5}, b"5"),
        ("/v1/table/t/explain_plan", "a plan", b'"a plan"'),
        ("/v1/table/t/query", {"data": b"ARROW1"}, b"ARROW1"),
        ("/v1/table/t/exists", {}, b""),
        ("/v1/table/t/schema_metadata/update", {"metadata": {"a": "b"}, "transaction_id": "x"}, b'{"a":"b"}'),
    ],
)
def test_return_values_are_encoded_in_protocol_format(path: str, value: object, body: bytes) -> None:
    """A number, a text, bytes, nothing, and a map are each returned in the protocol's form."""
    assert ask(lambda *_: value, "POST", path).body == body


def test_table_identifiers_use_the_callers_delimiter() -> None:
    """Identifiers of the server's own tables are joined with the caller's delimiter. Identifiers of other
    implementations are returned unchanged.
    """
    answer = ask(lambda *_: {"tables": ['["a","b"]', "c$d"]}, "GET", "/v1/table?delimiter=::")

    assert answer.json == {"tables": ["a::b", "c$d"]}


def streamed(root: Path, act: Callable[[WorkerTask], Awaitable[None]] | None = None) -> list[dict[str, Any]]:
    """Return the ASGI messages that answer a query of a directory's table, up to the end or the failure of the
    answer.
    """
    lay(root, "t.lance")
    folders = FolderTables(
        LanceDirectory(str(root), layout=DirectoryLayout.V1), FakeLanceWorkers(act), limits=FolderLimits(1000, 0, 60.0)
    )
    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": b"/v1/table/t/query",
        "query_string": b"",
        "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1:1")],
    }
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": b"{}"}]

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    adapter = LanceAdapter(lambda *_: pytest.fail("asked"), folders=folders)
    with suppress(LimnosError):
        asyncio.run(adapter(scope, receive, send))  # type: ignore[arg-type]
    adapter.close()
    return sent


def test_directory_rows_are_streamed_in_chunks(tmp_path: Path) -> None:
    """Each piece of rows is sent separately and followed by the end of the body. The answer has no length."""
    start, *pieces = streamed(tmp_path)

    assert (start["status"], [key for key, _ in start["headers"]]) == (
        200,
        [b"content-type", b"phalanx-version"],
    )
    assert [(each["body"], each.get("more_body", False)) for each in pieces] == [
        (b"one", True),
        (b"two", True),
        (b"", False),
    ]


def test_failed_stream_has_no_final_chunk(tmp_path: Path) -> None:
    """After a failure the answer has no last piece, so that no client takes it as complete."""

    async def fail(_errand: WorkerTask) -> None:
        raise TimeoutError

    assert all(each["more_body"] for each in streamed(tmp_path, fail)[1:])


def test_directory_handlers_belong_to_protocol_operations() -> None:
    """Each handler of a directory belongs to an operation of the protocol."""
    assert set(ROWS) < {each.call for each in OPERATIONS}


def test_compressed_body_is_refused() -> None:
    """A compressed body is 415, and not malformed JSON; the implementation is not called."""

    def call(name: str, _fields: dict[str, object], data: bytes | None = None) -> object:
        raise AssertionError(name, data)

    headers = ((b"content-encoding", b"gzip"), (b"content-length", b"9"))
    answer = ask(call, "POST", "/v1/namespace/a/create", body=b"\x1f\x8b1234567", headers=headers)

    assert (answer.status, "without compression" in answer.json["error"]) == (415, True)
