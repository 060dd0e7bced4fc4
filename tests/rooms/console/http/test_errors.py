# SPDX-License-Identifier: Apache-2.0
"""Errors of forms: their message, the sent values, and the link back to the form."""

from __future__ import annotations

import html
import re

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

OWN = {"sec_fetch_site": "same-origin", "origin": "http://localhost:8090"}
GRANT = "/console/grant/table/lake/main/raw/flights"
ACCESS = "http://localhost:8090/console/access/table/lake/main/raw/flights"
NOT_BACK = (
    "https://evil.example.com/console/tags",
    "http://localhost:8090/elsewhere",
    "http://localhost:8090/console/../iceberg/v1/config",
    "http://localhost:8090/console/tags/create",
    "http://localhost:8090@evil.example.com/console/tags",
    "javascript:alert(1)",
    "http://[/console/tags",
)
"""Values of Referer that are not pages of the console at this origin."""


def create_tag(admin: ConsoleVisitor, referer: str, **fields: str) -> DriverAnswer:
    """Send the form that creates a tag, by default with a name that is already in use."""
    body = {"metalake": "lake", "name": "pii", "comment": "Names & <addresses>", "values": "a, b"} | fields
    return admin.post("/console/tags/create", body, **OWN, referer=referer)


def test_refused_form_shows_the_message_and_retains_values(admin: ConsoleVisitor) -> None:
    """The error page has the service's message, the form with the sent values, and a link back without the previous
    notice.
    """
    first = create_tag(admin, "http://localhost:8090/console/tags?metalake=lake")

    again = create_tag(admin, "http://localhost:8090/console/tags?metalake=lake&done=x.y")
    text, page = text_of(again), PageReader(text_of(again))

    assert (first.status, again.status) == (303, 409)
    assert "This was not done" in page.text
    assert "Back to the form" in page.text
    assert "/console/tags?metalake=lake" in page.hrefs
    assert not [each for each in page.hrefs if "done=" in each]
    assert ("post", "/console/tags/create") in page.actions
    assert 'value="Names &amp; &lt;addresses&gt;"' in text
    assert 'value="a, b"' in text
    assert page.faults == []


@pytest.mark.parametrize("referer", NOT_BACK)
def test_back_link_leads_only_to_console_pages(admin: ConsoleVisitor, referer: str) -> None:
    """The error page has no link back if the Referer has another origin, is outside of the console, or names no
    page.
    """
    answer = create_tag(admin, referer, name="")

    assert answer.status == 400
    assert "Back to the form" not in text_of(answer)
    assert "evil" not in text_of(answer)


def test_back_link_of_a_form_at_its_page_needs_no_referer(admin: ConsoleVisitor) -> None:
    """A form that is posted to the URL of its page gets a link back to it without a Referer."""
    path = "/console/restrictions/table/lake/main/raw/flights"
    answer = admin.post(
        path, {"change": "set", "name": "r", "column": "nothing", "mask": "no-mask", "filter": "id > 1"}
    )

    assert answer.status == 400
    assert path in PageReader(text_of(answer)).hrefs
    assert 'value="id &gt; 1"' in text_of(answer)


@pytest.mark.parametrize("path", [GRANT, "/console/assign/user/lake/admin"])
def test_an_unknown_role_is_an_error_of_the_form(lake: DriverNode, admin: ConsoleVisitor, path: str) -> None:
    """The page that previews a grant or an assignment names the missing role, and has a form for another role."""
    change = "assign" if "assign" in path else "grant&privileges=select_table&condition=allow"
    answer = admin.get(f"{path}?change={change}&role=reeders", referer=ACCESS)
    page = PageReader(text_of(answer))

    assert answer.status in {400, 404}
    assert "This was not done" in page.text
    assert "reeders" in page.text
    assert ("get", path) in page.actions
    assert "/console/access/table/lake/main/raw/flights" in page.hrefs
    assert "trash" not in page.text


