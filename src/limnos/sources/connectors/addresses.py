# SPDX-License-Identifier: Apache-2.0
"""Network addresses of sources: parses them from a catalog's properties and checks that the server allows connections
to them.

Pure. A catalog's creator names the address; the server's settings list the allowed hosts and ports. All other parts of
a URL (key files, other hosts, options) are refused, except a list of harmless parameters.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from limnos.model.errors import BadRequest

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,253})|\[[0-9A-Fa-f:.]{2,45}\]")

_PORTS: Final = {"http": 80, "https": 443}


METASTORES_MAX: Final = 8


class SourceAddress(NamedTuple):
    """A host and a port; an IPv6 host is in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address in the form of settings and flags: lower case `host:port`."""
        return f"{self.host.lower()}:{self.port}"


class HttpUrl(NamedTuple):
    """A parsed HTTP URL of a source: its host and port, and the URL itself."""

    address: SourceAddress
    url: str
    """The URL without a slash at the end."""


class DatabaseUrl(NamedTuple):
    """A parsed JDBC URL of a source: its host and port, database and query parameters."""

    address: SourceAddress
    database: str | None
    parameters: dict[str, str]


def address_of(host: str | None, port: int | None, *, label: str) -> SourceAddress:
    """Check a host and a port. Raises BadRequest, whose message begins with `label`."""
    bracketed_host = f"[{host}]" if host is not None and ":" in host else host
    if bracketed_host is None or _HOST.fullmatch(bracketed_host) is None or port is None or not 0 < port < 65536:
        raise BadRequest(f"{label} does not name exactly one host with a port from 1 to 65535")
    return SourceAddress(bracketed_host, port)


def require_allowed(address: SourceAddress, allowed: Collection[str], *, label: str) -> None:
    """Check that the server may connect to an address.

    Raises BadRequest, whose message names the flag that allows it.
    """
    if str(address) not in allowed:
        raise BadRequest(
            f"{label} names {address}, to which this server does not connect: ask the server's operator to start it"
            f" with --allow-source {address} (setting sources.allowed_addresses)"
        )


def database_url(text: str, *, scheme: str, port: int, parameters: Collection[str]) -> DatabaseUrl:
    """Parse `jdbc:postgresql://host:port/database?sslmode=require`.

    Args:
        text: The value of the property jdbc-url.
        scheme: `postgresql` or `mysql`.
        port: The default port.
        parameters: The allowed query parameters.

    Raises:
        BadRequest: The URL is malformed, or has a user, a password or another parameter.
    """
    message = "Property jdbc-url"
    if not text.startswith(f"jdbc:{scheme}://"):
        raise BadRequest(f"{message} is not an address of this provider: write jdbc:{scheme}://HOST:PORT/DATABASE")
    try:
        parts = urlsplit(text.removeprefix("jdbc:"))
        host, stated_port = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(
            f"{message} is not a URL of one host and one port: write jdbc:{scheme}://HOST:PORT/DATABASE"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise BadRequest(f"{message} contains a user or a password: set them in jdbc-user and jdbc-password")
    results = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in results:
        if name not in parameters:
            raise BadRequest(
                f"{message} has the parameter {name[:60]!r}: supported parameters are {', '.join(sorted(parameters))}"
            )
    database = unquote(parts.path.strip("/")) or None
    return DatabaseUrl(address_of(host, stated_port or port, label=message), database, results)


def http_url(text: str, *, name: str) -> HttpUrl:
    """Parse `https://host:port/path`, the value of the property `name`. Raises BadRequest for a malformed URL, or one
    with a user, a query or a fragment.
    """
    message = f"Property {name}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(f"{message} is not a URL of one host and one port: write https://HOST:PORT/PATH") from None
    if parts.scheme not in _PORTS or not text.isascii() or not text.isprintable() or " " in text:
        raise BadRequest(f"{message} is not an HTTP address: write https://HOST:PORT/PATH")
    if parts.username is not None or parts.password is not None:
        raise BadRequest(f"{message} contains a user or a password: set them in token or credential")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise BadRequest(f"{message} has a query or fragment: leave out ? or # and the text after it")
    if any(part in (".", "..") for part in unquote(parts.path).split("/")):
        raise BadRequest(f"{message} has a relative step such as .. in its path: write the resolved path")
    address = address_of(host, port or _PORTS[parts.scheme], label=message)
    return HttpUrl(address, f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"))


def metastore_addresses(text: str, *, name: str) -> tuple[SourceAddress, ...]:
    """Parse `thrift://host:port`, several separated by commas; the default port is 9083. Raises BadRequest for a
    malformed URL.
    """
    message = f"Property {name}"
    names = [each.strip() for each in text.split(",") if each.strip()]
    if not 0 < len(names) <= METASTORES_MAX:
        raise BadRequest(
            f"{message} is missing: give thrift://HOST:PORT of one to {METASTORES_MAX} metastores, separated by commas"
        )
    return tuple(_metastore(each, label=message) for each in names)


def _metastore(text: str, *, label: str) -> SourceAddress:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(f"{label} must be thrift://HOST:PORT") from None
    if parts.scheme != "thrift" or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadRequest(f"{label} must be thrift://HOST:PORT without further parts")
    return address_of(host, 9083 if port is None else port, label=label)
