# SPDX-License-Identifier: Apache-2.0
"""The issuer's keys: fetched once for all requests, fetched again for an unknown key, and used while the issuer is
unreachable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from limnos.app import issuer_keys as module
from limnos.app.issuer_keys import IssuerKeys
from limnos.config.access import OidcSection
from limnos.model.errors import AuthenticationFailed, ServiceUnavailable
from limnos.model.principals import IssuerIdentity
from tests.issuer import AUDIENCE, Issuer, issuing

pytestmark = pytest.mark.slow


class Now:
    """A fake clock of this machine."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return int(time.time() * 1000)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """A running issuer."""
    with issuing() as running:
        yield running


def keys(issuer: Issuer, **settings: Any) -> IssuerKeys:  # noqa: ANN401
    """The key cache that checks the issuer's tokens."""
    return IssuerKeys(
        OidcSection(issuer=issuer.url, audiences=(AUDIENCE,), groups_claim="groups", **{"timeout_s": 60.0, **settings}),
        Now(),
    )


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """One event loop for a test, as in a server."""
    global _runner
    with asyncio.Runner() as _runner:
        yield


_runner: asyncio.Runner


def run(work: Coroutine[Any, Any, IssuerIdentity]) -> IssuerIdentity:
    """Run to the end, including started tasks."""

    async def whole() -> IssuerIdentity:
        try:
            return await work
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

    return _runner.run(whole())


def test_concurrent_first_tokens_fetch_keys_once(issuer: Issuer) -> None:
    """Sixty-four concurrent first tokens cause one fetch of the keys, through the discovery document."""
    checker = keys(issuer)

    async def crowd() -> IssuerIdentity:
        identities = await asyncio.gather(*(checker.identity(issuer.token(f"u{i}")) for i in range(64)))
        assert [each.user for each in identities] == [f"u{i}" for i in range(64)]
        return identities[0]

    run(crowd())
    assert issuer.asked == 1


def test_new_key_is_fetched(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new key is fetched when a token names it. A removed key is refused after the next fetch."""
    monkeypatch.setattr(module, "AGAIN_S", 0.0)
    checker, old = keys(issuer), issuer.token("ana")
    assert run(checker.identity(old)).user == "ana"

    issuer.rotate("second", keep=False)

    assert run(checker.identity(issuer.token("ana"))).user == "ana"
    with pytest.raises(AuthenticationFailed, match="not signed by a key that the issuer publishes"):
        run(checker.identity(old))


def test_invented_key_ids_cause_limited_fetches(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens with invented key ids cause a limited number of fetches, and are 401."""
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    checker = keys(issuer)
    forged = []
    for number in range(32):
        issuer.rotate(f"k{number}") if number == 0 else None
        forged.append(issuer.token("ana").replace(issuer.token("ana").split(".")[0], _head(f"made-up-{number}"), 1))

    async def crowd() -> IssuerIdentity:
        outcomes = await asyncio.gather(*(checker.identity(text) for text in forged), return_exceptions=True)
        assert {type(each) for each in outcomes} == {AuthenticationFailed}
        return await checker.identity(issuer.token("ben"))

    assert run(crowd()).user == "ben"
    assert issuer.asked <= 3


def _head(kid: str) -> str:
    import base64
    import json

    return base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": kid}).encode()).rstrip(b"=").decode()


def test_cached_keys_are_used_while_issuer_is_unreachable(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the issuer is unreachable, cached keys are used even if they are due for a new fetch. A token with another
    key is 503.
    """
    monkeypatch.setattr(module, "AGAIN_S", 0.0)
    checker = keys(issuer)
    issuer.broken = True
    with pytest.raises(ServiceUnavailable, match="does not publish its keys at the moment"):
        run(checker.identity(issuer.token("ana")))
    issuer.broken = False
    assert run(checker.identity(issuer.token("ana"))).user == "ana"

    issuer.broken = True
    checker.remember_s = -1.0

    assert run(checker.identity(issuer.token("ana"))).user == "ana"
    issuer.rotate("second")
    with pytest.raises(ServiceUnavailable, match="try again"):
        run(checker.identity(issuer.token("ana")))
    issuer.broken = False
    assert run(checker.identity(issuer.token("ana"))).user == "ana"


def test_cached_keys_are_used_while_issuer_does_not_answer(issuer: Issuer) -> None:
    """If the issuer accepts connections and does not answer, the deadline passes once, and cached keys are used
    meanwhile.
    """
    checker = keys(issuer, timeout_s=60.0)
    known = issuer.token("ana")
    assert run(checker.identity(known)).user == "ana"
    issuer.silent_now, checker.remember_s, checker._timeout_s = True, -1.0, 0.2
    checker._tried = float("-inf")

    async def meanwhile() -> IssuerIdentity:
        renewing = asyncio.ensure_future(checker.identity(known))
        await asyncio.sleep(0)
        assert renewing.done()
        return await renewing

    assert run(meanwhile()).user == "ana"


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"issuer": "http://sign.example.com", "audiences": "x"}, "is not https"),
        ({"issuer": "https://sign.example.com"}, "needs oidc.audiences"),
        (
            {"issuer": "https://sign.example.com", "audiences": "x", "jwks_url": "http://sign.example.com/keys"},
            "is not https",
        ),
    ],
)
def test_settings_without_tls_or_audience_are_refused(settings: dict[str, Any], words: str) -> None:
    """Settings are refused if keys would come without TLS from another machine, or if no audience restricts the
    tokens.
    """
    with pytest.raises(ValidationError, match=words):
        OidcSection(**settings)


def test_invalid_discovery_documents_and_key_sets_are_refused(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A discovery document of another issuer, and a key set without keys, are refused."""
    monkeypatch.setattr(module, "AGAIN_S", 0.0)
    other = IssuerKeys(OidcSection(issuer=issuer.url + "/", audiences=(AUDIENCE,)), Now())
    issuer.published = []

    for checker in (other, keys(issuer)):
        with pytest.raises(ServiceUnavailable):
            run(checker.identity(issuer.token("ana")))


def test_public_client_of_settings_is_served_with_issuer(issuer: Issuer) -> None:
    """If the settings name a public client, programs get the issuer with the client id for their sign-in."""
    named = keys(issuer, client_id="terminal", scope="openid").client

    assert keys(issuer).client is None
    assert named is not None
    assert named._asdict() == {"authority": issuer.url, "clientId": "terminal", "scope": "openid"}
