# SPDX-License-Identifier: Apache-2.0
"""All maintenance in one random sequence of operations: expiry, removal of orphan files, and compactions.

In addition to the steps of the tests of expiry and of orphan files, incremental readers read, writers commit to
branches, executors lease compactions and commit them late, without a lease, or never, and the node crashes at any step
of its work and starts again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import fastavro

from limnos.rooms.maintenance.services.rewriting.leases import LEASE_MS
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.iceberg_manifests import DELETED, data_file, entry, manifest_list
from tests.rooms.maintenance.services.crashes import mortal, random_death
from tests.rooms.maintenance.services.histories import assess
from tests.rooms.maintenance.services.live_files import local, read_metadata
from tests.rooms.maintenance.services.orphans.story import OrphanStory
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor, ask, with_token

DEATH_STEPS_MAX = 14
BRANCH_NUMBERS = 1_000_000
"""Snapshots of other branches than `main` have numbers from here on."""


class Compaction(NamedTuple):
    """A prepared compaction of a table: its token, the request's body, its snapshot's number and its manifest."""

    table: str
    token: str
    body: dict[str, Any]
    number: int
    manifests: list[dict[str, Any]]


class WholeStory(OrphanStory):
    """One sequence of operations on a node, determined by a seed."""

    def __init__(self, node: DriverNode, seed: int) -> None:
        self.compacted = self.yielded = self.branched = self.executors = 0
        self.dead_leases: list[Compaction] = []
        """Compactions whose executors lost their leases."""
        self.wrong: list[str] = []
        """Violations by the server since the last check."""
        super().__init__(node, seed)

    def weights(self) -> dict[Callable[[], None], int]:
        """Return the steps with their frequencies."""
        more = {
            self.read_incrementally: 2,
            self.maintain_and_plan: 2,
            self.write_branch: 3,
            self.compact: 6,
            self.commit_without_lease: 2,
            self.die: 10,
        }
        return {**super().weights(), **more}

    # ------------------------------------------------------------------------------------------ branches

    def write_branch(self) -> None:
        """Let a writer commit a snapshot to a branch other than `main`, with a file that no other snapshot names."""
        name = self._live()
        table = None if name is None else self.tables[name]
        refs = (
            []
            if table is None
            else [ref for ref, row in table.refs.items() if ref != "main" and row["type"] == "branch"]
        )
        if name is None or table is None or not refs:
            return
        ref = self.random.choice(refs)
        parent, number = table.refs[ref]["snapshot"], BRANCH_NUMBERS + self.branched
        location, size = self._new_file(table)
        added = table.writer.manifest(self._manifest(), [entry(data_file(location, file_size_in_bytes=size))])
        place = table.writer.write(f"snap-{number}.avro", manifest_list([added]))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=parent)
        sequence = table.writer.snapshots + table.writer.elsewhere + 1
        more = {"timestamp-ms": self.clock.at_ms, "sequence-number": sequence}
        snapshot_update["snapshot"] = {**snapshot_update["snapshot"], **more}  # type: ignore[dict-item]
        row = {**table.refs[ref], "snapshot": number}
        retention = {key: value for key, value in row.items() if key not in ("snapshot", "type")}
        self.branched += 1
        if (
            wire.commit(
                self.node, "a", name, updates=[snapshot_update, {**wire.point(number, ref), **retention}]
            ).status
            == 200
        ):
            table.writer.elsewhere += 1
            table.times[number], table.parents[number], table.refs[ref] = self.clock.at_ms, parent, row
            self._acknowledged(name)

    # ------------------------------------------------------------------------------------------ compactions

    def compact(self) -> None:
        """Request a compaction. An executor leases it, and commits it, crashes, or is too slow."""
        name = self._live()
        if name is None or not self.tables[name].writer.snapshots:
            return
        ask(self.node, f"a.{name}")
        self.executors += 1
        executor = FakeExecutor(self.node, f"executor-{self.executors}")
        for leased in executor.lease():
            assert leased["kind"] == "compact", leased
            self._carry_out(executor, leased)

    def _carry_out(self, executor: FakeExecutor, leased: dict[str, Any]) -> None:
        name, fate = leased["path"][-1], self.random.random()
        compaction = self._prepared_compaction(name, leased["token"])
        if fate < 0.15:  # crashes before its commit
            self.dead_leases.append(compaction)
            return
        if fate < 0.3:
            self.append()  # perhaps to the same table
        status = self._send(compaction)
        if fate > 0.85:  # crashes after its commit
            return
        executor.report(leased["operation"], "done" if status == 200 else "yielded")

    def commit_without_lease(self) -> None:
        """Let an executor that has lost its lease commit, which the server refuses."""
        if self.dead_leases:
            compaction = self.dead_leases.pop(self.random.randrange(len(self.dead_leases)))
            self.clock.at_ms += LEASE_MS
            if not self.tables[compaction.table].dropped and self._send(compaction) == 200:
                self.wrong.append(f"{compaction.table}: a compaction without a lease was committed")

    def _prepared_compaction(self, name: str, token: str) -> Compaction:
        """Write the files of a compaction of all files of `main`: the new file, and the old ones as deleted entries."""
        table = self.tables[name]
        writer, head = table.writer, table.writer.snapshots
        live = [row for each in writer.manifests for row in _live_files(each["manifest_path"])]
        location, size = self._new_file(table)
        rows = sum(row["record_count"] for row in live)
        number, sequence = head + 1, head + writer.elsewhere
        added = entry(data_file(location, file_size_in_bytes=size, record_count=rows), sequence=sequence)
        deleted_entries = [
            entry(
                data_file(
                    row["file_path"], file_size_in_bytes=row["file_size_in_bytes"], record_count=row["record_count"]
                ),
                status=DELETED,
                sequence=1,
            )
            for row in live
        ]
        manifest = writer.manifest(self._manifest(), [added, *deleted_entries], min_sequence_number=sequence)
        self.numbers += 1
        place = writer.write(f"replace-{number}-{self.numbers}.avro", manifest_list([manifest]))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=head)
        more = {"timestamp-ms": self.clock.at_ms, "sequence-number": sequence + 1, "summary": {"operation": "replace"}}
        snapshot_update["snapshot"] = {**snapshot_update["snapshot"], **more}  # type: ignore[dict-item]
        requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head * 100}
        body = {"requirements": [requirement], "updates": [snapshot_update, wire.point(number)]}
        return Compaction(table=name, token=token, body=body, number=number, manifests=[manifest])

    def _send(self, compaction: Compaction) -> int:
        """Commit a compaction with its token, and record its effect."""
        name, table = compaction.table, self.tables[compaction.table]
        before, head = self.present.get(name, set()), table.writer.snapshots
        status = with_token(self.node, compaction.token, "POST", wire.table_path("a", name), compaction.body).status
        if status != 200:
            self.yielded += 1
            return status
        self.compacted += 1
        if head != compaction.number - 1:
            self.wrong.append(f"{name}: a compaction of an older snapshot was committed")
        number, at_ms = compaction.number, self.clock.at_ms
        table.times[number], table.parents[number], table.replaced[head] = at_ms, head, at_ms
        table.refs["main"] = {"snapshot": number, "type": "branch"}
        table.writer.snapshots, table.writer.manifests = number, compaction.manifests
        self._carried(name, before, number=number)
        return status

    def _carried(self, name: str, before: set[int], *, number: int) -> None:
        """Check that the summary of the compaction has the checkpoints of earlier writers."""
        table = self.tables[name]
        metadata = read_metadata(self.metadata_location(name))
        (summary,) = [each["summary"] for each in metadata["snapshots"] if each["snapshot-id"] == number * 100]
        for key, at in table.checkpoints.items():
            if key in summary:
                table.checkpoints[key] = number
            elif before.issuperset(range(at, number)):
                self.wrong.append(f"{name}: checkpoint {key} is not in the summary of a compaction")

    # ------------------------------------------------------------------------------------------ crashes

    def die(self) -> None:
        """Let the node crash at one of the next steps of its work, and start it again."""
        acts = [self.maintain, self.maintain, self._assess, self.remove_orphans, self.remove_orphans, self.compact]
        death = random_death(self.random, DEATH_STEPS_MAX)
        with mortal(self.node, death):
            self.random.choice(acts)()
        if death.happened:
            self.kills += 1
            self._seen_again()
            if self.random.random() < 0.5:
                self.clock.at_ms += 10 * LEASE_MS

    def _assess(self) -> None:
        assess(self.node)

    def _seen_again(self) -> None:
        """Read from the metadata which commits succeeded whose answers were lost, as clients do."""
        for name, table in self.tables.items():
            metadata = read_metadata(self.metadata_location(name))
            head = metadata["refs"].get("main", {}).get("snapshot-id", 0) // 100
            assert head in (table.writer.snapshots, table.writer.snapshots + 1), (name, head)
            if head != table.writer.snapshots:
                self._learn(name, metadata, head=head)

    def _learn(self, name: str, metadata: dict[str, Any], *, head: int) -> None:
        table = self.tables[name]
        (snapshot,) = [each for each in metadata["snapshots"] if each["snapshot-id"] == head * 100]
        with local(snapshot["manifest-list"]).open("rb") as listed:
            table.writer.manifests = list(fastavro.reader(listed))  # type: ignore[arg-type]
        at_ms = snapshot["timestamp-ms"]
        table.times[head], table.parents[head] = at_ms, head - 1 or None
        table.replaced[head - 1] = at_ms
        table.refs["main"] = {"snapshot": head, "type": "branch"}
        table.checkpoints |= {key: head for key in table.checkpoints if key in snapshot["summary"]}
        table.writer.snapshots = head

    def check(self) -> list[str]:
        """Return what is lost, and the requests that the server should have refused."""
        wrong, self.wrong = self.wrong, []
        return wrong or super().check()


def _live_files(manifest: str) -> list[dict[str, Any]]:
    """Return the live data files of a manifest."""
    with local(manifest).open("rb") as opened:
        return [each["data_file"] for each in fastavro.reader(opened) if each["status"] != DELETED]  # type: ignore[index, call-overload]
