# SPDX-License-Identifier: Apache-2.0
"""Sign-in to the console with an external issuer: the redirects, and the refusals at each step."""

from __future__ import annotations

import asyncio
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from limnos.app import issuer_codes
from limnos.app.issuer_codes import CodeSignIn
from limnos.app.issuer_keys import IssuerKeys
from limnos.config.access import OidcSection
from limnos.model.errors import ServiceUnavailable
from limnos.rooms.console.http.protocol import ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from limnos.services.identity.issuer import ISSUER, AuthorizationRequest
from tests.http.driver import DriverAnswer, DriverNode
from tests.issuer import AUDIENCE, BROWSER, WEB, Issuer, issuing
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

TRIP: Final = "limnos-sign-in-8090"
BACK: Final = "/console/from-issuer"
NOT_BEGUN: Final = "was not started in this browser"


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that returns redirects instead of following them."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Do not follow."""


@dataclass
class Organization:
    """A node and its issuer."""

    node: DriverNode
    issuer: Issuer

    def trust(self, **settings: object) -> None:
        """Configure the issuer, with some settings of `oidc`."""
        defaults = {"console_client_id": BROWSER, "groups_claim": "groups", "metalakes": ("lake",), "timeout_s": 20.0}
        section = OidcSection(issuer=self.issuer.url, audiences=(AUDIENCE,), **{**defaults, **settings})
        ISSUER.put(self.node.built.services, IssuerKeys(section, self.node.built.services.store.time))

    def begin(self, visitor: ConsoleVisitor, target: str = "/console/sessions") -> str:
        """Begin a sign-in. Returns the issuer's URL to which the browser is redirected."""
        answer = visitor.get(f"/console/to-issuer?next={target}")
        assert answer.status == 303, text_of(answer)
        return answer.headers["location"]

    def way_back(self, visitor: ConsoleVisitor, target: str = "/console/sessions") -> str:
        """Sign in at the issuer. Returns the path to which it redirects the browser."""
        return sent_back(self.begin(visitor, target))


def sent_back(url: str) -> str:
    """Visit the issuer. Returns the path to which it redirects."""
    opener = urllib.request.build_opener(NoRedirects)
    with pytest.raises(urllib.error.HTTPError) as stopped:
        opener.open(url, timeout=20)
    with stopped.value as answer:
        assert answer.status == 302, answer.read()
        parts = urlsplit(answer.headers["location"])
    assert parts.netloc == "localhost:8090"
    return f"{parts.path}?{parts.query}"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """A running issuer."""
    with issuing() as running:
        yield running


@pytest.fixture
def organization(node: DriverNode, issuer: Issuer) -> Organization:
    """A node with the issuer, where ana can sign in."""
    issuer.person, issuer.groups, issuer.claims, issuer.away, issuer.broken = "ana", {"ana": ["crew"]}, {}, False, False
    issuer.codes.clear()
    trusting_organization = Organization(node, issuer)
    trusting_organization.trust()
    return trusting_organization


def is_in(visitor: ConsoleVisitor) -> bool:
    """Return whether the visitor's next request has a session."""
    return visitor.get("/console/sessions").status == 200


def refused(visitor: ConsoleVisitor, answer: DriverAnswer, words: str, *, status: int = 401) -> None:
    """Check that a sign-in ended without a session, on a page with the reason."""
    assert (answer.status, words in PageReader(text_of(answer)).text) == (status, True), text_of(answer)
    assert not is_in(visitor)


