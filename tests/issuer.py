# SPDX-License-Identifier: Apache-2.0
"""An OpenID Connect issuer for tests: Authlib's authorization server on a real socket, with discovery and keys.

A client's id is the user's name, its secret `secret of NAME`. Tests can rotate keys and make the issuer unreachable or
silent. People sign in through the public client `TERMINAL` by the device flow; a test answers for them (`answers`).
Browsers sign `person` in through `BROWSER` or `WEB` (`tests/issuer_codes.py`).
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc8628 import (
    DEVICE_CODE_GRANT_TYPE,
    DeviceAuthorizationEndpoint,
    DeviceCodeGrant,
    DeviceCredentialDict,
)
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwk, jwt
from werkzeug.serving import make_server

from tests.issuer_codes import AuthorizationCode, add_codes

AUDIENCE = "limnos"
LIFE_S = 3600
TERMINAL = "terminal"
BROWSER = "browser"
WEB = "web"
"""The console's clients: one without a secret, and one with."""
logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no log line for each request


class Application(ClientMixin):  # type: ignore[misc]
    """A client of the issuer, for Authlib."""

    def __init__(self, name: str) -> None:
        self.client_id = name

    def get_client_id(self) -> str:
        """Its id."""
        return self.client_id

    def check_client_secret(self, client_secret: str) -> bool:
        """Return whether a secret belongs to this client."""
        return client_secret == f"secret of {self.client_id}"

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Allow any method of authentication. Only the terminal's client has no secret."""
        return (method == "none") is (self.client_id in (TERMINAL, BROWSER))

    def check_grant_type(self, grant_type: str) -> bool:
        """Allow client credentials, and the grants of a terminal."""
        if self.client_id == TERMINAL:
            return grant_type in (DEVICE_CODE_GRANT_TYPE, "refresh_token")
        return grant_type == ("authorization_code" if self.client_id in (BROWSER, WEB) else "client_credentials")

    def check_response_type(self, response_type: str) -> bool:
        """Allow codes to the console's clients."""
        return response_type == "code" and self.client_id in (BROWSER, WEB)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Allow the console's address alone."""
        return redirect_uri.endswith("/console/from-issuer")

    def get_allowed_scope(self, scope: str) -> str:
        """Allow any scope."""
        return scope


class Credentials(grants.ClientCredentialsGrant):  # type: ignore[misc]
    """Accept secrets in a header or in the form."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")


class Person:
    """A user of the issuer, for Authlib."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_user_id(self) -> str:
        """The value of the claim `sub`."""
        return self.name


class RefreshToken:
    """A refresh token, for Authlib. Each can be used once."""

    def __init__(self, text: str, user: str) -> None:
        self.text, self.user = text, user

    def check_client(self, client: Application) -> bool:
        """Return whether it belongs to the client."""
        return client.client_id == TERMINAL

    def get_scope(self) -> str:
        """Its scope."""
        return "openid offline_access"


