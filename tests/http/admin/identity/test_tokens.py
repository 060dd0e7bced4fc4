# SPDX-License-Identifier: Apache-2.0
"""API tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.driver import API, OWN, DriverAnswer, DriverNode, node_at

TOKENS = f"{OWN}/tokens"


def whoami(node: DriverNode, token: str) -> DriverAnswer:
    """Return the user of a token."""
    return node.get(f"{OWN}/whoami", user=None, authorization=f"Bearer {token}")


def test_token_authenticates_its_creator(node: DriverNode) -> None:
    """The text of a new token is returned once. The token authenticates its creator, and no list contains its text."""
    created = node.done("POST", TOKENS, {"name": "laptop"}, user="ana")

    listed = node.get(TOKENS, user="ana")

    assert (created["user"], created["name"], created["expires_at"], created["revoked"]) == (
        "ana",
        "laptop",
        None,
        False,
    )
    assert whoami(node, created["token"]).json() == {"user": "ana"}
    entry = {key: value for key, value in created.items() if key != "token"}
    assert listed.json()["tokens"] == [{**entry, "state": "user missing"}]
    assert created["token"].encode() not in listed.body


def test_list_has_the_state_of_each_token(tmp_path: Path) -> None:
    """With access control, tokens of disabled and of removed users are not listed as valid, also after another user got
    the name; nor are revoked tokens, and secrets of a missing user.
    """
    with node_at(tmp_path, access=True) as running:
        users = f"{API}/lake/users"

        def states() -> list[str]:
            return [each["state"] for each in running.done("GET", f"{TOKENS}?user=ana")["tokens"]]

        running.done("POST", users, {"name": "ana"})
        running.done("POST", TOKENS, {"user": "ana"})
        observed = [states()]
        running.done("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})
        observed.append(states())
        running.done("DELETE", f"{users}/ana")
        observed.append(states())
        running.done("POST", users, {"name": "ana"})
        second = running.done("POST", TOKENS, {"user": "ana"})
        observed.append(states())
        running.done("DELETE", f"{TOKENS}/{second['id']}")
        observed.append(states())
        running.done("POST", users, {"name": "robot"})
        running.done("POST", f"{OWN}/users/robot/secrets", {})
        (known,) = running.done("GET", f"{OWN}/users/robot/secrets")["secrets"]
        running.done("DELETE", f"{users}/robot")
        (secret,) = running.done("GET", f"{OWN}/users/robot/secrets")["secrets"]

    assert observed == [
        ["valid"],
        ["user disabled"],
        ["user missing"],
        ["user missing", "valid"],
        ["user missing", "revoked"],
    ]
    assert (secret["state"], known["state"]) == ("user missing", "valid")


def test_revoked_token_is_refused_at_the_next_request(node: DriverNode) -> None:
    """Revoking a token returns whether it was valid. Afterwards the token gets 401 and is listed as revoked."""
    created = node.done("POST", TOKENS, {}, user="ana")

    answers = [node.done("DELETE", f"{TOKENS}/{created['id']}", user="ana") for _ in range(2)]

    assert answers == [{"revoked": True}, {"revoked": False}]
    assert whoami(node, created["token"]).status == 401
    assert [token["revoked"] for token in node.get(TOKENS, user="ana").json()["tokens"]] == [True]


def test_expiry_is_listed_in_utc(node: DriverNode) -> None:
    """A token with a lifetime of an hour is listed with its expiry in UTC."""
    created = node.done("POST", TOKENS, {"expires_in_s": 3600}, user="ana")

    assert created["expires_at"].endswith("Z")
    assert created["expires_at"] > created["created_at"]


@pytest.mark.parametrize(
    "body", [{"expires_in_s": 0}, {"expires_in_s": -1}, {"expires_in_s": 10**12}, {"user": ""}, {"x": 1}]
)
def test_invalid_lifetime_or_user_is_400(node: DriverNode, body: object) -> None:
    """An invalid lifetime or user is refused, and no token is created."""
    answer = node.post(TOKENS, body)

    assert answer.status == 400
    assert len(node.get(TOKENS).json()["tokens"]) == 1


def test_only_service_admins_manage_tokens_of_others(node: DriverNode) -> None:
    """Only service admins create, list and revoke tokens of other users."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    created = node.done("POST", TOKENS, {"user": "ana"})

    refused = [
        node.post(TOKENS, {"user": "ana"}, user="ben"),
        node.get(f"{TOKENS}?user=ana", user="ben"),
        node.get(f"{TOKENS}?all=true", user="ben"),
        node.delete(f"{TOKENS}/{created['id']}", user="ben"),
    ]

    assert [answer.status for answer in refused] == [403] * 4
    assert whoami(node, created["token"]).json() == {"user": "ana"}
    assert [token["user"] for token in node.get(f"{TOKENS}?user=ana").json()["tokens"]] == ["ana"]
    assert [token["user"] for token in node.get(f"{TOKENS}?all=true").json()["tokens"]] == ["admin", "ana"]
    assert node.delete(f"{TOKENS}/{created['id']}").json() == {"revoked": True}


