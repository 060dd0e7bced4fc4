"""One connection's writes, gathered: head and body of an answer leave in one system call.

May import uvicorn. The protocol class is handed to uvicorn as its `http` option; it changes nothing but when bytes go
out: at the end of the event loop's turn, in order, and before the connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio


class GatheringTransport:
    """A transport that writes once per turn of the loop. Everything else is the transport's own."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Hold the bytes until the turn ends."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, []
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Send what is held, then close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


class GatheringProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 protocol over a gathering transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the transport of a new connection."""
        super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]
