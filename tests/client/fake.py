# SPDX-License-Identifier: Apache-2.0
"""A server with scripted answers over real sockets; it records its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class FakeRequest:
    """A received request. `target` is the raw path and query."""

    method: str
    target: str
    headers: dict[str, str]
    body: object


@dataclass(frozen=True)
class FakeAnswer:
    """An answer; `hang_up` closes the connection instead."""

    status: int = 200
    body: object = None
    headers: tuple[tuple[str, str], ...] = ()
    hang_up: bool = False


@dataclass
class FakeServer:
    """Answers by method and raw target. The last answer of a route is repeated."""

    routes: dict[tuple[str, str], list[FakeAnswer]] = field(default_factory=dict)
    asked: list[FakeRequest] = field(default_factory=list)
    uri: str = ""
    default: FakeAnswer | None = None
    """The answer to a request without a route; None: not found, with the route in the message."""

    def on(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
        hang_up: bool = False,
    ) -> FakeServer:
        """Add an answer to a route, after its earlier ones."""
        self.routes.setdefault((method, target), []).append(FakeAnswer(status, body, headers, hang_up))
        return self

    @property
    def calls(self) -> list[str]:
        """Return the requests so far, as `METHOD target`."""
        return [f"{request.method} {request.target}" for request in self.asked]

    def answer(self, method: str, target: str) -> FakeAnswer:
        """Return the next answer of a route."""
        waiting = self.routes.get((method, target))
        if not waiting and self.default is not None:
            return self.default
        if not waiting:
            message = f"the test has no route {method} {target}"
            return FakeAnswer(404, {"error": {"code": "not-found", "message": message, "request_id": "r-0"}})
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@contextmanager
def running() -> Iterator[FakeServer]:
    """Serve on a free loopback port for the body of a `with`."""
    fake = FakeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = self.headers.get("Content-Type", "application/json") == "application/json"
            body = (json.loads(raw) if raw else None) if is_json else raw
            fake.asked.append(FakeRequest(self.command, self.path, dict(self.headers.items()), body))
            answer = fake.answer(self.command, self.path)
            if answer.hang_up:
                self.close_connection = True
                return
            self.send(answer)

        def send(self, answer: FakeAnswer) -> None:
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            payload = b"" if answer.body is None or self.command == "HEAD" else text.encode()
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing; tests read `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.uri = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
