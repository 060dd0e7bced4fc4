# SPDX-License-Identifier: Apache-2.0
"""Calls on clients' metrics reports of a table (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import table_parts
from limnos.client.values import ReportInfo
from limnos.names import display


class _ReportListResponse(msgspec.Struct):
    reports: tuple[ReportInfo, ...]
    before: int | None = None


class Reports(Resource[S]):
    """Calls that read the metrics reports of scans and commits that clients sent."""

    @verb
    def list(
        self, path: str | Sequence[str], *, type: str | None = None, limit: int = 100
    ) -> Flow[tuple[ReportInfo, ...]]:
        """List a table's reports, newest first, at most `limit`; `type` is `scan` or `commit`."""
        parts = table_parts(path)
        url = self.own_url("catalogs", parts[0], "reports")
        infos: tuple[ReportInfo, ...] = ()
        before: int | None = None
        while True:
            query = {
                "table": display.render(parts[1:]),
                "type": type,
                "limit": str(max(1, min(limit - len(infos), 1000))),
                "before": None if before is None else str(before),
            }
            answer = yield from call("GET", url, answer=_ReportListResponse, query=query)
            infos += answer.reports
            before = answer.before
            if before is None or len(infos) >= limit:
                return infos[:limit]
