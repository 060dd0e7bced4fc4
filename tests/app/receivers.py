# SPDX-License-Identifier: Apache-2.0
"""A webhook receiver on a real socket: it accepts, refuses, ignores or redirects deliveries, and checks their
signatures.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """A receiver with the bodies that it answered with 2xx, in order. `answers` are the next statuses, and `hang` sends
    no answer.
    """

    def __init__(self) -> None:
        self.status = 204
        self.hangs = threading.Event()
        self.freed = threading.Event()
        self.secret = ""
        self.taken: list[list[dict[str, Any]]] = []
        self.refused = 0
        self.messages: list[str] = []
        self.wrong: list[str] = []
        self.url = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return every accepted event."""
        return [event for body in self.taken for event in body]

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Answer a delivery, and store it if it is accepted."""
        message, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        self.messages.append(message)
        if self.secret:
            key = base64.b64decode(self.secret.removeprefix("whsec_"))
            mac = hmac.new(key, f"{message}.{at}.".encode() + body, hashlib.sha256).digest()
            if headers.get("webhook-signature") != f"v1,{base64.b64encode(mac).decode()}":
                self.wrong.append(message)
        if headers.get("content-type") != "application/cloudevents-batch+json":
            self.wrong.append("content-type")
        if self.status >= 300:
            self.refused += 1
            return self.status
        self.taken.append(json.loads(body))
        return self.status


@contextmanager
def receiving(port: int = 0, receiver: Receiver | None = None) -> Iterator[Receiver]:
    """Run a receiver on loopback during the body of a `with`."""
    active_receiver = receiver or Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if active_receiver.hangs.is_set():
                active_receiver.refused += 1
                active_receiver.freed.wait(30)
                return
            status = active_receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", active_receiver.url + "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    active_receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield active_receiver
    finally:
        active_receiver.freed.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
