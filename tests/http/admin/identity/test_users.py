# SPDX-License-Identifier: Apache-2.0
"""Disabling and enabling users."""

from __future__ import annotations

from tests.http.driver import API, OWN, DriverNode


def test_disabled_user_is_refused_at_the_next_request(node: DriverNode) -> None:
    """A disabled user is refused in every protocol and accepted again when enabled; both are idempotent."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    path = f"{OWN}/metalakes/lake/users/ana"
    statuses = [node.get(f"{API}/lake", user="ana").status]

    for enabled in (False, False, True):
        changed = node.done("PATCH", path, {"enabled": enabled})
        assert changed == {"user": {"name": "ana", "enabled": enabled}}
        statuses.append(node.get(f"{API}/lake", user="ana").status)

    assert statuses == [200, 403, 403, 200]


def test_disabled_user_is_listed_as_disabled(node: DriverNode) -> None:
    """A disabled user keeps name and roles and is listed as disabled. The user's own list of metalakes is empty."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})

    assert node.get(f"{API}/lake/users/ana").json()["user"]["enabled"] is False
    assert node.get(API, user="ana").json()["metalakes"] == []


def test_owner_of_the_metalake_cannot_be_disabled(node: DriverNode) -> None:
    """Disabling the owner of the metalake is 400, and the message says to transfer the ownership first."""
    answer = node.patch(f"{OWN}/metalakes/lake/users/admin", {"enabled": False})

    assert answer.status == 400
    assert "another owner" in answer.json()["error"]["message"]


def test_unknown_user_is_404(node: DriverNode) -> None:
    """A missing user is 404 to a user who may manage users."""
    assert node.patch(f"{OWN}/metalakes/lake/users/none", {"enabled": False}).status == 404


def test_disabling_needs_manage_users(node: DriverNode) -> None:
    """A member without MANAGE_USERS may disable nobody, including themselves."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    answer = node.patch(f"{OWN}/metalakes/lake/users/ana", {"enabled": False}, user="ana")

    assert answer.status == 403
    assert "MANAGE_USERS" in answer.json()["error"]["message"]


def test_groups_of_a_user_are_those_that_the_caller_may_load(node: DriverNode) -> None:
    """A user sees their own groups, sorted, and those of others with the right to manage users and groups."""
    for name in ("ana", "ben"):
        node.done("POST", f"{API}/lake/users", {"name": name})
    for group in ("staff", "finance", "other"):
        node.done("POST", f"{API}/lake/groups", {"name": group})
    for group in ("staff", "finance"):
        node.done("POST", f"{OWN}/metalakes/lake/groups/{group}/members", {"users": ["ana"]})
    path = f"{OWN}/metalakes/lake/users/ana/groups"

    assert node.get(path).json() == {"groups": ["finance", "staff"]}
    assert node.get(path, user="ana").json() == {"groups": ["finance", "staff"]}
    assert node.get(path, user="ben").status == 403
    assert node.get(f"{OWN}/metalakes/lake/users/none/groups").status == 404