def test_sign_in_at_the_issuer_opens_the_requested_page(organization: Organization) -> None:
    """The button leads to the issuer and back to the requested page; the issuer's groups apply immediately."""
    lake = "/api/metalakes/lake"
    organization.node.done("POST", f"{lake}/groups", {"name": "crew"})
    rights = {"fullName": "main", "type": "CATALOG", "privileges": [{"name": "use_catalog", "condition": "allow"}]}
    organization.node.done("POST", f"{lake}/roles", {"name": "sailor", "properties": {}, "securableObjects": [rights]})
    organization.node.done("PUT", f"{lake}/permissions/groups/crew/grant", {"roleNames": ["sailor"]})
    visitor = ConsoleVisitor(organization.node)
    (button,) = [href for href in visitor.read("/console/sign-in").hrefs if "to-issuer" in href]

    redirect = visitor.get(button.replace("next=%2Fconsole%2F", "next=%2Fconsole%2Fsessions"))
    answer = visitor.get(sent_back(redirect.headers["location"]))

    assert (answer.status, answer.headers["location"]) == (303, "/console/sessions")
    assert visitor.get("/console/o/catalog/lake/main").status == 200
    assert "ana" in visitor.read("/console/sessions").words


def test_confidential_client_sends_its_secret(organization: Organization, tmp_path: Path) -> None:
    """A client with a secret authenticates; a wrong or missing secret opens no session and is not shown."""
    secret = tmp_path / "secret"
    organization.trust(console_client_id=WEB, console_secret_file=str(secret))
    visitor = ConsoleVisitor(organization.node)

    refused(visitor, visitor.get(organization.way_back(visitor)), "cannot be read")
    secret.write_text("wrong one\n")
    answer = visitor.get(organization.way_back(visitor))
    refused(visitor, answer, "refuses the console's client")
    assert "wrong one" not in text_of(answer)
    secret.write_text(f"secret of {WEB}\n")
    assert visitor.get(organization.way_back(visitor)).status == 303
    assert is_in(visitor)


def test_session_outlives_the_id_token(organization: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session lasts as long as one opened by a password, although the ID token expires after a minute."""
    visitor = ConsoleVisitor(organization.node)
    visitor.get(organization.way_back(visitor))
    clock = organization.node.built.services.store.time
    real = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 20 * 60_000)

    assert is_in(visitor)


def test_redirect_to_the_issuer_omits_verifier_and_refresh(organization: Organization) -> None:
    """The redirect to the issuer has the code challenge but not the verifier, and requests no refresh token. The cookie
    is HttpOnly.
    """
    visitor = ConsoleVisitor(organization.node)
    answer = visitor.get("/console/to-issuer")
    query = parse_qs(urlsplit(answer.headers["location"]).query)

    _, nonce, verifier, _ = visitor.cookies[TRIP].split(".", 3)
    assert (query["code_challenge_method"], query["response_type"], query["scope"]) == (["S256"], ["code"], ["openid"])
    assert query["nonce"] == [nonce]
    assert verifier not in answer.headers["location"]
    assert "HttpOnly; SameSite=Lax; Max-Age=600" in answer.headers["set-cookie"]


def test_sign_in_cannot_be_replayed(organization: Organization) -> None:
    """The redirect back deletes the cookie. Copies of the cookie and the URL open no second session."""
    visitor = ConsoleVisitor(organization.node)
    path = organization.way_back(visitor)
    thief = ConsoleVisitor(organization.node, cookies=dict(visitor.cookies))

    assert visitor.get(path).status == 303
    assert TRIP not in visitor.cookies
    refused(thief, thief.get(path), "was used already or has expired")
    refused(thief, thief.get(path), NOT_BEGUN)


def test_callback_url_of_another_browser_opens_no_session(organization: Organization) -> None:
    """A URL with another user's code opens no session, whether or not this browser began a sign-in."""
    other, visitor = ConsoleVisitor(organization.node), ConsoleVisitor(organization.node)
    path = organization.way_back(other)

    refused(visitor, visitor.get(path), NOT_BEGUN)
    organization.begin(visitor)
    refused(visitor, visitor.get(path), NOT_BEGUN)
    organization.begin(visitor)
    state = visitor.cookies[TRIP].split(".")[0]
    stolen = parse_qs(urlsplit(path).query)["code"][0]
    refused(visitor, visitor.get(f"{BACK}?state={state}&code={stolen}"), "was used already or has expired")


@pytest.mark.parametrize(
    "query", ["", "?code=x", "?state=", "?code=x&state=", "?state=%F0%9F%92%A9&code=x", "?error=x"]
)
def test_callback_without_a_sign_in_cookie_opens_no_session(organization: Organization, query: str) -> None:
    """Without a cookie, or with an empty one, no query opens a session, not even with an empty state."""
    for cookies in ({}, {TRIP: "..."}, {TRIP: "...%2Fconsole%2F"}, {TRIP: "x"}):
        visitor = ConsoleVisitor(organization.node, cookies=cookies)
        refused(visitor, visitor.get(f"{BACK}{query}"), NOT_BEGUN)


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example.com/",
        "//evil.example.com",
        "/console/\\evil",
        "/api/x",
        "/console",
        "/consolex/",
        "%0d%0aset-cookie:x",
    ],
)
def test_no_redirect_leaves_the_console(organization: Organization, target: str) -> None:
    """A `next` outside of the console leads to the first page, also in a forged cookie."""
    visitor, planted = ConsoleVisitor(organization.node), ConsoleVisitor(organization.node)

    assert visitor.get(organization.way_back(visitor, target)).headers["location"] == "/console/"
    path = organization.way_back(planted)
    planted.cookies[TRIP] = planted.cookies[TRIP].rpartition(".")[0] + "." + target
    assert planted.get(path).headers["location"] == "/console/"


