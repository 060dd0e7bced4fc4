# SPDX-License-Identifier: Apache-2.0
"""External token issuer: the interface that services use; `limnos.app` fetches its keys.

Must not know the network or any wire format.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from limnos.model.errors import AuthenticationFailed
from limnos.model.principals import IssuerIdentity
from limnos.services.request.node_services import ComponentKey


class PublicClient(NamedTuple):
    """The settings with which client programs sign users in at the issuer, as an OAuth public client. Clients read
    these field names.
    """

    authority: str
    clientId: str  # noqa: N815 - Gravitino's
    scope: str


class AuthorizationRequest(NamedTuple):
    """An OpenID Connect authorization request: its redirect URI, and the secrets that bind the response to the browser.

    The issuer returns `state` in the redirect and `nonce` in the ID token. `verifier` is the PKCE code verifier (RFC
    7636). `peer` is the browser's network address.
    """

    redirect_uri: str
    state: str
    nonce: str
    verifier: str
    peer: str = ""


class Issuer(Protocol):
    """Verifies tokens of the external issuer, and provides its settings."""

    name: str
    """The host of the issuer, for people; "" without a client by which browsers sign in."""

    metalakes: tuple[str, ...]
    """The metalakes that store users and groups from its tokens."""
    remember_s: float
    """The time for which a verification of a token is cached, in seconds."""
    client: PublicClient | None
    """The public client for signing in with a browser, if the settings name one."""

    async def identity(self, text: str) -> IssuerIdentity:
        """Verify a token. Raises AuthenticationFailed; ServiceUnavailable if the issuer's keys cannot be fetched."""

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Return the issuer's authorization URL, to which the browser is redirected. Raises ServiceUnavailable if the
        issuer does not respond, AuthenticationFailed if the server has no issuer.
        """

    async def identity_of_code(self, code: str, request: AuthorizationRequest) -> IssuerIdentity:
        """Exchange an authorization code for tokens, and verify the ID token.

        Raises AuthenticationFailed; ServiceUnavailable if the issuer does not respond.
        """


class NoIssuer:
    """The null issuer, for a server without an external issuer."""

    name = ""
    metalakes: tuple[str, ...] = ()
    remember_s = 0.0
    client: PublicClient | None = None

    async def identity(self, text: str) -> IssuerIdentity:
        """Refuse every token. Raises AuthenticationFailed."""
        raise AuthenticationFailed(f"This server has no external issuer that could verify a token of {len(text)} bytes")

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Refuse to begin a sign-in. Raises AuthenticationFailed."""
        raise AuthenticationFailed(f"This server has no external issuer with the redirect URI {request.redirect_uri}")

    async def identity_of_code(self, code: str, request: AuthorizationRequest) -> IssuerIdentity:
        """Refuse every authorization code. Raises AuthenticationFailed."""
        raise AuthenticationFailed(
            f"This server has no external issuer for a code of {len(code)} bytes with the redirect URI"
            f" {request.redirect_uri}"
        )


ISSUER: ComponentKey[Issuer] = ComponentKey("issuer", lambda _: NoIssuer())
