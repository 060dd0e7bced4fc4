# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy to PostgreSQL in its own threads, which can stop forwarding, answer late, close connections, or
refuse them.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

BYTES = 65536


class Proxy:
    """A proxy that listens on loopback and forwards to a database. Its treatment of connections can be changed at any
    time.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        socket_directory = parse_qs(parts.query).get("host", [None])[0]
        self._target = (
            f"{socket_directory}/.s.PGSQL.{parts.port or 5432}"
            if socket_directory
            else (unquote(parts.hostname or "127.0.0.1"), parts.port or 5432)
        )
        self._listener = socket.create_server(("127.0.0.1", 0))
        user = quote(unquote(parts.username or "postgres"), safe="")
        password = f":{parts.password}" if parts.password else ""
        self.url = f"postgresql://{user}{password}@127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self._pairs: list[_Pair] = []
        self._silent_to_new = False
        self.late_s = 0.0
        """The time by which the database's first answer on each new connection is late, in seconds."""
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            pair = _Pair(near, self._target, late_s=self.late_s)
            self._pairs.append(pair)
            if self._silent_to_new:
                pair.silent.set()
            pair.start()

    def silence(self, *, new: bool = False) -> None:
        """Stop forwarding on all open connections; with `new`, also on all later ones."""
        self._silent_to_new = new
        for pair in self._pairs:
            pair.silent.set()

    def hear(self) -> None:
        """Forward again on connections that are opened from now on. Those that were silenced stay so."""
        self._silent_to_new = False

    def cut(self) -> None:
        """Close every connection."""
        for pair in self._pairs:
            pair.close()
        self._pairs.clear()


class _Pair(threading.Thread):
    """One proxied connection: its client socket and its server socket."""

    def __init__(self, near: socket.socket, target: str | tuple[str, int], *, late_s: float = 0.0) -> None:
        super().__init__(daemon=True)
        self.near = near
        self.late_s = late_s
        self.silent = threading.Event()
        if isinstance(target, str):
            self.far = socket.socket(socket.AF_UNIX)
            self.far.connect(target)
        else:
            self.far = socket.create_connection(target)

    def run(self) -> None:
        """Forward in both directions until one side ends or forwarding stops."""
        with suppress(OSError, ValueError), selectors.DefaultSelector() as ready:
            ready.register(self.near, selectors.EVENT_READ, self.far)
            ready.register(self.far, selectors.EVENT_READ, self.near)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(BYTES)  # type: ignore[union-attr]
                    if key.fileobj is self.far and self.late_s:
                        time.sleep(self.late_s)
                        self.late_s = 0.0
                    if self.silent.is_set():
                        return  # both ends stay open and nothing is read
                    if not data:
                        self.close()
                        return
                    key.data.sendall(data)

    def close(self) -> None:
        """Close both sides."""
        for end in (self.near, self.far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
