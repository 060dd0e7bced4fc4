# SPDX-License-Identifier: Apache-2.0
"""Calls on table maintenance (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.operation.maintenance_values import (
    LeasedOperations,
    MaintenanceFinding,
    MaintenanceFindings,
    MaintenanceReport,
    MaintenanceStatus,
    RestrictedSpans,
)
from limnos.client.paths import table_parts
from limnos.names import display


class Maintenance(Resource[S]):
    """Calls that plan, explain, request and report the maintenance of tables."""

    @verb
    def plan(self, catalog: str) -> Flow[tuple[MaintenanceFinding, ...]]:
        """Return the maintenance findings of a catalog's tables, the most urgent first."""
        url, after = self.own_url("catalogs", catalog, "maintenance", "findings"), None
        findings: list[MaintenanceFinding] = []
        while True:
            page = yield from call("GET", url, answer=MaintenanceFindings, query={"after": after})
            findings += page.findings
            if page.after is None:
                return tuple(sorted(findings, key=lambda each: (-each.score, each.table, each.kind)))
            after = str(page.after)

    @verb
    def explain(self, path: str | Sequence[str]) -> Flow[MaintenanceReport]:
        """Return a table's findings, its effective policies, and the reasons why its snapshots are retained."""
        parts = table_parts(path)
        url = self.own_url("catalogs", parts[0], "maintenance", "table")
        return call("GET", url, answer=MaintenanceReport, query={"table": display.render(parts[1:])})

    @verb
    def run(self, path: str | Sequence[str], *, operation: str = "expire") -> Flow[int]:
        """Request an operation on a table, which the server or an executor executes with the caller's rights.

        Returns the operation's id.
        """
        parts = table_parts(path)
        url = self.own_url("catalogs", parts[0], "maintenance", "operations")
        body = {"table": display.render(parts[1:]), "operation": operation}
        return call("POST", url, answer=int, field="operation", body=body)

    @verb
    def status(self, catalog: str, *, before: int | None = None) -> Flow[MaintenanceStatus]:
        """Return the server's automatic maintenance, and operations with ids below `before`, newest first."""
        url = self.own_url("catalogs", catalog, "maintenance", "operations")
        return call("GET", url, answer=MaintenanceStatus, query={"before": None if before is None else str(before)})

    @verb
    def cancel(self, operation: int) -> Flow[str]:
        """Cancel an operation that rewrites a table. Returns its state: `cancelled`, or the one in which it had
        ended.
        """
        url = self.own_url("maintenance", "operations", str(operation), "cancel")
        return call("POST", url, answer=str, field="state")

    @verb
    def lease(self, holder: str, *, limit: int) -> Flow[LeasedOperations]:
        """Lease operations that rewrite tables, for an executor named `holder`."""
        url = self.own_url("maintenance", "leases")
        return call("POST", url, answer=LeasedOperations, body={"holder": holder, "limit": limit})

    @verb
    def renew(self, holder: str, operations: Sequence[int]) -> Flow[tuple[int, ...]]:
        """Renew leases of an executor. Returns the operations whose leases it has lost, which it must stop."""
        url = self.own_url("maintenance", "leases")
        body = {"holder": holder, "operations": list(operations)}
        return call("PUT", url, answer=tuple[int, ...], field="lost", body=body)

    @verb
    def report(self, holder: str, operation: int, *, outcome: str, text: str) -> Flow[bool]:
        """Report the result of a leased operation: `done`, `failed`, or `yielded` to a writer.

        Returns whether its lease was valid.
        """
        url = self.own_url("maintenance", "operations", str(operation), "report")
        body = {"holder": holder, "outcome": outcome, "text": text[:2000]}
        return call("POST", url, answer=bool, field="accepted", body=body)

    @verb
    def spans(self, catalog: str, operation: int, *, after: int = -1, limit: int = 16) -> Flow[RestrictedSpans]:
        """Return the next parts of data files that an operation writes for restricted users, after the number `after`.

        The client must have the operation's token.
        """
        url = self.own_url("catalogs", catalog, "maintenance", "operations", str(operation), "spans")
        return call("POST", url, answer=RestrictedSpans, body={"after": after, "limit": limit})

    @verb
    def report_span(self, catalog: str, operation: int, *, name: str, files: Sequence[str]) -> Flow[bool]:
        """Report the files that an executor wrote for a part of a data file. Returns whether plans use them.

        The client must have the operation's token. Raises BadRequestError if they are not as the server would write
        them.
        """
        url = self.own_url("catalogs", catalog, "maintenance", "operations", str(operation), "files")
        return call("POST", url, answer=bool, field="accepted", body={"name": name, "files": list(files)})
