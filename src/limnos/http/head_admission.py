# SPDX-License-Identifier: Apache-2.0
"""Admission control of request heads: hosts, origins and sizes, checked before any other processing of a request.

Pure except for a cache; must not know routes, protocols or sockets. A page of another site can make a browser send
requests to this server, and can let its own host name resolve to this server's address (DNS rebinding). Such requests
still contain the host name they were sent to (`Host`) and the site they come from (`Origin`, `Sec-Fetch-Site`). Headers
of proxies (`X-Forwarded-…`, `Forwarded`) are ignored: any client can send them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from limnos.model.errors import BadRequest, HeadTooLarge, MisdirectedRequest, PermissionDenied

HEAD_BYTES_MAX: Final = 1 << 16
FIELDS_MAX: Final = 100
SINGLE: Final = frozenset(
    {
        b"host",
        b"origin",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"authorization",
        b"cookie",
        b"content-type",
        b"content-length",
        b"idempotency-key",
        b"x-api-key",
        b"x-limnos-metalake",
    }
)
"""Headers that a request may have only once: with two of them, a proxy in between might have used the other one."""
_KNOWN_MAX: Final = 1_000
_AUTHORITY: Final = re.compile(rb"([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_LISTED: Final = re.compile(r"([^:]+|\[[^]]+\]):([0-9]{1,5})")
"""A host name of the settings with a port; an IPv6 address with a port is in brackets."""
_DEFAULT_PORTS: Final = {b"http": b":80", b"https": b":443"}
_WEB_PORTS: Final = frozenset({80, 443})
_OTHER_SITES: Final = frozenset({b"cross-site", b"same-site"})
"""Values of `Sec-Fetch-Site` for a request that a page of another origin caused."""

Fields = list[tuple[bytes, bytes]]


class HeadAdmission:
    """The host names that this server serves, and the checks of a head.

    Args:
        hosts: Names from the settings: exact names, `*.example.com` for all names below a domain, `*` for all. A name
            with a port (`lake.example.com:9000`) admits that port, too, and `*` every port.
        listens_on: The host of the listen address. Loopback names are always accepted, and so is a connection's own
            address.
        origins: Origins besides the server's own whose pages may send requests: `scheme://host[:port]`.
        is_tls: The server itself terminates TLS, so its own origin begins with `https`.
        own_origin: The origin of the server's public address, if it differs from the requests' Host because of a proxy.
    """

    def __init__(
        self,
        *,
        hosts: Iterable[str] = (),
        listens_on: Iterable[str] = (),
        origins: Iterable[str] = (),
        is_tls: bool = False,
        own_origin: str | None = None,
    ) -> None:
        host_settings = [_listed_host(host.lower()) for host in hosts]
        host_settings += [(name, None) for name, _ in host_settings] + [(host.lower(), None) for host in listens_on]
        self._endings = tuple((name[1:], port) for name, port in host_settings if name.startswith("*"))
        self._names = frozenset(each for each in host_settings if not each[0].startswith("*"))
        self.origins = frozenset(_normal_origin(origin.encode()) for origin in origins)
        """The allowed origins of the settings, in normal form."""
        self._scheme = b"https" if is_tls else b"http"
        self._own = b"" if own_origin is None else _normal_origin(own_origin.encode())
        self._known: set[bytes] = set()

    def is_accepted(self, fields: Fields, headers: Mapping[bytes, bytes], url: bytes) -> bool:
        """Return whether a head needs no full check: its host was accepted before, no field is repeated, and it has no
        `Origin` or `Sec-Fetch-Site`.
        """
        return (
            headers.get(b"host") in self._known
            and len(headers) == len(fields) <= FIELDS_MAX
            and b"origin" not in headers
            and b"sec-fetch-site" not in headers
            and url.startswith(b"/")
        )

    def check(
        self,
        fields: Fields,
        headers: Mapping[bytes, bytes],
        *,
        method: str,
        url: bytes,
        version: str,
        local: tuple[str, int | None] | None,
    ) -> None:
        """Check a head. `headers` are the fields by name; `local` is the address and port on which the connection was
        accepted.

        Raises:
            HeadTooLarge: It has too many fields.
            BadRequest: It has no Host header, a malformed one, or a repeated single header.
            MisdirectedRequest: The server does not serve the host.
            PermissionDenied: A page of another origin caused the request.
        """
        if len(fields) > FIELDS_MAX:
            raise too_large()
        host = headers.get(b"host")
        _require_single(fields)
        if host is None or not host:
            if version == "1.1":
                raise BadRequest("The request has no Host header: HTTP/1.1 requires one, with the server's name")
        else:
            self._check_host(host, local)
        if not url.startswith(b"/"):
            self._check_absolute(url, local)
        origin = headers.get(b"origin")
        if origin is not None:
            self._check_origin(origin, host or b"")
        elif headers.get(b"sec-fetch-site", b"").lower() in _OTHER_SITES and not _is_navigation(method, headers):
            raise _foreign_origin_error()

    def _check_host(self, host: bytes, local: tuple[str, int | None] | None) -> None:
        if host in self._known:
            return
        name, port = _name_and_port(host)
        if not self._answers_to(name, port, local=local):
            is_named = self._answers_to(name, None, local=local)
            what, text = ("port of", _authority(name, port)) if is_named else ("host name", name)
            raise MisdirectedRequest(
                f"This server does not accept the {what} '{text}': if it should, list it in the setting server.hosts "
                f"(start it with --host-name {text}); otherwise use the address that it prints when it starts"
            )
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known.add(host)

    def _check_absolute(self, url: bytes, local: tuple[str, int | None] | None) -> None:
        """Check the host of a request target in absolute form (RFC 9112, section 3.2.2), as clients send to proxies.

        Raises BadRequest for a malformed host, MisdirectedRequest for one that the server does not serve.
        """
        _, mark, rest = url.partition(b"://")
        if mark:
            self._check_host(re.split(rb"[/?#]", rest, maxsplit=1)[0], local)

    def _check_origin(self, origin: bytes, host: bytes) -> None:
        """Refuse cross-origin requests, except from allowed origins. Raises PermissionDenied.

        The server's own origin is its scheme with the host and port of the request's `Host` header.
        """
        normal_origin = _normal_origin(origin)
        if host and normal_origin == _normal_origin(b"%s://%s" % (self._scheme, host)):
            return
        if normal_origin not in self.origins and (not self._own or normal_origin != self._own):
            raise _foreign_origin_error(origin)

    def _answers_to(self, name: str, port: int | None, *, local: tuple[str, int | None] | None) -> bool:
        """Return whether the server has a name at a port: at no port, at the ports of the web, at the connection's own,
        and at those of the settings. Names of loopback may have any port, because tunnels and containers change it.
        """
        if _is_loopback(name):
            return True
        is_usual = port is None or port in _WEB_PORTS or (local is not None and port == local[1])
        ports = {None, port} if is_usual else {port}
        if any((name, each) in self._names for each in ports):
            return True
        if any(name.endswith(ending) and (not ending or each in ports) for ending, each in self._endings):
            return True
        return local is not None and name == local[0] and None in ports


def _listed_host(text: str) -> tuple[str, int | None]:
    """Return a host name of the settings and its port; None if it has none."""
    match = _LISTED.fullmatch(text)
    name, port = (text, None) if match is None else (match[1], int(match[2]))
    return name.strip("[]").removesuffix("."), port


def _authority(name: str, port: int | None) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _normal_origin(origin: bytes) -> bytes:
    """Return an origin in the form that browsers send: in lower case, without the default port of its scheme."""
    scheme, mark, authority = origin.lower().partition(b"://")
    return scheme + mark + authority.removesuffix(_DEFAULT_PORTS.get(scheme, b"\0"))


def _is_navigation(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the request is a browser's navigation: a read whose response the initiating page cannot see."""
    return method in ("GET", "HEAD") and headers.get(b"sec-fetch-mode", b"").lower() == b"navigate"