@pytest.mark.parametrize(
    "claims,words",
    [
        ({"nonce": "another"}, "belongs to another sign-in"),
        ({"aud": "other"}, "is not meant for this server"),
        ({"aud": [BROWSER, "other"]}, "was issued to another client"),
        ({"azp": "other"}, "was issued to another client"),
        ({"iss": "https://evil.example.com"}, "comes from"),
        ({"exp": 1}, "expired"),
        ({"sub": "a\nb"}, "no user name"),
    ],
    ids=str,
)
def test_invalid_id_tokens_are_refused(organization: Organization, claims: dict[str, object], words: str) -> None:
    """ID tokens of another sign-in, client or issuer, old ones, and those without a user are refused."""
    organization.issuer.claims = claims
    visitor = ConsoleVisitor(organization.node)

    refused(visitor, visitor.get(organization.way_back(visitor)), words)


def test_id_token_signed_by_an_unknown_key_is_refused(organization: Organization) -> None:
    """An ID token that is not signed by a published key of the issuer is refused."""
    visitor = ConsoleVisitor(organization.node)
    published = organization.issuer.published
    organization.issuer.rotate("hidden")
    organization.issuer.published = published
    try:
        refused(visitor, visitor.get(organization.way_back(visitor)), "not signed by a key")
    finally:
        organization.issuer.key = published[0]


def test_issuer_refusal_is_shown_without_text_from_the_url(organization: Organization) -> None:
    """If the issuer refuses the user, the page says so in the console's words, without text from the URL."""
    organization.issuer.person = None
    visitor = ConsoleVisitor(organization.node)

    refused(visitor, visitor.get(organization.way_back(visitor)), "Its reason: access denied")
    organization.begin(visitor)
    state = visitor.cookies[TRIP].split(".")[0]
    answer = visitor.get(f"{BACK}?state={state}&error=Call+0123&error_description=Call+0123")
    refused(visitor, answer, "Its reason: an unknown one")
    assert "0123" not in text_of(answer)


def test_unreachable_issuer_is_reported_at_both_steps(organization: Organization) -> None:
    """If the issuer is unreachable, the console says so at both steps. The same URL works once the issuer is reachable
    again.
    """
    visitor = ConsoleVisitor(organization.node)
    organization.issuer.away = True
    answer = visitor.get("/console/to-issuer")
    assert answer.headers["retry-after"]
    refused(visitor, answer, "does not answer correctly", status=503)
    organization.issuer.away = False
    path = organization.way_back(visitor)

    organization.issuer.away = True
    refused(visitor, visitor.get(path), "does not answer correctly", status=503)
    organization.issuer.away = False
    assert visitor.get(path).status == 303
    assert is_in(visitor)


