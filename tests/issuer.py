"""An issuer of tokens for tests: Authlib's authorization server behind a real socket, with discovery, keys and client credentials.

A client's id is the user's name, its secret `secret of NAME`. Keys rotate, the issuer goes away or falls silent when a test says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwk, jwt
from werkzeug.serving import make_server

AUDIENCE = "limnos"
LIFE_S = 3600
logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for each request


class Application(ClientMixin):  # type: ignore[misc]
    """A client of the issuer, as Authlib wants it."""

    def __init__(self, name: str) -> None:
        self.client_id = name

    def get_client_id(self) -> str:
        """Its id."""
        return self.client_id

    def check_client_secret(self, client_secret: str) -> bool:
        """Whether it is its secret."""
        return client_secret == f"secret of {self.client_id}"

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Any way to authenticate is fine."""
        return True

    def check_grant_type(self, grant_type: str) -> bool:
        """Client credentials alone."""
        return grant_type == "client_credentials"

    def get_allowed_scope(self, scope: str) -> str:
        """Any scope."""
        return scope


class Credentials(grants.ClientCredentialsGrant):  # type: ignore[misc]
    """Secrets come in a header or in the form."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")


class Issuer:
    """What a test does to the issuer. `groups` are those its tokens tell, by user."""

    def __init__(self) -> None:
        self.groups: dict[str, list[str]] = {}
        self.key = new_key("first")
        self.published = [self.key]
        self.asked = 0
        """How often its keys were fetched."""
        self.silent = threading.Event()
        self.broken = False
        self.life_s = LIFE_S
        self.server = make_server("127.0.0.1", 0, self._app(), threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def token_url(self) -> str:
        """Where clients get tokens."""
        return f"{self.url}/token"

    def token(self, user: str, **claims: object) -> str:
        """Give out a token without asking for a secret; `claims` come on top."""
        now = int(time.time())
        told = {"iss": self.url, "aud": AUDIENCE, "sub": user, "iat": now, "exp": now + self.life_s, **claims}
        told.setdefault("groups", self.groups.get(user, []))
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, told, self.key)

    def rotate(self, name: str, *, keep: bool = True) -> None:
        """Sign with a new key from now on; the ones before stay published or go."""
        key = new_key(name)
        self.published = [key, *(self.published if keep else [])]
        self.key = key

    def _app(self) -> flask.Flask:
        app = flask.Flask("issuer")
        server = AuthorizationServer(app, query_client=Application, save_token=lambda *_: None)
        server.register_grant(Credentials)
        issuer = self

        class Tokens(JWTBearerTokenGenerator):  # type: ignore[misc]
            def get_jwks(self) -> Any:  # noqa: ANN401 - Authlib's
                return issuer.key

            def get_extra_claims(self, client: Application, *_: object) -> dict[str, object]:
                return {"groups": issuer.groups.get(client.client_id, [])}

            def get_audiences(self, *_: object) -> str:
                return AUDIENCE

        @app.post("/token")
        def token() -> Any:  # noqa: ANN401 - Flask's
            tokens = Tokens(issuer=issuer.url)
            tokens.expires_generator = lambda *_: issuer.life_s
            server.register_token_generator("default", tokens)
            return server.create_token_response()

        @app.get("/.well-known/openid-configuration")
        def discovery() -> Any:  # noqa: ANN401
            return {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", "token_endpoint": issuer.token_url}

        @app.get("/keys")
        def keys() -> Any:  # noqa: ANN401
            issuer.asked += 1
            issuer.silent.wait(30) if issuer.silent_now else None
            return (
                ("away", 503) if issuer.broken else {"keys": [each.as_dict(private=False) for each in issuer.published]}
            )

        return app

    silent_now = False
    """Whether it takes connections and says nothing, until `silent` is set."""


def new_key(name: str) -> jwk.RSAKey:
    """Make a key with an id."""
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