def _foreign_origin_error(origin: bytes = b"") -> PermissionDenied:
    text = f" ({_short_origin(origin)})" if origin else ""
    return PermissionDenied(
        f"A page of another site{text} made this request, which is refused: open the server by its own address, or list"
        " the page's origin in the setting server.origins, as https://console.example.com"
    )


def _short_origin(origin: bytes) -> str:
    return "".join(char if char.isprintable() else "?" for char in origin[:200].decode("utf-8", "replace"))


def too_large() -> HeadTooLarge:
    """Return the error for a request head that is too large or has too many fields."""
    return HeadTooLarge(
        f"The head of this request is too large: address and headers may have {HEAD_BYTES_MAX} bytes and {FIELDS_MAX} "
        "fields together; send long values in the body"
    )


def size_of(url: bytes, fields: Sequence[tuple[bytes, bytes]]) -> int:
    """Return the size of a head in bytes, computed from its parsed form."""
    return len(url) + sum([len(name) + len(value) + 4 for name, value in fields])


def _require_single(fields: Fields) -> None:
    seen_names: set[bytes] = set()
    for name, _ in fields:
        if name in SINGLE:
            if name in seen_names:
                raise BadRequest(f"The request has two {name.decode().title()} headers: send one")
            seen_names.add(name)


def _name_and_port(authority: bytes) -> tuple[str, int | None]:
    """Return the host of `name:port`, in lower case, without brackets and final dot, and the port. Raises BadRequest if
    malformed.
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise BadRequest("The Host header must be NAME or NAME:PORT")
    return match[1].decode().lower().strip("[]").removesuffix("."), int(match[2]) if match[2] else None