def test_disabled_user_cannot_sign_in(organization: Organization) -> None:
    """A disabled user cannot sign in at the issuer."""
    organization.node.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    organization.node.done("PATCH", "/api/limnos/v1/metalakes/lake/users/ana", {"enabled": False})
    visitor = ConsoleVisitor(organization.node)

    refused(visitor, visitor.get(organization.way_back(visitor)), "disabled")


def test_no_button_without_a_client(organization: Organization) -> None:
    """Without the console's client id, the sign-in page does not offer the issuer, and its URLs name the missing
    setting.
    """
    organization.trust(console_client_id=None)
    visitor = ConsoleVisitor(organization.node)

    assert not [href for href in visitor.read("/console/sign-in").hrefs if "to-issuer" in href]
    refused(visitor, visitor.get("/console/to-issuer"), "console_client_id is not set", status=401)


def test_sign_in_over_remote_http_is_refused(organization: Organization) -> None:
    """Over http from another machine no sign-in begins, because the cookie could be read."""
    visitor = ConsoleVisitor(organization.node, host="lake.example.com")

    assert visitor.get("/console/to-issuer").status == 403
    assert visitor.cookies == {}


@pytest.mark.parametrize(
    "site,name,address",
    [
        (ConsoleSite(is_tls=True), "__Host-limnos-sign-in", "https://lake.example.com/console/from-issuer"),
        (
            ConsoleSite(prefix="/lake", origin="https://data.example.com", is_tls=True),
            "__Secure-limnos-sign-in",
            "https://data.example.com/lake/console/from-issuer",
        ),
    ],
    ids=["own TLS", "proxy"],
)
def test_cookie_and_redirect_are_bound_to_the_host_over_tls(
    organization: Organization, site: ConsoleSite, name: str, address: str
) -> None:
    """Over TLS the name of the cookie binds it to the host, or to TLS below a prefix, and the redirect uses the public
    address.
    """
    protocol, application = ConsoleProtocol(site), organization.node.built.application
    application.protocols = [protocol if each.name == "console" else each for each in application.protocols]
    visitor = ConsoleVisitor(organization.node, host="lake.example.com")
    query = parse_qs(urlsplit(visitor.get("/console/to-issuer").headers["location"]).query)

    assert list(visitor.cookies) == [name]
    assert query["redirect_uri"] == [address]


PERSON: Final = "192.0.2.1"


async def flood(codes: CodeSignIn, *, peers: Iterator[str], silent: asyncio.Event) -> tuple[list[object], object]:
    """Begin exchanges from the given addresses while the issuer does not answer, then one from another address, and let
    the issuer answer.

    Returns the outcomes of the exchanges from the given addresses, and the outcome of the last one.
    """

    def exchange(peer: str) -> asyncio.Task[str]:
        request = AuthorizationRequest(
            redirect_uri="http://localhost/console/from-issuer", state="s", nonce="n", verifier="v", peer=peer
        )
        return asyncio.create_task(codes.id_token("code", request))

    flooding = [exchange(peer) for peer in peers]
    await asyncio.sleep(0)
    person = exchange(PERSON)
    for _ in range(20):
        await asyncio.sleep(0)
    silent.set()
    return [*(await asyncio.gather(*flooding, return_exceptions=True))], await person


