# SPDX-License-Identifier: Apache-2.0
"""The console's address: accepted origins of POST requests, the cookie, and redirects after a sign-in."""

from __future__ import annotations

import pytest

from limnos.model.errors import PermissionDenied
from limnos.rooms.console.http.site import ConsoleSite

PLAIN = ConsoleSite()
TLS = ConsoleSite(is_tls=True)
PROXIED = ConsoleSite(prefix="/lake", origin="https://data.example.com", is_tls=True)
HOST = {b"host": b"localhost:8090"}


@pytest.mark.parametrize(
    "site,headers",
    [
        (PLAIN, {b"sec-fetch-site": b"same-origin"}),
        (PLAIN, {b"sec-fetch-site": b"same-origin", b"origin": b"http://localhost:8090"}),
        (PLAIN, {b"origin": b"http://localhost:8090"}),
        (PLAIN, {b"origin": b"HTTP://LOCALHOST:8090"}),
        (TLS, {b"host": b"lake.example.com", b"origin": b"https://lake.example.com:443"}),
        (PROXIED, {b"origin": b"https://data.example.com"}),
    ],
)
def test_same_origin_post_is_accepted(site: ConsoleSite, headers: dict[bytes, bytes]) -> None:
    """A POST from the console's own page is accepted by the Origin header or by the Sec-Fetch-Site header."""
    site.require_own_page({**HOST, **headers})

    assert site.base.endswith("/console")


@pytest.mark.parametrize(
    "site,headers",
    [
        (PLAIN, {}),
        (PLAIN, {b"sec-fetch-site": b"none"}),
        (PLAIN, {b"sec-fetch-site": b"same-site"}),
        (PLAIN, {b"sec-fetch-site": b"cross-site"}),
        (PLAIN, {b"sec-fetch-site": b"same-origin", b"origin": b"http://evil.example.com"}),
        (PLAIN, {b"sec-fetch-site": b"same-origin", b"origin": b"null"}),
        (PLAIN, {b"origin": b"null"}),
        (PLAIN, {b"origin": b"https://localhost:8090"}),
        (PLAIN, {b"origin": b"http://localhost:8091"}),
        (PLAIN, {b"origin": b"http://localhost"}),
        (TLS, {b"origin": b"http://localhost:8090"}),
        (PROXIED, {b"origin": b"http://data.example.com"}),
        (PROXIED, {b"origin": b"https://evil.example.com"}),
        (PROXIED, {b"origin": b"https://data.example.com.evil.org"}),
    ],
)
def test_forged_post_is_refused(site: ConsoleSite, headers: dict[bytes, bytes]) -> None:
    """A POST from another scheme, host or port is refused, including one from a sibling site."""
    with pytest.raises(PermissionDenied, match="did not come from the console"):
        site.require_own_page({**HOST, **headers})


def test_cookie_over_http_has_the_port_in_its_name() -> None:
    """Over http the cookie's name contains the port, so that two servers on one machine do not share it. It is sent
    only to the console's paths.
    """
    name, value = PLAIN.cookie_header(HOST, "text")

    assert name == b"set-cookie"
    assert value == b"limnos-8090=text; Path=/console; HttpOnly; SameSite=Lax"


def test_cookie_over_tls_is_bound_to_the_host() -> None:
    """Over TLS the cookie's name prevents a sibling host from setting it. Below a prefix the cookie is limited to the
    prefix.
    """
    assert TLS.cookie_header(HOST, "text")[1] == b"__Host-limnos=text; Path=/; HttpOnly; SameSite=Lax; Secure"
    assert PROXIED.cookie_header(HOST, None)[1] == (
        b"__Secure-limnos=; Path=/lake/console; HttpOnly; SameSite=Lax; Secure; Max-Age=0"
    )


@pytest.mark.parametrize(
    "cookie,expected",
    [
        (b"limnos-8090=a", b"a"),
        (b"other=1; limnos-8090=a", b"a"),
        (b"limnos-8091=a", None),
        (b"limnos-8090=", None),
        (b"limnos-8090=a; limnos-8090=b", None),
        (b"", None),
    ],
)
def test_duplicate_cookie_is_refused(cookie: bytes, expected: bytes | None) -> None:
    """If a request has two cookies of the name, neither is accepted, because another site may have set one."""
    assert PLAIN.cookie_of({**HOST, b"cookie": cookie}) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "/",
        "//evil.example.com/console/",
        "https://evil.example.com/console/",
        "/consolex/",
        "/console/\\evil",
        "/console/\nx",
        "/api/limnos/v1/tokens",
        "javascript:alert(1)",
        "/console/\xe9",
        "/console/../../x",
        "/console/..",
        "/console/%2e%2e/x",
        "/console/a/.%2E/.%2e/../x?a=b",
        "/console/./x",
        "/console/..#x",
    ],
)
def test_sign_in_target_outside_the_console_is_replaced(text: str | None) -> None:
    """A target of the sign-in page outside of the console is replaced by the console's first page."""
    assert PLAIN.path_below(text) == "/console/"


def test_sign_in_target_inside_the_console_is_accepted() -> None:
    """A target below the console's path and prefix is accepted unchanged."""
    assert (
        PROXIED.path_below("/lake/console/o/table/lake/main/a/b?tab=x") == "/lake/console/o/table/lake/main/a/b?tab=x"
    )


@pytest.mark.parametrize(
    "host,is_allowed",
    [
        (b"localhost:8090", True),
        (b"127.0.0.1", True),
        (b"[::1]:8090", True),
        (b"lake.example.com", False),
        (b"10.0.0.1:80", False),
    ],
)
def test_http_cookie_is_accepted_only_on_loopback(host: bytes, is_allowed: bool) -> None:
    """Over http the cookie is accepted on loopback only."""
    assert PLAIN.allows_sign_in({b"host": host}) is is_allowed
    assert TLS.allows_sign_in({b"host": host})
