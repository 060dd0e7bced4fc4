# SPDX-License-Identifier: Apache-2.0
"""A schema registry for tests: the three reads of Confluent's interface, over HTTP on loopback."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Registry:
    """Schemas by subject and version, each with its id; with a password, the user `ana` must send it."""

    subjects: Mapping[str, Mapping[int, tuple[int, Mapping[str, object]]]]
    password: str | None = None

    def answer(self, path: str) -> object | None:
        """Return the answer to a path; None if there is nothing."""
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            schemas = {number: schema for each in self.subjects.values() for number, schema in each.values()}
            schema = schemas.get(int(match[1]))
            return None if schema is None else {"schema": json.dumps(schema)}
        match = re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\d+))?", path)
        versions = self.subjects.get(match[1]) if match else None
        if match is None or versions is None:
            return None
        return {"id": versions[int(match[2])][0], "version": int(match[2])} if match[2] else sorted(versions)


@contextmanager
def registry_server(registry: Registry) -> Iterator[str]:
    """Serve a registry for the body of a `with`; its value is the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer a read."""
            login = f"Basic {b64encode(f'ana:{registry.password}'.encode()).decode()}"
            answer = registry.answer(self.path)
            status = 404 if answer is None else 200
            if registry.password is not None and self.headers.get("Authorization") != login:
                status, answer = 401, None
            body = json.dumps(answer or {"error_code": 40401}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
