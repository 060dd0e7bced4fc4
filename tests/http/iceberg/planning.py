# SPDX-License-Identifier: Apache-2.0
"""Helpers for scan planning: tables whose manifests the tests write, and requests for scan plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyiceberg.types import StructType

from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg import wire
from tests.iceberg_manifests import Fields, listed, manifest, manifest_list

Json = dict[str, Any]


class WrittenTable:
    """A table `a.NAME` to which tests add snapshots with their own manifests."""

    def __init__(self, node: DriverNode, name: str = "t", **more: object) -> None:
        for key in (SCAN_OFFLOADER, PREVIEW_OFFLOADER):
            key.put(node.built.services, InlineOffloader())  # tests/integration tests the processes
        table = wire.make_table(node, "a", name, **more)
        self.node = node
        self.name = name
        self.path = wire.table_path("a", name)
        self.location = str(table["metadata"]["location"])  # type: ignore[index]
        self.snapshots = 0

    def write(self, name: str, data: bytes) -> str:
        """Write a file below the table's location."""
        location = f"{self.location}/metadata/{name}"
        wire.local(location).parent.mkdir(parents=True, exist_ok=True)
        wire.local(location).write_bytes(data)
        return location

    def manifest(
        self,
        name: str,
        entries: Sequence[Fields],
        *,
        version: int = 2,
        partition: StructType | None = None,
        **more: object,
    ) -> Json:
        """Write a manifest. Returns its entry for a manifest list."""
        data = manifest(entries, version=version, partition=partition)
        more.setdefault("snapshot", 100 * (self.snapshots + 1))
        return listed(self.write(name, data), data, **{"added_files_count": len(entries), **more})

    def commit(self, manifests: Sequence[Fields], *, operation: str = "append", version: int = 3) -> int:
        """Commit a snapshot with these manifests."""
        parent = self.snapshots or None
        self.snapshots += 1
        number = self.snapshots
        place = self.write(f"snap-{number}.avro", manifest_list(manifests, version=version))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=parent)
        snapshot_update["snapshot"] = {
            **snapshot_update["snapshot"],
            "summary": {"operation": operation},
            "sequence-number": number,
        }  # type: ignore[dict-item]
        answer = wire.commit(self.node, "a", self.name, updates=[snapshot_update, wire.point(number)])
        assert answer.status == 200, answer.body
        return number

    def plan(self, *, user: str = "admin", **arguments: object) -> DriverAnswer:
        """Request a scan plan. Underscores in argument names become dashes."""
        return self.node.post(
            f"{self.path}/plan", {name.replace("_", "-"): value for name, value in arguments.items()}, user=user
        )

    def paths(self, **arguments: object) -> list[str]:
        """Return the data files of a scan whose plan is completed immediately."""
        return paths_of(self.plan(**arguments))


def paths_of(answer: DriverAnswer) -> list[str]:
    """Return the names of the data files in an answer, without their directories."""
    assert answer.status == 200, answer.body
    return sorted(task["data-file"]["file-path"].rpartition("/")[2] for task in answer.json()["file-scan-tasks"])