def test_anonymous_has_no_tokens(node: DriverNode) -> None:
    """Requests without credentials can neither create nor list tokens."""
    assert [node.post(TOKENS, {}, user=None).status, node.get(TOKENS, user=None).status] == [403, 403]


@pytest.mark.parametrize("token_id", ["77", "x", "9" * 30, "-1", "%C2%B2"])
def test_unknown_token_is_404(node: DriverNode, token_id: str) -> None:
    """An unknown or malformed id is 404 for a service admin."""
    assert node.delete(f"{TOKENS}/{token_id}").status == 404


def test_user_and_all_in_one_request_are_400(node: DriverNode) -> None:
    """`user` and `all` in one request are refused with 400."""
    assert node.get(f"{TOKENS}?user=ana&all=true").status == 400


def test_token_created_with_access_control_off_is_401_once_on(fresh: Callable[[str], Path]) -> None:
    """A token created for the admin while access control is off gets 401 once access control is on. The server's own
    admin token stays valid.
    """
    data = fresh("data")
    with node_at(data, access=False) as node:
        minted = node.done("POST", TOKENS, {"user": "admin"}, user="mallory")
        assert (whoami(node, minted["token"]).status, minted["trust"]) == (200, "open")
    own = (data / "admin.token").read_text().strip()

    with node_at(data) as node:
        answer = whoami(node, minted["token"])
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "created while access control was off" in str(answer["error"]["message"])
        assert whoami(node, own).json() == {"user": "admin"}
        assert (data / "admin.token").read_text().strip() == own


def test_invalid_admin_token_file_is_replaced_at_startup(fresh: Callable[[str], Path]) -> None:
    """At startup, an invalid token in the admin's token file is replaced, here after the admin was removed and added
    again.
    """
    data = fresh("data")
    with node_at(data) as node:
        node.done("POST", f"{API}/lake/users", {"name": "ben"})
        node.done("PUT", f"{API}/lake/owners/METALAKE/lake", {"name": "ben", "type": "USER"})
        for catalog in node.get(f"{API}/lake/catalogs", user="ben").json()["identifiers"]:
            owner = {"name": "ben", "type": "USER"}
            node.done("PUT", f"{API}/lake/owners/CATALOG/{catalog['name']}", owner, user="ben")
        node.done("DELETE", f"{API}/lake/users/admin", user="ben")
        node.done("POST", f"{API}/lake/users", {"name": "admin"}, user="ben")
    old = (data / "admin.token").read_text().strip()

    with node_at(data) as node:
        new = (data / "admin.token").read_text().strip()
        answers = [node.get(f"{API}/lake", user=None, authorization=f"Bearer {token}").status for token in (old, new)]

    assert answers == [401, 200]
