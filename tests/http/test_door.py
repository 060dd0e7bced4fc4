"""The door by itself: which heads are let in, and what the others are told."""

from __future__ import annotations

import pytest

from limnos.http.door import FIELDS_MAX, Door
from limnos.model.errors import BadRequest, Forbidden, HeadTooLarge, LimnosError, Misdirected

LOCAL = "10.1.2.3"


def told(door: Door, *fields: tuple[str, str], url: str = "/", version: str = "1.1") -> type[LimnosError] | None:
    """What a head meets: None is let in. Asked twice, for what is remembered must not let in more."""
    raw = [(name.encode(), value.encode()) for name, value in fields]

    def once() -> type[LimnosError] | None:
        headers = dict(raw)
        if door.knows(raw, headers, url.encode()):
            return None
        try:
            door.check(raw, headers, url=url.encode(), version=version, local=LOCAL)
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
def test_own_names_are_let_in(host: str) -> None:
    """Names of loopback and the address of the connection, with and without port."""
    assert told(Door(), ("host", host)) is None


@pytest.mark.parametrize(
    "host", ["evil.example.com", "10.1.2.4", "[2001:db8::1]", "localhost.evil.com", "127.0.0.1.nip.io"]
)
def test_other_names_are_refused(host: str) -> None:
    """A name that nobody listed is misdirected, whatever it leads to."""
    assert told(Door(), ("host", host)) is Misdirected


@pytest.mark.parametrize(
    "host", ["a b", "user@localhost", "localhost:", "localhost:port", "local\x00host", "[::1", "é"]
)
def test_what_is_no_host(host: str) -> None:
    """A Host that is none is a bad request."""
    assert told(Door(), ("host", host)) is BadRequest


def test_names_of_the_settings() -> None:
    """Exact names, endings and the star let in what they say."""
    door = Door(hosts=["Lake.example.com", "*.corp.example"], listens_on=["lakehost"])

    let_in = ["lake.example.com:443", "LAKE.EXAMPLE.COM", "a.corp.example", "b.a.corp.example", "lakehost:8090"]
    refused = ["xlake.example.com", "corp.example", "evilcorp.example", "lake.example.com.evil.org"]

    assert {told(door, ("host", host)) for host in let_in} == {None}
    assert {told(door, ("host", host)) for host in refused} == {Misdirected}
    assert told(Door(hosts=["*"]), ("host", "anything.example")) is None


def test_the_refusal_names_the_setting() -> None:
    """Who meets it at first use learns what to do."""
    with pytest.raises(Misdirected, match=r"server\.hosts.*--host-name lake\.example\.com"):
        Door().check(
            [(b"host", b"lake.example.com")], {b"host": b"lake.example.com"}, url=b"/", version="1.1", local=None
        )


def test_a_request_has_one_host() -> None:
    """None and two are refused; only HTTP/1.0 may leave it out."""
    assert told(Door()) is BadRequest
    assert told(Door(), ("host", "")) is BadRequest
    assert told(Door(), version="1.0") is None
    assert told(Door(), ("host", "localhost"), ("host", "localhost")) is BadRequest
    assert told(Door(), ("host", "localhost"), ("host", "evil.example.com")) is BadRequest


@pytest.mark.parametrize("name", ["authorization", "content-type", "content-length", "origin"])
def test_what_is_sent_once(name: str) -> None:
    """Of two, somebody on the way may have read the other; other fields may come twice."""
    door = Door()
    assert told(door, ("host", "localhost")) is None

    assert told(door, ("host", "localhost"), (name, "1"), (name, "2")) is BadRequest
    assert told(door, ("host", "localhost"), ("host", "localhost")) is BadRequest
    assert told(door, ("host", "localhost"), ("accept", "a"), ("accept", "b")) is None


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example.com", "null", "", "http://localhost:3000", "http://localhost", "https://localhost:80901"],
)
def test_pages_of_other_sites_are_refused(origin: str) -> None:
    """Another host, another port, and the origin of a sandbox are foreign."""
    assert told(Door(), ("host", "localhost:8090"), ("origin", origin)) is Forbidden


def test_own_pages_are_let_in() -> None:
    """A page of this very address, and of a host that the settings name; the star names no site."""
    listed = Door(hosts=["lake.example.com", "*.corp.example"])

    assert told(Door(), ("host", "localhost:8090"), ("origin", "http://localhost:8090")) is None
    assert told(listed, ("host", "localhost:8090"), ("origin", "https://lake.example.com")) is None
    assert told(listed, ("host", "localhost:8090"), ("origin", "https://a.corp.example:8443")) is None
    assert told(listed, ("host", "localhost:8090"), ("origin", "https://other.example.com")) is Forbidden
    assert told(Door(hosts=["*"]), ("host", "x.org"), ("origin", "http://evil.example.com")) is Forbidden


def test_an_address_that_names_a_host() -> None:
    """A request as proxies get them is refused for the host in its address, too."""
    assert told(Door(), ("host", "localhost"), url="http://localhost/x") is None
    assert told(Door(), ("host", "localhost"), url="http://evil.example.com/x") is Misdirected
    assert told(Door(), ("host", "localhost"), url="*") is None


@pytest.mark.parametrize("header", ["x-forwarded-host", "forwarded", "x-forwarded-for"])
def test_headers_of_proxies_are_not_believed(header: str) -> None:
    """Whatever they say, the name is that of Host."""
    assert told(Door(), ("host", "evil.example.com"), (header, "localhost")) is Misdirected
    assert told(Door(), ("host", "localhost"), (header, "evil.example.com")) is None


def test_number_of_fields() -> None:
    """As many as there may be are let in, one more is not, also when the host is known already."""
    door = Door()
    assert told(door, ("host", "localhost")) is None
    fields = [("host", "localhost"), *((f"x-{number}", "") for number in range(FIELDS_MAX - 1))]

    assert told(door, *fields) is None
    assert told(door, *fields, ("x", "")) is HeadTooLarge
