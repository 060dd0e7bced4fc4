# SPDX-License-Identifier: Apache-2.0
"""Service accounts: rotation of secrets, their tokens, and tokens of ended secrets."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from limnos.http.iceberg.oauth import EXCHANGE
from limnos.model.principals import TokenTrust
from tests.http.admin.identity.test_logins import ask, whoami
from tests.http.driver import API, DriverAnswer, DriverNode, node_at

pytestmark = pytest.mark.slow

OWN = "/api/limnos/v1"
SECRETS = f"{OWN}/users/etl/secrets"
TOKENS = "/iceberg/v1/oauth/tokens"


@pytest.fixture
def node(tmp_path) -> Iterator[DriverNode]:  # noqa: ANN001
    """A server with a service account."""
    with node_at(tmp_path) as running:
        ask(running, "POST", f"{API}/lake/users", {"name": "etl"})
        yield running


def create_secret(node: DriverNode, **fields: object) -> dict:
    """Create a secret."""
    answer = ask(node, "POST", SECRETS, fields)
    assert answer.status == 200, answer.body
    return answer.json()


def end(node: DriverNode, secret: dict) -> DriverAnswer:
    """End a secret."""
    return ask(node, "DELETE", f"{SECRETS}/{secret['id']}")


def form(node: DriverNode, header: str | None = None, **fields: str) -> DriverAnswer:
    """Request a token with the client credentials grant."""
    headers = {} if header is None else {"authorization": header}
    return node.ask(
        "POST",
        TOKENS,
        urlencode(fields).encode(),
        user=None,
        content_type="application/x-www-form-urlencoded",
        **headers,
    )


def opened(node: DriverNode, secret: dict) -> DriverAnswer:
    """Return the answer to a token request with a secret."""
    credentials = {"client_id": str(secret["client_id"]), "client_secret": str(secret["client_secret"])}
    return form(node, grant_type="client_credentials", scope="catalog", **credentials)


def exchanged(node: DriverNode, token: str, header: str | None = None) -> DriverAnswer:
    """Exchange a token for the next one, as Iceberg's Java client does before it expires."""
    exchange_fields = {"subject_token": token, "subject_token_type": "urn:ietf:params:oauth:token-type:access_token"}
    return form(node, header or f"Bearer {token}", grant_type=EXCHANGE, scope="catalog", **exchange_fields)


def test_secret_is_exchanged_for_an_expiring_token(node: DriverNode) -> None:
    """A secret gets a token with an expiry for the service account. The secret itself authenticates no request, and no
    list contains the secret or the token.
    """
    secret = create_secret(node)
    answer = opened(node, secret)

    assert answer.status == 200, answer.body
    assert (answer["token_type"], answer["expires_in"], answer["scope"]) == ("bearer", 3600, "catalog")
    assert answer.headers["cache-control"] == "no-store"
    assert whoami(node, str(answer["access_token"])).json() == {"user": "etl"}
    assert whoami(node, secret["client_secret"]).status == 401
    assert "does not authenticate requests" in whoami(node, secret["client_secret"]).json()["error"]["message"]
    assert [each["user"] for each in ask(node, "GET", f"{OWN}/tokens?all=true").json()["tokens"]] == ["admin"]
    (listed,) = ask(node, "GET", SECRETS).json()["secrets"]
    assert (listed["id"], listed["ended"]) == (secret["id"], False)
    assert secret["client_secret"] not in str(listed)


def test_secrets_rotate(node: DriverNode) -> None:
    """Two secrets are valid at a time. Ending the old one ends its tokens; the new one's stay valid."""
    old = create_secret(node)
    before = str(opened(node, old)["access_token"])
    new = create_secret(node)
    during = [opened(node, each).status for each in (old, new)]
    third = ask(node, "POST", SECRETS, {})
    after = str(opened(node, new)["access_token"])

    assert end(node, old).json() == {"ended": True}
    assert (during, third.status) == ([200, 200], 409)
    assert (whoami(node, before).status, whoami(node, after).status) == (401, 200)
    assert (opened(node, old).status, opened(node, new).status) == (401, 200)
    assert exchanged(node, before).status == 401
    assert end(node, old).json() == {"ended": False}
    assert create_secret(node)["client_id"] == "etl"


def test_ending_a_secret_ends_api_tokens_created_with_it(node: DriverNode) -> None:
    """Ending a secret also ends the API tokens that were created with its session tokens."""
    secret = create_secret(node)
    access = str(opened(node, secret)["access_token"])
    api_token = str(ask(node, "POST", f"{OWN}/tokens", {}, token=access)["token"])
    assert whoami(node, api_token).status == 200

    end(node, secret)

    assert whoami(node, api_token).status == 401


