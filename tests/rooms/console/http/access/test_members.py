# SPDX-License-Identifier: Apache-2.0
"""Members of groups in the console: the list, adding and removing members, the needed privileges, and a user's
groups.
"""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.rooms.console.http.conftest import NASTY
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

STAFF = "/console/people/group/lake/staff"
ADD, REMOVE = "/console/people/members/add", "/console/people/members/remove"
FIELDS = {"metalake": "lake", "group": "staff"}


@pytest.fixture
def staff(admin: ConsoleVisitor) -> ConsoleVisitor:
    """The admin, in a lake with the users ana and ben and the empty group staff."""
    for name in ("ana", "ben"):
        admin.node.done("POST", f"{API}/lake/users", {"name": name})
    admin.node.done("POST", f"{API}/lake/groups", {"name": "staff"})
    return admin


def members_of(node: DriverNode) -> list[str]:
    """Return the names of the members of staff."""
    return node.done("GET", f"{OWN}/metalakes/lake/groups/staff/members")["members"]


def test_a_member_is_added_and_removed(staff: ConsoleVisitor) -> None:
    """The group's page has a form that adds a user, and a button for each member; a user's page has the groups."""
    empty = staff.read(STAFF)
    assert "This group has no members." in empty.text
    assert ("post", ADD) in empty.actions
    assert ("post", REMOVE) not in empty.actions

    done = staff.post(ADD, {**FIELDS, "user": "ana"})
    page = staff.read(done.headers["location"])

    assert "ana is a member of staff" in page.text
    assert members_of(staff.node) == ["ana"]
    assert "/console/people/user/lake/ana" in page.hrefs
    assert ("aria-label", "Remove ana from staff") in page.attributes
    assert STAFF in staff.read("/console/people/user/lake/ana").hrefs
    assert STAFF not in staff.read("/console/people/user/lake/ben").hrefs
    done = staff.post(REMOVE, {**FIELDS, "user": "ana"})
    assert "ana is removed from staff" in staff.read(done.headers["location"]).text
    assert members_of(staff.node) == []
    done = staff.post(REMOVE, {**FIELDS, "user": "ana"})
    assert "ana was not a member of staff" in staff.read(done.headers["location"]).text


def test_members_come_in_pages(staff: ConsoleVisitor) -> None:
    """A page has a hundred members, and the next one begins after the last of them."""
    names = [f"u{number:03}" for number in range(105)]
    for name in names:
        staff.node.done("POST", f"{API}/lake/users", {"name": name})
    staff.node.done("POST", f"{OWN}/metalakes/lake/groups/staff/members", {"users": names})

    first = staff.read(STAFF)
    (following,) = [href for href in first.hrefs if "after=" in href]
    second = staff.read(following)

    assert ("aria-label", "Remove u099 from staff") in first.attributes
    assert ("aria-label", "Remove u100 from staff") not in first.attributes
    assert ("aria-label", "Remove u104 from staff") in second.attributes
    assert ("aria-label", "Remove u099 from staff") not in second.attributes


def test_a_manager_of_groups_alone_changes_no_member(staff: ConsoleVisitor) -> None:
    """MANAGE_GROUPS is not enough to add or remove members, because members get the group's roles. The page has no
    form, and the requests are refused.
    """
    staff.post(ADD, {**FIELDS, "user": "ben"})
    grant(staff.node, "ana", "manage_groups", kind="METALAKE", on="lake")
    ana = ConsoleVisitor(staff.node).sign_in("ana")

    page = ana.read(STAFF)

    assert "ben" in page.text
    assert "/console/people/user/lake/ben" not in page.hrefs
    assert {("post", ADD), ("post", REMOVE)}.isdisjoint(page.actions)
    for path, user in ((ADD, "ana"), (REMOVE, "ben"), (ADD, "nobody")):
        assert ana.post(path, {**FIELDS, "user": user}).status == 403
    assert members_of(staff.node) == ["ben"]


def test_a_manager_of_groups_and_grants_changes_members(staff: ConsoleVisitor) -> None:
    """A user with MANAGE_GROUPS and MANAGE_GRANTS may add and remove members."""
    grant(staff.node, "ana", "manage_groups manage_grants", kind="METALAKE", on="lake")
    ana = ConsoleVisitor(staff.node).sign_in("ana")

    assert ("post", ADD) in ana.read(STAFF).actions
    assert ana.post(ADD, {**FIELDS, "user": "ben"}).status == 303
    assert members_of(staff.node) == ["ben"]


def test_members_are_hidden_from_non_members(staff: ConsoleVisitor) -> None:
    """A member sees the group's members without forms. A user who is not a member gets the same refusals as for a
    missing group.
    """
    staff.post(ADD, {**FIELDS, "user": "ana"})
    ana, ben = (ConsoleVisitor(staff.node).sign_in(name) for name in ("ana", "ben"))

    page = ana.read(STAFF)

    assert "ana" in page.text
    assert ("post", ADD) not in page.actions
    assert STAFF in ana.read("/console/people/user/lake/ana").hrefs
    statuses = {
        (
            ben.get(f"/console/people/group/lake/{group}").status,
            ben.post(ADD, {**FIELDS, "group": group, "user": "ben"}).status,
        )
        for group in ("staff", "nothing")
    }
    assert statuses == {(403, 403)}
    assert members_of(staff.node) == ["ana"]


def test_a_user_managers_page_names_no_hidden_group(staff: ConsoleVisitor) -> None:
    """A user who may manage users does not see a user's groups without rights on them."""
    staff.post(ADD, {**FIELDS, "user": "ben"})
    grant(staff.node, "ana", "manage_users", kind="METALAKE", on="lake")

    answer = ConsoleVisitor(staff.node).sign_in("ana").get("/console/people/user/lake/ben")

    assert answer.status == 200
    assert "staff" not in text_of(answer)


def test_incomplete_form_is_400_and_unknown_name_404(staff: ConsoleVisitor) -> None:
    """A form without a field is refused with 400. Unknown users and groups are 404."""
    for path in (ADD, REMOVE):
        for fields in ({}, FIELDS, {"metalake": "lake", "user": "ana"}, {"group": "staff", "user": "ana"}):
            assert staff.post(path, fields).status == 400
        assert staff.post(path, {**FIELDS, "user": "nobody"}).status == 404
        assert staff.post(path, {**FIELDS, "user": NASTY}).status in {400, 404}
        assert staff.post(path, {**FIELDS, "group": "nothing", "user": "ana"}).status == 404
    assert members_of(staff.node) == []


def test_only_group_pages_have_a_member_list(staff: ConsoleVisitor) -> None:
    """Pages of users and roles have no list of members."""
    staff.node.done("POST", f"{API}/lake/roles", {"name": "readers", "properties": {}, "securableObjects": []})

    for path in ("/console/people/user/lake/ana", "/console/people/role/lake/readers"):
        assert ("post", ADD) not in staff.read(path).actions
