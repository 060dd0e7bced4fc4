# SPDX-License-Identifier: Apache-2.0
"""The maintenance tab: due operations with reasons, a form that requests an operation, and the needed rights."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import commit_flights
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of
from tests.rooms.maintenance.services.histories import add_policy

TAB = "/console/o/table/lake/main/raw/flights?tab=maintenance"
FORM = "/console/maintain/table/lake/main/raw/flights"
CANCEL = FORM.replace("/maintain/", "/maintain-cancel/")
MAINTENANCE = f"{OWN}/metalakes/lake/catalogs/main/maintenance"


@pytest.fixture
def written(lake: DriverNode) -> ConsoleVisitor:
    """The admin, in a lake whose table flights has two snapshots."""
    updates = [wire.snapshot(1), wire.point(1), wire.snapshot(2, parent=1), wire.point(2)]
    commit_flights(lake, *updates)
    return ConsoleVisitor(lake).sign_in()


def test_tab_shows_statistics_and_why_snapshots_are_retained(written: ConsoleVisitor) -> None:
    """The tab has the reason why each snapshot is kept, and the reported statistics. Empty lists say that they are
    empty.
    """
    statistics_path = f"{API}/lake/objects/table/main.raw.flights/statistics"
    written.node.done("PUT", statistics_path, {"updates": {"custom-rows": 4711}})

    page = written.read(TAB)

    for words in ("Due operations", "No maintenance policy applies", "Kept because", "custom-rows 4711", " of 2"):
        assert words in page.text
    assert ("post", FORM) in page.actions


def test_statistics_are_shown_to_users_who_may_read_rows(written: ConsoleVisitor) -> None:
    """Statistics may have values of rows: a user with MODIFY_TABLE alone gets the tab without them."""
    node = written.node
    node.done("PUT", f"{API}/lake/objects/table/main.raw.flights/statistics", {"updates": {"custom-max": 4711}})
    for user, rights in (("mod", "modify_table"), ("both", "modify_table select_table")):
        grant(node, user, f"use_catalog use_schema {rights}", kind="CATALOG", on="main")

    pages = {user: ConsoleVisitor(node).sign_in(user).read(TAB).text for user in ("mod", "both")}

    words = {user: ("Kept because" in text, "4711" in text) for user, text in pages.items()}
    assert words == {"mod": (True, False), "both": (True, True)}


def test_requested_operation_is_listed_as_waiting(written: ConsoleVisitor) -> None:
    """The form requests an operation as the user, and the tab lists it as waiting."""
    answer = written.post(FORM, {"operation": "expire"})

    assert answer.status == 303
    assert answer.headers["location"].startswith(TAB)
    page = written.read(answer.headers["location"])
    (number,) = [str(each["id"]) for each in written.node.done("GET", f"{MAINTENANCE}/operations")["operations"]]
    assert f"Expire snapshots {number} waiting admin" in page.text
    assert "the server executes it within a minute" in page.text
    assert "Cancel operation" not in page.text
    assert written.post(CANCEL, {"operation": number}).status == 405
    assert [each["kind"] for each in written.node.done("GET", f"{MAINTENANCE}/operations")["operations"]] == ["expire"]


def test_a_waiting_compaction_is_explained_and_cancelled(written: ConsoleVisitor) -> None:
    """The tab says that a requested compaction waits for an executor. Its button cancels the compaction; an unknown
    number is 404.
    """
    notice = written.read(written.post(FORM, {"operation": "compact"}).headers["location"]).text
    (number,) = [str(each["id"]) for each in written.node.done("GET", f"{MAINTENANCE}/operations")["operations"]]

    page = written.read(TAB)
    assert "waits for an executor: run limnos maintenance work" in page.text
    assert f"Cancel operation {number}" in page.text
    for fields, status in (({}, 400), ({"operation": "x"}, 400), ({"operation": "999999"}, 404)):
        assert written.post(CANCEL, fields).status == status
    assert f"Operation {number}: waits for an executor: run limnos maintenance work" in notice
    page = written.read(written.post(CANCEL, {"operation": number}).headers["location"])
    assert f"Operation {number}: cancelled by admin" in page.text
    assert "cancelled by admin" in page.text
    assert "Cancel operation" not in page.text


@pytest.mark.parametrize("fields", [{}, {"operation": "burn"}])
def test_unknown_operations_are_refused(written: ConsoleVisitor, fields: dict[str, str]) -> None:
    """Unknown operations, and objects that are not tables, are refused."""
    assert written.post(FORM, fields).status == 400
    assert written.post("/console/maintain/namespace/lake/main/raw", {"operation": "expire"}).status == 400


def test_readers_cannot_see_the_tab_or_request_operations(written: ConsoleVisitor) -> None:
    """A reader of the table gets a refusal in the tab and may request no operation. A user without rights does not see
    the table.
    """
    node = written.node
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    ana, stranger = (ConsoleVisitor(node).sign_in(user) for user in ("ana", "stranger"))

    page = ana.read(TAB)

    assert "not its maintenance" in page.text
    assert "Kept because" not in page.text
    assert ("post", FORM) not in page.actions
    for visitor in (ana, stranger):
        for operation in ("expire", "orphans", "compact"):
            assert visitor.post(FORM, {"operation": operation}).status == 403, text_of(visitor.get(TAB))
        assert visitor.post(CANCEL, {"operation": "1"}).status == 403
    assert node.done("GET", f"{MAINTENANCE}/operations")["operations"] == []


def test_deciding_policy_is_named_only_if_visible(written: ConsoleVisitor) -> None:
    """The tab names the policy that decides about each operation, with a link. A user who may not see the policy gets
    neither name nor link.
    """
    node = written.node
    add_policy(node, "near", "system_iceberg_compaction", {}, on="main.raw.flights", kind="table")
    add_policy(node, "far", "system_iceberg_table_maintenance", {"manifests": True}, on="main", kind="catalog")
    grant(node, "ana", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")

    page, other = written.read(TAB), ConsoleVisitor(node).sign_in("ana").read(TAB)

    assert "main.raw.flights enabled Compact small files, Rewrite delete files" in page.text
    assert "inherited enabled Rewrite manifests" in page.text
    assert "/console/policy/lake/near" in page.hrefs
    assert "a policy that you may not see" in other.text
    assert not any("/console/policy/lake/" in each for each in other.hrefs)
