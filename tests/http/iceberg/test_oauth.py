# SPDX-License-Identifier: Apache-2.0
"""OAuth's client credentials: an API token is the secret, in a form or a header; refusals have OAuth's shape."""

from __future__ import annotations

import base64
import json
from urllib.parse import urlencode

import pytest

from limnos.http.iceberg.oauth import EXCHANGE
from tests.http.driver import DriverAnswer, DriverNode

FORM = "application/x-www-form-urlencoded"
ADDRESS = "/iceberg/v1/oauth/tokens"


def token_of(node: DriverNode, user: str, **fields: object) -> str:
    """Create a token for a user."""
    response = node.ask("POST", "/api/limnos/v1/tokens", {"name": "t", "user": user, **fields}, user="admin")
    assert response.status == 200, response.body
    return str(response["token"])


def ask(node: DriverNode, body: bytes | None = None, *, header: str | None = None, **fields: str) -> DriverAnswer:
    """Request a token."""
    form = urlencode(fields).encode() if body is None else body
    headers = {} if header is None else {"authorization": header}
    return node.ask("POST", ADDRESS, form, user=None, content_type=FORM, **headers)


def test_grant_returns_the_secret_as_token(node: DriverNode) -> None:
    """The grant returns the secret, which is an API token, with its remaining lifetime. The token has its user's
    rights.
    """
    token = token_of(node, "admin", expires_in_s=600)

    response = ask(node, grant_type="client_credentials", client_id="admin", client_secret=token, scope="catalog")

    assert response.status == 200
    assert (response["access_token"], response["token_type"], response["scope"]) == (token, "bearer", "catalog")
    assert 500 < int(str(response["expires_in"])) <= 600
    assert response.headers["cache-control"] == "no-store"
    identity = node.ask("GET", "/api/limnos/v1/whoami", user=None, authorization=f"Bearer {token}")
    assert identity["user"] == "admin"


def test_secret_is_accepted_in_header_form_or_token_exchange(node: DriverNode) -> None:
    """The secret may be in a Basic header, in the form without a client name, or be the subject of a token exchange.
    The answer for a token without an expiry has no `expires_in`.
    """
    token = token_of(node, "admin")
    basic = "Basic " + base64.b64encode(f"admin:{token}".encode()).decode()

    for response in (
        ask(node, grant_type="client_credentials", header=basic),
        ask(node, grant_type="client_credentials", client_secret=token),
        ask(node, grant_type=EXCHANGE, subject_token=token, subject_token_type="x"),
        ask(node, grant_type=EXCHANGE, subject_token=token, header="Bearer wrong"),
    ):
        assert response.status == 200, response.body
        assert response["access_token"] == token
        assert "expires_in" not in response.json()


@pytest.mark.parametrize(
    "fields, status, error, words",
    [
        (
            {"grant_type": "client_credentials", "client_id": "admin", "client_secret": "s"},
            401,
            "invalid_client",
            "limnos create token",
        ),
        ({"grant_type": "client_credentials"}, 401, "invalid_client", "limnos create token"),
        ({"grant_type": "client_credentials", "client_secret": "None"}, 401, "invalid_client", "credential=USER:TOKEN"),
        ({"grant_type": "client_credentials", "client_secret": "lim_1_made-up"}, 401, "invalid_client", "not valid"),
        ({"grant_type": EXCHANGE}, 401, "invalid_client", "limnos create token"),
        ({"grant_type": "password", "username": "admin"}, 400, "unsupported_grant_type", "not 'password'"),
        ({"client_secret": "s"}, 400, "invalid_request", "client_credentials"),
    ],
)
def test_refusals_are_oauth_errors_with_advice(
    node: DriverNode, fields: dict[str, str], status: int, error: str, words: str
) -> None:
    """Each refusal has the two fields of OAuth's errors, and advice."""
    response = ask(node, **fields)

    assert response.status == status
    assert set(response.json()) == {"error", "error_description"}
    assert response["error"] == error
    assert words in str(response["error_description"])


def test_token_of_another_user_is_refused_as_secret(node: DriverNode) -> None:
    """A token is accepted as the secret of its own user only."""
    response = ask(node, grant_type="client_credentials", client_id="ana", client_secret=token_of(node, "admin"))

    assert (response.status, response["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff=1", b"grant_type", b"a=1&a=2", b"&".join(b"f%d=1" % i for i in range(60)), b'{"grant_type": "x"}'],
)
def test_non_form_body_returns_400(node: DriverNode, body: bytes) -> None:
    """A body that is not a form is refused with 400 in OAuth's error format."""
    response = ask(node, body)

    assert (response.status, response["error"]) == (400, "invalid_request")


