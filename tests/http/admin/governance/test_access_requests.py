# SPDX-License-Identifier: Apache-2.0
"""Requests for access over the API: pages of those that the caller may answer, its own with reasons and answers,
grants, refusals and withdrawals.
"""

from __future__ import annotations

import pytest

from limnos.services.identity.presets import access_requests
from limnos.services.identity.presets.access_requests import OPEN_MAX
from limnos.services.request.request_view import RequestView
from limnos.store.identity import access_answers
from limnos.store.identity.access_requests import AccessRequestRow
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_table, make_view

URL = f"{OWN}/metalakes/lake/access/requests"
TABLE = {"kind": "table", "path": ["main", "a", "t"]}
ANSWER = {**TABLE, "answer": "grant", "user": "ana", "preset": "reader"}
REASON = "I build the monthly report.\r\nUntil <b>June</b>\u202f\U0001f600"
WITHDRAW = f"{URL}/withdraw"
DECLINE = {**ANSWER, "answer": "decline"}


@pytest.fixture
def crew(node: DriverNode) -> DriverNode:
    """A node with a table, user ana who may see its namespace alone, and user bob who may do nothing."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a"})
    make_table(node, "a", "t")
    for name in ("ana", "bob"):
        node.done("POST", f"{API}/lake/users", {"name": name})
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.a")
    return node


def may_read(node: DriverNode) -> bool:
    """Return whether ana may read the table's rows."""
    body = {"action": "table_read", "path": TABLE["path"], "user": "ana"}
    return bool(node.done("POST", f"{OWN}/metalakes/lake/access/explain", body)["decision"]["allowed"])


def listed(node: DriverNode, query: str = "", **caller: str) -> list[str]:
    """Return the names of the objects that a caller's list of requests has."""
    return [each["path"][-1] for each in node.ask("GET", f"{URL}{query}", **caller).json()["requests"]]


def own(node: DriverNode, user: str = "ana") -> list[dict[str, object]]:
    """Return a user's own requests."""
    requests: list[dict[str, object]] = node.ask("GET", f"{URL}?own=true", user=user).json()["requests"]
    return requests


def states(node: DriverNode, user: str = "ana") -> list[tuple[object, object]]:
    """Return the name of the object and the state of each of a user's own requests."""
    return [(each["path"][-1], each["state"]) for each in own(node, user)]  # type: ignore[index]


def test_request_is_granted_once(crew: DriverNode) -> None:
    """The asking user and who may grant see the request; granting gives the preset and ends it; a second grant, and one
    of another preset, are refused and give nothing.
    """
    done = crew.ask("POST", URL, TABLE, user="ana")
    (request,) = crew.done("GET", URL)["requests"]
    (own_request,) = own(crew)
    other_preset = crew.ask("POST", f"{URL}/answer", {**ANSWER, "preset": "writer"})

    assert (done.status, done.json()["requested"]) == (200, True)
    assert {**request, "state": "open"} == own_request
    assert (request["user"], request["preset"], request["kind"], request["path"]) == ("ana", "reader", *TABLE.values())
    assert len(request["id"]) == 16
    assert (other_preset.status, may_read(crew)) == (404, False)

    granted = crew.done("POST", f"{URL}/answer", ANSWER)

    assert (granted["existed"], may_read(crew), listed(crew)) == (True, True, [])
    assert crew.ask("POST", f"{URL}/answer", ANSWER).status == 404
    lines = crew.done("GET", f"{OWN}/metalakes/lake/audit?limit=50")["lines"]
    details = [str(each.get("detail")) for each in lines]
    assert any("asks for reader on table main.a.t" in each for each in details)
    assert any("granted the request of user ana for table main.a.t" in each for each in details)


def test_others_neither_see_nor_answer(crew: DriverNode) -> None:
    """A user who may not grant on the object has an empty list, and is refused alike whether there is a request."""
    before = crew.ask("POST", f"{URL}/answer", ANSWER, user="bob")
    crew.ask("POST", URL, TABLE, user="ana")
    after = crew.ask("POST", f"{URL}/answer", ANSWER, user="bob")
    declined = crew.ask("POST", f"{URL}/answer", {**ANSWER, "answer": "decline"}, user="bob")

    assert (before.status, after.status, declined.status) == (403, 403, 403)
    assert before.json()["error"]["message"] == after.json()["error"]["message"]
    assert (listed(crew, user="bob"), listed(crew, user="ana"), listed(crew)) == ([], [], ["t"])
    assert not may_read(crew)


