# SPDX-License-Identifier: Apache-2.0
"""Admission control of request heads: accepted heads, and the answers to refused ones."""

from __future__ import annotations

import re

import pytest

from limnos.http.head_admission import FIELDS_MAX, HeadAdmission
from limnos.model.errors import BadRequest, HeadTooLarge, LimnosError, MisdirectedRequest, PermissionDenied

LOCAL = "10.1.2.3"
PORT = 8090


def refusal(
    admission: HeadAdmission, *fields: tuple[str, str], url: str = "/", version: str = "1.1", method: str = "POST"
) -> type[LimnosError] | None:
    """Return the refusal of a head, None if it is accepted. It is checked twice, because a cached result must not
    accept more.
    """
    raw = [(name.encode(), value.encode()) for name, value in fields]

    def once() -> type[LimnosError] | None:
        headers = dict(raw)
        if admission.is_accepted(raw, headers, url.encode()):
            return None
        try:
            admission.check(raw, headers, method=method, url=url.encode(), version=version, local=(LOCAL, PORT))
        except LimnosError as error:
            return type(error)
        return None

    first, second = once(), once()
    assert first is second
    return first


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8090", "127.0.0.1:8090", "127.9.9.9", "[::1]:8090", "localhost.", LOCAL, f"{LOCAL}:80"],
)
def test_loopback_and_connection_address_are_accepted(host: str) -> None:
    """Names of loopback and the address of the connection are accepted, with and without port."""
    assert refusal(HeadAdmission(), ("host", host)) is None


@pytest.mark.parametrize(
    "host", ["evil.example.com", "10.1.2.4", "[2001:db8::1]", "localhost.evil.com", "127.0.0.1.nip.io"]
)
def test_other_names_are_refused(host: str) -> None:
    """An unlisted name is 421, whatever it resolves to."""
    assert refusal(HeadAdmission(), ("host", host)) is MisdirectedRequest


@pytest.mark.parametrize(
    "host", ["a b", "user@localhost", "localhost:", "localhost:port", "local\x00host", "[::1", "é"]
)
def test_malformed_host_is_a_bad_request(host: str) -> None:
    """A malformed Host is a bad request."""
    assert refusal(HeadAdmission(), ("host", host)) is BadRequest


def test_configured_hosts_suffixes_and_star_are_accepted() -> None:
    """Exact names, suffixes and the star in the settings accept matching names."""
    admission = HeadAdmission(hosts=["Lake.example.com", "*.corp.example"], listens_on=["lakehost"])

    let_in = ["lake.example.com:443", "LAKE.EXAMPLE.COM", "a.corp.example", "b.a.corp.example", "lakehost:8090"]
    refused = ["xlake.example.com", "corp.example", "evilcorp.example", "lake.example.com.evil.org"]

    assert {refusal(admission, ("host", host)) for host in let_in} == {None}
    assert {refusal(admission, ("host", host)) for host in refused} == {MisdirectedRequest}
    assert refusal(HeadAdmission(hosts=["*"]), ("host", "anything.example")) is None


def test_ports_other_than_the_servers_are_refused() -> None:
    """A name is accepted without a port, at the ports of the web, at the port on which the connection was accepted, and
    at ports of the settings; the star admits all ports. Names of loopback are accepted at any port.
    """
    admission = HeadAdmission(
        hosts=["lake.example.com", "other.example.com:9000", "*.corp.example:9001", "[2001:db8::1]:9002", "2001:db8::2"]
    )
    let_in = [
        "lake.example.com",
        "lake.example.com:80",
        "lake.example.com:443",
        f"lake.example.com:{PORT}",
        "other.example.com:9000",
        "other.example.com",
        "a.corp.example:9001",
        "a.corp.example:443",
        "[2001:db8::1]:9002",
        "[2001:db8::2]:8090",
        "localhost:1",
        "127.0.0.1:65535",
        "[::1]:9999",
    ]
    refused = [
        "lake.example.com:8091",
        "lake.example.com:9000",
        "other.example.com:9001",
        "a.corp.example:9000",
        "[2001:db8::1]:9001",
        f"{LOCAL}:8091",
        "lake.example.com:0",
    ]

    assert {host: refusal(admission, ("host", host)) for host in let_in} == dict.fromkeys(let_in)
    assert {host: refusal(admission, ("host", host)) for host in refused} == dict.fromkeys(refused, MisdirectedRequest)
    assert refusal(HeadAdmission(hosts=["*"]), ("host", "anything.example:1")) is None


