# SPDX-License-Identifier: Apache-2.0
"""The console's public URL: the prefix of its links, its origin, its cookie, and the check of a POST request's origin.

Pure: must not know routes or sessions. Browsers may send the cookie with requests of other sites' pages. So a POST
request is accepted only if its headers state that a page of the console sent it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from limnos.model.errors import PermissionDenied

ROOT: Final = "/console"
SESSION: Final = ""
SIGN_IN: Final = "-sign-in"
"""Suffixes of cookie names by purpose: a session, and a pending sign-in at the issuer."""
_NOT_OURS: Final = "This request did not come from the console: open its page and press the button there"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class ConsoleSite(NamedTuple):
    """The public URL of the console, as browsers see it.

    - `prefix`: the path under which a proxy serves the server, without a slash at its end.
    - `origin`: scheme, host and port of the public URL; None if the request's Host header gives them.
    - `is_tls`: whether browsers access it over https.
    - `allows_name_only`: whether users sign in by name without a secret, which only a server on loopback allows.
    """

    prefix: str = ""
    origin: str | None = None
    is_tls: bool = False
    allows_name_only: bool = False
    rooms_off: frozenset[str] = frozenset()
    """The names of the rooms that the server does not serve."""
    has_engine: bool = True
    """Whether the server's packages include the engine that runs statements over data."""

    @property
    def has_sqlpp(self) -> bool:
        """Whether the server runs statements of SQL++."""
        return "sqlpp" not in self.rooms_off

    @property
    def base(self) -> str:
        """The path of the console's root as browsers request it, without a slash at its end."""
        return self.prefix + ROOT

    def own_origin(self, headers: Mapping[bytes, bytes]) -> str:
        """Return the origin of the console's pages for a request: `scheme://host[:port]`."""
        if self.origin is not None:
            return self.origin
        scheme = "https" if self.is_tls else "http"
        host = headers.get(b"host", b"").decode("latin-1").lower()
        return f"{scheme}://{host}".removesuffix(_DEFAULT_PORTS[scheme])

    def require_own_page(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise PermissionDenied for a POST request that no page of the console sent (a cross-site request)."""
        site = headers.get(b"sec-fetch-site")
        origin = headers.get(b"origin")
        if site is not None and site.lower() != b"same-origin":
            raise PermissionDenied(_NOT_OURS)
        if origin is not None:
            sent_origin = origin.decode("latin-1").lower()
            scheme = sent_origin.partition("://")[0]
            if sent_origin.removesuffix(_DEFAULT_PORTS.get(scheme, "\0")) != self.own_origin(headers):
                raise PermissionDenied(_NOT_OURS)
        elif site is None:
            raise PermissionDenied(_NOT_OURS)

    def allows_sign_in(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a session may be opened here: over TLS, or without TLS on the same machine."""
        return self.is_tls or _is_loopback(_host_of(headers))

    def cookie_name(self, headers: Mapping[bytes, bytes], purpose: str = SESSION) -> str:
        """Return the name of the cookie of a session, or of a sign-in.

        Browsers share cookies between ports, so over http the name contains the port.
        """
        if self.is_tls:
            return f"{'__Secure' if self.prefix else '__Host'}-limnos{purpose}"
        _, mark, port = headers.get(b"host", b"").decode("latin-1").rpartition(":")
        return f"limnos{purpose}-{port if mark and port.isdigit() else '80'}"

    def cookie_header(
        self, headers: Mapping[bytes, bytes], text: str | None, *, purpose: str = SESSION, life_s: int | None = None
    ) -> tuple[bytes, bytes]:
        """Return the header that sets a cookie, or deletes it if `text` is None. It expires after `life_s` seconds, by
        default when the browser is closed.
        """
        path = self.base if self.prefix or not self.is_tls else "/"
        secure = "; Secure" if self.is_tls else ""
        age_s = 0 if text is None else life_s
        max_age = "" if age_s is None else f"; Max-Age={age_s}"
        value = (
            f"{self.cookie_name(headers, purpose)}={text or ''}; Path={path}; HttpOnly; SameSite=Lax{secure}{max_age}"
        )
        return b"set-cookie", value.encode("latin-1")

    def cookie_of(self, headers: Mapping[bytes, bytes], purpose: str = SESSION) -> bytes | None:
        """Return the value of the console's cookie; None if it is missing, empty, or sent twice."""
        name = self.cookie_name(headers, purpose).encode("latin-1")
        pairs = [pair.strip().partition(b"=") for pair in headers.get(b"cookie", b"").split(b";")]
        values = [value for key, mark, value in pairs if mark and key == name]
        return values[0] if len(values) == 1 and values[0] else None

    def path_below(self, text: str | None) -> str:
        """Validate the target of a redirect: return `text` if it is a path of the console, otherwise the console's
        first page. A path with dot segments, which browsers resolve, is not one.
        """
        home = f"{self.base}/"
        if text is None or not text.startswith(home) or not text.isascii() or not text.isprintable() or "\\" in text:
            return home
        segments = re.split("[?#]", text, maxsplit=1)[0].split("/")
        return home if any(unquote(segment) in {".", ".."} for segment in segments) else text


def _host_of(headers: Mapping[bytes, bytes]) -> str:
    host = headers.get(b"host", b"").decode("latin-1").lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
