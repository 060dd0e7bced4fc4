# SPDX-License-Identifier: Apache-2.0
"""One serving process: build the node, serve on bound sockets, drain, close.

Must neither know the supervisor nor print to standard output.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import uvicorn
import uvloop

from limnos.app.bootstrap import bootstrap
from limnos.app.certificates import CertificateReloader
from limnos.app.forced_exit import exit_within, handle_signals_on_thread
from limnos.app.listening import bind_address
from limnos.app.node_beats import NodeBeats
from limnos.app.node_builder import ServerNode, build
from limnos.app.room_parts import LoopStart, loops_of
from limnos.app.slow_start import log_slow_start, run_patiently
from limnos.config.loading import LoadedSettings
from limnos.config.settings import Settings
from limnos.http.admission_protocol import AdmissionProtocol
from limnos.http.connection import FastPathProtocol
from limnos.model.struct_types import build_struct_types
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")
WAITING_PART = 0.8
"""The fraction of the drain time for running requests. The remainder is for closing."""
LEAVE_S_MIN = 1.0
GOODBYE_S = 1.0
"""Seconds to wait for a client's TLS close message. Few clients send one."""
BEAT_S = 1.0
"""Seconds between two heartbeats of a worker to its supervisor."""
LONG_BYTES = 1 << 20
"""The size in bytes from which memory is returned to the system as soon as it is freed."""
_M_MMAP_THRESHOLD = -3
_STOPS = (signal.SIGTERM, signal.SIGINT)


def serve(
    loaded: LoadedSettings,
    sockets: list[socket.socket],
    announce: Callable[[], object],
    *,
    lifeline: int | None = None,
    beats: bool = False,
    certificates: CertificateReloader | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    `announce` is called when the node is ready; with `beats` again every `BEAT_S`. `lifeline` is the read end of a pipe
    from the supervisor: the process stops when its write end closes. With `certificates` the sockets use TLS.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(loaded, sockets, announce, lifeline=lifeline, beats=beats, certificates=certificates))


def leaves_within_s(drain_timeout_s: float) -> float:
    """Return the time in seconds after which shutdown is forced: the drain timeout, but at least `LEAVE_S_MIN`."""
    return max(drain_timeout_s, LEAVE_S_MIN)


class _NodeServer(uvicorn.Server):
    """Uvicorn's server with our own signal handlers: after a signal it exits with code 0."""

    drain_timeout_s = 0.0
    release_waiters: Callable[[], object] | None = None
    """Called on stop, to answer requests that are only waiting for changes."""
    is_leaving = False
    tls: ssl.SSLContext | None = None
    handshake_s = 0.0
    inner: socket.socket | None = None
    """A loopback socket without TLS for the processes that this one starts: no certificate is valid for its name, and
    several workers share the address of the others, so that another worker could get their requests.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the listening sockets, with time limits for TLS handshakes and for closing connections."""
        self.servers = [await self._listening(each, self.tls) for each in sockets or ()]
        if self.inner is not None:
            self.servers.append(await self._listening(self.inner, None))
        self.started = True

    async def _listening(self, bound: socket.socket, tls: ssl.SSLContext | None) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            self._protocol,
            sock=bound,
            ssl=tls,
            backlog=self.config.backlog,
            ssl_handshake_timeout=None if tls is None else self.handshake_s,
            ssl_shutdown_timeout=None if tls is None else GOODBYE_S,
        )

    def _protocol(self) -> asyncio.Protocol:
        protocol = self.config.http_protocol_class
        return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for name in _STOPS:
            loop.add_signal_handler(name, self.stop)
        with handle_signals_on_thread(_STOPS, self.leave):
            yield

    def leave(self) -> None:
        """Start the timer that forces the exit after the drain time. May be called on any thread."""
        if not self.is_leaving:
            self.is_leaving = True
            exit_within(leaves_within_s(self.drain_timeout_s))

    def stop(self) -> None:
        """Stop serving; a second call stops immediately."""
        self.leave()
        if not self.should_exit and self.release_waiters is not None:
            self.release_waiters()
        self.force_exit = self.should_exit
        self.should_exit = True


