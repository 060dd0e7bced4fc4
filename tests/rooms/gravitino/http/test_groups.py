# SPDX-License-Identifier: Apache-2.0
"""Groups over Gravitino REST."""

from __future__ import annotations

from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant

ALL = f"{API}/lake/groups"


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def test_create_returns_the_group(node: DriverNode) -> None:
    """The answer to a create has name, external id and audit, without roles and without `enabled`."""
    group = node.done("POST", ALL, {"name": "staff", "externalId": "s-1"})["group"]

    assert (group["name"], group["roles"], group["externalId"]) == ("staff", [], "s-1")
    assert "enabled" not in group


def test_list_returns_names_or_details(node: DriverNode) -> None:
    """A list has the names of groups; with `details` it has whole groups."""
    node.done("POST", ALL, {"name": "staff"})

    assert node.get(ALL)["names"] == ["staff"]
    assert [group["name"] for group in node.get(f"{ALL}?details=true").json()["groups"]] == ["staff"]


def test_members_load_their_group(node: DriverNode) -> None:
    """Members may load their group. Other users get the same refusal whether or not the group exists."""
    for name in ("ana", "ben"):
        node.done("POST", f"{API}/lake/users", {"name": name})
    node.done("POST", ALL, {"name": "staff"})
    node.done("POST", f"{OWN}/metalakes/lake/groups/staff/members", {"users": ["ana"]})

    statuses = [node.get(f"{ALL}/staff", user=user).status for user in ("ana", "ben")]

    assert statuses == [200, 403]
    assert node.get(ALL, user="ben")["names"] == []
    assert error_fields(node.get(f"{ALL}/none")) == (404, 1003, "NoSuchGroupException")


def test_existing_group_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409 and code 1004. A user may have the name of a group."""
    node.done("POST", ALL, {"name": "admin"})

    assert error_fields(node.post(ALL, {"name": "admin"})) == (409, 1004, "GroupAlreadyExistsException")


def test_removal_reports_whether_the_group_existed(node: DriverNode) -> None:
    """Removing a group ends its roles for members immediately; the answer says whether it existed."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("POST", ALL, {"name": "staff"})
    node.done("POST", f"{OWN}/metalakes/lake/groups/staff/members", {"users": ["ana"]})
    role = grant(node, "other", "use_catalog", kind="catalog", on="main")
    node.done("PUT", f"{API}/lake/permissions/groups/staff/grant", {"roleNames": [role]})

    before = node.get(f"{API}/lake/catalogs/main", user="ana").status
    answers = [node.delete(f"{ALL}/staff").json() for _ in range(2)]
    after = node.get(f"{API}/lake/catalogs/main", user="ana").status

    assert (before, after) == (200, 403)
    assert answers == [{"code": 0, "removed": True}, {"code": 0, "removed": False}]


def test_changes_need_manage_groups_privilege(node: DriverNode) -> None:
    """Without MANAGE_GROUPS a group can be neither added nor removed."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = [node.post(ALL, {"name": "g"}, user="ana"), node.delete(f"{ALL}/g", user="ana")]

    assert [error_fields(answer) for answer in refused] == [(403, 1008, "ForbiddenException")] * 2
