# SPDX-License-Identifier: Apache-2.0
"""A proxy of a server that is killed at a chosen request and restarted: an outage at an exact moment.

While the server is down the proxy does not listen, so callers see broken and then refused connections.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.integration.live import LIMNOS, LiveServer

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
SENT, ANSWERED = "never sent", "answer lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayMoment:
    """A request by its method, path and body, and the moment of the kill: `SENT` before it is executed, `ANSWERED`
    after.
    """

    name: str
    line: str
    """Searched in the request line."""
    body: str = ""
    """Searched in the body."""
    lost: str = SENT
    nth: int = 1

    def is_at(self, head: bytes, body: bytes) -> bool:
        """Return whether this request matches."""
        return bool(re.search(self.line.encode(), head.split(b"\r\n", 1)[0]) and re.search(self.body.encode(), body))


class Relay:
    """Forwards requests to `server`, and kills it at the `moment`. The server restarts on the same port after
    `away_s`.
    """

    def __init__(self, server: LiveServer, *, data: Path, away_s: float) -> None:
        self.server: LiveServer = server
        self.away_s = away_s
        self.data = data
        self.moment: RelayMoment | None = None
        self.struck = threading.Event()
        self.back = threading.Event()
        self.meanwhile: Callable[[], None] = lambda: None
        """Called while the server is down, before it restarts."""
        self._process: subprocess.Popen[bytes] | subprocess.Popen[str] = server.process
        host, _, port = server.uri.removeprefix("http://").rpartition(":")
        self._target = (host, int(port))
        self._seen = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._listener = self._listening(0)
        self.port: int = self._listener.getsockname()[1]
        self.uri = f"http://{host}:{self.port}"

    def _listening(self, port: int) -> socket.socket:
        listener = socket.create_server((self._target[0], port), backlog=64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with suppress(OSError), caller, socket.create_connection(self._target) as server:
            with self._lock:
                self._open |= {caller, server}
            answers = _Answers(server, caller)
            while (request := _request(caller)) is not None:
                self._pass(*request, server=server, answers=answers)

    def _pass(self, head: bytes, body: bytes, *, server: socket.socket, answers: _Answers) -> None:
        hit = self._is_hit(head, body)
        if hit is None:
            server.sendall(head + body)
            return
        if hit.lost == ANSWERED:
            answers.hold()
            server.sendall(head + body)
            answers.held.wait(timeout=30)
        self.strike()

    def _is_hit(self, head: bytes, body: bytes) -> RelayMoment | None:
        with self._lock:
            if self.moment is None or self.struck.is_set() or not self.moment.is_at(head, body):
                return None
            self._seen += 1
            return self.moment if self._seen == self.moment.nth else None

    def strike(self) -> None:
        """Kill the server now, break all connections, and refuse new ones until it has restarted."""
        self.struck.set()
        self._process.kill()
        self._process.wait()
        self._refuse()
        threading.Thread(target=self._come_back, daemon=True).start()

    def _refuse(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            open_, self._open = self._open, set()
        for each in open_:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _come_back(self) -> None:
        self.meanwhile()
        time.sleep(self.away_s)
        command = [
            *LIMNOS,
            "server",
            "start",
            "--data",
            str(self.data),
            "--listen",
            f"{self._target[0]}:{self._target[1]}",
        ]
        with self.data.with_suffix(".back.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        for line in self._process.stdout or ():
            if line.startswith(b"ready "):
                break
        if not self._closed:
            self._listener = self._listening(self.port)
            self.back.set()

    def close(self) -> None:
        """Stop listening, and stop the restarted server."""
        self._closed = True
        if self.struck.is_set():
            self.back.wait(timeout=60)
            self._process.terminate()
            self._process.wait(timeout=300)
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._refuse()


def _request(caller: socket.socket) -> tuple[bytes, bytes] | None:
    """Return head and body of the next request; None if the caller has closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = caller.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length_match = _LENGTH.search(head)
    length = int(length_match[1]) if length_match else 0
    while len(body) < length:
        chunk = caller.recv(65536)
        if not chunk:
            return None
        body += chunk
    return head + b"\r\n\r\n", body


class _Answers:
    """Forwards the server's answers until `hold` is called."""

    def __init__(self, server: socket.socket, caller: socket.socket) -> None:
        self._server, self._caller = server, caller
        self._holds = False
        self.held = threading.Event()
        """Set when the server has begun an answer that is held back."""
        threading.Thread(target=self._pump, daemon=True).start()

    def hold(self) -> None:
        """Forward nothing from now on."""
        self._holds = True

    def _pump(self) -> None:
        with suppress(OSError):
            while chunk := self._server.recv(65536):
                if self._holds:
                    self.held.set()
                    return
                self._caller.sendall(chunk)
        with suppress(OSError):
            self._caller.shutdown(socket.SHUT_RDWR)