def test_valid_token_is_exchanged_for_a_new_one(node: DriverNode) -> None:
    """A token is exchanged for a new one, and stays valid until its own expiry. Secrets and invalid tokens are not
    exchanged.
    """
    secret = create_secret(node)
    first = str(opened(node, secret)["access_token"])
    second = exchanged(node, first)

    assert second.status == 200
    assert second["access_token"] != first
    assert [whoami(node, each).status for each in (first, str(second["access_token"]))] == [200, 200]
    assert exchanged(node, secret["client_secret"]).status == 401
    assert exchanged(node, first[:-2]).status == 401


def test_expired_token_is_exchanged_with_basic_authentication(node: DriverNode) -> None:
    """An expired token is exchanged with the client's secret by Basic authentication, as Iceberg's Java client does."""
    secret = create_secret(node)
    access = str(opened(node, secret)["access_token"])
    ask(node, "DELETE", f"{OWN}/tokens/{access.split('_')[1]}", token=access)
    basic = base64.b64encode(f"etl:{secret['client_secret']}".encode()).decode()
    wrong = base64.b64encode(b"etl:lim_1_wrong").decode()
    other = base64.b64encode(f"admin:{secret['client_secret']}".encode()).decode()

    following = exchanged(node, access, f"Basic {basic}")

    assert whoami(node, access).status == 401
    assert following.status == 200, following.body
    assert whoami(node, str(following["access_token"])).json() == {"user": "etl"}
    assert [exchanged(node, access, f"Basic {each}").status for each in (wrong, other)] == [401, 401]


def test_token_expires_no_later_than_its_secret(node: DriverNode) -> None:
    """A token expires no later than its secret."""
    answer = opened(node, create_secret(node, expires_in_s=60))

    assert 0 < int(str(answer["expires_in"])) <= 60


def test_only_service_admins_manage_secrets(node: DriverNode) -> None:
    """Only service admins create, list and end secrets, and not their own."""
    secret = create_secret(node)
    access = str(opened(node, secret)["access_token"])
    ask(node, "POST", f"{API}/lake/users", {"name": "bob"})
    bob = str(ask(node, "POST", f"{OWN}/tokens", {"user": "bob"})["token"])

    for token in (access, bob):
        assert ask(node, "GET", SECRETS, token=token).status == 403
        assert ask(node, "POST", SECRETS, {}, token=token).status == 403
        assert ask(node, "DELETE", f"{SECRETS}/{secret['id']}", token=token).status == 403
    assert ask(node, "POST", f"{OWN}/users/admin/secrets", {}).status == 400
    assert opened(node, secret).status == 200


def test_user_has_either_a_password_or_secrets(node: DriverNode) -> None:
    """A user has either a password or secrets. Deleting a missing password ends no secret."""
    words = {"password": "a few words of my own"}
    secret = create_secret(node)
    ask(node, "PUT", f"{OWN}/users/ana/password", words)

    assert ask(node, "PUT", f"{OWN}/users/etl/password", words).status == 409
    assert ask(node, "POST", f"{OWN}/users/ana/secrets", {}).status == 409
    assert ask(node, "DELETE", f"{OWN}/users/etl/password").json() == {"removed": False}
    assert opened(node, secret).status == 200
    end(node, secret)
    assert ask(node, "PUT", f"{OWN}/users/etl/password", words).status == 200


def test_invalid_secret_requests_are_refused(node: DriverNode) -> None:
    """Names with a colon, invalid lifetimes, invalid or foreign ids, and unknown fields are refused."""
    secret = create_secret(node)
    ask(node, "POST", f"{API}/lake/users", {"name": "bob"})
    bob = ask(node, "POST", f"{OWN}/users/bob/secrets").json()
    own = ask(node, "POST", f"{OWN}/tokens", {}).json()

    assert ask(node, "POST", f"{OWN}/users/a%3Ab/secrets", {}).status == 400
    for body in ({"expires_in_s": 0}, {"expires_in_s": -1}, {"expires_in_s": 1 << 60}, {"for_ever": True}, []):
        assert ask(node, "POST", SECRETS, body).status == 400
    for number in ("x", "1", str(bob["id"]), str(own["id"]), "9" * 30):
        assert ask(node, "DELETE", f"{SECRETS}/{number}").status == 404
    assert [opened(node, each).status for each in (secret, bob)] == [200, 200]


