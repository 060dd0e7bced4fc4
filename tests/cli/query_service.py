# SPDX-License-Identifier: Apache-2.0
"""A fake query service. It implements the documented protocol, evaluates constants, and has a statement that runs until
it is cancelled.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from limnos.rooms.sqlpp.language import SqlppError, parse
from limnos.rooms.sqlpp.language.tree import QueryStatement
from tests.rooms.sqlpp.language.evaluation import ask

NAMES = [
    ["sales.east", ""],
    ["sales.east", "orders"],
    ["sales.east", "order items"],
    ["sales@.x", "t"],
    ["Default", "people"],
]
Body = dict[str, object]


@dataclass
class FakeQueryService:
    """The received requests, and the requests that wait to be cancelled."""

    uri: str = ""
    asked: list[Body] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    waiting: dict[str, threading.Event] = field(default_factory=dict)

    def answer(self, body: Body) -> tuple[int, Body]:
        """Run the statements of a request."""
        text = str(body["statement"])
        if "Metadata." in text:
            return 200, {"results": NAMES, "status": "success"}
        self.asked.append(body)
        if "forever" in text:
            self.waiting.setdefault(str(body["client_context_id"]), threading.Event()).wait(60)
            return 400, {"errors": [{"code": 1, "msg": "ASX0041: The request was cancelled"}], "status": "fatal"}
        try:
            gives = any(isinstance(each.statement, QueryStatement) for each in parse(text))
            results = {"results": ask(text)} if gives else {}
        except SqlppError as error:
            return 400, {"errors": [{"code": 1, "msg": error.text}], "status": "fatal"}
        return 200, {**results, "status": "success", "metrics": {"elapsedTime": "1ms"}}

    def cancel(self, own_id: str) -> int:
        """Cancel a waiting request."""
        if own_id not in self.waiting:
            return 404
        self.cancelled.append(own_id)
        self.waiting[own_id].set()
        return 200


@contextmanager
def serving() -> Iterator[FakeQueryService]:
    """Serve on a free loopback port for the body of a `with`."""
    service = FakeQueryService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, body = service.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send(status, body)

        def do_DELETE(self) -> None:
            status = service.cancel(parse_qs(urlsplit(self.path).query)["client_context_id"][0])
            self.send(status, {} if status == 200 else {"errors": [{"code": 1, "msg": "No such request"}]})

        def send(self, status: int, body: Body) -> None:
            payload = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.uri = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        for event in service.waiting.values():
            event.set()
        server.shutdown()
        server.server_close()
        thread.join()