@pytest.mark.parametrize(
    "peers",
    [
        pytest.param(lambda number: "192.0.2.66", id="one address"),
        pytest.param(lambda number: f"2001:db8::{number:x}", id="one network of IPv6"),
    ],
)
def test_flood_from_one_address_does_not_block_others(
    monkeypatch: pytest.MonkeyPatch, peers: Callable[[int], str]
) -> None:
    """While many exchanges from one address wait for the issuer, a user at another address is signed in. Exchanges
    beyond the limit per address are refused with 503.
    """
    running: list[int] = []

    async def answer(client: object, url: str, **_: object) -> tuple[int, object]:
        running.append(1)
        await silent.wait()
        return 200, {"id_token": "token"}

    async def endpoints(client: object, issuer: str) -> dict[str, object]:
        return {"authorization_endpoint": f"{issuer}/a", "token_endpoint": f"{issuer}/t"}

    monkeypatch.setattr(issuer_codes, "_json_of", answer)
    monkeypatch.setattr(issuer_codes, "discovery_of", endpoints)
    codes = CodeSignIn(OidcSection(issuer="https://issuer.example.com", audiences=("a",), console_client_id="c"))
    with asyncio.Runner() as runner:
        silent = asyncio.Event()
        ends, person = runner.run(
            flood(codes, peers=map(peers, range(1, 2 * issuer_codes.PEER_WAITING_MAX)), silent=silent)
        )

    refused = [each for each in ends if isinstance(each, ServiceUnavailable)]
    assert person == "token"
    assert len(ends) - len(refused) == issuer_codes.PEER_EXCHANGES_MAX + issuer_codes.PEER_WAITING_MAX


def _no_certificates(*_: object, **__: object) -> ssl.SSLContext:
    raise AssertionError("each sign-in reads the certificates of authorities, on the event loop")


@pytest.mark.parametrize("is_behind_proxy, running_max", [(False, 4), (True, 16)])
def test_many_users_behind_one_address_are_signed_in(
    monkeypatch: pytest.MonkeyPatch, is_behind_proxy: bool, running_max: int
) -> None:
    """64 users with the same address are all signed in, a limited number at a time. Behind a proxy, one address may use
    the limit of all addresses.
    """
    running = most = 0

    async def answer(client: object, url: str, **_: object) -> tuple[int, object]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _turn in range(3):
            await asyncio.sleep(0)
        running -= 1
        return 200, {"id_token": "token"}

    async def endpoints(client: object, issuer: str) -> dict[str, object]:
        return {"authorization_endpoint": f"{issuer}/a", "token_endpoint": f"{issuer}/t"}

    async def crowd() -> list[str]:
        requests = [
            AuthorizationRequest(redirect_uri="http://localhost/x", state="s", nonce="n", verifier="v", peer=PERSON)
            for _ in range(64)
        ]
        return await asyncio.gather(*(codes.id_token("code", each) for each in requests))

    monkeypatch.setattr(issuer_codes, "_json_of", answer)
    monkeypatch.setattr(issuer_codes, "discovery_of", endpoints)
    section = OidcSection(issuer="https://issuer.example.com", audiences=("a",), console_client_id="c")
    codes = CodeSignIn(section, is_behind_proxy=is_behind_proxy)
    monkeypatch.setattr(ssl, "create_default_context", _no_certificates)  # read once, before
    with asyncio.Runner() as runner:
        assert runner.run(crowd()) == ["token"] * 64
    assert most == running_max


def test_concurrent_sign_ins_share_one_discovery_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Concurrent sign-ins share one discovery request; if it fails, the next sign-in sends another."""
    requested_issuers: list[str] = []

    async def endpoints(client: object, issuer: str) -> dict[str, object]:
        requested_issuers.append(issuer)
        await asyncio.sleep(0)
        if len(requested_issuers) == 1:
            raise ValueError("away")
        return {"authorization_endpoint": f"{issuer}/a", "token_endpoint": f"{issuer}/t"}

    async def begin_all() -> list[object]:
        requests = [
            AuthorizationRequest(redirect_uri="http://localhost/x", state="s", nonce="n", verifier="v")
            for _ in range(50)
        ]
        return [*(await asyncio.gather(*map(codes.authorization_url, requests), return_exceptions=True))]

    monkeypatch.setattr(issuer_codes, "discovery_of", endpoints)
    codes = CodeSignIn(OidcSection(issuer="https://issuer.example.com", audiences=("a",), console_client_id="c"))
    with asyncio.Runner() as runner:
        failed, urls = runner.run(begin_all()), runner.run(begin_all())

    assert len(requested_issuers) == 2
    assert {type(each) for each in failed} == {ServiceUnavailable}
    assert all(str(each).startswith("https://issuer.example.com/a?") for each in urls)
