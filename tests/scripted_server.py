# SPDX-License-Identifier: Apache-2.0
"""An HTTP server with scripted answers that records its requests: an unusual, wrong or hostile source."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class ScriptedAnswer(NamedTuple):
    """An answer. A `body` that is not bytes is sent as JSON. `writes` sends everything itself, including the head."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    writes: Callable[[BaseHTTPRequestHandler], None] | None = None


class ScriptedRequest(NamedTuple):
    """A received request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class ScriptedServer:
    """`answers` has answers by method and target, with or without its query; other requests get a plain 404."""

    def __init__(self) -> None:
        self.answers: dict[str, ScriptedAnswer | list[ScriptedAnswer]] = {}
        self.asked: list[ScriptedRequest] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.port: int = self.server.server_address[1]
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(10)

    def targets(self) -> list[str]:
        """The targets of received requests, without those for the configuration."""
        return [f"{each.method} {each.target}" for each in self.asked if "/v1/config" not in each.target]

    def next(self, method: str, target: str) -> ScriptedAnswer:
        """Return the next answer to a request; the last one is repeated."""
        answer = self.answers.get(f"{method} {target}") or self.answers.get(f"{method} {target.partition('?')[0]}")
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer or ScriptedAnswer(404, {"error": {"message": "no such thing", "code": 404}})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with suppress(OSError):
                    super().handle_one_request()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                script.asked.append(ScriptedRequest(self.command, self.path, headers, body))
                answer = script.next(self.command, self.path)
                if answer.writes is not None:
                    self.close_connection = True
                    answer.writes(self)
                    return
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                data = b"" if answer.body is None else data
                self.send_response(answer.status)
                for name, value in {"content-length": str(len(data)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_POST = do_HEAD = do_DELETE = _answer  # noqa: N815 - http.server's names

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler


@contextmanager
def scripted() -> Iterator[ScriptedServer]:
    """Serve for the body of a `with`."""
    server = ScriptedServer()
    try:
        yield server
    finally:
        server.close()
