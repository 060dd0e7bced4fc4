# SPDX-License-Identifier: Apache-2.0
"""Removing users, groups and roles in the console: the confirmation page, and refusals."""

from __future__ import annotations

import pytest

from tests.http.driver import API, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of


@pytest.mark.parametrize("kind", ["user", "group", "role"])
def test_users_groups_and_roles_are_removed_after_confirmation(admin: ConsoleVisitor, kind: str) -> None:
    """The page of a user, group or role links to a confirmation page with the effects. The removal redirects to the
    list.
    """
    link = f"/console/people/drop/{kind}/lake/kim"
    admin.post("/console/people/create", {"metalake": "lake", "kind": kind, "name": "kim"})
    assert link in admin.read(f"/console/people/{kind}/lake/kim").hrefs
    page = admin.read(link)
    assert "This cannot be undone" in page.text
    assert ("post", link) in page.actions

    done = admin.post(link, {})

    assert done.headers["location"].startswith("/console/people?metalake=lake&kind=")
    assert f"The {kind} kim is dropped" in admin.read(done.headers["location"]).text
    assert "kim" not in admin.node.done("GET", f"{API}/lake/{kind}s")["names"]
    assert (admin.get(link).status, admin.post(link, {}).status) == (404, 404)


def test_confirmation_page_lists_affected_rules_and_roles(admin: ConsoleVisitor) -> None:
    """A role's page counts the objects of its rules, a user's page names the roles."""
    grant(admin.node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    (role,) = admin.node.done("GET", f"{API}/lake/users/ana")["user"]["roles"]

    assert "1 object" in admin.read(f"/console/people/drop/role/lake/{role}").text
    assert role in admin.read("/console/people/drop/user/lake/ana").text


def test_a_dropped_user_is_refused_at_once(admin: ConsoleVisitor) -> None:
    """The next request of a removed user's session is refused."""
    admin.post("/console/people/create", {"metalake": "lake", "kind": "user", "name": "kim"})
    kim = ConsoleVisitor(admin.node).sign_in("kim")
    assert kim.get("/console/people?kind=user").status == 200

    admin.post("/console/people/drop/user/lake/kim", {})

    assert kim.get("/console/people?kind=user").status in {303, 403, 404}


def test_metalake_owner_cannot_be_removed(admin: ConsoleVisitor) -> None:
    """The page of the metalake's owner has no link to remove the user, and the refusal says what to do."""
    link = "/console/people/drop/user/lake/admin"

    assert link not in admin.read("/console/people/user/lake/admin").hrefs
    answer = admin.post(link, {})
    assert answer.status == 400
    assert "give it another owner first" in text_of(answer)


def test_user_without_privileges_cannot_remove_users(admin: ConsoleVisitor) -> None:
    """A user without privileges sees no link, and their requests are refused, also for missing names."""
    for kind in ("user", "group", "role"):
        admin.post("/console/people/create", {"metalake": "lake", "kind": kind, "name": "kim"})
    admin.post("/console/people/create", {"metalake": "lake", "kind": "user", "name": "ana"})
    ana = ConsoleVisitor(admin.node).sign_in("ana")

    assert "/people/drop/" not in text_of(ana.get("/console/people/user/lake/ana"))
    for kind in ("user", "group", "role"):
        statuses = {
            (ana.get(link).status, ana.post(link, {}).status)
            for link in (f"/console/people/drop/{kind}/lake/{name}" for name in ("kim", "nobody"))
        }
        assert len(statuses) == 1, kind
        assert statuses <= {(403, 403), (404, 404)}
        assert "kim" in admin.node.done("GET", f"{API}/lake/{kind}s")["names"]
    assert admin.post("/console/people/drop/thing/lake/kim", {}).status == 404
