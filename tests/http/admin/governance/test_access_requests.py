# SPDX-License-Identifier: Apache-2.0
"""Requests for access over the API: pages of those that the caller may answer, its own, grants and refusals."""

from __future__ import annotations

import pytest

from limnos.services.identity.presets import access_requests
from limnos.services.identity.presets.access_requests import OPEN_MAX
from limnos.services.request.request_view import RequestView
from limnos.store.identity.access_requests import AccessRequestRow
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import make_table

URL = f"{OWN}/metalakes/lake/access/requests"
TABLE = {"kind": "table", "path": ["main", "a", "t"]}
ANSWER = {**TABLE, "answer": "grant", "user": "ana", "preset": "reader"}


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


def test_request_is_granted_once(crew: DriverNode) -> None:
    """The asking user and who may grant see the request; granting gives the preset and ends it; a second grant, and one
    of another preset, are refused and give nothing.
    """
    done = crew.ask("POST", URL, TABLE, user="ana")
    (request,) = crew.done("GET", URL)["requests"]
    (own,) = crew.ask("GET", f"{URL}?own=true", user="ana").json()["requests"]
    other_preset = crew.ask("POST", f"{URL}/answer", {**ANSWER, "preset": "writer"})

    assert (done.status, done.json()["requested"]) == (200, True)
    assert request == own
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