def test_body_of_another_content_type_is_an_invalid_request(node: DriverNode) -> None:
    """A client that sends JSON must not try again with the same request."""
    response = node.ask("POST", ADDRESS, b"{}", user=None, content_type="application/json", content_length="2")

    assert (response.status, response["error"]) == (415, "invalid_request")


def test_revoked_token_is_refused_as_secret(node: DriverNode) -> None:
    """A revoked token and a malformed Basic header are refused as a secret. The access token that was returned for the
    secret before, which is the same token, is refused from the next request on and is not exchanged.
    """
    token = token_of(node, "admin")
    access = str(ask(node, grant_type="client_credentials", client_secret=token)["access_token"])
    bearer = {"authorization": f"Bearer {access}"}
    before = node.ask("GET", "/api/limnos/v1/whoami", user=None, **bearer)
    node.ask("DELETE", f"/api/limnos/v1/tokens/{token.split('_')[1]}", user="admin")

    after = node.ask("GET", "/api/limnos/v1/whoami", user=None, **bearer)
    assert (before.status, after.status, access) == (200, 401, token)
    assert ask(node, grant_type=EXCHANGE, subject_token=access).status == 401
    assert ask(node, grant_type="client_credentials", client_secret=token).status == 401
    assert ask(node, grant_type="client_credentials", client_secret="x", header="Basic !").status == 400
    assert ask(node, grant_type="client_credentials", header="Basic !").status == 401


def jwt_of(node: DriverNode, token: str, **fields: str) -> DriverAnswer:
    """Request a token in JWT form, as Gravitino's clients do."""
    return ask(node, grant_type="client_credentials", client_secret=token, scope="gravitino", **fields)


def whoami(node: DriverNode, header: str) -> DriverAnswer:
    """Ask for the user of an Authorization header."""
    return node.ask("GET", "/api/limnos/v1/whoami", user=None, authorization=header)


def test_scope_of_gravitinos_clients_gets_a_short_jwt(node: DriverNode) -> None:
    """For the scope `gravitino`, the answer is a JWT with the user, that ends after an hour or with the API token, and
    is not the API token.
    """
    for lifetime, ends in (({}, 3600), ({"expires_in_s": 600}, 600)):
        token = token_of(node, "admin", **lifetime)
        response = jwt_of(node, token, client_id="admin")

        text = str(response["access_token"])
        claims = text.split(".")[1]
        document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        assert ends - 5 <= int(str(response["expires_in"])) <= ends
        assert abs(document["exp"] - document["iat"] - ends) <= 5
        assert document["sub"] == "admin"
        assert token.split("_", 2)[2] not in text
        for header in (f"Bearer {text}", "Basic " + base64.b64encode(f"admin:{text}".encode()).decode()):
            assert whoami(node, header)["user"] == "admin"


def test_jwt_ends_with_its_api_token(node: DriverNode) -> None:
    """A revoked API token takes its JWTs along, from the next request. An exchange gives no longer life."""
    token = token_of(node, "admin", expires_in_s=600)
    text = str(jwt_of(node, token)["access_token"])
    exchange = ask(node, grant_type=EXCHANGE, subject_token=text, scope="gravitino")
    assert exchange["access_token"] == text

    node.ask("DELETE", f"/api/limnos/v1/tokens/{token.split('_')[1]}", user="admin")

    assert whoami(node, f"Bearer {text}").status == 401
    assert jwt_of(node, token).status == 401
    assert ask(node, grant_type=EXCHANGE, subject_token=text).status == 401


def test_altered_jwt_is_refused(node: DriverNode) -> None:
    """A JWT with another user, end, id or signature is refused."""
    token = token_of(node, "admin")
    header, claims, signature = str(jwt_of(node, token)["access_token"]).split(".")
    document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))

    for change in ({"sub": "ana"}, {"exp": document["exp"] + 9}, {"jti": token.split("_")[1]}, {"iat": 0}):
        altered = base64.urlsafe_b64encode(json.dumps(document | change, separators=(",", ":")).encode()).decode()
        assert whoami(node, f"Bearer {header}.{altered.rstrip('=')}.{signature}").status == 401, change
    assert whoami(node, f"Bearer {header}.{claims}.{signature[:-1]}").status == 401
    assert whoami(node, f"Bearer {header}.{claims}.{signature}").status == 200


def test_token_of_another_user_than_the_one_of_basic_is_refused(node: DriverNode) -> None:
    """A token as Basic's password needs its own user's name, or none; with another name it is refused."""
    token = token_of(node, "admin")

    statuses = {
        user: whoami(node, "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()).status
        for user in ("admin", "", "ana")
    }

    assert statuses == {"admin": 200, "": 200, "ana": 401}
