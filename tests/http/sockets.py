# SPDX-License-Identifier: Apache-2.0
"""Real sockets to a node that serves on its own thread, configured as by `limnos server start`."""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import uvicorn
import uvloop

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import build
from limnos.app.serving import _config
from limnos.config.access import AccessSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, Settings
from tests.http.iceberg.wire import basic

WAIT_S = 300


@dataclass
class SocketAnswer:
    """One answer, parsed from the socket."""

    status: int
    headers: dict[str, str]
    body: bytes


class SocketWire:
    """One connection that sends bytes and parses answers."""

    def __init__(self, port: int, *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(WAIT_S)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(("127.0.0.1", port))
        self.held = b""

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        self.socket.sendall(data)

    def head(self) -> tuple[int, dict[str, str]]:
        """Read a status line and headers."""
        while b"\r\n\r\n" not in self.held:
            self._more()
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in lines)
        return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}

    def first_line(self) -> bytes:
        """Read only the status line."""
        while b"\r\n" not in self.held:
            self._more()
        return self.held.partition(b"\r\n")[0]

    def answer(self, *, bodiless: bool = False) -> SocketAnswer:
        """Read one answer. Answers to HEAD, and those with status 204 and 304, have no body."""
        status, headers = self.head()
        size = 0 if bodiless or status in (204, 304) else int(headers["content-length"])
        while len(self.held) < size:
            self._more()
        body, self.held = self.held[:size], self.held[size:]
        return SocketAnswer(status, headers, body)

    def ended(self) -> bool:
        """Return whether the server has closed the connection without further bytes."""
        return self.held == b"" and self.socket.recv(1) == b""

    def _more(self) -> None:
        data = self.socket.recv(1 << 16)
        assert data, "the server hung up in the middle of an answer"
        self.held += data


def request(method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
    """Encode a request; underscores in header names become dashes."""
    fields = {
        "host": "localhost",
        "authorization": basic("admin"),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    if body is not None and "transfer-encoding" not in fields:
        fields["content-length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b"")


class ServedNode:
    """A node that serves on its own thread, configured as by `limnos server start`."""

    def __init__(self, data: Path, *, lane: bool, database: str | None = None, **settings: object) -> None:
        self.port = 0
        self.settings = Settings(
            server=ServerSection(data=str(data), lane=lane, **settings),  # type: ignore[arg-type]
            access=AccessSection(authentication="simple"),
            database=DatabaseSection.model_validate({"url": database}),
        )
        self.server: uvicorn.Server | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._up.wait(WAIT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        settings = self.settings
        self.built = built = build(settings)
        await bootstrap(built.services, settings)
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        self.port = listening.getsockname()[1]
        self.server = uvicorn.Server(_config(built, settings))
        self._up.set()
        await self.server.serve(sockets=[listening])
        await built.close()

    def stop(self) -> None:
        """Stop serving."""
        assert self.server is not None
        self.server.should_exit = True
        self._thread.join(WAIT_S)
