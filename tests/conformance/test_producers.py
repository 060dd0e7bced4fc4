# SPDX-License-Identifier: Apache-2.0
"""The relay before the server, and Trino's settings from the page. The producers run in `make conformance`."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from conformance.producers.relay import relay_before
from conformance.producers.trino import settings


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        text = json.dumps(
            {"path": self.path, "caller": self.headers["Authorization"], "got": json.loads(body)}
        ).encode()
        self.send_response(403 if b"refused" in body else 201)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """A server that answers with what it was sent; 403 for an event of the job `refused`."""
    listener = HTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_port}"
    listener.shutdown()
    listener.server_close()


def test_relay_forwards_and_keeps_events_and_answers(server: str) -> None:
    """The producer gets the server's status and answer; the event, the status and the answer are kept."""
    with relay_before(server) as relay:
        for job in ("one", "refused"):
            body = json.dumps({"job": job}).encode()
            request = urllib.request.Request(f"{relay.uri}/api/v1/lineage", body, {"Authorization": "Bearer t"})
            try:
                with urllib.request.urlopen(request) as answer:
                    status, text = answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                status, text = error.code, json.load(error)
            assert status == (201 if job == "one" else 403)
            assert text == {"path": "/api/v1/lineage", "caller": "Bearer t", "got": {"job": job}}

    assert [(event["job"], status) for event, status, _ in relay.kept] == [("one", 201), ("refused", 403)]


def test_settings_of_the_listener_come_from_the_page() -> None:
    """The listener's settings are those of docs/guides/lineage.md, with the given address and token."""
    text = settings("http://h:1", "secret-1")

    assert "openlineage-event-listener.transport.url=http://h:1\n" in text
    assert text.endswith("openlineage-event-listener.transport.api-key=secret-1")
    assert "8090" not in text
