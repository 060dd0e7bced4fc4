# SPDX-License-Identifier: Apache-2.0
"""The tab with scan reports of engines: counts in words, only for users who may change the table."""

from __future__ import annotations

from limnos.services.iceberg.reports import REPORTS
from tests.http.driver import DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG
from tests.rooms.console.http.visitor import ConsoleVisitor

TAB = "/console/o/table/lake/main/raw/flights?tab=scans"
REPORT = {
    "report-type": "scan-report",
    "table-name": "raw.flights",
    "snapshot-id": 1,
    "schema-id": 0,
    "filter": {"type": "eq", "term": "id", "value": 4711},
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"result-data-files": {"unit": "count", "value": 12}, "total-planning-duration": "odd"},
}


def send_report(node: DriverNode) -> None:
    """Send a scan report as an engine does, and write the queued reports."""
    assert node.post(f"{ICEBERG}/namespaces/raw/tables/flights/metrics", REPORT).status == 204
    node.runner.run(REPORTS.of(node.built.services).flush())


def test_scan_report_is_shown_with_filter_and_columns(lake: DriverNode) -> None:
    """A report is shown with its time, user, counts, filter and columns."""
    admin = ConsoleVisitor(lake).sign_in()
    assert "No engine has reported a scan" in admin.read(TAB).text
    send_report(lake)

    page = admin.read(TAB)

    assert "admin 12 data files" in page.text
    assert "4711" in page.text


def test_readers_see_no_reports(lake: DriverNode) -> None:
    """Reports reveal other users' filters, so reading the table is not enough."""
    send_report(lake)
    grant(lake, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    page = ConsoleVisitor(lake).sign_in("ana").read(TAB)

    assert "Reports show other users" in page.text
    assert "4711" not in page.text