def test_secret_of_a_missing_user_is_refused(node: DriverNode) -> None:
    """No secret is created for a user that no metalake has, or has no more; the refusal names the command that adds
    the user. A user of another metalake gets one.
    """
    missing = ask(node, "POST", f"{OWN}/users/etl2/secrets", {})
    create_secret(node)
    ask(node, "DELETE", f"{API}/lake/users/etl")
    removed = ask(node, "POST", SECRETS, {})
    ask(node, "POST", API, {"name": "other"})
    ask(node, "POST", f"{API}/other/users", {"name": "etl2"})

    assert (missing.status, removed.status) == (404, 404)
    assert "User etl2 does not exist in any metalake, so it gets no secret" in missing.json()["error"]["message"]
    assert "'limnos create user etl2'" in missing.json()["error"]["message"]
    assert ask(node, "GET", f"{OWN}/users/etl2/secrets").json()["secrets"] == []
    assert ask(node, "POST", f"{OWN}/users/etl2/secrets", {}).status == 200


def test_old_secrets_are_invalid_for_a_recreated_user(node: DriverNode) -> None:
    """After the user was removed and added again, old secrets and their tokens are invalid."""
    secret = create_secret(node)
    ask(node, "DELETE", f"{API}/lake/users/etl")
    ask(node, "POST", f"{API}/lake/users", {"name": "etl"})

    access = str(opened(node, secret)["access_token"])

    assert ask(node, "GET", f"{API}/lake", token=access).status == 401
    assert ask(node, "GET", f"{API}/lake", token=str(opened(node, create_secret(node))["access_token"])).status == 200


def test_a_disabled_service_account_is_refused(node: DriverNode) -> None:
    """A disabled service account is refused from the next request on, and its secret gets no token until it is
    enabled.
    """
    secret = create_secret(node)
    access = str(opened(node, secret)["access_token"])
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/etl", {"enabled": False})

    refused = opened(node, secret)

    assert ask(node, "GET", f"{API}/lake", token=access).status == 403
    assert (refused.status, refused["error"]) == (401, "invalid_client")
    assert "disabled" in str(refused["error_description"])
    ask(node, "PATCH", f"{OWN}/metalakes/lake/users/etl", {"enabled": True})
    assert opened(node, secret).status == 200


def test_secret_made_by_an_unauthenticated_name_is_invalid(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets and passwords made by an unauthenticated name are invalid where only tokens are accepted."""
    believed = node.post(SECRETS, {}, user="admin").json()
    proven = create_secret(node)
    words = {"password": "a few words of my own"}
    assert node.put(f"{OWN}/users/ana/password", words, user="admin").status == 200
    assert [opened(node, each).status for each in (believed, proven)] == [200, 200]
    services = node.built.services

    monkeypatch.setattr(services, "rules", services.rules._replace(trusts=frozenset({TokenTrust.PROVEN})))

    assert [opened(node, each).status for each in (believed, proven)] == [401, 200]
    assert node.post(f"{OWN}/login", {"user": "ana", **words}, user=None).status == 401


def test_wrong_secret_text_with_a_valid_id_is_refused(node: DriverNode) -> None:
    """A wrong secret text with an existing secret's id is refused as a secret, as a token and in a token exchange."""
    secret, other = create_secret(node), create_secret(node)
    text = str(secret["client_secret"])
    access = str(opened(node, secret)["access_token"])
    guesses = [
        f"lim_{secret['id']}_anything",
        f"lim_{secret['id']}_",
        text[:-1],
        f"{text}x",
        f"lim_{secret['id']}_{str(other['client_secret']).split('_', 2)[2]}",
    ]

    assert [opened(node, {**secret, "client_secret": each}).status for each in guesses] == [401] * len(guesses)
    for each in guesses:
        basic = base64.b64encode(f"etl:{each}".encode()).decode()
        assert exchanged(node, access, f"Basic {basic}").status in (200, 401)
        assert whoami(node, each).status == 401
    assert [
        exchanged(node, f"lim_{access.split('_')[1]}_{end}").status for end in ("anything", text.split("_", 2)[2])
    ] == [401, 401]
    assert opened(node, secret).status == 200


def test_token_of_a_removed_user_has_no_name(node: DriverNode) -> None:
    """A token of a user who was removed and created again is refused by `whoami`, as by other requests."""
    token = ask(node, "POST", f"{OWN}/tokens", {"user": "etl"}).json()["token"]
    before = whoami(node, token)
    ask(node, "DELETE", f"{API}/lake/users/etl")
    ask(node, "POST", f"{API}/lake/users", {"name": "etl"})

    assert before.status == 200
    assert whoami(node, token).status == 401
