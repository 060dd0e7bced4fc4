# SPDX-License-Identifier: Apache-2.0
"""Users, groups and roles created in the console, and users disabled and signed out; only administrators may do
this.
"""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

pytestmark = pytest.mark.slow

KIM = "/console/people/user/lake/kim"
MADE = {"metalake": "lake", "name": "kim"}


def names_of(node: DriverNode, kind: str) -> list[str]:
    """Return the names of the metalake's users, groups or roles."""
    return node.done("GET", f"{API}/lake/{kind}s")["names"]


@pytest.mark.parametrize("kind", ["user", "group", "role"])
def test_users_groups_and_roles_are_created_by_form(admin: ConsoleVisitor, kind: str) -> None:
    """The list has a form, which creates the user, group or role and redirects to its page."""
    page = admin.read(f"/console/people?kind={kind}")
    done = admin.post("/console/people/create", {**MADE, "kind": kind})

    assert ("post", "/console/people/create") in page.actions
    assert done.headers["location"].startswith(f"/console/people/{kind}/lake/kim?done=")
    assert f"The {kind} kim is created" in admin.read(done.headers["location"]).text
    assert "kim" in names_of(admin.node, kind)
    assert admin.post("/console/people/create", {**MADE, "kind": kind}).status == 409


def test_a_user_is_disabled_and_enabled(admin: ConsoleVisitor) -> None:
    """The next request of a disabled user is refused. The user's page then offers to enable the user, whose earlier
    session has ended for good: the user signs in again. The administrator's session stays open.
    """
    admin.post("/console/people/create", {**MADE, "kind": "user"})
    kim = ConsoleVisitor(admin.node).sign_in("kim")
    before = kim.get("/console/people?kind=user").status

    off = admin.post("/console/people/enable", {**MADE, "enabled": "no"})
    page = admin.read(KIM)
    refused = kim.get("/console/people?kind=user").status
    on = admin.post("/console/people/enable", {**MADE, "enabled": "yes"})

    assert (before, off.status, on.status) == (200, 303, 303)
    assert refused in {303, 403, 404}
    assert "disabled" in page.text
    assert "Enable" in page.text
    assert kim.get("/console/people?kind=user").status == 303
    assert kim.sign_in("kim").get("/console/people?kind=user").status == 200
    assert admin.get("/console/people?kind=user").status == 200


def test_a_user_is_signed_out_everywhere(admin: ConsoleVisitor) -> None:
    """Signing a user out ends all of the user's sessions and counts them. Other users' sessions stay open."""
    admin.post("/console/people/create", {**MADE, "kind": "user"})
    browsers = [ConsoleVisitor(admin.node).sign_in("kim") for _ in range(2)]

    done = admin.post("/console/people/sign-out", MADE)

    assert "2 sessions ended" in admin.read(done.headers["location"]).text
    assert {each.get("/console/").status for each in browsers} == {303}
    assert admin.get("/console/").status == 200


def test_user_without_privileges_cannot_change_users(admin: ConsoleVisitor) -> None:
    """A user without privileges sees none of the forms, and all of their requests are refused, also about missing
    users.
    """
    for name in ("kim", "ana"):
        admin.post("/console/people/create", {"metalake": "lake", "kind": "user", "name": name})
    kim = ConsoleVisitor(admin.node).sign_in("kim")
    ana = ConsoleVisitor(admin.node).sign_in("ana")

    for kind in ("user", "group", "role"):
        assert "/people/create" not in text_of(ana.get(f"/console/people?kind={kind}"))
        assert ana.post("/console/people/create", {"metalake": "lake", "kind": kind, "name": "eve"}).status == 403
    assert "/people/enable" not in text_of(ana.get("/console/people/user/lake/ana"))
    for name in ("kim", "nobody"):
        fields = {"metalake": "lake", "name": name}
        assert ana.post("/console/people/enable", {**fields, "enabled": "no"}).status == 403
        assert ana.post("/console/people/sign-out", fields).status == 403

    assert kim.get("/console/").status == 200
    assert "eve" not in names_of(admin.node, "user")


