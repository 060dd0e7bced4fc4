# SPDX-License-Identifier: Apache-2.0
"""Requests for access: a refused user asks, who may grant answers with one click; nobody else sees or answers them, and
hidden and missing objects are asked for alike.
"""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.home_needs import ANSWERS_MS
from limnos.services.identity.presets.access_requests import OPEN_MAX
from tests.http.driver import API, OWN, DriverNode, grant
from tests.rooms.console.http.access.test_objects import add_reader
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

PATH = "table/lake/main/raw/flights"
ASK, DECLINE = f"/console/ask/{PATH}", f"/console/requests/{PATH}"
LIST = "/console/requests?metalake=lake"
GRANT = f"/console/grant/{PATH}"
GIVES = {"change": "grant", "user": "ana", "privileges": "reader", "request": "granted"}


def may_read(node: DriverNode, user: str) -> bool:
    """Return whether a user may read the table's rows."""
    body = {"action": "table_read", "path": ["main", "raw", "flights"], "user": user}
    return bool(node.done("POST", f"{OWN}/metalakes/lake/access/explain", body)["decision"]["allowed"])


def records(node: DriverNode, words: str) -> list[dict[str, object]]:
    """Return the audit records whose detail has some words."""
    lines = node.done("GET", f"{OWN}/metalakes/lake/audit?limit=100")["lines"]
    return [each for each in lines if words in str(each.get("detail"))]


@pytest.fixture
def ana(lake: DriverNode) -> ConsoleVisitor:
    """A user who sees the namespace of the table and not the table."""
    lake.ask("POST", f"{API}/lake/users", {"name": "ana"})
    grant(lake, "ana", "use_catalog", kind="catalog", on="main")
    grant(lake, "ana", "use_schema", kind="schema", on="main.raw")
    return ConsoleVisitor(lake).sign_in("ana")


