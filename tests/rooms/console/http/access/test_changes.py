# SPDX-License-Identifier: Apache-2.0
"""Grants and revokes in the console: a page shows the effect before the change, and users without the right are refused
both.
"""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.rooms.console.http.access.test_objects import TABLE, add_reader
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

GRANT = "/console/grant/table/lake/main/raw/flights"
ASSIGN = "/console/assign/user/lake/bob"
WRITE = {"change": "grant", "privileges": "modify_table", "condition": "allow"}


def may_write(node: DriverNode, user: str) -> bool:
    """Return whether a user may commit to the table."""
    body = {"action": "table_commit", "path": ["main", "raw", "flights"], "user": user}
    explanation = node.done("POST", f"{OWN}/metalakes/lake/access/explain", body)
    return bool(explanation["decision"]["allowed"])


def test_grant_page_previews_its_effect_and_form_grants(lake: DriverNode) -> None:
    """The page of a grant shows who gains which access and changes nothing. Its form grants, and redirects to the
    object's page.
    """
    role = add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()
    fields = WRITE | {"role": role}

    page = admin.read(f"{GRANT}?change=grant&role={role.replace(' ', '+')}&privileges=modify_table&condition=allow")
    before = may_write(lake, "ana")
    done = admin.post(GRANT, fields)

    assert "1 user gains write of 1 table: ana" in page.text
    assert ("post", GRANT) in page.actions
    assert not before
    assert done.status == 303
    assert done.headers["location"].startswith(f"{TABLE}?done=")
    assert "modify_table granted to" in admin.read(done.headers["location"]).text
    assert may_write(lake, "ana")
    assert admin.post(GRANT, fields | {"change": "revoke"}).status == 303
    assert not may_write(lake, "ana")


def test_role_assignment_page_counts_gains_and_form_assigns(lake: DriverNode) -> None:
    """The page of an assignment counts what the user gains; its form assigns the role."""
    role = add_reader(lake)
    grant(lake, "bob", "use_catalog", kind="catalog", on="main")
    grant(lake, "bob", "use_schema", kind="schema", on="main.raw")
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read(f"{ASSIGN}?change=assign&role={role.replace(' ', '+')}")
    done = admin.post(ASSIGN, {"change": "assign", "role": role})

    assert "1 user gains read of 1 table: bob" in page.text
    assert done.headers["location"].startswith("/console/people/user/lake/bob?done=")
    assert role in lake.done("GET", f"{API}/lake/users/bob")["user"]["roles"]


@pytest.mark.parametrize("user", ["ana", "bob"])
def test_user_without_grant_rights_is_refused_page_and_change(lake: DriverNode, user: str) -> None:
    """Readers of a table, and members without privileges, are refused the page and the change, and see no effect of
    it.
    """
    role = add_reader(lake)
    lake.ask("POST", f"{API}/lake/users", {"name": "bob"})
    visitor = ConsoleVisitor(lake).sign_in(user)
    query = f"change=grant&role={role.replace(' ', '+')}&privileges=modify_table"

    for answer in (
        visitor.get(f"{GRANT}?{query}"),
        visitor.post(GRANT, WRITE | {"role": role}),
        visitor.get(f"{ASSIGN}?change=assign&role={role.replace(' ', '+')}"),
        visitor.post(ASSIGN, {"change": "assign", "role": role}),
    ):
        assert answer.status == 403, text_of(answer)
        assert "would gain" not in text_of(answer)
    assert not may_write(lake, "ana")


@pytest.mark.parametrize(
    "fields", [{}, {"change": "grant"}, {"change": "hat", "role": "r", "privileges": "select_table"}]
)
def test_incomplete_changes_are_refused(admin: ConsoleVisitor, fields: dict[str, str]) -> None:
    """A form without role, privileges or a known change is 400."""
    assert admin.post(GRANT, fields).status == 400
    assert admin.post("/console/assign/user/lake/admin", fields).status == 400
    assert admin.post("/console/assign/role/lake/r", fields).status == 404


def test_affected_users_beyond_five_are_counted(lake: DriverNode) -> None:
    """The page names five of seven affected users and counts the others."""
    role = add_reader(lake)
    roles = lake.done("GET", f"{API}/lake/users/ana")["user"]["roles"]
    for number in range(6):
        lake.ask("POST", f"{API}/lake/users", {"name": f"ben{number}"})
        lake.done("PUT", f"{API}/lake/permissions/users/ben{number}/grant", {"roleNames": roles})
    query = f"change=revoke&role={role.replace(' ', '+')}&privileges=select_table"

    page = ConsoleVisitor(lake).sign_in().read(f"{GRANT}?{query}")

    assert "7 users lose read of 1 table: ana, ben0, ben1, ben2, ben3 and 2 more" in page.text


def test_preset_of_the_form_includes_the_privileges_above_the_object(lake: DriverNode) -> None:
    """A preset gives a role what it lacks on the containers, too: its page counts the readers, and they may read."""
    role = grant(lake, "bob", "use_catalog", kind="catalog", on="main")
    admin = ConsoleVisitor(lake).sign_in()
    fields = {"change": "grant", "role": role, "privileges": "reader", "condition": "allow"}

    page = admin.read(f"{GRANT}?{urlencode(fields)}")
    done = admin.post(GRANT, fields)
    denied = admin.post(GRANT, fields | {"condition": "deny"})

    assert "1 user gains read of 1 table: bob" in page.text
    assert (
        "SELECT_TABLE on table main.raw.flights, USE_SCHEMA on namespace main.raw"
        in admin.read(done.headers["location"]).text
    )
    assert denied.status == 400
    body = {"action": "table_read", "path": ["main", "raw", "flights"], "user": "bob"}
    assert lake.done("POST", f"{OWN}/metalakes/lake/access/explain", body)["decision"]["allowed"]
