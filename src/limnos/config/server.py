# SPDX-License-Identifier: Apache-2.0
"""Settings of the server: its listen address, accepted origins and hosts, limits, the console and TLS."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator, model_validator

from limnos.config.access import User
from limnos.config.section import SettingsSection
from limnos.config.values import Words, split_listen
from limnos.names.path import check_catalog_name, check_metalake_name

ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


HOST_NAME = re.compile(
    r"(?:\*\.)?[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*\.?(?::[0-9]{1,5})?|[0-9A-Fa-f:.]+|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}"
)


def _listen(text: str) -> str:
    split_listen(text)
    return text


def _host_name(name: str) -> str:
    if name == "*" or HOST_NAME.fullmatch(name):
        return name
    raise ValueError(
        f"'{name}' is not a host name: write it without scheme and path, for example lake.example.com, or with a port, "
        "lake.example.com:9000"
    )


def _origin(text: str) -> str:
    if ORIGIN.fullmatch(text):
        return text
    raise ValueError(
        f"'{text}' is not an origin: write scheme, host and port as browsers do, without a path and without *, for"
        " example https://console.example.com or http://127.0.0.1:3000"
    )


def _public_url(text: str) -> str:
    scheme, _, rest = text.rstrip("/").partition("://")
    authority, _, path = rest.partition("/")
    if not ORIGIN.fullmatch(f"{scheme}://{authority}") or not re.fullmatch(
        r"(?:[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*)?", path
    ):
        raise ValueError(
            f"'{text}' is not a public URL: write scheme, host and, if a proxy adds one, the path, for example "
            "https://data.example.com/lake"
        )
    return f"{scheme}://{authority.lower()}" + (f"/{path}" if path else "")


def _data(text: str) -> str:
    """Resolve `..`, which locations of tables below the directory may not have."""
    return str(Path(text).resolve()) if ".." in Path(text).parts else text


Listen = Annotated[str, AfterValidator(_listen)]
HostName = Annotated[str, AfterValidator(_host_name)]
Origin = Annotated[str, AfterValidator(_origin)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]


class ServerSection(SettingsSection):
    """The listen address, the data directory, and the request limits of the server."""

    data: Annotated[str, AfterValidator(_data)] = Field(default="./limnos-data", min_length=1)
    """Directory of the embedded database, warehouse and admin token."""
    listen: Listen | None = None
    """HOST:PORT to listen on, exclusively. Unset: 127.0.0.1:8090, and the ports 9001, 9101 and 19002 (for
    SQL++) of 127.0.0.1 that are free.
    """
    insecure_listen: bool = False
    """Allow listening beyond loopback although users need no proof of identity."""
    bare: bool = False
    """Leave an empty store empty: create no metalake and no catalog."""
    admin: User = "admin"
    """The first service admin, who owns the objects that are created on an empty store."""
    metalake: Annotated[str, AfterValidator(check_metalake_name)] = "lake"
    """Metalake that is created on an empty store, and the default where a protocol names none."""
    catalog: Annotated[str, AfterValidator(check_catalog_name)] = "main"
    """Catalog that is created on an empty store, and the default where a protocol names none."""
    hosts: Annotated[tuple[HostName, ...], Words] = ()
    """Host names that requests may be addressed to, in addition to those of loopback and the listen address;
    `*.example.com` for all its subdomains, `*` for any; `lake.example.com:9000` for a port other than 80, 443 and the
    listen address's; separated by commas.
    """
    origins: Annotated[tuple[Origin, ...], Words] = ()
    """Origins whose pages may call this server from a browser, in addition to its own: scheme, host and port, as
    `https://console.example.com`; separated by commas.
    """
    public_url: PublicUrl | None = None
    """The public URL of this server behind a proxy, as `https://data.example.com/lake`: the prefix of the console's
    links and of handles of SQL++ requests, and the origin of its pages. Unset: the requests' own Host, without a
    prefix.
    """
    head_timeout_s: PositiveFloat = 10.0
    """The maximum time for the head of a request to arrive, in seconds."""
    body_timeout_s: PositiveFloat = 30.0
    """The maximum time for the body of a request to arrive, in seconds; a long body has a second more for every 64 KiB
    that have arrived.
    """
    body_bytes_max: PositiveInt = 33_554_432
    """The maximum size of a request body in bytes, for commits and new tables; other routes accept at most a megabyte
    or 64 KiB. The long bodies of all requests in progress together may have four times as many bytes, those of one
    user twice as many.
    """
    request_timeout_s: PositiveFloat = 30.0
    """The maximum time for one request, in seconds."""
    workers: Annotated[int, Field(ge=1, le=200)] = 1
    """The number of serving processes, with one address and one store: one per core to use."""
    chore_processes_max: PositiveInt = 2
    """The maximum number of processes for heavy work on metadata; started on demand, ended after an idle minute."""
    lane: bool = True
    """Answer ordinary requests directly from the connection, without ASGI in between."""
    kept_bytes_max: NonNegativeInt = 33_554_432
    """The maximum memory for cached responses about tables, in bytes; 0 disables this cache."""
    drain_timeout_s: NonNegativeFloat = 5.0
    """The maximum time in which a stopping server exits, in seconds (at least 1); four fifths are for requests in
    flight.
    """


class ConsoleSection(SettingsSection):
    """The web console under `/console`."""

    enabled: bool = True
    """Serve the console under `/console`."""
    idle_s: PositiveInt = 28_800
    """The idle time in seconds after which a console session ends; over HTTP at most an hour."""
    session_s: PositiveInt = 86_400
    """The maximum duration of a console session, in seconds."""


class TlsSection(SettingsSection):
    """TLS on the server's listen addresses. Both settings are needed, or neither."""

    certificate: str | None = None
    """PEM file of the server's certificate, followed by intermediate certificates. Unset: no TLS."""
    key: str | None = None
    """PEM file of the certificate's key, without a password. Both files are reloaded when they change."""

    @model_validator(mode="after")
    def _is_pair(self) -> TlsSection:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("tls.certificate and tls.key belong together: set both, or neither")
        return self
