# SPDX-License-Identifier: Apache-2.0
"""Reports of Iceberg clients: accepted from users who may load the table, stored after the answer, limited in number,
and shown to users who may change the table.
"""

from __future__ import annotations

import pytest

from limnos.services.iceberg.reports import REPORTS
from limnos.store.activity import reports as store_reports
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import commit, make_table, set_properties, table_path

ROUTE = f"{OWN}/metalakes/lake/catalogs/main/reports"
SCAN = {
    "report-type": "scan-report",
    "table-name": "a.t",
    "snapshot-id": 7,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"result-data-files": {"unit": "count", "value": 3}},
}
COMMIT = {
    "report-type": "commit-report",
    "table-name": "a.t",
    "snapshot-id": 8,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {"attempts": {"unit": "count", "value": 1}},
}


def report(node: DriverNode, body: object, *, user: str = "admin", name: str = "t") -> DriverAnswer:
    """Send a report."""
    return node.post(f"{table_path('a', name)}/metrics", body, user=user)


def list_reports(node: DriverNode, query: str = "", *, user: str = "admin") -> dict:
    """Write the queued reports, and list the stored ones."""
    node.runner.run(REPORTS.of(node.built.services).flush())
    answer = node.get(f"{ROUTE}?table=a.t{query}", user=user)
    assert answer.status == 200, answer.body
    return answer.json()


def test_reports_are_listed_newest_first_in_pages(node: DriverNode) -> None:
    """Reports are listed newest first, by type and in pages. A new table of the same name has no reports."""
    make_table(node, "a", "t")
    assert [report(node, body).status for body in (SCAN, COMMIT, SCAN)] == [204] * 3
    reports = list_reports(node)["reports"]
    page = list_reports(node, "&limit=2")
    rest = list_reports(node, f"&limit=2&before={page['before']}")
    node.delete(table_path("a", "t"))
    make_table(node, "a", "t")

    assert [each["type"] for each in reports] == ["scan", "commit", "scan"]
    assert (reports[1]["user"], reports[1]["snapshot_id"], reports[1]["report"]) == ("admin", 8, COMMIT)
    assert [each["id"] for each in (*page["reports"], *rest["reports"])] == [each["id"] for each in reports]
    assert rest["before"] is None
    assert list_reports(node)["reports"] == []


def test_filter_by_type_returns_that_type_only(node: DriverNode) -> None:
    """The filter by type returns reports of that type only."""
    make_table(node, "a", "t")
    for body in (SCAN, COMMIT):
        report(node, body)

    assert [each["type"] for each in list_reports(node, "&type=commit")["reports"]] == ["commit"]
    assert [each["type"] for each in list_reports(node, "&type=scan")["reports"]] == ["scan"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"report-type": 5},
        {**SCAN, "snapshot-id": "x"},
        {**SCAN, "metrics": []},
        {**SCAN, "snapshot-id": 2**63},
        [],
    ],
)
def test_report_with_wrong_field_types_is_400(node: DriverNode, body: object) -> None:
    """A report with wrong field types is 400 and is not stored."""
    make_table(node, "a", "t")

    assert report(node, body).status == 400
    assert list_reports(node)["reports"] == []


def test_report_of_unknown_kind_is_accepted_and_not_stored(node: DriverNode) -> None:
    """Clients of later releases send kinds of reports that this server does not know."""
    make_table(node, "a", "t")

    assert report(node, {"report-type": "maintenance-report", "table-name": "x"}).status == 204
    assert list_reports(node)["reports"] == []


def test_large_report_is_413(node: DriverNode) -> None:
    """A report of more than 256 KiB is 413."""
    make_table(node, "a", "t")

    assert report(node, {**SCAN, "filler": "x" * (257 << 10)}).status == 413


