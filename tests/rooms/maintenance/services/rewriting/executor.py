# SPDX-License-Identifier: Apache-2.0
"""A fake executor that uses the real routes: it leases operations, and rewrites manifests as Iceberg does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.http.driver import OWN, DriverAnswer, DriverNode
from tests.http.iceberg import wire
from tests.iceberg_manifests import data_file, entry, manifest_list
from tests.rooms.maintenance.services.histories import MAINTENANCE, HistoryTable

LEASES = f"{OWN}/metalakes/lake/maintenance/leases"
OPERATIONS = f"{OWN}/metalakes/lake/maintenance/operations"


@dataclass
class FakeExecutor:
    """A fake executor with a holder name."""

    node: DriverNode
    holder: str = "one"
    user: str = "admin"

    def lease(self, limit: int = 10) -> list[dict[str, Any]]:
        """Lease operations. Returns them."""
        answer = self.node.post(LEASES, {"holder": self.holder, "limit": limit}, user=self.user)
        assert answer.status == 200, answer.body
        return answer.json()["operations"]  # type: ignore[no-any-return]

    def renew(self, *operations: int) -> list[int]:
        """Renew leases. Returns the operations whose leases are lost."""
        answer = self.node.put(LEASES, {"holder": self.holder, "operations": operations}, user=self.user)
        assert answer.status == 200, answer.body
        return answer.json()["lost"]  # type: ignore[no-any-return]

    def report(self, operation: int, outcome: str = "done", text: str = "as asked") -> DriverAnswer:
        """Report the end of an operation."""
        body = {"holder": self.holder, "outcome": outcome, "text": text}
        return self.node.post(f"{OPERATIONS}/{operation}/report", body, user=self.user)


def with_token(node: DriverNode, token: str, method: str, target: str, body: object = None) -> DriverAnswer:
    """Send a request with an operation's token."""
    return node.ask(method, target, body, user=None, authorization=f"Bearer {token}")


def replacement(table: HistoryTable, *, records: int | None = None, **changes: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - parts of any type
    """Return the updates of a compaction that replaces all files of a table by one with this number of records.

    `changes` replaces parts: `paths` of the new files, the number of manifests to `keep`, `summary`, `snapshot` fields.
    """
    number = table.snapshots + 1
    keep: int = changes.get("keep", 0)
    total = 10 * (table.snapshots - keep) if records is None else records
    paths = changes.get("paths", [f"{table.location}/data/compacted-{number}.parquet"])
    share = total // len(paths)
    entries = [entry(data_file(path, record_count=share), sequence=table.snapshots) for path in paths]
    new = table.manifest(f"c{number}.avro", entries, min_sequence_number=table.snapshots)
    place = table.write(f"replace-{number}.avro", manifest_list([*table.manifests[:keep], new]))
    snapshot_update = wire.snapshot(number, manifest_list=place, parent=table.snapshots)
    snapshot_update["snapshot"] = {
        **snapshot_update["snapshot"],
        "sequence-number": number,  # type: ignore[dict-item]
        "summary": {"operation": "replace", **changes.get("summary", {})},
        **changes.get("snapshot", {}),
    }
    return [snapshot_update, wire.point(number)]


def commit_with(node: DriverNode, token: str, table: str, updates: list[Any]) -> DriverAnswer:
    """Commit updates to a table of namespace `a` with an operation's token."""
    path = wire.table_path("a", table)
    return with_token(node, token, "POST", path, {"requirements": [], "updates": updates})


def ask(node: DriverNode, table: str = "a.t", operation: str = "compact", *, user: str = "admin") -> DriverAnswer:
    """Request an operation on a table."""
    return node.post(f"{MAINTENANCE}/operations", {"table": table, "operation": operation}, user=user)


def list_operations(node: DriverNode) -> list[dict[str, Any]]:
    """Return the operations that the status lists, newest first."""
    return node.get(f"{MAINTENANCE}/operations").json()["operations"]  # type: ignore[no-any-return]