@pytest.mark.parametrize("host", ["lake.example.com", "here.example.com:9000", "[2001:db8::1]:9000"])
def test_the_refusal_names_the_setting(host: str) -> None:
    """The refusal names the setting to change, and the port if the name is accepted."""
    admission = HeadAdmission(hosts=["here.example.com", "2001:db8::1"])
    with pytest.raises(MisdirectedRequest, match=rf"server\.hosts.*--host-name {re.escape(host)}\)"):
        admission.check(
            [(b"host", host.encode())], {b"host": host.encode()}, method="GET", url=b"/", version="1.1", local=None
        )


def test_a_request_has_one_host() -> None:
    """A missing or repeated Host is refused; only HTTP/1.0 may omit it."""
    assert refusal(HeadAdmission()) is BadRequest
    assert refusal(HeadAdmission(), ("host", "")) is BadRequest
    assert refusal(HeadAdmission(), version="1.0") is None
    assert refusal(HeadAdmission(), ("host", "localhost"), ("host", "localhost")) is BadRequest
    assert refusal(HeadAdmission(), ("host", "localhost"), ("host", "evil.example.com")) is BadRequest


@pytest.mark.parametrize(
    "name", ["authorization", "content-type", "content-length", "origin", "sec-fetch-site", "sec-fetch-mode"]
)
def test_repeated_unique_fields_are_refused(name: str) -> None:
    """Repeated fields that must be unique are refused, because a proxy may have used the other one."""
    admission = HeadAdmission()
    assert refusal(admission, ("host", "localhost")) is None

    assert refusal(admission, ("host", "localhost"), (name, "1"), (name, "2")) is BadRequest
    assert refusal(admission, ("host", "localhost"), ("host", "localhost")) is BadRequest
    assert refusal(admission, ("host", "localhost"), ("accept", "a"), ("accept", "b")) is None


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example.com", "null", "", "http://localhost:3000", "http://localhost", "https://localhost:80901"],
)
def test_pages_of_other_sites_are_refused(origin: str) -> None:
    """An origin with another host, another port, or of a sandbox is refused."""
    assert refusal(HeadAdmission(), ("host", "localhost:8090"), ("origin", origin)) is PermissionDenied


@pytest.mark.parametrize(
    "host, origin",
    [
        ("localhost:8090", "http://localhost:8090"),
        ("LocalHost:8090", "http://localhost:8090"),
        ("lake.example.com", "http://lake.example.com"),
        ("lake.example.com:80", "http://lake.example.com"),
        ("a.corp.example:8443", "http://a.corp.example:8443"),
    ],
)
def test_pages_of_the_servers_origin_are_accepted(host: str, origin: str) -> None:
    """A page of the server's own origin is accepted: its scheme, and the host and port of the request."""
    admission = HeadAdmission(hosts=["lake.example.com", "*.corp.example:8443"])

    assert refusal(admission, ("host", host), ("origin", origin)) is None


@pytest.mark.parametrize(
    "origin",
    [
        "https://lake.example.com",
        "http://lake.example.com:8090",
        "https://evil.corp.example",
        "http://evil.corp.example",
        "http://x.org",
        "lake.example.com",
        "http://lake.example.com/",
    ],
)
def test_page_with_server_host_but_other_port_is_refused(origin: str) -> None:
    """A page with a host name of the server but another scheme or port, or a sibling host, is refused."""
    admission = HeadAdmission(hosts=["lake.example.com", "*.corp.example", "*"])

    assert refusal(admission, ("host", "lake.example.com"), ("origin", origin)) is PermissionDenied


