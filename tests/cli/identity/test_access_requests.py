# SPDX-License-Identifier: Apache-2.0
"""`request access`, `list`, `withdraw`, `grant` and `decline`: what they send, and how a request is named."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.access_calls import REQUEST
from tests.client.fake import FakeServer

URL = "/api/limnos/v1/metalakes/lake/access/requests"
PAGE = f"{URL}?limit=100"
OWN = f"{URL}?own=true"
OBJECTS = "/api/limnos/v1/metalakes/lake/access/objects?path=main.a.t"
GRANTED = {
    **REQUEST,
    "state": "granted",
    "answered_by": "dora",
    "answered_at": "2026-11-28T07:56:38.316Z",
    "note": "",
}
OTHER = {**REQUEST, "id": "3f9b000000000000", "user": "ben"}


def test_request_names_its_object_and_preset(fake: FakeServer, limnos: Run) -> None:
    """A request is sent with the kind of the flag; for an object that the caller does not see it is `table`."""
    fake.on("POST", URL, {"requested": True})
    fake.on("GET", "/api/metalakes/lake/catalogs?details=true", {"code": 0, "catalogs": []})

    seen = limnos("request", "access", "main.a", "--kind", "namespace", "--preset", "writer", "--output", "table")
    assert fake.asked[-1].body == {"kind": "namespace", "path": ["main", "a"], "preset": "writer"}
    hidden = limnos("request", "access", "main.a.t")

    assert seen.out == "you asked for writer on namespace main.a; who may grant it sees your request\n"
    assert (hidden.code, fake.asked[-1].body) == (0, {"kind": "table", "path": ["main", "a", "t"], "preset": "reader"})


@pytest.mark.parametrize(
    "catalog_type, kind", [("model", "model"), ("fileset", "fileset"), ("messaging", "topic"), ("relational", "table")]
)
def test_kind_of_a_hidden_object_follows_from_its_catalog(
    fake: FakeServer, limnos: Run, catalog_type: str, kind: str
) -> None:
    """A hidden object in a catalog that the caller sees is asked for by the kind of objects that the catalog has."""
    fake.on("POST", URL, {"requested": True})
    catalog = {"name": "ml", "type": catalog_type, "provider": "p", "comment": "", "properties": {}, "audit": {}}
    fake.on("GET", "/api/metalakes/lake/catalogs?details=true", {"code": 0, "catalogs": [catalog]})

    assert limnos("request", "access", "ml.a.b").code == 0

    assert fake.asked[-1].body == {"kind": kind, "path": ["ml", "a", "b"], "preset": "reader"}


def test_path_of_two_parts_without_a_visible_catalog_is_no_request(fake: FakeServer, limnos: Run) -> None:
    """Where the caller sees no catalog of the first name, the catalog may be forgotten: nothing is sent, and the answer
    has the command for a namespace of a hidden catalog. With a visible catalog it is a namespace.
    """
    fake.on(
        "GET", "/api/metalakes/lake/catalogs", {"code": 0, "identifiers": [{"namespace": ["lake"], "name": "main"}]}
    )
    fake.on("POST", URL, {"requested": True})

    refused = limnos("request", "access", "finance.employment", "--output", "table")
    assert refused.code == 2
    assert "as CATALOG.finance.employment" in refused.err
    assert "'limnos request access finance.employment " in refused.err
    assert " --kind namespace'" in refused.err
    assert not any(call.startswith("POST") for call in fake.calls)
    seen = limnos("request", "access", "main.hr")
    assert (seen.code, fake.asked[-1].body) == (0, {"kind": "namespace", "path": ["main", "hr"], "preset": "reader"})


def test_list_reads_all_pages(fake: FakeServer, limnos: Run) -> None:
    """The list has the requests of all pages; an empty page with a following one does not end it."""
    fake.on("GET", PAGE, {"requests": [], "after": "7.1"})
    fake.on("GET", f"{URL}?after=7.1&limit=100", {"requests": [REQUEST]})

    listed = limnos("list", "requests")

    assert listed.result == [{**REQUEST, "path": "main.a.t"}]


@pytest.mark.parametrize("answer", ["grant", "decline"])
def test_request_is_named_by_a_unique_beginning(fake: FakeServer, limnos: Run, answer: str) -> None:
    """The beginning of an id is enough where it is unique; one of several requests, of none or of three characters is
    not, and nothing is sent.
    """
    fake.on("GET", PAGE, {"requests": [REQUEST, OTHER]})
    fake.on("POST", f"{URL}/answer", {"existed": True, "role": "user:ana"})

    several, short, missing = (limnos(answer, "request", typed) for typed in ("3f9", "3f9-", "abcd"))
    assert (several.code, short.code, missing.code) == (2, 3, 3)
    assert all(call.startswith("GET") for call in fake.calls)
    ambiguous = limnos(answer, "request", REQUEST["id"][:3] + "x")
    done = limnos(answer, "request", "3F9A", "--output", "table")

    assert ambiguous.code == 3
    assert (done.code, fake.asked[-1].body["answer"], fake.asked[-1].body["user"]) == (0, answer, "ana")  # type: ignore[index]
    assert "main.a.t" in done.out


def test_grant_of_another_kind_names_the_kind(fake: FakeServer, limnos: Run) -> None:
    """Who asks for a hidden object cannot know its kind: the answer names it, and the commands that grant it."""
    fake.on("GET", PAGE, {"requests": [REQUEST]})
    fake.on("POST", f"{URL}/answer", {"code": "not-found", "message": "no table"}, status=404)
    path = REQUEST["path"]
    fake.on("GET", OBJECTS, {"objects": [{"kind": "model", "owner": None}]})

    done = limnos("grant", "request", REQUEST["id"])

    spelled = ".".join(path)
    assert done.code != 0
    assert f"there is no table {spelled}, but a model" in done.err
    assert f"limnos grant --preset reader {spelled} --kind model --to user:{REQUEST['user']}" in done.err
    assert f"limnos decline request {REQUEST['id']}" in done.err


def test_equal_beginnings_are_listed(fake: FakeServer, limnos: Run) -> None:
    """If several requests begin so, the answer lists their ids."""
    fake.on("GET", PAGE, {"requests": [{**REQUEST, "id": "aaaa000000000001"}, {**OTHER, "id": "aaaa000000000002"}]})

    refused = limnos("grant", "request", "aaaa")

    assert refused.code == 2
    assert "aaaa000000000001, aaaa000000000002" in str(refused.error["message"])


def test_request_has_a_reason_of_several_lines(fake: FakeServer, limnos: Run) -> None:
    """The reason is sent as it was typed, and none without the flag."""
    fake.on("POST", URL, {"requested": True})

    limnos("request", "access", "main.a.t", "--kind", "table", "--reason", "two\nlines")

    body = {"kind": "table", "path": ["main", "a", "t"], "preset": "reader", "reason": "two\nlines"}
    assert fake.asked[-1].body == body


def test_hostile_texts_do_not_control_a_terminal(fake: FakeServer, limnos: Run) -> None:
    """A reason and a note with escape sequences or line ends are one cell of one row, in each format."""
    hostile = "a\x1b[2J\u202e\nb"
    fake.on("GET", PAGE, {"requests": [{**REQUEST, "reason": hostile}]})
    fake.on("GET", OWN, {"requests": [{**GRANTED, "state": "declined", "note": hostile, "answered_by": "d\x1b]0;x"}]})

    for command in (("list", "requests"), ("list", "requests", "--own")):
        table, csv, json_ = (limnos(*command, "--output", each).out for each in ("table", "csv", "json"))
        assert all("\x1b" not in each and "\u202e" not in each for each in (table, csv, json_))
        assert (len(table.splitlines()), "a\\x1b[2J\\u202e\\nb" in table) == (2, True)


def test_own_list_has_the_answers(fake: FakeServer, limnos: Run) -> None:
    """`list requests --own` has state, user, time and note of each answer."""
    fake.on("GET", OWN, {"requests": [{**OTHER, "state": "open"}, GRANTED]})

    open_request, granted = limnos("list", "requests", "--own").result
    table = limnos("list", "requests", "--own", "--output", "table").out

    assert (open_request["state"], open_request["answered_by"], open_request["note"]) == ("open", "", "")
    assert {**granted, "path": REQUEST["path"]} == GRANTED
    assert all(word in table for word in ("open", "granted", "dora"))


@pytest.mark.parametrize("typed", [("withdraw", "request"), ("request", "withdraw")])
def test_own_open_request_is_withdrawn(fake: FakeServer, limnos: Run, typed: tuple[str, str]) -> None:
    """The id is one of the caller's own open requests: for an answered one, and for one of others, nothing is sent."""
    fake.on("GET", OWN, {"requests": [{**OTHER, "state": "open"}, GRANTED]})
    fake.on("GET", PAGE, {"requests": [{**REQUEST, "id": "abcd000000000000"}]})
    fake.on("POST", f"{URL}/withdraw", {"withdrawn": True})

    answered, foreign = limnos(*typed, "3f9a"), limnos(*typed, "abcd")
    assert (answered.code, answered.error["message"]) == (3, f"the request {REQUEST['id']} was granted by dora")
    assert (foreign.code, foreign.error["message"]) == (3, "no open request of yours has the id 'abcd'")
    assert all(call.startswith("GET") for call in fake.calls)

    done = limnos(*typed, "3f9b", "--output", "table")

    assert (done.code, fake.asked[-1].body) == (0, {"kind": "table", "path": ["main", "a", "t"]})
    assert done.out == "withdrew your request for reader on table main.a.t\n"


def test_late_decline_is_an_error(fake: FakeServer, limnos: Run) -> None:
    """A note is sent with the answer. A request that ended meanwhile is an error."""
    fake.on("GET", PAGE, {"requests": [REQUEST]})
    fake.on("POST", f"{URL}/answer", {"existed": False})

    late = limnos("decline", "request", "3f9a", "--note", "ask Dora")

    assert fake.asked[-1].body["note"] == "ask Dora"  # type: ignore[index]
    assert (late.code, late.error["code"]) == (3, "not-found")
    assert "not open any more" in str(late.error["message"])
