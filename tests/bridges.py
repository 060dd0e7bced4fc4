# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback to a server's socket, which can be silenced or cut: an unreachable source."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg


class Bridge:
    """Forwards bytes in both directions until it is closed. `silent`: bytes are dropped; `cut`: the port is closed."""

    def __init__(self, target: Path | int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.silent = False
        self.heard: bytearray | None = None
        """Bytes from clients, if they are recorded."""
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._serve)

    def cut(self) -> None:
        """Close the port and all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._let_go()

    def mend(self) -> None:
        """Listen again on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._start(self._serve)

    def close(self) -> None:
        """Close the port, and wait for the threads."""
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def _let_go(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _start(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._reach()
            except OSError:  # the server has ended
                client.close()
                continue
            self._open += [client, server]
            self._start(self._carry, client, server)

    def _reach(self) -> socket.socket:
        """Connect to a Unix socket, or to a port of loopback."""
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._target))
        return server

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server, listens=True)
        back.join()
        client.close()
        server.close()

    def _pump(self, source: socket.socket, target: socket.socket, *, listens: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if listens and self.heard is not None:
                    self.heard += data
                if not self.silent:
                    target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def bridge_to(database: str) -> Iterator[Bridge]:
    """Forward a port to the socket of a PostgreSQL server."""
    with psycopg.connect(database) as connection:
        row = connection.execute("SHOW unix_socket_directories").fetchone()
    assert row is not None
    bridge = Bridge(Path(str(row[0])) / ".s.PGSQL.5432")
    try:
        yield bridge
    finally:
        bridge.close()


def free_ports(count: int) -> list[int]:
    """Return different free loopback ports."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