def test_tls_server_accepts_https_pages_only() -> None:
    """A server with TLS accepts pages with https only."""
    admission = HeadAdmission(hosts=["lake.example.com"], is_tls=True)

    assert refusal(admission, ("host", "lake.example.com"), ("origin", "https://lake.example.com")) is None
    assert refusal(admission, ("host", "lake.example.com:443"), ("origin", "https://lake.example.com")) is None
    assert refusal(admission, ("host", "lake.example.com"), ("origin", "http://lake.example.com")) is PermissionDenied


def test_configured_origins_are_accepted_exactly() -> None:
    """Origins of the settings are accepted exactly, in any case and with implied ports; others are refused."""
    admission = HeadAdmission(
        hosts=["lake.example.com"], origins=["https://Console.example.com:443", "http://127.0.0.1:3000"]
    )
    let_in = ["https://console.example.com", "https://CONSOLE.example.com:443", "http://127.0.0.1:3000"]
    refused = [
        "http://console.example.com",
        "https://console.example.com:8443",
        "https://a.console.example.com",
        "http://127.0.0.1",
        "null",
    ]

    assert {refusal(admission, ("host", "lake.example.com"), ("origin", each)) for each in let_in} == {None}
    assert {refusal(admission, ("host", "lake.example.com"), ("origin", each)) for each in refused} == {
        PermissionDenied
    }


def test_the_refusal_of_a_page_names_the_setting() -> None:
    """The refusal names the page's origin and the setting to change."""
    fields = {b"host": b"localhost", b"origin": b"http://127.0.0.1:3000"}

    with pytest.raises(PermissionDenied, match=r"http://127\.0\.0\.1:3000.*server\.origins"):
        HeadAdmission().check(list(fields.items()), fields, method="GET", url=b"/", version="1.1", local=None)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
def test_cross_site_requests_without_origin_are_refused(site: str) -> None:
    """Requests that the browser marks as cross-site are refused, except for followed links. If the settings contain
    origins, the request's origin decides.
    """
    fields = (("host", "localhost"), ("sec-fetch-site", site))
    admission = HeadAdmission(origins=["https://console.example.com"])

    assert refusal(admission, *fields) is PermissionDenied
    assert refusal(admission, *fields, method="GET") is PermissionDenied
    assert refusal(admission, *fields, ("sec-fetch-mode", "no-cors"), method="GET") is PermissionDenied
    assert refusal(admission, *fields, ("sec-fetch-mode", "navigate")) is PermissionDenied
    assert refusal(admission, *fields, ("sec-fetch-mode", "navigate"), method="GET") is None
    assert refusal(admission, *fields, ("origin", "https://console.example.com")) is None


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_same_origin_and_address_bar_requests_are_accepted(site: str) -> None:
    """Requests of the server's own pages, and those from the address bar, are accepted."""
    assert refusal(HeadAdmission(), ("host", "localhost"), ("sec-fetch-site", site)) is None


def test_host_of_an_absolute_url_is_checked() -> None:
    """In a request with an absolute URL the URL's host is checked, too."""
    assert refusal(HeadAdmission(), ("host", "localhost"), url="http://localhost/x") is None
    assert refusal(HeadAdmission(), ("host", "localhost"), url="http://evil.example.com/x") is MisdirectedRequest
    assert refusal(HeadAdmission(), ("host", "localhost"), url="*") is None


@pytest.mark.parametrize("header", ["x-forwarded-host", "forwarded", "x-forwarded-for"])
def test_forwarding_headers_are_ignored(header: str) -> None:
    """Forwarding headers are ignored: only Host counts."""
    assert refusal(HeadAdmission(), ("host", "evil.example.com"), (header, "localhost")) is MisdirectedRequest
    assert refusal(HeadAdmission(), ("host", "localhost"), (header, "evil.example.com")) is None


def test_number_of_header_fields_is_limited() -> None:
    """The maximum number of fields is accepted, one more is refused, also for a cached host."""
    admission = HeadAdmission()
    assert refusal(admission, ("host", "localhost")) is None
    fields = [("host", "localhost"), *((f"x-{number}", "") for number in range(FIELDS_MAX - 1))]

    assert refusal(admission, *fields) is None
    assert refusal(admission, *fields, ("x", "")) is HeadTooLarge
