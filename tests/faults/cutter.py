# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of a node that loses answers: it cuts a request before the node receives it, or after its answer.

Some proxies repeat a request whose answer they lost (`twice`), or ask the client to do so (`busy`).
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, NamedTuple, Self
from urllib.parse import urlsplit

When = Literal["before", "after", "twice", "busy"]
CHANGING = ("POST", "DELETE")
LINE_MAX = 1 << 16


BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


class CutterRequest(NamedTuple):
    """A request: method and path, idempotency key, and where it was cut."""

    method: str
    path: str
    key: str | None
    cut: When | None


class Cutter:
    """A proxy that listens on loopback and forwards requests to a node, one connection each. `cut` selects the next one
    to lose.
    """

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._node = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen: list[CutterRequest] = []
        self._cuts: list[tuple[When, Callable[[str, str], bool]]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def cut(self, when: When, *, matches: Callable[[str, str], bool] | None = None) -> None:
        """Cut the next request that changes something, or the next one that `matches` method and path."""
        with self._lock:
            self._cuts.append((when, matches or (lambda method, _: method in CHANGING)))

    @property
    def pending(self) -> int:
        """The number of cuts that no request has met yet."""
        return len(self._cuts)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        """Forward the requests of one connection until it ends or is cut."""
        with near, near.makefile("rb") as read, suppress(OSError, http.client.HTTPException):
            while line := read.readline(LINE_MAX):
                method, path, _ = line.decode("latin-1").split(" ", 2)
                headers = http.client.parse_headers(read)
                body = read.read(int(headers.get("content-length", "0")))
                when = self._taken(method, path)
                self.seen.append(CutterRequest(method, path, headers.get("idempotency-key"), when))
                if when == "before":
                    break
                answer = self._ask(method, path, headers, body)
                if when == "after":
                    break
                if when == "twice":
                    answer = self._ask(method, path, headers, body)
                elif when == "busy":
                    answer = BUSY
                near.sendall(answer)
            near.shutdown(socket.SHUT_RDWR)

    def _taken(self, method: str, path: str) -> When | None:
        with self._lock:
            for place, (when, matches) in enumerate(self._cuts):
                if matches(method, path):
                    del self._cuts[place]
                    return when
        return None

    def _ask(self, method: str, path: str, headers: http.client.HTTPMessage, body: bytes) -> bytes:
        """Forward a request and return the complete answer."""
        far = http.client.HTTPConnection(*self._node, timeout=60)
        try:
            far.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                far.putheader(name, value)
            far.endheaders(body)
            answer = far.getresponse()
            data = answer.read()
        finally:
            far.close()
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        lines += [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in _HOP]
        if "content-length" not in answer.headers and answer.status not in (204, 304):
            lines.append(f"content-length: {len(data)}")
        return "\r\n".join((*lines, "", "")).encode("latin-1") + data


_HOP = ("transfer-encoding", "connection")