def test_other_errors_have_their_own_titles(lake: DriverNode, admin: ConsoleVisitor) -> None:
    """The page of a missing object and the page of a refused form have different titles."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    refused = create_tag(ConsoleVisitor(lake).sign_in("ana"), "http://localhost:8090/console/tags")

    assert "There is no such page or object" in text_of(admin.get("/console/tag/lake/nothing"))
    assert refused.status == 403
    assert "You may not do this" in text_of(refused)
    assert "Back to the form" in text_of(refused)


def test_refusal_names_owners_or_missing_rights(lake: DriverNode) -> None:
    """A refusal about an object names the owners who can change it. A refusal about the server names the missing rights
    and no object.
    """
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    ana = ConsoleVisitor(lake).sign_in("ana")

    table = PageReader(text_of(ana.get("/console/o/table/lake/main/raw/flights")))
    server = PageReader(text_of(ana.get("/console/settings")))

    assert "admin owns catalog main and can grant it" in table.text
    assert "limnos access explain table_load main.raw.flights --kind table" in table.text
    assert "Ask for access" not in server.text
    assert "lacks the rights of a service admin" in server.text
    assert "server server" not in server.text


def test_page_of_a_missing_metalake_is_like_that_of_a_foreign_one(lake: DriverNode) -> None:
    """A user of another metalake, or of none, gets the same page about a metalake that exists and one that does not."""
    stranger = ConsoleVisitor(lake).sign_in("stranger")
    answers = [stranger.get(f"/console/o/table/{name}/main/raw/flights") for name in ("lake", "nope")]
    texts = [PageReader(text_of(each)).text.replace("lake", "").replace("nope", "") for each in answers]
    ids = re.compile("[0-9a-f]{16,}")

    assert answers[0].status == answers[1].status
    assert ids.sub("", texts[0]) == ids.sub("", texts[1])


def test_refusal_has_an_address_with_which_the_owner_grants(lake: DriverNode) -> None:
    """The address of a refusal opens the filled-in grant for the owner, whose button grants; nobody else may."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    ana, admin = ConsoleVisitor(lake).sign_in("ana"), ConsoleVisitor(lake).sign_in()
    path = "/console/o/table/lake/main/raw/flights"
    text = text_of(ana.get(path))
    link = html.unescape(text.partition('id="ask"')[2].partition(">")[2].partition("<")[0])

    assert link.startswith(f"http://localhost:8090{GRANT}?change=grant&user=ana")
    own = link.removeprefix("http://localhost:8090")
    assert ana.get(own).status == 403
    page = admin.read(own)
    assert "the user ana" in page.text
    fields = {"change": "grant", "user": "ana", "role": "", "privileges": "reader", "condition": ""}
    assert all(("value", value) in page.attributes for value in fields.values())
    assert ana.post(GRANT, fields).status == 403
    assert admin.post(GRANT, fields | {"role": "r"}).status == 400
    assert admin.post(GRANT, fields | {"privileges": "select_table"}).status == 400
    assert admin.post(GRANT, fields).status == 303
    assert ana.get(path).status == 200
    assert "admin owns table main.raw.flights" in PageReader(
        text_of(ana.get(path.replace("/o/", "/rename/")))
    ).text or ("You may not rename it" in text_of(ana.get(path.replace("/o/", "/rename/"))))


def test_refusal_names_no_owner_of_hidden_objects(lake: DriverNode) -> None:
    """The refusal of a hidden object names the owner of the container that the caller sees, as of a missing object; a
    member without any right gets the metalake's owner, whom every member sees.
    """
    lake.done("POST", f"{API}/lake/users", {"name": "eve"})
    lake.done("PUT", f"{API}/lake/owners/table/main.raw.flights", {"name": "eve", "type": "USER"})
    lake.done("POST", f"{API}/lake/users", {"name": "bob"})
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    ana, bob = (ConsoleVisitor(lake).sign_in(user) for user in ("ana", "bob"))
    paths = [f"/console/o/table/lake/main/raw/{name}" for name in ("flights", "nothing")]

    for visitor in (ana, bob):
        hidden, missing = (PageReader(text_of(visitor.get(path))).text for path in paths)
        assert hidden.replace("flights", "nothing") == missing
        assert "eve" not in hidden
    assert "admin owns metalake lake and can grant it" in text_of(bob.get(paths[0]))


def test_unknown_addresses_keep_the_navigation(admin: ConsoleVisitor) -> None:
    """An unknown address answers 404 with the navigation for a signed-in user, and without a session without it."""
    for path in ("/console/nothing", "/console/o", "/console/people/user/lake"):
        answer = admin.get(path)
        page = PageReader(text_of(answer))
        assert answer.status == 404
        assert "/console/o/catalog/lake/main" in page.hrefs
        assert page.faults == []
        plain = ConsoleVisitor(admin.node).get(path)
        assert plain.status == 404
        assert "catalog/lake/main" not in text_of(plain)
