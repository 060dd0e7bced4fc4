# SPDX-License-Identifier: Apache-2.0
"""The server's listening sockets, bound first at startup, so that an address in use is reported immediately.

Must not know the application.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address

from limnos.config.active_rooms import rooms_of
from limnos.config.settings import Settings
from limnos.config.values import split_listen
from limnos.model.errors import CannotStart

DEFAULT_LISTEN = "127.0.0.1:8090"
EXTRA_PORTS = (9001, 9101)
"""Default ports of Iceberg REST and Lance REST clients."""
SQLPP_PORT = 19002
"""Default port of AsterixDB clients."""
BACKLOG = 2048


class CannotListen(CannotStart):
    """The address is in use, or not an address of this machine."""

    code = "cannot-listen"


def listen(settings: Settings) -> list[socket.socket]:
    """Listen on the address in the settings; without one, on the default address and on free ports of the protocols.

    Raises CannotListen if the address is in use or not of this machine.
    """
    address = settings.server.listen or DEFAULT_LISTEN
    host, port = split_listen(address)
    sockets = [_bind(host, port)]
    if settings.server.listen is None:
        for extra in (*EXTRA_PORTS, SQLPP_PORT) if rooms_of(settings).is_on("sqlpp") else EXTRA_PORTS:
            with suppress(CannotListen):
                sockets.append(_bind(host, extra))
    for each in sockets:
        _begin(each)
    return sockets


def listen_together(settings: Settings, count: int) -> list[list[socket.socket]]:
    """Listen on each address with `count` sockets, one per worker; the kernel distributes connections among them.

    The first bind does not set SO_REUSEPORT. So it raises CannotListen if another program has bound the address, even
    with that option.
    """
    groups: list[list[socket.socket]] = [[] for _ in range(count)]
    for probe in listen(settings):
        host, port = probe.getsockname()[:2]
        probe.close()
        for group in groups:
            group.append(_bind(host, port, shared=True))
    for group in groups:
        for each in group:
            _begin(each)
    return groups


def can_listen(settings: Settings) -> None:
    """Check that the server can bind an address. Raises CannotListen if the address is in use or not of this
    machine.
    """
    _bind(*split_listen(settings.server.listen or DEFAULT_LISTEN)).close()


def bind_address(host: str, port: int) -> socket.socket:
    """Bind one address and listen on it. Raises CannotListen if it is in use or not an address of this machine."""
    bind = _bind(host, port)
    _begin(bind)
    return bind


def _bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    result = socket.socket(family, socket.SOCK_STREAM)
    result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        result.bind((host, port))
    except OSError as error:
        result.close()
        advice = (
            f"stop the process that uses it ('ss -ltnp' shows it), or choose another address with --listen {host}:0 or"
            " HOST:PORT"
        )
        raise CannotListen(f"Cannot listen on {host}:{port}", why=error.strerror or str(error), advice=advice) from None
    return result


def _begin(bound: socket.socket) -> None:
    bound.listen(BACKLOG)
    bound.setblocking(False)


def url_of(bound: socket.socket, *, scheme: str = "http", hosts: Sequence[str] = ()) -> str:
    """Return the URL of a socket's bound address; for a socket on all addresses that of the first of the `hosts`, the
    server's names. A name with a port of its own, behind a proxy, and a pattern are no address of this socket.
    """
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = next((name for name in hosts if "*" not in name and ":" not in name), host)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
