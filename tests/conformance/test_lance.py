# SPDX-License-Identifier: Apache-2.0
"""The table of calls for Lance's clients. The clients themselves run in `make conformance`."""

from __future__ import annotations

from conformance.lance import differences
from conformance.lance.calls import SPACES, TABLES
from conformance.lance.clients import NoCall, RequestRefused
from conformance.lance.home import Home, Json
from conformance.lance.operations import OPERATIONS
from conformance.lance.reasons import REASONS
from conformance.lance.requests import REQUESTS
from conformance.lance.stories import told_of
from limnos.rooms.lance.http.operations import OPERATIONS as OURS


def test_every_protocol_operation_is_called() -> None:
    """Exactly the 54 operations of the protocol are called, and the served operations have the same names."""
    assert len(OPERATIONS) == 54
    assert {call.operation for call in (*SPACES, *TABLES)} == set(OPERATIONS)
    assert {operation.call for operation in OURS} == set(OPERATIONS)


class Fake:
    """A client that always gets the same answer."""

    name = "fake"

    def __init__(self, answer: Json | Exception) -> None:
        self._told = answer

    def ask(self, operation: str, ident: list[str] | None, *, fields: Json, data: bytes | None) -> Json:
        """Return the answer."""
        if isinstance(self._told, Exception):
            raise self._told
        return self._told


DENIED, OTHER = Fake(RequestRefused((15,), "no")), Fake(RequestRefused((18,), "no"))
ROW = SPACES[:1]


def outcome(client: Fake, outsider: Fake) -> tuple[str, str]:
    """Return the outcome of the first row."""
    (result,) = told_of(client, outsider, Home((), "m"), calls=ROW, group="g")
    return result.outcome, result.told


def test_expected_answer_and_refusal_pass() -> None:
    """A row passes if the answer is as expected and the user without rights was refused."""
    assert outcome(Fake({"properties": {"a": "b"}}), DENIED) == ("ok", "")


def test_wrong_answer_or_missing_refusal_fails() -> None:
    """A wrong answer, a refusal, another code for the user without rights, or an answer to that user fails, with the
    received answer.
    """
    right = Fake({"properties": {"a": "b"}})
    assert outcome(Fake({"properties": {}}), DENIED) == ("FAILED", "answered {'properties': {}}")
    assert outcome(DENIED, DENIED) == ("FAILED", "refused with (15,): no")
    assert outcome(right, OTHER) == ("FAILED", "who has no rights was told (18,): no")
    assert outcome(right, right)[0] == "FAILED"
    assert outcome(Fake(NoCall("Not supported: create_namespace")), DENIED)[0] == "FAILED"


def test_request_names_are_unique_and_reasons_exist() -> None:
    """Request names are unique, as rows of the page are found by them; every reason of a request exists, and every
    reason is used.
    """
    names = [each.name for each in REQUESTS]
    assert len(names) == len(set(names))
    assert {each.why for each in REQUESTS} - {""} == set(REASONS)


def test_locations_ids_and_times_are_compared_by_presence() -> None:
    """Of locations, ids and times only the presence is compared; statuses, codes and counts are compared by value."""
    one = differences.answer_of(200, "application/json", b'{"location": "/a", "version": 1, "e": null}')
    two = differences.answer_of(200, "application/json", b'{"location": "/b", "version": 1}')
    assert one == two
    assert differences.answer_of(404, "application/json", b'{"code": 4}').head == "404/4"
    assert one != differences.answer_of(200, "application/json", b'{"location": "/a", "version": 2}')


def test_new_and_outdated_differences_are_reported() -> None:
    """A new difference, and one on the page that no longer exists, are both reported; an up-to-date page has no
    complaint.
    """
    page = differences.PAGE.read_text(encoding="utf-8")
    line = next(each for each in page.splitlines() if each.startswith("| namespace create: no such mode"))
    assert differences.changes(page) == []
    assert differences.changes(page.replace(line, "| a | b | c | d |")) == [
        "not listed: | a | b | c | d |",
        f"true no more: {line}",
    ]
