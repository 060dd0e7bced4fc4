# SPDX-License-Identifier: Apache-2.0
"""Metrics reports of clients about their scans and commits: a bounded number per table, retained for a limited time.

Must not know the content of reports. No decision and no cache depends on a report, so reports leave no change rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from limnos.model.entities import MetricsReportRow
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Sql
from limnos.store.transaction import StoreTransaction

PER_TABLE_MAX = 1000
PUT = Sql(
    "INSERT INTO metrics_report (id, node_id, kind, reporter, at, expires_at, snapshot_id, body) VALUES"
    " (:id, :node, :kind, :reporter, :at, :expires, :snapshot, :body)"
)
TRIM = Sql(
    "DELETE FROM metrics_report WHERE node_id = :node AND id <="
    " (SELECT r.id FROM metrics_report r WHERE r.node_id = :node ORDER BY r.id DESC LIMIT 1 OFFSET :most)"
)
PAGE_BYTES_MAX = 4 << 20
_WANTED = "FROM metrics_report WHERE node_id = :node AND id < :before AND (kind = :kind OR :kind = '')"
SIZES = Sql(f"SELECT length(body) {_WANTED} ORDER BY id DESC LIMIT :limit")
PAGE = Sql(f"SELECT id, node_id, kind, reporter, at, snapshot_id, body {_WANTED} ORDER BY id DESC LIMIT :limit")
EXPIRE = Sql("DELETE FROM metrics_report WHERE expires_at <= :now")
SWEEP = Sql(
    "DELETE FROM metrics_report WHERE NOT EXISTS"
    " (SELECT 1 FROM node n WHERE n.id = metrics_report.node_id AND n.deleted = 0)"
    f" AND NOT {KEPT.format('metrics_report.node_id')}"
)


def reports_read(
    node_id: int, *, kind: str, before: int, limit: int
) -> Load[tuple[tuple[MetricsReportRow, ...], bool]]:
    """Read a table's reports with ids below `before`, newest first; of one `kind` unless it is "".

    Returns the reports and whether there may be more. One page has at most `PAGE_BYTES_MAX` bytes, but at least one
    report.
    """
    params: dict[str, int | str] = {"node": node_id, "kind": kind, "before": before, "limit": limit}
    sizes = yield SIZES, params
    totals = list(accumulate(row[0] for row in sizes))
    fitting = max(1, sum(total <= PAGE_BYTES_MAX for total in totals))
    rows = yield PAGE, {**params, "limit": min(fitting, limit)}
    result = tuple(
        [
            MetricsReportRow(
                id=row[0],
                node_id=row[1],
                kind=row[2],
                reporter=row[3],
                at=row[4],
                snapshot_id=row[5],
                body=bytes(row[6]),
            )
            for row in rows
        ]
    )
    return result, len(sizes) == limit or fitting < len(sizes)


def reports_put(tx: StoreTransaction, reports: Sequence[MetricsReportRow], *, keep_ms: int) -> None:
    """Insert reports in their order, and delete all but the newest `PER_TABLE_MAX` reports of each table."""
    for each in reports:
        tx.count(
            PUT,
            {
                "id": tx.next_id(),
                "node": each.node_id,
                "kind": each.kind,
                "reporter": each.reporter,
                "at": each.at,
                "expires": each.at + keep_ms,
                "snapshot": each.snapshot_id,
                "body": each.body,
            },
        )
    for node_id in dict.fromkeys(each.node_id for each in reports):
        tx.count(TRIM, {"node": node_id, "most": PER_TABLE_MAX})


def reports_expire(tx: StoreTransaction) -> int:
    """Delete expired reports. Returns the number of deleted reports."""
    return tx.count(EXPIRE, {"now": tx.now_ms})
