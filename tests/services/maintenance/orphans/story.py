"""A random story of tables whose orphan files are removed, held against the model that counts live files.

Beside the steps of the story of expiry, writers are killed, hold files for days before their commit, name files by
links, and overwrite; tables are registered a second time from copied metadata. After each step every file that a
reader of any table may open must exist, by metadata on the disk alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from limnos.services.iceberg.orphan_fence import ORPHAN_FENCE, FenceKnowledge
from limnos.services.maintenance import table_storage
from limnos.services.maintenance.orphans import removal, rounds
from limnos.services.maintenance.orphans.rounds import OrphanRound
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.manifests import data_file, entry, manifest_list
from tests.services.maintenance.histories import DAY_MS
from tests.services.maintenance.live_files import files_of_table, lost_files, read_metadata
from tests.services.maintenance.orphans.histories import LeasedTask, turn_on
from tests.services.maintenance.story import ModelTable, Story

POINTS = ("orphans-checked", "orphans-marked", "orphans-fenced", "orphan-deleted", "orphans-recorded")


class HeldFile(NamedTuple):
    """A file that a slow writer has written and not committed: its table, its location, and its length."""

    table: str
    location: str
    size: int


class OrphanStory(Story):
    """One story on a node, with a seed."""

    start_ms = 1_900_000_000_000

    def __init__(self, node: DriverNode, seed: int) -> None:
        self.held: list[HeldFile] = []
        self.clones: dict[str, str] = {}
        """The metadata files of tables that were registered from copied metadata, by name."""
        self.deleted = self.refused = self.orphans = self.numbers = 0
        super().__init__(node, seed)
        turn_on(node, age_ms=3 * DAY_MS)

    def weights(self) -> dict[Callable[[], None], int]:
        """What may happen, and how often."""
        few = {self.start_run: 1, self.share: 1, self.plan: 1, self.maintain_and_die: 1, self.maintain: 6}
        more = {
            self.leave_orphan: 6, self.write_early: 6, self.commit_late: 4, self.overwrite: 4, self.add_statistics: 1,
            self.clone: 1, self.drop_copy: 1, self.move_data_path: 1, self.rename: 1, self.remove_orphans: 14, self.remove_and_die: 3,
            self.end_run: 3,
        }  # fmt: skip
        weights = {**super().weights(), **few, **more}
        del weights[self.read_incrementally]  # about snapshots: the story of expiry has it
        return weights

    def wait(self) -> None:
        """Days pass; rarely the clock jumps by months, or goes back."""
        super().wait()
        if self.random.random() < 0.5:
            self.clock.at_ms += DAY_MS

    # ------------------------------------------------------------------------------------------ writers

    def _new_file(self, table: ModelTable) -> tuple[str, int]:
        """Write a data file, now and then into a partition, or named by a link to the data directory."""
        self.numbers += 1
        name, size = f"data/p={self.random.randrange(2)}/w{self.numbers}.parquet", self.random.randrange(1, 50)
        location = f"{table.writer.location}/{name}"
        wire.local(location).parent.mkdir(parents=True, exist_ok=True)
        wire.local(location).write_bytes(b"x" * size)
        if self.random.random() < 0.25:
            link = wire.local(f"{table.writer.location}/also")
            if not link.is_symlink():
                link.symlink_to(wire.local(f"{table.writer.location}/data"))
            location = f"{table.writer.location}/also/{name.removeprefix('data/')}"
        return location, size

    def leave_orphan(self) -> None:
        """A writer is killed before its commit, and leaves a file."""
        name = self._live()
        if name is not None:
            self._new_file(self.tables[name])
            self.orphans += 1

    def write_early(self) -> None:
        """A writer writes a file, and does not commit yet."""
        name = self._live()
        if name is not None:
            self.held.append(HeldFile(name, *self._new_file(self.tables[name])))

    def commit_late(self, *, oldest: bool = False) -> None:
        """A slow writer commits the file that it wrote days ago; it may be told to write it again."""
        if not self.held:
            return
        held = self.held.pop(0 if oldest else self.random.randrange(len(self.held)))
        table = self.tables[held.table]
        if table.dropped:
            return
        added = entry(data_file(held.location, file_size_in_bytes=held.size))
        self._commit_manifests(held.table, [*table.writer.manifests, table.writer.manifest(self._manifest(), [added])])

    def overwrite(self) -> None:
        """A writer replaces older files by a new one: only older snapshots name them from then on."""
        name = self._live()
        if name is None or not self.tables[name].writer.snapshots:
            return
        table = self.tables[name]
        location, size = self._new_file(table)
        added = entry(data_file(location, file_size_in_bytes=size))
        kept = table.writer.manifests[len(table.writer.manifests) // 2 + 1 :]
        self._commit_manifests(name, [*kept, table.writer.manifest(self._manifest(), [added])])

    def _manifest(self) -> str:
        self.numbers += 1
        return f"late{self.numbers}.avro"

    def _commit_manifests(self, name: str, manifests: list[dict[str, Any]]) -> None:
        table, now_ms = self.tables[name], self.clock.at_ms
        writer, number = table.writer, table.writer.snapshots + 1
        self.numbers += 1
        place = writer.write(f"snap-{number}-{self.numbers}.avro", manifest_list(manifests))
        told = wire.snapshot(number, manifest_list=place, parent=writer.snapshots or None)
        more = {"timestamp-ms": now_ms, "sequence-number": number, "summary": {"operation": "append"}}
        told["snapshot"] = {**told["snapshot"], **more}  # type: ignore[dict-item]
        answer = wire.commit(self.node, "a", name, updates=[told, wire.point(number)])
        if answer.status != 200:
            self.refused += answer.status == 409
            return
        table.times[number], table.parents[number] = now_ms, writer.snapshots or None
        if writer.snapshots:
            table.replaced[writer.snapshots] = now_ms
        table.refs["main"] = {"snapshot": number, "type": "branch"}
        writer.snapshots, writer.manifests = number, manifests
        self._acknowledged(name)

    def add_statistics(self) -> None:
        """An engine writes a statistics file of the current snapshot."""
        name = self._live()
        if name is None or not self.tables[name].writer.snapshots:
            return
        self.numbers += 1
        table = self.tables[name]
        location = table.writer.write(f"{self.numbers}.stats", b"statistics")
        statistics = {
            "snapshot-id": table.writer.snapshots * 100, "statistics-path": location, "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 1, "blob-metadata": [],
        }  # fmt: skip
        update = {"action": "set-statistics", "snapshot-id": table.writer.snapshots * 100, "statistics": statistics}
        if wire.commit(self.node, "a", name, updates=[update]).status == 200:
            self._acknowledged(name)

    def clone(self) -> None:
        """Somebody registers a copy of a table's metadata at another location: it names the first table's files."""
        name = self._live()
        if name is None or self.clones or not self.tables[name].writer.snapshots:
            return
        metadata = read_metadata(self.metadata_location(name))
        copy = f"copy{len(self.clones)}"
        metadata["location"] = f"{self.tables[name].writer.location}{copy}"
        metadata["table-uuid"] = f"00000000-0000-7000-8000-{len(self.clones):012d}"
        metadata["metadata-log"] = []
        location = f"{metadata['location']}/metadata/00000-{metadata['table-uuid']}.metadata.json"
        wire.local(location).parent.mkdir(parents=True, exist_ok=True)
        wire.local(location).write_text(json.dumps(metadata))
        body = {"name": copy, "metadata-location": location}
        if self.node.post(f"{wire.SPACES}/a/register", body).status == 200:
            self.clones[copy] = location

    def drop_copy(self) -> None:
        """Somebody drops the copy: it may come back from the trash with all its files."""
        for name in self.clones:
            self.node.delete(wire.table_path("a", name))

    def move_data_path(self) -> None:
        """Somebody sends a table's writers into another table's directory: the server refuses."""
        name, other = self._live(), self._live()
        if name is not None and other is not None and name != other:
            update = wire.set_properties(**{"write.data.path": f"{self.tables[other].writer.location}/data"})
            assert wire.commit(self.node, "a", name, updates=[update]).status == 400

    def rename(self) -> None:
        """Somebody renames a table, and back."""
        name = self._live()
        if name is not None:
            for source, target in ((name, "moved"), ("moved", name)):
                names = {
                    "source": {"namespace": ["a"], "name": source}, "destination": {"namespace": ["a"], "name": target},
                }  # fmt: skip
                assert self.node.post(f"{wire.ROOT}/tables/rename", names).status == 204

    # ------------------------------------------------------------------------------------------ removal

    def remove_orphans(self) -> None:
        """The recurring task does its round; a slow writer may commit between marks and deletions."""
        self._remove()

    def remove_and_die(self) -> None:
        """The node dies at a point of the round; another one goes on."""
        self.kills += 1
        point, left = self.random.choice(POINTS), self.random.randrange(1, 4)

        def die(passed: str) -> None:
            nonlocal left
            left -= passed == point
            if left == 0:
                raise asyncio.CancelledError

        modules = (rounds, removal, table_storage)
        real = rounds.fault_point
        for module in modules:
            module.fault_point = die  # type: ignore[attr-defined]
        try:
            self._remove()
        except asyncio.CancelledError:
            pass
        finally:
            for module in modules:
                module.fault_point = real  # type: ignore[attr-defined]

    def _remove(self) -> None:
        upkeep, leased = self.node.built.upkeep, LeasedTask()
        work = upkeep._work(leased, leased.kind)  # type: ignore[arg-type]
        round_ = _PausedRound(work, self.node.built.services)
        self.node.runner.run(round_.run(0))
        ORPHAN_FENCE.of(self.node.built.services).knowledge = FenceKnowledge()  # the wait is over: all nodes know
        if round_.marked and self.random.random() < 0.5:
            names = {each for each, table in self.tables.items() if not table.dropped}
            self.held.sort(key=lambda held: held.table not in names)  # the oldest file of a live table comes first
            self.commit_late(oldest=True)
        self.node.runner.run(OrphanRound.remove(round_))
        ORPHAN_FENCE.of(self.node.built.services).knowledge = FenceKnowledge()
        self.deleted += round_.files

    def check(self) -> list[str]:
        """Return what is lost."""
        lost = super().check()
        for name, location in self.clones.items():
            lost += [f"{name}: file {each}" for each in lost_files(files_of_table(location))]
        return lost


class _PausedRound(OrphanRound):
    """A round that marks files, and deletes them when it is told to."""

    async def remove(self) -> dict[int, Any]:
        """Delete nothing yet."""
        return {}