async def _serve(
    loaded: LoadedSettings,
    sockets: list[socket.socket],
    announce: Callable[[], object],
    *,
    lifeline: int | None,
    beats: bool,
    certificates: CertificateReloader | None,
) -> None:
    settings = loaded.settings
    with log_slow_start():
        server_node = build(settings, loaded.origins)
    build_struct_types()
    is_inner_needed = certificates is not None or settings.server.workers > 1
    inner = _InnerSocket(sockets[0], is_needed=is_inner_needed)
    background_tasks: list[asyncio.Task[None]] = []
    try:
        with log_slow_start():
            await run_patiently(server_node.services.store, lambda: bootstrap(server_node.services, settings))
        loops = loops_of(server_node.rooms.on, LoopStart(server_node.services, settings, inner.open))
        kernel_loops = (server_node.upkeep.run(), server_node.deliveries.run(), NodeBeats(server_node.services).run())
        background_tasks += map(asyncio.create_task, (*kernel_loops, *loops))
        server = _NodeServer(_config(server_node, settings))
        server.drain_timeout_s = settings.server.drain_timeout_s
        server.handshake_s, server.inner = settings.server.head_timeout_s, inner.own
        if certificates is not None:
            certificates.reload_if_changed()
            server.tls = certificates.context
            background_tasks.append(asyncio.create_task(certificates.run(server_node.services.loops)))
        server.release_waiters = server_node.services.watch.close
        if lifeline is not None:
            asyncio.get_running_loop().add_reader(lifeline, _stop_alone, server, lifeline)
        announcing = asyncio.create_task(_announce(server, announce, beats=beats))
        await server.serve(sockets=sockets)
        announcing.cancel()
    finally:
        await _end(background_tasks)
        await server_node.close()


class _InnerSocket:
    """The socket on which the processes that this one starts reach it: a loopback socket of its own if `is_needed`,
    which is opened by the first call, otherwise the first listening socket.
    """

    def __init__(self, first: socket.socket, *, is_needed: bool) -> None:
        self.own: socket.socket | None = None
        self._first, self._is_needed = first, is_needed

    def open(self) -> socket.socket:
        """Return the socket."""
        if self._is_needed and self.own is None:
            self.own = bind_address("127.0.0.1", 0)
        return self.own or self._first


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel background tasks and wait for their end. The error of a task is logged, and does not stop the others."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            log.error("a background task ended with an error", exc_info=outcome)


def _stop_alone(server: _NodeServer, lifeline: int) -> None:
    asyncio.get_running_loop().remove_reader(lifeline)
    server.stop()


def _config(built: ServerNode, settings: Settings) -> uvicorn.Config:
    drain: float = WAITING_PART * settings.server.drain_timeout_s
    return uvicorn.Config(
        built.application,
        http=FastPathProtocol if settings.server.lane else AdmissionProtocol,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=drain,  # type: ignore[arg-type]  # it is awaited, so a fraction serves as well
    )


COLLECTIONS: Final = (5_000, 1, 10_000)
"""When the garbage collector runs: after so many new objects, so many collections of these, and of those.

The second kind examines up to 15,000 objects, 3 to 6 ms of the event loop on a busy machine. One of 60,000 takes 15 to
40 ms, one of all objects 50 or more.
"""


def settle_memory() -> None:
    """Tune the garbage collector: exempt the objects of the startup, collect new objects in short steps, and all
    objects rarely, as requests make few cycles. Make the allocator return long bodies to the system as soon as they
    are freed.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    with suppress(AttributeError):  # glibc alone has it, and would raise its threshold with each long body
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LONG_BYTES)


async def _announce(server: uvicorn.Server, announce: Callable[[], object], *, beats: bool) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn has a flag, no event
        await asyncio.sleep(0.01)
    settle_memory()
    announce()
    while beats:
        await asyncio.sleep(BEAT_S)
        announce()
