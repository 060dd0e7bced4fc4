# SPDX-License-Identifier: Apache-2.0
"""The process of `limnos lance serve`: serves a Lance namespace implementation on a loopback socket.

The process has no store and writes no files of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn

from limnos.app.listening import CannotListen, bind_address, url_of
from limnos.config.settings import LanceSection
from limnos.config.values import split_listen
from limnos.model.errors import BadRequest
from limnos.rooms.lance.app.worker_pool import lance_processes
from limnos.rooms.lance.formats.layouts import is_local
from limnos.rooms.lance.http.adapter import LanceAdapter
from limnos.rooms.lance.services.directory_tables import FolderLimits, FolderTables
from limnos.rooms.lance.sources.delegate import NamespaceDelegate, implementation_of
from limnos.rooms.lance.sources.directories import LanceDirectory
from limnos.rooms.lance.sources.directory_namespace import delegate_of

__all__ = ["CannotListen", "directory_namespace", "implementation_namespace", "serve"]


class ServedNamespace(NamedTuple):
    """A namespace implementation, and the directory whose tables the server's worker processes read and write.

    Without `directory` the implementation reads and writes tables itself.
    """

    delegate: NamespaceDelegate
    directory: LanceDirectory | None = None


def directory_namespace(directory: LanceDirectory) -> ServedNamespace:
    """Wrap a local directory of Lance tables as a namespace to serve."""
    return ServedNamespace(delegate_of(directory), directory)


def implementation_namespace(name: str, properties: Mapping[str, str]) -> ServedNamespace:
    """Create a namespace implementation, named by its class, to serve. Raises BadRequest for an unknown class or
    property.
    """
    return ServedNamespace(NamespaceDelegate(implementation_of(name, properties)))


def serve(what: ServedNamespace, *, listen: str, settings: LanceSection, announce: Callable[[str], object]) -> None:
    """Serve until SIGTERM or SIGINT. `announce` is called with the URL.

    Raises BadRequest for an address that other machines can reach, and CannotListen if the address is in use.
    """
    host, port = split_listen(listen)
    if not _is_loopback(host):
        raise BadRequest(
            f"{listen} can be reached from other machines, and this server does not authenticate clients: listen on"
            " 127.0.0.1"
        )
    bound_socket = bind_address(host, port)
    adapter = LanceAdapter(
        what.delegate.call, folders=None if what.directory is None else _folders(what.directory, settings)
    )
    config = uvicorn.Config(adapter, lifespan="off", log_config=None, access_log=False, server_header=False, ws="none")
    server = _AdapterServer(config)
    server.announce = lambda: announce(url_of(bound_socket))
    asyncio.run(_run(server, adapter, bound=bound_socket))


async def _run(server: _AdapterServer, adapter: LanceAdapter, *, bound: socket.socket) -> None:
    try:
        await server.serve(sockets=[bound])
    finally:
        adapter.close()


def _folders(directory: LanceDirectory, settings: LanceSection) -> FolderTables:
    limits = FolderLimits(settings.batch_bytes_max, settings.body_bytes_max, settings.data_timeout_s)
    # Clients of object stores read their credentials from the environment variables of this process.
    environment = None if is_local(directory.root) else os.environ
    return FolderTables(directory, lance_processes(settings, environment=environment), limits=limits)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _AdapterServer(uvicorn.Server):
    """Uvicorn's server, which exits with code 0 after a signal."""

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
        """Stop gracefully; a second call stops immediately."""
        self.force_exit = self.should_exit
        self.should_exit = True
