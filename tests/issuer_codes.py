# SPDX-License-Identifier: Apache-2.0
"""Sign-in by redirect at the tests' issuer: authorization codes with PKCE and ID tokens, by Authlib.

The person who signs in is `issuer.person`; None means that access is denied. Each code can be used once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode

if TYPE_CHECKING:
    from tests.issuer import Issuer


class AuthorizationCode(NamedTuple):
    """An issued code, for Authlib."""

    text: str
    client: str
    user: str
    redirect_uri: str
    scope: str
    nonce: str | None
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        """The redirect URI to which it was sent."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Its scope."""
        return self.scope

    def get_nonce(self) -> str | None:
        """The nonce of its request."""
        return self.nonce

    def get_auth_time(self) -> None:
        """Return None: there is no authentication time."""

    def get_acr(self) -> None:
        """Return None: there is no authentication context class."""

    def get_amr(self) -> None:
        """Return None: there are no authentication methods."""


class IdTokens(OpenIDCode):  # type: ignore[misc]
    """ID tokens, whose claims a test may change by `issuer.claims`."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(require_nonce=True)
        self.issuer = issuer

    def exists_nonce(self, nonce: str, _request: object) -> bool:
        """Return whether a nonce was used already."""
        return any(code.nonce == nonce for code in self.issuer.codes.values())

    def resolve_client_private_key(self, _client: object) -> Any:  # noqa: ANN401 - Authlib's
        """The issuer's key."""
        return self.issuer.key

    def get_encode_header(self, _client: object) -> dict[str, Any]:
        """The algorithm and the key's id."""
        return {"alg": "RS256", "kid": self.issuer.key.kid}

    def get_client_claims(self, _client: object) -> dict[str, Any]:
        """Return claims in addition to a person's: tokens are valid for a minute."""
        return {"iss": self.issuer.url, "exp": int(time.time()) + 60}

    def generate_user_info(self, user: Any, _scope: str) -> UserInfo:  # noqa: ANN401 - Authlib's
        """The claims of a person."""
        groups = self.issuer.groups.get(user.name, [])
        return UserInfo({"sub": user.name, "groups": groups, **self.issuer.claims})


def by_code(issuer: Issuer, person: type[Any]) -> type[grants.AuthorizationCodeGrant]:
    """Return the grant of codes."""

    class ByCode(grants.AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")

        def save_authorization_code(self, code: str, request: Any) -> None:  # noqa: ANN401 - Authlib's
            form = request.payload.data
            issuer.codes[code] = AuthorizationCode(
                text=code,
                client=request.client.client_id,
                user=request.user.name,
                redirect_uri=form["redirect_uri"],
                scope=form["scope"],
                nonce=form.get("nonce"),
                code_challenge=form.get("code_challenge"),
                code_challenge_method=form.get("code_challenge_method"),
            )

        def query_authorization_code(self, code: str, client: Any) -> AuthorizationCode | None:  # noqa: ANN401 - Authlib's
            stored_code = issuer.codes.get(code)
            return stored_code if stored_code is not None and stored_code.client == client.client_id else None

        def delete_authorization_code(self, code: AuthorizationCode) -> None:
            issuer.codes.pop(code.text)

        def authenticate_user(self, code: AuthorizationCode) -> Any:  # noqa: ANN401 - Authlib's
            return person(code.user)

    return ByCode


def add_codes(app: flask.Flask, server: AuthorizationServer, *, issuer: Issuer, person: type[Any]) -> None:
    """Add the grant, and the page on which `issuer.person` agrees at once."""
    server.register_grant(by_code(issuer, person), [CodeChallenge(required=True), IdTokens(issuer)])

    @app.get("/authorize")
    def authorize() -> Any:  # noqa: ANN401 - Flask's
        user = None if issuer.person is None else person(issuer.person)
        grant = server.get_consent_grant(end_user=user)
        return server.create_authorization_response(grant_user=user, grant=grant)
