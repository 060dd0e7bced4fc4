# SPDX-License-Identifier: Apache-2.0
"""Calls that check the files of tables (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import table_parts
from limnos.client.values import TableCheckResult
from limnos.names import display


class TableChecks(Resource[S]):
    """Calls that check whether the files in a table's metadata exist."""

    @verb
    def check(self, path: str | Sequence[str], *, every: bool = False) -> Flow[TableCheckResult]:
        """Check the files of a table's current snapshot, or of `every` snapshot, by as many requests as needed."""
        parts = table_parts(path)
        url = self.own_url("catalogs", parts[0], "tables", "check")
        result = TableCheckResult(0, ())
        while True:
            query = {
                "table": display.render(parts[1:]),
                "snapshots": "all" if every else "current",
                "after": result.after,
            }
            answer = yield from call("GET", url, answer=TableCheckResult, query=query)
            result = msgspec.structs.replace(
                answer, files=result.files + answer.files, findings=result.findings + answer.findings
            )
            if result.after is None:
                return result
