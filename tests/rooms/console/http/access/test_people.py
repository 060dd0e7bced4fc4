# SPDX-License-Identifier: Apache-2.0
"""Lists and pages of users, groups and roles: the visible ones, in pages, with their roles and rules."""

from __future__ import annotations

from tests.http.driver import API, DriverNode
from tests.rooms.console.http.access.test_objects import add_reader
from tests.rooms.console.http.visitor import ConsoleVisitor


def test_users_come_in_pages(lake: DriverNode) -> None:
    """A page has a hundred names; names can be filtered by prefix."""
    for number in range(105):
        lake.done("POST", f"{API}/lake/users", {"name": f"u{number:03}"})
    admin = ConsoleVisitor(lake).sign_in()

    first = admin.read("/console/people?kind=user")
    (following,) = [href for href in first.hrefs if "after=" in href]
    second = admin.read(following)

    assert "/console/people/user/lake/u050" in first.hrefs
    assert "/console/people/user/lake/u104" in second.hrefs
    assert "/console/people/user/lake/u050" not in second.hrefs
    assert "u103" in admin.read("/console/people?kind=user&starts=u10").text


def test_readers_see_only_their_own_name_and_role(lake: DriverNode) -> None:
    """A reader sees only their own name and role. Pages of existing and missing users are refused alike."""
    role = add_reader(lake)
    lake.done("POST", f"{API}/lake/users", {"name": "bob"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    assert "bob" not in ana.read("/console/people?kind=user").text
    roles = ana.read("/console/people?kind=role")
    assert role in roles.text
    assert ("post", "/console/people/create") not in roles.actions
    assert ("post", "/console/people/create") in ConsoleVisitor(lake).sign_in().read(
        "/console/people?kind=role"
    ).actions
    assert "no group" in ana.read("/console/people?kind=group").text
    assert ana.get("/console/people/user/lake/bob").status == 403
    assert ana.get("/console/people/user/lake/gone").status == 403


def test_pages_show_roles_and_rules(lake: DriverNode) -> None:
    """A user's page has the roles with forms to change them; a role's page has its objects and privileges."""
    role = add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    user = admin.read("/console/people/user/lake/ana")
    (address,) = [href for href in user.hrefs if href.endswith(f"/people/role/lake/{role}")]
    page = admin.read(address)

    assert role in user.text
    assert ("get", "/console/assign/user/lake/ana") in user.actions
    assert "main.raw.flights table select_table" in page.text
    assert "/console/access/table/lake/main/raw/flights" in page.hrefs
    assert admin.get("/console/people/hat/lake/ana").status == 404
    assert admin.get("/console/people?kind=hat").status == 404
