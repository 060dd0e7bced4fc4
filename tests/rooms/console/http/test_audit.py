# SPDX-License-Identifier: Apache-2.0
"""The audit page: records in words, filters by form and by link; users without rights see only their own records."""

from __future__ import annotations

import re

import pytest

from limnos.rooms.console.http import audit
from tests.http.driver import OWN, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader


def rows_of(page: PageReader) -> int:
    """Return the number of records that a page shows."""
    return page.tags.count("tr") - 1


def test_record_of_a_create_has_user_object_and_outcome(admin: ConsoleVisitor) -> None:
    """The record of a create has its user, object and outcome."""
    page = admin.read("/console/audit")

    assert "create table" in page.text
    assert "main.raw.flights" in page.text


def test_filter_by_path_narrows_the_records(admin: ConsoleVisitor) -> None:
    """A filter by path shows only that object's records. A link on a value sets the same filter."""
    page = admin.read("/console/audit?path=main.raw.flights")

    assert 0 < rows_of(page) < rows_of(admin.read("/console/audit"))
    assert any("path=main.raw.flights" in href for href in page.hrefs)
    assert rows_of(admin.read("/console/audit?user=nobody")) < 1


@pytest.mark.parametrize(
    "query, words",
    [
        ("outcome=nothing", "Outcomes are"),
        ("since=yesterday", "Write a time as"),
        ("before=x", "start at the newest record"),
        ("action=selekt", "There is no action"),
    ],
)
def test_wrong_filter_stays_in_its_form(admin: ConsoleVisitor, query: str, words: str) -> None:
    """An invalid filter, and a word that is no action, are answered with 400 and the page, which says what is wrong."""
    answer = admin.get(f"/console/audit?user=bob&{query}")
    page = answer.body.decode()

    assert answer.status == 400
    assert words in page
    assert 'value="bob"' in page
    assert "No line matches" not in page


def test_user_without_audit_right_sees_only_own_records(lake: DriverNode) -> None:
    """A user who may not read the audit sees only their own records."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    page = ana.read("/console/audit")

    assert "main.raw.flights" not in page.text


def test_filter_accepts_action_words_as_listed(admin: ConsoleVisitor) -> None:
    """The filter accepts an action in the words that the list shows. The words of a record are a link that sets the
    filter.
    """
    page = admin.read("/console/audit?action=create+table")

    assert rows_of(page) == rows_of(admin.read("/console/audit?action=create")) > 0
    assert any("action=create" in href for href in page.hrefs)


def test_a_grant_names_privilege_and_object(admin: ConsoleVisitor, lake: DriverNode) -> None:
    """Records of a grant and a revoke name the privilege and the object, without ids."""
    role = grant(lake, "ben", "select_table", kind="TABLE", on="main.raw.flights")
    body = {"privileges": [{"name": "select_table", "condition": "ALLOW"}]}
    lake.done("PUT", f"/api/metalakes/lake/permissions/roles/{role}/table/main.raw.flights/revoke", body)

    page = admin.read("/console/audit?path=main.raw.flights")

    assert "allow SELECT_TABLE on table main.raw.flights" in page.text
    assert "no longer allow SELECT_TABLE on table main.raw.flights" in page.text


def test_pages_are_in_the_order_of_times(
    admin: ConsoleVisitor, lake: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of several pages are in the order of their times, each once, though a refusal was written before the
    changes that it followed.
    """
    monkeypatch.setattr(audit, "LINES", 3)
    for name in ("w1", "w2", "w3", "w4", "w5"):
        lake.done("POST", "/api/metalakes/lake/users", {"name": name})
        lake.ask("POST", "/api/metalakes/lake/users", {"name": "z"}, user=name)
        lake.runner.run(lake.built.services.audit.flush())  # refusals are written now, changes with the next page

    pages, seen = [admin.read("/console/audit?action=user_manage")], []
    while older := [href for href in pages[-1].hrefs if "before=" in href]:
        pages.append(admin.read(older[0]))
    for page in pages:
        seen += re.findall(r"request=(\w+)", " ".join(page.hrefs))
    lines = lake.done("GET", f"{OWN}/metalakes/lake/audit?action=user_manage")["lines"]

    by_time = sorted(lines, key=lambda each: (each["at"], each["id"]), reverse=True)
    assert list(dict.fromkeys(seen)) == [each["request_id"] for each in by_time]
    assert [each["id"] for each in by_time] != [each["id"] for each in lines], "the order of ids is another one"
    assert len(pages) > 2


def test_family_of_actions_finds_restrictions_and_grants(admin: ConsoleVisitor, lake: DriverNode) -> None:
    """The filter `access` finds whatever changes rights, and nothing else."""
    grant(lake, "ben", "select_table", kind="TABLE", on="main.raw.flights")

    page = admin.read("/console/audit?action=access")

    assert "allow SELECT_TABLE" in page.text
    assert "create table" not in page.text
