# SPDX-License-Identifier: Apache-2.0
"""Metrics reports: accepts clients' reports on scans and commits, writes them in batches in the background, and lists
them.

Must not know any wire format. Reports wait in a bounded queue. If it is full, further reports are counted and
discarded, since no response or commit may wait for a report. A node that is killed loses the reports of about the last
second.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from functools import partial

from limnos.access.actions import Action
from limnos.model.entities import MetricsReportRow
from limnos.model.permits import upkeep_permit
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.reports import reports_put, reports_read
from limnos.store.interface import Store
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.reports")
WAITING_BYTES_MAX = 4 << 20
BATCH_MAX = 500
PAUSE_S = 0.5
PAGE_MAX = 1000
KINDS = ("scan", "commit")
"""The kinds of reports that are stored."""
TAKEN = Counter("limnos_metrics_reports_total", "Reports of clients about scans and commits, by outcome.", ("outcome",))


class ReportQueue:
    """A bounded queue of metrics reports, and the background task that writes them to the store in batches."""

    def __init__(self, store: Store, *, keep_ms: int, sample: float) -> None:
        self.store = store
        self.keep_ms = keep_ms
        self.sample = sample
        self._waiting: deque[MetricsReportRow] = deque()
        self._bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._permit = upkeep_permit("limnos")

    def take(self, report: MetricsReportRow) -> None:
        """Queue a report. Discards it if the server stores no reports, by sampling, or if the queue is full."""
        if not self.keep_ms or (self.sample < 1 and random.random() >= self.sample):  # noqa: S311 - a sample
            TAKEN["left out",] += 1
            return
        if self._bytes + len(report.body) > WAITING_BYTES_MAX:
            TAKEN["lost",] += 1
            return
        self._waiting.append(report)
        self._bytes += len(report.body)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        while self._waiting:
            await asyncio.sleep(PAUSE_S)
            await self.flush()

    async def flush(self) -> None:
        """Write the waiting reports. A batch that the store refuses is discarded."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
            self._bytes -= sum(len(each.body) for each in batch)
            try:
                await self.store.submit(self._permit, partial(reports_put, reports=batch, keep_ms=self.keep_ms))
                TAKEN["kept",] += len(batch)
            except Exception as error:  # noqa: BLE001 - reports are only samples
                TAKEN["lost",] += len(batch)
                log.warning("reports of clients are lost", count=len(batch), error=str(error))


async def report_take(
    ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, kind: str, snapshot_id: int | None, body: bytes
) -> None:
    """Accept a client's metrics report on a table that is visible to the caller. It is stored only if the caller may
    load the table, and its kind is one of `KINDS`: clients may send others of later releases.

    Raises NotFound, PermissionDenied.
    """

    def look(request_view: RequestView) -> tuple[int, str] | None:
        table = table_find(request_view, namespace, name, Action.TABLE_EXISTS)
        return (
            (table.entity.id, request_view.user)
            if request_view.decide(Action.TABLE_LOAD, table.chain).allowed
            else None
        )

    result = await ctx.read(scope, look)
    if result is not None and kind in KINDS:
        now_ms = ctx.services.store.time.now_ms()
        REPORTS.of(ctx.services).take(
            MetricsReportRow(
                id=0, node_id=result[0], kind=kind, reporter=result[1], at=now_ms, snapshot_id=snapshot_id, body=body
            )
        )


def catalog_require(request_view: RequestView) -> None:
    """Check that the caller may use the catalog, before any other check of the request.

    Raises PermissionDenied.
    """
    request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)


async def reports_list(
    ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, kind: str, before: int, limit: int
) -> tuple[tuple[MetricsReportRow, ...], bool]:
    """Return a table's reports, newest first, to a caller who may change the table: they reveal other users' queries.

    Also returns whether there may be more reports than `limit` or one response can hold. Raises NotFound,
    PermissionDenied.
    """

    def look(request_view: RequestView) -> int:
        return table_find(request_view, namespace, name, Action.TABLE_REPORTS).entity.id

    count = max(1, min(limit, PAGE_MAX))
    _, page = await ctx.read_confirmed(
        scope,
        look,
        work=lambda node_id: ctx.look_up(lambda: reports_read(node_id, kind=kind, before=before, limit=count)),
    )
    return page


REPORTS: ComponentKey[ReportQueue] = ComponentKey(
    "reports",
    lambda services: ReportQueue(
        services.store, keep_ms=services.defaults.keep_reports_ms, sample=services.defaults.reports_sample
    ),
)