def test_owner_grants_a_request_with_one_click(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """The refusal has a button; the owner's first page and list have the request; the button of the list gives the
    preset and ends the request; both are in the audit, on an object that the asking user may load.
    """
    admin = ConsoleVisitor(lake).sign_in()
    refused = PageReader(text_of(ana.get(f"/console/o/{PATH}")))
    assert ("post", ASK) in refused.actions
    assert refused.faults == []

    response = ana.post(ASK, {"preset": "reader"})
    assert response.status == 303
    assert "You asked for reader on main.raw.flights" in ana.read(response.headers["location"]).text
    home, page = admin.read("/console/"), admin.read(LIST)
    assert "1 request for access: ana" in home.text
    assert LIST in home.hrefs
    assert {("post", GRANT), ("post", DECLINE)} <= set(page.actions)
    assert not may_read(lake, "ana")
    granted = admin.post(GRANT, GIVES)

    assert granted.status == 303
    assert "the preset reader" in admin.read(granted.headers["location"]).text
    assert granted.headers["location"].startswith("/console/requests?")
    assert may_read(lake, "ana")
    assert "No user asks for access" in admin.read(LIST).text
    (record,) = records(lake, "asks for reader on table main.raw.flights")
    assert (record["user"], record["action"], record["object"]["path"]) == ("ana", "access_request", "main.raw")
    assert records(lake, "granted the request of user ana for table main.raw.flights")


def test_owner_declines_a_request(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """A declined request is gone, gives nothing, and is in the audit; to decline it again says so."""
    admin = ConsoleVisitor(lake).sign_in()
    ana.post(ASK, {"preset": "writer"})

    first = admin.read(admin.post(DECLINE, {"user": "ana"}).headers["location"])
    again = admin.read(admin.post(DECLINE, {"user": "ana"}).headers["location"])

    assert "The request of ana is declined" in first.text
    assert "ana has no such request any more" in again.text
    assert "1 request" not in admin.read("/console/").text
    assert not may_read(lake, "ana")
    assert records(lake, "declined the request of user ana for table main.raw.flights")


def test_grant_form_takes_users_groups_and_roles_for_presets(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """The form's field for a role takes `user:`, `group:` or `role:` and a name for a preset; a grant to a user who
    asked for it ends the request.
    """
    admin = ConsoleVisitor(lake).sign_in()
    lake.done("POST", f"{API}/lake/groups", {"name": "ops"})
    ana.post(ASK, {"preset": "reader"})

    page = admin.read(f"{GRANT}?change=grant&role=user:ana&privileges=reader")
    assert "to the user ana" in page.text
    fields = {"change": "grant", "privileges": "reader"}
    assert admin.post(GRANT, {**fields, "role": "user:ana"}).status == 303
    assert admin.post(GRANT, {**fields, "role": "group:ops"}).status == 303
    assert admin.post(GRANT, {**fields, "role": "role:group:ops"}).status == 303
    assert admin.post(GRANT, {**fields, "role": "user:nobody"}).status == 404

    assert may_read(lake, "ana")
    assert "No user asks for access" in admin.read(LIST).text
    assert lake.done("GET", f"{API}/lake/groups/ops")["group"]["roles"] == ["group:ops"]


@pytest.fixture
def dora(lake: DriverNode, ana: ConsoleVisitor) -> ConsoleVisitor:
    """The owner of the namespace of the table, who manages no grants of the metalake, and whom ana asked."""
    grant(lake, "dora", "use_catalog", kind="catalog", on="main")
    body = {"name": "dora", "type": "USER"}
    lake.done("PUT", f"{API}/lake/owners/schema/main.raw", body)
    assert ana.post(ASK, {"preset": "reader"}).status == 303
    return ConsoleVisitor(lake).sign_in("dora")


def test_owner_of_the_namespace_answers_without_rights_on_the_metalake(lake: DriverNode, dora: ConsoleVisitor) -> None:
    """The request is the user's consent: its owner grants it from the list, and gets no role of their own by it. The
    privileges on the catalog, which the owner may not grant, stay as they were.
    """
    assert ("post", GRANT) in dora.read(LIST).actions
    preview = dora.read(f"{GRANT}?change=grant&user=ana&privileges=reader")
    assert "1 user gains read" in preview.text

    assert dora.post(GRANT, GIVES).status == 303

    assert may_read(lake, "ana")
    assert "No user asks for access" in dora.read(LIST).text
    role = lake.done("GET", f"{API}/lake/roles/user:ana")["role"]
    rights = {(each["fullName"], right["name"]) for each in role["securableObjects"] for right in each["privileges"]}
    assert rights == {("main.raw.flights", "select_table"), ("main.raw", "use_schema")}
    assert "owner" not in lake.done("GET", f"{API}/lake/owners/role/user:ana")
    assert dora.post(GRANT, GIVES).status == 404


def test_answers_give_only_what_was_asked_for(lake: DriverNode, dora: ConsoleVisitor) -> None:
    """Another preset, object, user or an answered request are refused, and give nothing."""
    lake.ask("POST", f"{API}/lake/users", {"name": "bob"})
    others = (
        (GRANT, {**GIVES, "privileges": "admin"}),
        (GRANT, {**GIVES, "user": "bob"}),
        (GRANT, {**GIVES, "user": "nobody"}),
        ("/console/grant/namespace/lake/main/raw", GIVES),
    )

    assert [dora.post(path, fields).status for path, fields in others] == [404] * 4
    without = [dora.post(path, {**fields, "request": ""}).status for path, fields in others]
    assert without == [403] * 4
    assert not may_read(lake, "ana")


def test_foreign_role_of_the_name_is_not_assigned_by_an_answer(lake: DriverNode, dora: ConsoleVisitor) -> None:
    """A role `user:ana` that ana does not have, or that others have, too, may hold anything: the list has the reason
    in place of the button, and the answer is refused.
    """
    lake.done("POST", f"{API}/lake/roles", {"name": "user:ana", "properties": {}, "securableObjects": []})

    page = dora.read(LIST)
    assert ("post", GRANT) not in page.actions
    assert "it needs MANAGE_GRANTS on metalake lake" in page.text
    refused = dora.post(GRANT, GIVES)
    assert refused.status == 403
    assert "Ask for access" not in text_of(refused)

    lake.ask("POST", f"{API}/lake/users", {"name": "eve"})
    for name in ("ana", "eve"):
        lake.done("PUT", f"{API}/lake/permissions/users/{name}/grant", {"roleNames": ["user:ana"]})
    assert dora.post(GRANT, GIVES).status == 409
    assert not may_read(lake, "ana")


def test_owner_who_may_not_grant_the_way_sees_why(lake: DriverNode, dora: ConsoleVisitor) -> None:
    """A user without use of the catalog is not granted a table by the owner of its namespace: the grant would give
    nothing. The list says what is needed, and the catalog's owner has the button.
    """
    lake.ask("POST", f"{API}/lake/users", {"name": "bob"})
    bob = ConsoleVisitor(lake).sign_in("bob")
    refused = PageReader(text_of(bob.get(f"/console/o/{PATH}")))
    assert ("post", ASK) in refused.actions
    assert "admin owns metalake lake and can grant it" in refused.text
    assert bob.post(ASK, {"preset": "reader"}).status == 303

    page = dora.read(LIST)

    assert page.actions.count(("post", GRANT)) == 1
    assert page.actions.count(("post", DECLINE)) == 2
    assert "it needs MANAGE_GRANTS on catalog main" in page.text
    assert dora.post(GRANT, {**GIVES, "user": "bob"}).status == 403
    admin = ConsoleVisitor(lake).sign_in()
    assert admin.post(GRANT, {**GIVES, "user": "bob"}).status == 303
    assert may_read(lake, "bob")


def test_others_neither_see_nor_answer_requests(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """A user who may read the table and not grant on it, and the asking user, have no list of it and may not decline or
    grant it.
    """
    add_reader(lake)
    lake.ask("POST", f"{API}/lake/users", {"name": "bob"})
    for privilege, kind, on in (
        ("use_catalog", "catalog", "main"),
        ("use_schema", "schema", "main.raw"),
        ("modify_table", "table", "main.raw.flights"),
    ):
        grant(lake, "bob", privilege, kind=kind, on=on)
    ana.post(ASK, {"preset": "reader"})

    for visitor in (ana, ConsoleVisitor(lake).sign_in("bob")):
        page = visitor.read(LIST)
        assert "No user asks for access" in page.text
        assert DECLINE not in [action for _, action in page.actions]
        assert "1 request for access" not in visitor.read("/console/").text
        assert visitor.post(DECLINE, {"user": "ana"}).status == 403
        assert visitor.post(GRANT, GIVES).status == 403
    assert DECLINE in [action for _, action in ConsoleVisitor(lake).sign_in().read(LIST).actions]


def test_hidden_and_missing_objects_are_asked_for_alike(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """The refusal, the answer and the audit record of a request do not show whether the object exists."""
    answers = []
    for name in ("flights", "nowhere"):
        path = f"table/lake/main/raw/{name}"
        page = PageReader(text_of(ana.get(f"/console/o/{path}")))
        done = ana.post(f"/console/ask/{path}", {"preset": "reader"})
        (record,) = records(lake, f"asks for reader on table main.raw.{name}")
        asking = page.text.partition("Ask for access")[2].replace(name, "NAME")
        answers.append(
            (asking, ("post", f"/console/ask/{path}") in page.actions, done.status, record["object"]["path"])
        )

    assert answers[0] == answers[1]
    assert answers[0][1:] == (True, 303, "main.raw")


WITHDRAW = f"/console/withdraw/{PATH}"


def test_owner_reads_the_reason_and_asker_the_answer(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """The form of the refusal takes a reason; the owner sees it, as text with its lines, and declines with a note; the
    first page of the asking user says who declined, and the page of requests has the note. Others see none of it.
    """
    admin = ConsoleVisitor(lake).sign_in()
    lake.ask("POST", f"{API}/lake/users", {"name": "bob"})
    assert 'name="reason"' in text_of(ana.get(f"/console/o/{PATH}"))
    hostile = 'For <b>May</b>\r\n{{ 7*7 }} " onclick=alert(1)'
    assert ana.post(ASK, {"preset": "reader", "reason": hostile}).status == 303

    body = text_of(admin.get(LIST))
    assert "<b>May</b>" not in body
    assert 'For <b>May</b> {{ 7*7 }} " onclick=alert(1)' in PageReader(body).text
    assert "\n{{ 7*7 }} &quot; onclick=alert(1)</div>" in body
    assert PageReader(body).faults == []
    assert "1 request waits for an answer: reader on main.raw.flights" in ana.read("/console/").text
    assert admin.post(DECLINE, {"user": "ana", "note": "Ask <i>Dora</i>"}).status == 303

    home, page = ana.read("/console/"), ana.read(LIST)
    assert "admin declined your request for reader on main.raw.flights" in home.text
    assert LIST in home.hrefs
    assert "waits for an answer" not in home.text
    assert all(word in page.text for word in ("declined", "Ask <i>Dora</i>", "For <b>May</b>"))
    assert page.faults == []
    for other in (admin, ConsoleVisitor(lake).sign_in("bob")):
        assert all("May" not in other.read(path).text for path in ("/console/", LIST))


def test_answers_leave_the_first_page_by_their_age(
    lake: DriverNode, ana: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three answers have a line of their own, further ones a common one; after a week the first page has none."""
    admin = ConsoleVisitor(lake).sign_in()
    for number in range(5):
        path = f"table/lake/main/raw/t{number}"
        ana.post(f"/console/ask/{path}", {"preset": "reader"})
        admin.post(f"/console/requests/{path}", {"user": "ana"})

    text = ana.read("/console/").text
    assert text.count("admin declined your request for reader on main.raw.t") == 3
    assert "2 more of your requests were answered" in text

    later_ms = lake.built.services.store.time.now_ms() + ANSWERS_MS
    monkeypatch.setattr(lake.built.services.store.time, "now_ms", lambda: later_ms)
    assert "your request" not in ConsoleVisitor(lake).sign_in("ana").read("/console/").text


def test_asker_withdraws_with_one_click(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """The page of requests has a button for each open request of one's own, which ends it, once, and no other's."""
    admin = ConsoleVisitor(lake).sign_in()
    ana.post(ASK, {"preset": "reader"})
    assert ("post", WITHDRAW) in ana.read(LIST).actions
    assert ("post", WITHDRAW) not in admin.read(LIST).actions

    assert admin.post(WITHDRAW, {}).status == 404
    assert ana.post(WITHDRAW, {}, origin="https://evil.example", sec_fetch_site="cross-site").status == 403
    assert "1 request for access" in admin.read("/console/").text
    done = ana.read(ana.post(WITHDRAW, {}).headers["location"])

    assert "Your request for main.raw.flights is withdrawn" in done.text
    assert "Your own requests" not in done.text
    assert ana.post(WITHDRAW, {}).status == 404
    assert admin.post(GRANT, GIVES).status == 404
    assert not may_read(lake, "ana")
    assert records(lake, "withdrew the request for table main.raw.flights")


def test_answered_request_is_no_consent(lake: DriverNode, dora: ConsoleVisitor) -> None:
    """After a refusal the owner's button, the preview and the form of the grant give nothing."""
    assert dora.post(DECLINE, {"user": "ana"}).status == 303

    assert ("post", GRANT) not in dora.read(LIST).actions
    assert dora.post(GRANT, GIVES).status == 404
    assert dora.post(GRANT, {**GIVES, "request": ""}).status == 403
    assert dora.get(f"{GRANT}?change=grant&user=ana&privileges=reader").status == 403
    assert not may_read(lake, "ana")


def test_refused_texts_come_back_in_their_form(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """A reason or a note that is too long is refused, and the page has the form with what was written."""
    admin = ConsoleVisitor(lake).sign_in()
    long = "x" * 501
    reason = ana.post(ASK, {"preset": "reader", "reason": long})
    ana.post(ASK, {"preset": "reader"})
    note = admin.post(DECLINE, {"user": "ana", "note": long})

    for answer, action, what in ((reason, ASK, "reason"), (note, DECLINE, "note")):
        page = PageReader(text_of(answer))
        assert (answer.status, f"The {what} has 501 characters" in page.text) == (400, True)
        assert ("post", action) in page.actions
        assert f">{long}</textarea>" in text_of(answer)
        assert page.faults == []


def test_hostile_names_are_text(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """Markup in the path of a request is shown as text; unknown presets and forms of other sites are refused."""
    admin = ConsoleVisitor(lake).sign_in()
    name = "<script>alert(1)</script>"
    path = "table/lake/main/raw/%3Cscript%3Ealert(1)%3C%2Fscript%3E"

    assert ana.post(f"/console/ask/{path}", {"preset": "reader"}).status == 303
    body = text_of(admin.get(LIST))

    assert name not in body
    assert name in PageReader(body).text
    assert ana.post(ASK, {"preset": "owner"}).status == 400
    for path, fields in ((ASK, {"preset": "reader"}), (DECLINE, {"user": "ana"})):
        assert admin.post(path, fields, origin="https://evil.example", sec_fetch_site="cross-site").status == 403


def test_requests_of_a_user_are_bounded_and_end(lake: DriverNode, ana: ConsoleVisitor) -> None:
    """A user has a bounded number of open requests; repeating one is free. Those of dropped users are not listed."""
    for number in range(OPEN_MAX):
        assert ana.post(f"/console/ask/table/lake/main/raw/t{number}", {"preset": "reader"}).status == 303

    refused = ana.post(ASK, {"preset": "reader"})
    assert refused.status == 400
    assert f"You have {OPEN_MAX} open requests" in text_of(refused)
    assert ana.post("/console/ask/table/lake/main/raw/t0", {"preset": "writer"}).status == 303
    assert f"{OPEN_MAX} requests for access" in ConsoleVisitor(lake).sign_in().read("/console/").text
    lake.done("DELETE", f"{API}/lake/users/ana")
    assert "requests for access: " not in ConsoleVisitor(lake).sign_in().read("/console/").text