def test_storing_needs_read_and_listing_needs_write_access(node: DriverNode) -> None:
    """Reports of users who may read the table are stored; those of users who may only create tables are ignored. Only
    users who may change the table see reports.
    """
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "bob", "use_catalog use_schema create_table", kind="CATALOG", on="main")
    grant(node, "eve", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    answers = [report(node, SCAN, user=user).status for user in ("ana", "bob", "nobody-here")]
    lists = [node.get(f"{ROUTE}?table=a.t", user=user).status for user in ("ana", "bob", "eve")]

    assert answers == [204, 204, 403]
    assert lists == [403, 403, 200]
    assert [each["user"] for each in list_reports(node, user="eve")["reports"]] == ["ana"]


def test_report_of_a_restricted_reader_is_not_stored(node: DriverNode) -> None:
    """A report of a restricted user is answered and not stored, because such users may not load the table."""
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    at = f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/none"
    assert node.put(at, {"filter": "id < 0"}).status == 200

    assert report(node, SCAN, user="ana").status == 204
    assert list_reports(node)["reports"] == []


def test_only_the_newest_reports_of_a_table_are_retained(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest reports of a table are kept."""
    monkeypatch.setattr(store_reports, "PER_TABLE_MAX", 3)
    make_table(node, "a", "t")
    for number in range(5):
        report(node, {**SCAN, "snapshot-id": number})

    assert [each["snapshot_id"] for each in list_reports(node)["reports"]] == [4, 3, 2]


def test_reports_are_dropped_when_the_queue_is_full(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the queue is full, reports are answered 204 and dropped. Reports are never written within a request."""
    monkeypatch.setattr("limnos.services.iceberg.reports.WAITING_BYTES_MAX", 1000)
    make_table(node, "a", "t")
    before = node.done("GET", table_path("a", "t"))["metadata-location"]
    answers = [report(node, SCAN).status for _ in range(20)]
    wrote = commit(node, "a", "t", updates=[set_properties(k="v")])

    assert answers == [204] * 20
    assert wrote.status == 200
    assert wrote["metadata-location"] != before
    assert 0 < len(list_reports(node)["reports"]) < 20


def test_sweep_deletes_expired_reports(node: DriverNode) -> None:
    """The sweep deletes expired reports. With a retention of zero no report is stored."""
    make_table(node, "a", "t")
    reports = REPORTS.of(node.built.services)
    reports.keep_ms = -1  # over before it began
    report(node, SCAN)
    assert len(list_reports(node)["reports"]) == 1
    node.runner.run(node.built.upkeep.sweep())
    reports.keep_ms = 0
    report(node, SCAN)

    assert list_reports(node)["reports"] == []


@pytest.mark.parametrize("query", ["", "?table=", "?table=a.t&type=x", "?table=a.t&limit=0", "?table=a.t&before=x"])
def test_invalid_query_is_400(node: DriverNode, query: str) -> None:
    """A missing table, or an invalid type, limit or id, is 400."""
    make_table(node, "a", "t")

    assert node.get(f"{ROUTE}{query}").status == 400


def test_page_is_bounded_in_bytes(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with large reports is bounded in bytes, has at least one report, and says where to continue."""
    monkeypatch.setattr(store_reports, "PAGE_BYTES_MAX", 100_000)
    make_table(node, "a", "t")
    for size in (40_000, 40_000, 40_000, 150_000, 10):
        assert report(node, SCAN | {"metadata": {"x": "x" * size}}).status == 204
    pages, before, most = [], "", 10
    while before is not None and len(pages) < most:
        page = list_reports(node, f"&before={before}" if before else "")
        pages.append([len(each["report"]["metadata"]["x"]) for each in page["reports"]])
        before = page["before"]

    assert pages == [[10], [150_000], [40_000, 40_000], [40_000]]


@pytest.mark.parametrize("inner", [b'"\xff\xfe"', b'"\\ud800"', b"1e999", b"[1,]", b'"\x01"'], ids=str)
def test_invalid_json_is_400_and_valid_reports_stay_unchanged(node: DriverNode, inner: bytes) -> None:
    """A listed report is unchanged. A report with invalid JSON in any part is 400."""
    make_table(node, "a", "t")
    body = b'{"report-type":"scan-report","filter":' + inner + b"}"

    refused = node.ask("POST", f"{table_path('a', 't')}/metrics", body)
    report(node, SCAN)

    assert refused.status == 400
    assert [each["report"] for each in list_reports(node)["reports"]] == [SCAN]
