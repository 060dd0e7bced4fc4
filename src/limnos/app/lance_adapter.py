"""The process of `limnos lance serve`: one socket of loopback, and an implementation of Lance's namespace behind it.

May import `config`, `formats`, `http`, `model`, `services`, `sources` and this room. Has no store: it is started and stopped without a trace.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import uvicorn

from limnos.app.lance import lance_processes
from limnos.app.listening import CannotListen, bound_to, url_of
from limnos.config.values import split_listen
from limnos.formats.lance import is_local
from limnos.http.lance.adapter import Adapter
from limnos.model.errors import BadRequest
from limnos.services.lance.folders import Folders, Limits
from limnos.sources.lance.delegating import Delegate, implementation_of
from limnos.sources.lance.directories import Directory
from limnos.sources.lance.serving import served

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

    from limnos.config.settings import Lance

__all__ = ["CannotListen", "of_directory", "of_implementation", "serve"]


class Served(NamedTuple):
    """What is served: an implementation, and the directory whose rows our own processes work on."""

    delegate: Delegate
    directory: Directory | None = None


def of_directory(directory: Directory) -> Served:
    """Return a directory as what is served."""
    return Served(served(directory), directory)


def of_implementation(name: str, properties: Mapping[str, str]) -> Served:
    """Return somebody's implementation as what is served. Raises BadRequest."""
    return Served(Delegate(implementation_of(name, properties)))


def serve(what: Served, *, listen: str, settings: Lance, announce: Callable[[str], object]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told the address. Raises BadRequest for one that others reach, CannotListen."""
    host, port = split_listen(listen)
    if not _is_loopback(host):
        raise BadRequest(
            f"{listen} can be reached from other machines, and this server asks nobody who it is: listen on 127.0.0.1"
        )
    bound = bound_to(host, port)
    adapter = Adapter(
        what.delegate.call, folders=None if what.directory is None else _folders(what.directory, settings)
    )
    config = uvicorn.Config(adapter, lifespan="off", log_config=None, access_log=False, server_header=False, ws="none")
    server = _Server(config)
    server.announce = lambda: announce(url_of(bound))
    asyncio.run(_run(server, adapter, bound=bound))


async def _run(server: _Server, adapter: Adapter, *, bound: socket.socket) -> None:
    try:
        await server.serve(sockets=[bound])
    finally:
        adapter.close()


def _folders(directory: Directory, settings: Lance) -> Folders:
    limits = Limits(settings.batch_bytes_max, settings.body_bytes_max, settings.data_timeout_s)
    environment = (
        None if is_local(directory.root) else os.environ
    )  # whoever starts this says there how stores are reached
    return Folders(directory, lance_processes(settings, environment=environment), limits=limits)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    """Uvicorn's server, which ends with exit code 0 when it is told to stop."""

    announce: Callable[[], object]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stop)
        yield

    def stop(self) -> None:
        """Stop; at once when asked a second time."""
        self.force_exit = self.should_exit
        self.should_exit = True
