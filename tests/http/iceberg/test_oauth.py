# SPDX-License-Identifier: Apache-2.0
"""OAuth's client credentials: an API token is the secret, in a form or a header; refusals have OAuth's shape."""

from __future__ import annotations

import base64
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
            "limnos token create",
        ),
        ({"grant_type": "client_credentials"}, 401, "invalid_client", "limnos token create"),
        ({"grant_type": "client_credentials", "client_secret": "None"}, 401, "invalid_client", "credential=USER:TOKEN"),
        ({"grant_type": "client_credentials", "client_secret": "lim_1_made-up"}, 401, "invalid_client", "not valid"),
        ({"grant_type": EXCHANGE}, 401, "invalid_client", "limnos token create"),
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
