# SPDX-License-Identifier: Apache-2.0
"""Members of groups."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant

MEMBERS = f"{OWN}/metalakes/lake/groups/staff/members"


@pytest.fixture
def filled(node: DriverNode) -> DriverNode:
    """A node with users ana and ben, and an empty group staff."""
    for name in ("ana", "ben"):
        node.done("POST", f"{API}/lake/users", {"name": name})
    node.done("POST", f"{API}/lake/groups", {"name": "staff"})
    return node


def test_adding_and_removing_members_is_idempotent(filled: DriverNode) -> None:
    """Adding members returns all members, sorted, and is idempotent; removing returns whether the user was a member."""
    seen = [
        filled.get(MEMBERS).json(),
        filled.done("POST", MEMBERS, {"users": ["ben"]}),
        filled.done("POST", MEMBERS, {"users": ["ana", "ben"]}),
        filled.done("DELETE", f"{MEMBERS}/ben"),
        filled.done("DELETE", f"{MEMBERS}/ben"),
        filled.get(MEMBERS).json(),
    ]

    assert seen == [
        {"members": []},
        {"members": ["ben"]},
        {"members": ["ana", "ben"]},
        {"removed": True},
        {"removed": False},
        {"members": ["ana"]},
    ]


def test_membership_applies_from_the_next_request(filled: DriverNode) -> None:
    """A member has the group's roles from the next request on, and loses them at the end of the membership."""
    role = grant(filled, "other", "use_catalog", kind="catalog", on="main")
    filled.done("PUT", f"{API}/lake/permissions/groups/staff/grant", {"roleNames": [role]})
    statuses = [filled.get(f"{API}/lake/catalogs/main", user="ana").status]

    filled.done("POST", MEMBERS, {"users": ["ana"]})
    statuses.append(filled.get(f"{API}/lake/catalogs/main", user="ana").status)
    filled.done("DELETE", f"{MEMBERS}/ana")
    statuses.append(filled.get(f"{API}/lake/catalogs/main", user="ana").status)

    assert statuses == [403, 200, 403]


def test_unknown_user_prevents_adding_all_members(filled: DriverNode) -> None:
    """If one of the users to add is unknown, the answer is 404 and no user is added."""
    answer = filled.post(MEMBERS, {"users": ["ana", "none"]})

    assert (answer.status, answer.json()["error"]["code"]) == (404, "not-found")
    assert filled.get(MEMBERS).json() == {"members": []}


def test_unknown_group_is_404(filled: DriverNode) -> None:
    """A missing group is 404 to a user who may manage groups."""
    path = f"{OWN}/metalakes/lake/groups/none/members"

    answers = [filled.get(path), filled.post(path, {"users": ["ana"]}), filled.delete(f"{path}/ana")]

    assert [answer.status for answer in answers] == [404] * 3


def test_manage_groups_is_not_enough_to_add_members(filled: DriverNode) -> None:
    """MANAGE_GROUPS is not enough to add members, because members get the group's roles."""
    grant(filled, "ana", "manage_groups", kind="metalake", on="lake")

    refused = filled.post(MEMBERS, {"users": ["ana"]}, user="ana")
    grant(filled, "ana", "manage_grants", kind="metalake", on="lake")
    allowed = filled.post(MEMBERS, {"users": ["ana"]}, user="ana")

    assert (refused.status, allowed.status) == (403, 200)


def test_member_may_list_members_and_non_member_is_refused(filled: DriverNode) -> None:
    """A member may list the group's members; other users are refused."""
    filled.done("POST", MEMBERS, {"users": ["ana"]})

    assert [filled.get(MEMBERS, user=user).status for user in ("ana", "ben")] == [200, 403]