def test_hidden_and_missing_objects_are_asked_for_alike(crew: DriverNode) -> None:
    """The answers and audit records for an object that exists and for one that does not are the same."""
    for name in ("t", "gone"):
        done = crew.ask("POST", URL, {"kind": "table", "path": ["main", "a", name]}, user="ana")
        assert (done.status, done.json()) == (200, {**done.json(), "requested": True})
    lines = crew.done("GET", f"{OWN}/metalakes/lake/audit?limit=50")["lines"]
    records = [each for each in lines if each.get("action") == "access_request"]

    assert [(each["user"], each["object"]["path"]) for each in records] == [("ana", "main.a")] * 2
    assert set(listed(crew)) == {"t", "gone"}


def test_pages_have_every_request_once(crew: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of any size have all requests, the newest first, none twice, though one request reads few rows and all have
    few different times. Those that the caller may not answer are skipped.
    """
    monkeypatch.setattr(access_requests, "READ_MAX", 3)
    names = [f"t{number}" for number in range(OPEN_MAX)]
    for name in names:
        assert crew.ask("POST", URL, {"kind": "table", "path": ["main", "a", name]}, user="ana").status == 200
    refused = crew.ask("POST", URL, TABLE, user="ana")
    assert refused.status == 400

    for limit in (1, 2, 3, 7, 100):
        pages: list[str] = []
        query = f"?limit={limit}"
        while True:
            page = crew.done("GET", URL + query)
            pages += [each["path"][-1] for each in page["requests"]]
            if page["after"] is None:
                break
            query = f"?limit={limit}&after={page['after']}"
        assert sorted(pages) == sorted(names), limit
    empty = crew.ask("GET", f"{URL}?limit=100", user="bob").json()
    assert (empty["requests"], empty["after"] is None) == ([], False)


@pytest.mark.parametrize(
    "query", ["?limit=0", "?limit=101", "?after=x", "?after=1.-1", f"?after={'9' * 40}.1", "?own=maybe"]
)
def test_wrong_parameters_are_refused(crew: DriverNode, query: str) -> None:
    """Limits out of range, page tokens that no answer has, and unknown words are bad requests."""
    assert crew.ask("GET", URL + query).status == 400


def test_wrong_bodies_are_refused(crew: DriverNode) -> None:
    """An unknown preset, a metalake, an empty path and an unknown answer are bad requests."""
    for body in ({**TABLE, "preset": "owner"}, {"kind": "metalake", "path": []}, {"kind": "table", "path": []}):
        assert crew.ask("POST", URL, body, user="ana").status == 400
    assert crew.ask("POST", f"{URL}/answer", {**ANSWER, "answer": "ignore"}).status == 400
    assert crew.ask("POST", URL, TABLE, user="stranger").status == 403


def test_requests_are_decided_in_small_parts_until_the_page_is_full(
    crew: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others run between two parts of a list, and requests after a full page are not decided."""
    parts: list[int] = []
    answerable = access_requests._answerable

    def counted(view: RequestView, *, metalake: str, rows: list[AccessRequestRow]) -> object:
        parts.append(len(rows))
        return answerable(view, metalake=metalake, rows=rows)

    for number in range(OPEN_MAX):
        crew.done("POST", URL, {"kind": "table", "path": ["main", "a", f"t{number}"]}, user="ana")
    crew.get(URL)
    monkeypatch.setattr(access_requests, "DECIDED_AT_ONCE", 4)
    monkeypatch.setattr(access_requests, "_answerable", counted)

    names = listed(crew, "?limit=6")

    assert len(names) == 6
    assert parts == [4, 4]


def test_reason_is_read_by_those_who_may_answer(crew: DriverNode) -> None:
    """The reason is in the list of those who may answer and in one's own, with line feeds alone; another user and the
    audit do not have it. A new request replaces it.
    """
    assert crew.ask("POST", URL, {**TABLE, "reason": f"  {REASON}\n\n"}, user="ana").status == 200

    (request,) = crew.done("GET", URL)["requests"]
    assert request["reason"] == REASON.replace("\r\n", "\n")
    assert own(crew)[0]["reason"] == request["reason"]
    assert crew.ask("GET", URL, user="bob").json()["requests"] == own(crew, "bob") == []
    assert "monthly report" not in str(crew.done("GET", f"{OWN}/metalakes/lake/audit?limit=50"))

    crew.ask("POST", URL, TABLE, user="ana")
    assert [each["reason"] for each in crew.done("GET", URL)["requests"]] == [""]


@pytest.mark.parametrize(
    "text",
    ["x" * 501, "\x1b[2J", "a\tb", "a\rb", "\x00", "\x7f", "\x9b31m", "a\u2028b", "\u202eevil", "\u2066x", "a\x85"],
)
def test_hostile_texts_are_refused(crew: DriverNode, text: str) -> None:
    """More than 500 characters, control characters and directional formatting are refused in reasons and in notes, and
    nothing changes.
    """
    refused = crew.ask("POST", URL, {**TABLE, "reason": text}, user="ana")
    crew.ask("POST", URL, TABLE, user="ana")
    declined = crew.ask("POST", f"{URL}/answer", {**DECLINE, "note": text})

    assert (refused.status, declined.status) == (400, 400)
    assert "The reason has" in refused.json()["error"]["message"]
    assert "The note has" in declined.json()["error"]["message"]
    assert (states(crew), own(crew)[0]["reason"]) == ([("t", "open")], "")


def test_too_long_path_is_refused(crew: DriverNode) -> None:
    """A path that is too long for the key of a request is a bad request, which says what to do."""
    refused = crew.ask("POST", URL, {**TABLE, "path": ["main", *["x" * 250] * 12]}, user="ana")

    assert (refused.status, own(crew)) == (400, [])
    assert "ask for access to what contains the object" in refused.json()["error"]["message"]


def test_longest_texts_are_stored(crew: DriverNode) -> None:
    """500 characters of any plane, in many lines, are stored and read back."""
    text = "\U0001f600\n" * 249 + "xy"

    assert crew.ask("POST", URL, {**TABLE, "reason": text}, user="ana").status == 200
    assert crew.ask("POST", f"{URL}/answer", {**DECLINE, "note": text}).status == 200

    assert (own(crew)[0]["reason"], own(crew)[0]["note"]) == (text, text)


def test_asking_user_learns_the_answer(crew: DriverNode) -> None:
    """A declined request has answer, user, time and note, a granted one has no note; a grant with a note is refused."""
    crew.ask("POST", URL, {**TABLE, "reason": "why"}, user="ana")
    crew.ask("POST", URL, {**TABLE, "path": ["main", "a", "other"]}, user="ana")
    assert crew.ask("POST", f"{URL}/answer", {**ANSWER, "note": "welcome"}).status == 400

    crew.done("POST", f"{URL}/answer", ANSWER)
    crew.done("POST", f"{URL}/answer", {**DECLINE, "path": ["main", "a", "other"], "note": "ask\nDora"})
    declined, granted = own(crew)

    assert (declined["state"], declined["answered_by"], declined["note"]) == ("declined", "admin", "ask\nDora")
    assert (granted["state"], granted["answered_by"], granted["note"]) == ("granted", "admin", "")
    assert granted["reason"] == "why"
    assert str(granted["answered_at"]) >= str(granted["requested_at"])
    assert (listed(crew), own(crew, "bob")) == ([], [])


def test_answered_request_is_no_consent(crew: DriverNode) -> None:
    """A declined request, and one that was granted and whose rights were revoked, are granted by nobody: the owner of
    the namespace needs a new request, which replaces the answer.
    """
    grant(crew, "dora", "use_catalog", kind="catalog", on="main")
    crew.done("PUT", f"{API}/lake/owners/schema/main.a", {"name": "dora", "type": "USER"})
    crew.ask("POST", URL, TABLE, user="ana")
    assert crew.ask("POST", f"{URL}/answer", DECLINE, user="dora").json()["existed"] is True

    refused = crew.ask("POST", f"{URL}/answer", ANSWER, user="dora")
    again = crew.ask("POST", f"{URL}/answer", DECLINE, user="dora")
    assert (refused.status, again.json()["existed"]) == (404, False)
    assert (may_read(crew), states(crew), listed(crew, user="dora")) == (False, [("t", "declined")], [])

    crew.ask("POST", URL, TABLE, user="ana")
    assert states(crew) == [("t", "open")]
    assert crew.ask("POST", f"{URL}/answer", ANSWER, user="dora").status == 200
    assert (may_read(crew), states(crew)) == (True, [("t", "granted")])

    preset = {"change": "revoke", "preset": "reader", **TABLE, "user": "ana"}
    crew.done("POST", f"{OWN}/metalakes/lake/access/presets", preset)
    assert not may_read(crew)
    assert crew.ask("POST", f"{URL}/answer", ANSWER, user="dora").status == 404
    assert crew.ask("POST", f"{URL}/answer", ANSWER).status == 404
    assert not may_read(crew)


def test_own_open_request_is_withdrawn(crew: DriverNode) -> None:
    """A withdrawn request is neither open nor answered, is granted by nobody, makes room for another one, and is in the
    audit. A second withdrawal, and that of an answered request, change nothing.
    """
    crew.ask("POST", URL, TABLE, user="ana")
    for number in range(OPEN_MAX - 1):
        crew.done("POST", URL, {**TABLE, "path": ["main", "a", f"t{number}"]}, user="ana")
    one_more = {**TABLE, "path": ["main", "a", "more"]}
    assert "withdraw one" in crew.ask("POST", URL, one_more, user="ana").json()["error"]["message"]

    first, second = (crew.ask("POST", WITHDRAW, TABLE, user="ana").status for _ in range(2))

    assert (first, second) == (200, 404)
    assert "t" not in dict(states(crew))
    assert crew.ask("POST", f"{URL}/answer", ANSWER).status == 404
    assert crew.ask("POST", URL, one_more, user="ana").status == 200
    lines = crew.done("GET", f"{OWN}/metalakes/lake/audit?limit=50")["lines"]
    (record,) = (each for each in lines if each.get("detail") == "withdrew the request for table main.a.t")
    assert (record["user"], record["action"], record["object"]["path"]) == ("ana", "access_request", "main.a")

    crew.done("POST", f"{URL}/answer", {**DECLINE, **one_more})
    assert crew.ask("POST", WITHDRAW, one_more, user="ana").status == 404
    assert ("more", "declined") in states(crew)


def test_anothers_request_is_not_withdrawn_or_read(crew: DriverNode) -> None:
    """Another user's withdrawal ends nothing, and says of the request of ana what it says of none."""
    before = crew.ask("POST", WITHDRAW, TABLE, user="bob")
    crew.ask("POST", URL, {**TABLE, "reason": "secret"}, user="ana")
    after = crew.ask("POST", WITHDRAW, TABLE, user="bob")
    named = crew.ask("POST", WITHDRAW, {**TABLE, "user": "ana"}, user="bob")

    assert (before.status, after.status) == (404, 404)
    assert before.json()["error"]["message"] == after.json()["error"]["message"]
    assert (named.status, states(crew)) == (400, [("t", "open")])
    assert crew.ask("POST", WITHDRAW, TABLE, user="stranger").status == 403
    assert all("secret" not in str(crew.ask("GET", f"{URL}{query}", user="bob").json()) for query in ("", "?own=true"))


def test_withdrawal_and_answers_hide_whether_the_object_exists(crew: DriverNode) -> None:
    """Answers to the asking user, and the audit records of withdrawals, are the same for an object and for none."""
    answers = []
    for name in ("t", "gone"):
        wish = {**TABLE, "path": ["main", "a", name]}
        crew.ask("POST", URL, {**wish, "reason": "r"}, user="ana")
        withdrawn = crew.ask("POST", WITHDRAW, wish, user="ana").status
        crew.ask("POST", URL, {**wish, "reason": "r"}, user="ana")
        crew.done("POST", f"{URL}/answer", {**DECLINE, **wish, "note": "no"})
        row = next(each for each in own(crew) if each["path"] == wish["path"])
        lines = crew.done("GET", f"{OWN}/metalakes/lake/audit?limit=50")["lines"]
        (record,) = (each for each in lines if each.get("detail") == f"withdrew the request for table main.a.{name}")
        answers.append(
            (withdrawn, row["state"], row["answered_by"], row["note"], row.keys(), record["object"], record["action"])
        )

    assert answers[0] == answers[1]


def test_answers_to_a_user_are_bounded(crew: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An accomplice who answers at once fills nothing: the newest answers remain, and others' answers stay."""
    monkeypatch.setattr(access_answers, "ANSWERS_MAX", 3)
    crew.ask("POST", URL, TABLE, user="bob")
    crew.done("POST", f"{URL}/answer", {**DECLINE, "user": "bob"})
    for number in range(6):
        wish = {**TABLE, "path": ["main", "a", f"t{number}"]}
        crew.ask("POST", URL, wish, user="ana")
        crew.done("POST", f"{URL}/answer", {**DECLINE, **wish})

    assert len(states(crew)) == 3
    assert ("t5", "declined") in states(crew)
    assert states(crew, "bob") == [("t", "declined")]


KINDS = {
    "catalog": ("main",),
    "schema": ("main", "k"),
    "table": ("main", "k", "t"),
    "view": ("main", "k", "v"),
    "function": ("main", "k", "f"),
    "fileset": ("files", "k", "f"),
    "model": ("models", "k", "m"),
}
FUNCTION = {
    "name": "f",
    "functionType": "SCALAR",
    "deterministic": True,
    "definitions": [
        {
            "parameters": [{"name": "x", "dataType": "integer"}],
            "returnType": "integer",
            "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "x + 1"}],
        }
    ],
}
"""A function of the Gravitino API."""
LOADED = {"schema": "namespace_load"}
"""Actions that show that the reader may read, other than `KIND_load`."""


@pytest.fixture
def stocked(node: DriverNode) -> DriverNode:
    """A node with an object of each kind, and user ana who may do nothing."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    for name, catalog_type in (("files", "fileset"), ("models", "model")):
        node.done("POST", f"{API}/lake/catalogs", {"name": name, "type": catalog_type})
        node.done("POST", f"{API}/lake/catalogs/{name}/schemas", {"name": "k"})
    make_table(node, "k", "t")
    make_view(node, "k", "v")
    node.done("POST", f"{API}/lake/catalogs/main/schemas/k/functions", FUNCTION)
    node.done("POST", f"{API}/lake/catalogs/files/schemas/k/filesets", {"name": "f"})
    node.done("POST", f"{API}/lake/catalogs/models/schemas/k/models", {"name": "m"})
    return node


@pytest.mark.parametrize("kind", KINDS)
def test_request_for_an_object_of_each_kind_is_granted(stocked: DriverNode, kind: str) -> None:
    """The request keeps the kind of its object, the owner reads it and grants it with that kind, and the asking user
    may then load the object, of which nothing was visible before.
    """
    path = list(KINDS[kind])
    body = {"kind": kind, "path": path}
    question = {"action": LOADED.get(kind, f"{kind}_load"), "path": path, "kind": kind, "user": "ana"}
    before = stocked.done("POST", f"{OWN}/metalakes/lake/access/explain", question)["decision"]["allowed"]
    stocked.ask("POST", URL, body, user="ana")
    (listed_request,), (own_request,) = stocked.done("GET", URL)["requests"], own(stocked)
    stocked.done("POST", f"{URL}/answer", {**body, "answer": "grant", "user": "ana", "preset": "reader"})
    after = stocked.done("POST", f"{OWN}/metalakes/lake/access/explain", question)["decision"]["allowed"]

    stored = "namespace" if kind == "schema" else kind
    assert (listed_request["kind"], listed_request["path"]) == (stored, path)
    assert (own_request["kind"], own_request["path"]) == (stored, path)
    assert (before, after) == (False, True)
    assert states(stocked) == [(path[-1], "granted")]


def test_request_for_a_topic_keeps_its_kind(crew: DriverNode) -> None:
    """A topic of an external system, which the server need not know, keeps its kind and its path."""
    asked_for = crew.ask("POST", URL, {"kind": "topic", "path": ["main", "a", "clicks"]}, user="ana")

    assert asked_for.status == 200
    assert [(each["kind"], each["path"]) for each in own(crew)] == [("topic", ["main", "a", "clicks"])]


@pytest.mark.parametrize("kind", ["fileset", "model", "view"])
def test_request_for_a_hidden_object_is_granted_on_its_kind(stocked: DriverNode, kind: str) -> None:
    """A user who sees nothing asks for a table. The grant is on the only object at the path, whatever its kind."""
    path = list(KINDS[kind])
    body = {"kind": "table", "path": path}
    stocked.ask("POST", URL, body, user="ana")
    (listed_request,) = stocked.done("GET", URL)["requests"]
    stocked.done("POST", f"{URL}/answer", {**body, "answer": "grant", "user": "ana", "preset": "reader"})

    question = {"action": f"{kind}_load", "path": path, "kind": kind, "user": "ana"}
    assert not listed_request.get("refusal")
    assert stocked.done("POST", f"{OWN}/metalakes/lake/access/explain", question)["decision"]["allowed"]
    assert states(stocked) == [(path[-1], "granted")]


def test_request_for_a_table_gives_no_namespace(stocked: DriverNode) -> None:
    """A request for a table at the path of a namespace is not granted: access to the namespace is more."""
    body = {"kind": "table", "path": ["main", "k"]}
    stocked.ask("POST", URL, body, user="ana")

    answer = stocked.ask("POST", f"{URL}/answer", {**body, "answer": "grant", "user": "ana", "preset": "reader"})

    assert answer.status in (400, 404)
    assert states(stocked) == [("k", "open")]
