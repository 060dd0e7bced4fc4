# SPDX-License-Identifier: Apache-2.0
"""Requests generated from the committed OpenAPI documents, sent by five callers: every answer is documented, and the
check reports one that is not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.openapi.asking import PROTOCOLS, ProtocolResults, ask_all, operations
from conformance.openapi.world import CALLERS, World, world_at

pytestmark = pytest.mark.slow

CASES = 2
EVERY = 10
"""One in this number of operations is tested: `make conformance` tests all, and more often."""


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[World]:
    """A server with one answer for all requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the library's word

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield World(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def found_with(label: str, status: int, kind: str, body: bytes) -> ProtocolResults:
    """Return the findings for an operation with this answer of the server."""
    chosen = [each for each in operations(label.split("/")[1]) if each.label == label]
    with answering(status, kind, body) as world:
        return ask_all(world, chosen, callers=CALLERS[:1], cases=1, number=0)


@pytest.mark.integration
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_generated_requests_get_documented_answers(tmp_path: Path, protocol: str) -> None:
    """Every caller gets a documented answer below 500 for every generated request."""
    with world_at(tmp_path) as world:
        findings = ask_all(world, operations(protocol)[::EVERY], callers=CALLERS, cases=CASES, number=0)

    assert not findings.wrong, "\n\n".join(map(str, findings.wrong.values()))
    assert {who for who, _ in findings.statuses} == {caller.name for caller in CALLERS}
    assert any(status < 300 for who, status in findings.statuses if who == "owner")


@pytest.mark.parametrize(
    "status,kind,body",
    [
        (500, "application/json", b'{"error":{"message":"m","type":"t","code":500}}'),
        (418, "application/json", b"{}"),
        (200, "text/html", b"<p>"),
        (403, "application/json", b'{"message":"another shape"}'),
        (403, "application/json", b'{"error":{"message":"m","type":"t","code":"no number"}}'),
    ],
    ids=["broken", "undocumented", "another kind", "another shape", "another type"],
)
def test_server_errors_and_undocumented_answers_are_reported(status: int, kind: str, body: bytes) -> None:
    """An answer of 500, and one with an undocumented status, content type or shape, are reported with a way to repeat
    the request.
    """
    findings = found_with("GET /iceberg/v1/{prefix}/namespaces", status, kind, body)

    assert {wrong.status for wrong in findings.wrong.values()} == {status}
    assert all("curl" in wrong.detail for wrong in findings.wrong.values())


def test_undocumented_body_is_reported() -> None:
    """A body is reported if the document has none."""
    findings = found_with("POST /lance/v1/namespace/{namespace_id}/exists", 200, "application/json", b"{}")

    assert [wrong.title for wrong in findings.wrong.values()] == ["Custom check failed: `nothing_undocumented`"]


def test_unreachable_server_is_reported() -> None:
    """An unreachable server is reported as such, not skipped."""
    with answering(200, "application/json", b"{}") as world:
        pass
    chosen = operations("iceberg")[:1]

    findings = ask_all(world, chosen, callers=CALLERS[:1], cases=1, number=0)

    assert [wrong.title for wrong in findings.wrong.values()] == ["No answer"]


def test_documented_answer_has_no_findings() -> None:
    """A documented answer has no findings."""
    body = b'{"error":{"message":"m","type":"t","code":403}}'

    assert not found_with("GET /iceberg/v1/{prefix}/namespaces", 403, "application/json", body).wrong