def test_invalid_form_is_400_and_unknown_user_404(admin: ConsoleVisitor) -> None:
    """Missing names, unknown kinds and states are 400, an unknown user is 404."""
    for fields in ({}, {"metalake": "lake", "name": "kim", "kind": "hat"}, {"metalake": "lake", "kind": "user"}):
        assert admin.post("/console/people/create", fields).status == 400
    assert admin.post("/console/people/enable", MADE).status == 400
    assert admin.post("/console/people/enable", {**MADE, "enabled": "no"}).status == 404
    assert admin.post("/console/people/sign-out", {"metalake": "lake"}).status == 400
    assert admin.post("/console/people/enable", {"metalake": "lake", "name": "admin", "enabled": "no"}).status == 400


def test_user_page_links_to_accessible_catalogs(admin: ConsoleVisitor) -> None:
    """A user's page links to each catalog with the number of objects that the user may access in it."""
    admin.post("/console/people/create", {**MADE, "kind": "user"})

    page = admin.read(KIM)

    assert "/console/access/catalog/lake/main?reach=kim#reach" in page.hrefs


@pytest.mark.parametrize("way,prefix", [("password", ""), ("token", "lim_")])
def test_form_of_a_new_user_shows_a_password_or_token(admin: ConsoleVisitor, way: str, prefix: str) -> None:
    """The form that creates a user shows a password or token once; with it the user signs in."""
    listed = admin.read("/console/people?kind=user")
    assert ("aria-label", "To hand over") in listed.attributes

    answer = admin.post("/console/people/create", {**MADE, "kind": "user", "way": way})
    text = text_of(answer).partition('id="secret"')[2].partition(">")[2].partition("<")[0]

    assert answer.status == 200
    assert answer.headers.get("content-encoding") is None
    assert text.startswith(prefix)
    assert len(text) >= 24
    fields = {"user": "kim", "password": text} if way == "password" else {"token": text}
    kim = ConsoleVisitor(admin.node)
    assert kim.post("/console/sign-in", fields).status == 303
    assert kim.get("/console/people?kind=user").status == 200
    assert text not in text_of(admin.get(KIM))


def test_page_of_a_user_makes_a_new_password(admin: ConsoleVisitor) -> None:
    """The page of another user has the form, one's own has not; the former password no longer works."""
    admin.post("/console/people/create", {**MADE, "kind": "user"})
    assert ("post", "/console/people/handover") in admin.read(KIM).actions
    assert ("post", "/console/people/handover") not in admin.read("/console/people/user/lake/admin").actions

    texts = [
        text_of(admin.post("/console/people/handover", {**MADE, "way": "password"}))
        .partition('id="secret"')[2]
        .partition(">")[2]
        .partition("<")[0]
        for _ in range(2)
    ]

    old, new = (
        ConsoleVisitor(admin.node).post("/console/sign-in", {"user": "kim", "password": text}).status for text in texts
    )
    assert (old, new) == (401, 303)
    own = admin.post("/console/people/handover", {"metalake": "lake", "name": "admin", "way": "password"})
    assert own.status == 400
    assert admin.post("/console/people/handover", {**MADE, "name": "nobody", "way": "token"}).status == 404
    assert admin.post("/console/people/handover", {**MADE, "way": "hat"}).status == 400
    assert admin.post("/console/people/create", {**MADE, "kind": "role", "way": "token"}).status == 400


def test_handover_by_others_than_service_admins_is_refused(lake: DriverNode) -> None:
    """Who may create users, but is no service admin, sees no choice, and creates none with a credential."""
    grant(lake, "ana", "manage_users", kind="METALAKE", on="lake")
    ana = ConsoleVisitor(lake).sign_in("ana")
    assert ("aria-label", "To hand over") not in ana.read("/console/people?kind=user").attributes

    refused = ana.post("/console/people/create", {**MADE, "kind": "user", "way": "password"})
    assert refused.status == 403
    assert "kim" not in names_of(lake, "user")
    assert ana.post("/console/people/create", {**MADE, "kind": "user"}).status == 303
    assert ("post", "/console/people/handover") not in ana.read(KIM).actions
    for way in ("password", "token"):
        assert ana.post("/console/people/handover", {**MADE, "way": way}).status == 403
