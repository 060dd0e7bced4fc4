"""Addresses that connectors talk to: taken from a catalog's properties, and held to those that the server allows.

May import `model`. Pure. A catalog's maker names the address; whoever runs the server says to which ones it talks, host and port as they are
written. What else a URL could say (files of keys, other hosts, options) is refused unless it is known to be harmless.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Collection

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,253})|\[[0-9A-Fa-f:.]{2,45}\]")

_PORTS: Final = {"http": 80, "https": 443}


METASTORES_MAX: Final = 8


class SourceAddress(NamedTuple):
    """A host and a port; IPv6 in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """As settings and flags have it."""
        return f"{self.host.lower()}:{self.port}"


class HttpUrl(NamedTuple):
    """What an HTTP URL says."""

    address: SourceAddress
    url: str
    """Without a slash at its end."""


class DatabaseUrl(NamedTuple):
    """What a JDBC URL says."""

    address: SourceAddress
    database: str | None
    parameters: dict[str, str]


def address_of(host: str | None, port: int | None, *, told: str) -> SourceAddress:
    """Check a host and a port. Raises BadRequest."""
    spelled = f"[{host}]" if host is not None and ":" in host else host
    if spelled is None or _HOST.fullmatch(spelled) is None or port is None or not 0 < port < 65536:
        raise BadRequest(f"{told} names no single host with a port from 1 to 65535")
    return SourceAddress(spelled, port)


def require_allowed(address: SourceAddress, allowed: Collection[str], *, told: str) -> None:
    """Raise BadRequest, naming the flag, for an address that the server does not talk to."""
    if str(address) not in allowed:
        raise BadRequest(
            f"{told} names {address}, to which this server does not talk: ask whoever runs the server to start it with "
            f"--allow-source {address} (setting sources.allowed_addresses)"
        )


def database_url(text: str, *, scheme: str, port: int, parameters: Collection[str]) -> DatabaseUrl:
    """Read `jdbc:postgresql://host:port/database?sslmode=require`. Raises BadRequest.

    `port` is the one that is meant where none is named, `parameters` are those that may be.
    """
    told = "Property jdbc-url"
    if not text.startswith(f"jdbc:{scheme}://"):
        raise BadRequest(f"{told} is no address of this provider: write jdbc:{scheme}://HOST:PORT/DATABASE")
    try:
        parts = urlsplit(text.removeprefix("jdbc:"))
        host, stated = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(
            f"{told} is no URL of one host and one port: write jdbc:{scheme}://HOST:PORT/DATABASE"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise BadRequest(f"{told} holds a user or a password: say them in jdbc-user and jdbc-password")
    found = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in found:
        if name not in parameters:
            raise BadRequest(f"{told} has the parameter {name[:60]!r}: known here are {', '.join(sorted(parameters))}")
    database = unquote(parts.path.strip("/")) or None
    return DatabaseUrl(address_of(host, stated or port, told=told), database, found)


def http_url(text: str, *, name: str) -> HttpUrl:
    """Read `https://host:port/path`, the value of a property. Raises BadRequest."""
    told = f"Property {name}"
    try:
        parts = urlsplit(text)
        host, stated = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(f"{told} is no URL of one host and one port: write https://HOST:PORT/PATH") from None
    if parts.scheme not in _PORTS or not text.isascii() or not text.isprintable() or " " in text:
        raise BadRequest(f"{told} is no address of HTTP: write https://HOST:PORT/PATH")
    if parts.username is not None or parts.password is not None:
        raise BadRequest(f"{told} holds a user or a password: say them in token or credential")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise BadRequest(f"{told} goes on after its path: leave out what begins with ? or #")
    if any(part in (".", "..") for part in unquote(parts.path).split("/")):
        raise BadRequest(f"{told} has a step such as .. in its path: write where it leads")
    address = address_of(host, stated or _PORTS[parts.scheme], told=told)
    return HttpUrl(address, f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"))


def metastore_addresses(text: str, *, name: str) -> tuple[SourceAddress, ...]:
    """Read `thrift://host:port`, several separated by commas. Raises BadRequest."""
    told = f"Property {name}"
    found = [each.strip() for each in text.split(",") if each.strip()]
    if not 0 < len(found) <= METASTORES_MAX:
        raise BadRequest(
            f"{told} is missing: say thrift://HOST:PORT of one to {METASTORES_MAX} metastores, separated by commas"
        )
    return tuple(_metastore(each, told=told) for each in found)


def _metastore(text: str, *, told: str) -> SourceAddress:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(f"{told} is thrift://HOST:PORT") from None
    if parts.scheme != "thrift" or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadRequest(f"{told} is thrift://HOST:PORT, and nothing more")
    return address_of(host, 9083 if port is None else port, told=told)