class Issuer:
    """Controls of the issuer for tests. `groups` are the users' groups in its tokens."""

    def __init__(self) -> None:
        self.groups: dict[str, list[str]] = {}
        self.key = new_key("first")
        self.published = [self.key]
        self.asked = 0
        """Number of times that its keys were fetched."""
        self.silent = threading.Event()
        self.broken = False
        self.life_s = LIFE_S
        self.answers: list[tuple[str, bool] | str | None] = []
        """The answers to a terminal's polls, in order: a user's yes or no, an error of RFC 8628, or None (pending)."""
        self.person: str | None = None
        """The person who signs in with a browser; None for a refusal."""
        self.codes: dict[str, AuthorizationCode] = {}
        self.claims: dict[str, object] = {}
        """Additional claims of ID tokens."""
        self.away = False
        """Answer 503 at the token endpoint and for discovery."""
        self.kept: dict[str, RefreshToken] = {}
        """Current refresh tokens of sessions."""
        self.begun: dict[str, DeviceCredentialDict] = {}
        self.server = make_server("127.0.0.1", 0, self._app(), threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def token_url(self) -> str:
        """The token endpoint."""
        return f"{self.url}/token"

    def token(self, user: str, **claims: object) -> str:
        """Issue a token without checking a secret. `claims` are added."""
        now = int(time.time())
        payload = {"iss": self.url, "aud": AUDIENCE, "sub": user, "iat": now, "exp": now + self.life_s, **claims}
        payload.setdefault("groups", self.groups.get(user, []))
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, payload, self.key)

    def rotate(self, name: str, *, keep: bool = True) -> None:
        """Sign with a new key from now on. Older keys remain published or are removed."""
        key = new_key(name)
        self.published = [key, *(self.published if keep else [])]
        self.key = key

    def _keep(self, token: dict[str, Any], request: Any) -> None:  # noqa: ANN401 - Authlib's
        text = token.get("refresh_token")
        if text is not None:
            self.kept[text] = RefreshToken(text, request.user.name)

    def _app(self) -> flask.Flask:
        app = flask.Flask("issuer")
        server = AuthorizationServer(app, query_client=Application, save_token=self._keep)
        server.register_grant(Credentials)
        issuer = self

        class Tokens(JWTBearerTokenGenerator):  # type: ignore[misc]
            def get_jwks(self) -> Any:  # noqa: ANN401 - Authlib's
                return issuer.key

            def get_extra_claims(self, client: Application, _grant: str, user: Person | None, _scope: str) -> Any:  # noqa: ANN401
                return {"groups": issuer.groups.get(user.name if user else client.client_id, [])}

            def get_audiences(self, *_: object) -> str:
                return AUDIENCE

        server.register_endpoint(_beginning(issuer))
        server.register_endpoint(_revoking(issuer))
        for grant in (_by_device(issuer), _by_refreshing(issuer)):
            server.register_grant(grant)
        add_codes(app, server, issuer=issuer, person=Person)

        @app.post("/device")
        def device() -> Any:  # noqa: ANN401
            return server.create_endpoint_response("device_authorization")

        @app.post("/revoke")
        def revoke() -> Any:  # noqa: ANN401
            return server.create_endpoint_response("revocation")

        @app.post("/token")
        def token() -> Any:  # noqa: ANN401 - Flask's
            if issuer.away:
                return "away", 503
            tokens = Tokens(issuer=issuer.url, refresh_token_generator=lambda **_: secrets.token_urlsafe(16))
            tokens.expires_generator = lambda *_: issuer.life_s
            server.register_token_generator("default", tokens)
            return server.create_token_response()

        @app.get("/.well-known/openid-configuration")
        def discovery() -> Any:  # noqa: ANN401
            if issuer.away:
                return "away", 503
            names = ("jwks_uri", "device_authorization_endpoint", "revocation_endpoint")
            endpoints = {name: f"{issuer.url}/{name.partition('_')[0].replace('jwks', 'keys')}" for name in names}
            endpoints["revocation_endpoint"] = f"{issuer.url}/revoke"
            endpoints["authorization_endpoint"] = f"{issuer.url}/authorize"
            return {"issuer": issuer.url, "token_endpoint": issuer.token_url, **endpoints}

        @app.get("/keys")
        def keys() -> Any:  # noqa: ANN401
            issuer.asked += 1
            issuer.silent.wait(30) if issuer.silent_now else None
            return (
                ("away", 503) if issuer.broken else {"keys": [each.as_dict(private=False) for each in issuer.published]}
            )

        return app

    silent_now = False
    """Accept connections but do not answer until `silent` is set."""


def _beginning(issuer: Issuer) -> type[DeviceAuthorizationEndpoint]:
    class DeviceAuthorization(DeviceAuthorizationEndpoint):  # type: ignore[misc]
        INTERVAL = 0

        def get_verification_uri(self) -> str:
            return f"{issuer.url}/activate"

        def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
            credential = {
                **data,
                "client_id": client_id,
                "scope": scope,
                "expires_at": time.time() + data["expires_in"],
            }
            issuer.begun[data["device_code"]] = DeviceCredentialDict(credential)

    return DeviceAuthorization


def _by_device(issuer: Issuer) -> type[DeviceCodeGrant]:
    class ByDevice(DeviceCodeGrant):  # type: ignore[misc]
        def query_device_credential(self, device_code: str) -> DeviceCredentialDict | None:
            return issuer.begun.get(device_code)

        def query_user_grant(self, _user_code: str) -> tuple[Person, bool] | None:
            answer = issuer.answers[0] if issuer.answers else None
            if isinstance(answer, tuple):
                return Person(answer[0]), answer[1]
            return None

        def should_slow_down(self, _credential: object) -> bool:
            return bool(issuer.answers) and issuer.answers.pop(0) == "slow_down"

    return ByDevice


def _by_refreshing(issuer: Issuer) -> type[grants.RefreshTokenGrant]:
    class ByRefreshing(grants.RefreshTokenGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("none",)
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, text: str) -> RefreshToken | None:
            return issuer.kept.get(text)

        def authenticate_user(self, refresh_token: RefreshToken) -> Person:
            return Person(refresh_token.user)

        def revoke_old_credential(self, refresh_token: RefreshToken) -> None:
            issuer.kept.pop(refresh_token.text, None)

    return ByRefreshing


def _revoking(issuer: Issuer) -> type[RevocationEndpoint]:
    class TokenRevocation(RevocationEndpoint):  # type: ignore[misc]
        CLIENT_AUTH_METHODS = ("none",)

        def query_token(self, text: str, _hint: str | None) -> RefreshToken | None:
            return issuer.kept.get(text)

        def revoke_token(self, refresh_token: RefreshToken, _request: object) -> None:
            issuer.kept.pop(refresh_token.text, None)

    return TokenRevocation


def new_key(name: str) -> jwk.RSAKey:
    """Create a key with an id."""
    return jwk.RSAKey.generate_key(2048, parameters={"kid": name, "use": "sig", "alg": "RS256"})


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Run an issuer."""
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        issuer.silent.set()
        issuer.server.shutdown()
        thread.join()
        issuer.server.server_close()
