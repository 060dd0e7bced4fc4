# SPDX-License-Identifier: Apache-2.0
"""A relay before the server, which keeps each lineage event and the server's answer.

Job: forward POST requests unchanged. May import the standard library only.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TIMEOUT_S = 60


class Relay:
    """The events that were forwarded, each with the status and the answer."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.uri = ""
        self.kept: list[tuple[dict[str, Any], int, dict[str, Any]]] = []

    def forward(self, path: str, body: bytes, *, headers: dict[str, str]) -> tuple[int, bytes]:
        """Forward a request. Returns the status and the body of the answer."""
        request = urllib.request.Request(f"{self.server}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        self.kept.append((json.loads(body), status, json.loads(text)))
        return status, text


@contextmanager
def relay_before(server: str) -> Iterator[Relay]:
    """Run a relay on a free loopback port for the body of a `with`."""
    relay = Relay(server)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
            status, text = relay.forward(self.path, body, headers=headers)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: the server has a log."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    relay.uri = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        listener.shutdown()
        listener.server_close()
