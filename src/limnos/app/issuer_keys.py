# SPDX-License-Identifier: Apache-2.0
"""Keys of the external OpenID Connect issuer: fetched, cached, and fetched again for an unknown key id.

Must not know requests. `CodeSignIn` exchanges codes. OpenID Connect Discovery 1.0, section 4 (location of the keys),
RFC 7517 (their format). While the issuer is unreachable, cached keys stay valid. A token with an unknown key then gets
503, because it cannot be verified.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import httpx2
import structlog

from limnos.access.authentication import TimeSource
from limnos.access.issuer_tokens import IssuerRules, Keys, UnknownSigningKey, identity_of, keys_of
from limnos.app.issuer_codes import CodeSignIn, discovery_of, json_document
from limnos.config.access import OidcSection
from limnos.model.errors import AuthenticationFailed, ServiceUnavailable
from limnos.model.principals import IssuerIdentity
from limnos.services.identity.issuer import AuthorizationRequest, PublicClient

AGAIN_S: Final = 1.0
"""The minimum time between two fetches, in seconds, also after failures and for unknown key ids."""

log = structlog.get_logger(__name__)


class IssuerKeys:
    """Verifies tokens of the issuer with its newest available keys."""

    def __init__(self, settings: OidcSection, clock: TimeSource, *, is_behind_proxy: bool = False) -> None:
        self.metalakes = settings.metalakes
        self.remember_s = float(settings.refresh_s)
        self.rules = IssuerRules(
            issuer=settings.issuer or "",
            audiences=frozenset(settings.audiences),
            user_claim=settings.user_claim,
            groups_claim=settings.groups_claim,
            skew_s=settings.skew_s,
        )
        self.client = None
        if settings.issuer is not None and settings.client_id is not None:
            self.client = PublicClient(settings.issuer, settings.client_id, settings.scope)
        self._codes = CodeSignIn(settings, is_behind_proxy=is_behind_proxy)
        self.name = self._codes.name
        self._jwks_url = settings.jwks_url
        self._timeout_s = settings.timeout_s
        self._clock = clock
        self._keys: Keys = {}
        self._fetched = self._tried = float("-inf")
        self._fetch_error = ""
        self._turn = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Return the URL of the issuer's sign-in page.

        Raises AuthenticationFailed without a client id, ServiceUnavailable if discovery fails.
        """
        return await self._codes.authorization_url(request)

    async def identity_of_code(self, code: str, request: AuthorizationRequest) -> IssuerIdentity:
        """Exchange an authorization code and verify the ID token. Raises AuthenticationFailed, ServiceUnavailable."""
        text = await self._codes.id_token(code, request)
        return await self.identity(text, nonce=request.nonce)

    async def identity(self, text: str, *, nonce: str | None = None) -> IssuerIdentity:
        """Verify a token; with `nonce`, as an ID token of the console's client.

        Raises AuthenticationFailed for an invalid token, ServiceUnavailable if its key cannot be fetched.
        """
        if not self._keys:
            await self._renew()
        elif time.monotonic() - self._fetched > self.remember_s and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())  # cached keys stay in use during the fetch
        try:
            return self._check_token(text, nonce)
        except UnknownSigningKey:
            await self._renew()
        try:
            return self._check_token(text, nonce)
        except UnknownSigningKey:
            if self._fetch_error:
                raise ServiceUnavailable(
                    "The issuer of this token does not publish its keys at the moment, and no cached key signed the"
                    " token: try again",
                    retry_after_s=5,
                ) from None
            raise AuthenticationFailed(
                "The token of the external issuer is not signed by a key that the issuer publishes: get a new token"
            ) from None

    def _check_token(self, text: str, nonce: str | None) -> IssuerIdentity:
        rules = self.rules if nonce is None else self.rules._replace(audiences=frozenset({self._codes.client_id}))
        return identity_of(text, self._keys, rules=rules, now_ms=self._clock.now_ms(), nonce=nonce)

    async def _renew(self) -> None:
        """Fetch the keys, once for all waiting callers. After a failure the cached keys remain in use."""
        began = time.monotonic()
        async with self._turn:
            if self._tried >= began:
                return
            await asyncio.sleep(max(0.0, self._tried + AGAIN_S - began))
            self._tried = time.monotonic()
            try:
                async with asyncio.timeout(self._timeout_s):
                    self._keys = await self._fetch()
            except (OSError, ValueError, TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
                self._fetch_error = str(error) or type(error).__name__
                log.warning(
                    "the issuer's keys cannot be fetched",
                    issuer=self.rules.issuer,
                    error=self._fetch_error,
                    kept=len(self._keys),
                )
                return
            self._fetch_error, self._fetched = "", self._tried

    async def _fetch(self) -> Keys:
        async with httpx2.AsyncClient(timeout=self._timeout_s, follow_redirects=False) as client:
            url = self._jwks_url or await self._discovered_jwks_url(client)
            keys = keys_of(await json_document(client, url))
        if not keys:
            raise ValueError(f"{url} publishes no public key for RSA or elliptic curve signatures")
        return keys

    async def _discovered_jwks_url(self, client: httpx2.AsyncClient) -> str:
        """Fetch the discovery document and return the URL of the issuer's keys. Raises ValueError if it is unusable."""
        document = await discovery_of(client, self.rules.issuer)
        result = document.get("jwks_uri")
        if not isinstance(result, str):
            raise ValueError(f"{self.rules.issuer} does not publish a 'jwks_uri'")
        if self.rules.issuer.startswith("https://") and not result.startswith("https://"):
            raise ValueError(f"{self.rules.issuer} publishes its keys at a URL without TLS")
        return result
