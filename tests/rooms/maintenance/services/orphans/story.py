# SPDX-License-Identifier: Apache-2.0
"""A random sequence of operations on tables whose orphan files are removed, compared with a model of the live files.

In addition to the steps of the expiry test, writers are killed, commit files days after they wrote them, name files by
links, and overwrite. Tables are registered a second time from copied metadata, and one table names a file of its
neighbor. Slow writers commit at each moment of a removal (`MOMENTS`). After each step every file that a reader of any
table may open must exist, according to the metadata on disk alone. So must each uncommitted file that is younger than
the age at which orphan files are deleted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import fastavro

from limnos.rooms.maintenance.services import table_storage
from limnos.rooms.maintenance.services.orphans import removal, rounds, search
from limnos.rooms.maintenance.services.orphans.references import ForeignReferences
from limnos.rooms.maintenance.services.orphans.rounds import OrphanRound
from limnos.services.iceberg.orphan_fence import ORPHAN_FENCE, FencedTables
from limnos.store.sql import Sql
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.iceberg_manifests import DELETED, data_file, entry, manifest_list
from tests.rooms.maintenance.services.histories import DAY_MS
from tests.rooms.maintenance.services.live_files import files_of_table, local, lost_files, read_metadata
from tests.rooms.maintenance.services.orphans.histories import LeasedTask, checked, turn_on
from tests.rooms.maintenance.services.story import ModelTable, Story

POINTS = ("orphans-checked", "orphans-marked", "orphans-fenced", "orphan-deleted", "orphans-recorded")
MOMENTS: Final = ("marking", "marked", "listing", "deleting")
"""When a slow writer may commit during a removal: before the mark, after it, during the search, or before the
deletion.
"""
AGE_MS: Final = 3 * DAY_MS


class HeldFile(NamedTuple):
    """An uncommitted file of a slow writer: its table, its location, and its length."""

    table: str
    location: str
    size: int


class LateCommit(NamedTuple):
    """A prepared commit to a table: the request's body, and the number and the manifests of its snapshot."""

    table: str
    body: dict[str, Any]
    number: int
    at_ms: int
    manifests: list[dict[str, Any]]


class OrphanStory(Story):
    """One random sequence of operations on a node, determined by a seed."""

    start_ms = 1_900_000_000_000
    moments: tuple[str, ...] = MOMENTS

    def __init__(self, node: DriverNode, seed: int) -> None:
        self.young: dict[str, int] = {}
        """Uncommitted files, each with the time at which its waiting time began (`forward_ms`)."""
        self.forward_ms = 0
        """Milliseconds by which the clock has advanced; setting it back does not count."""
        self.neighbour: str | None = None
        """The table that names a file of its neighbor."""
        self._seen_ms = self.start_ms
        self.held: list[HeldFile] = []
        self.clones: dict[str, str] = {}
        """The metadata files of tables that were registered from copied metadata, by name."""
        self.deleted = self.refused = self.orphans = self.numbers = 0
        super().__init__(node, seed)
        turn_on(node, age_ms=AGE_MS)

    def weights(self) -> dict[Callable[[], None], int]:
        """Return the steps with their frequencies."""
        few = {
            self.start_run: 1,
            self.share: 1,
            self.plan: 1,
            self.maintain_and_die: 1,
            self.maintain: 6,
            self.maintain_and_plan: 0,
        }
        more = {
            self.leave_orphan: 6,
            self.write_early: 6,
            self.commit_late: 4,
            self.overwrite: 4,
            self.add_statistics: 2,
            self.clone: 1,
            self.drop_copy: 1,
            self.move_data_path: 1,
            self.rename: 1,
            self.remove_orphans: 14,
            self.remove_and_die: 3,
            self.end_run: 3,
            self.name_neighbour: 2,
            self.engine_deletes: 2,
            self.restore_backup: 1,
        }
        weights = {**super().weights(), **few, **more}
        del weights[self.read_incrementally]  # covered by the expiry test
        return weights

    def wait(self) -> None:
        """Let days pass; the clock rarely jumps by months or is set back."""
        super().wait()
        if self.random.random() < 0.5:
            self.clock.at_ms += DAY_MS

    # ------------------------------------------------------------------------------------------ writers

    def _new_file(self, table: ModelTable) -> tuple[str, int]:
        """Write a data file, sometimes into a partition, or through a link to the data directory."""
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
        self.young[location] = self.forward_ms
        return location, size

    def leave_orphan(self) -> None:
        """Simulate a writer that is killed before its commit and leaves a file."""
        name = self._live()
        if name is not None:
            self._new_file(self.tables[name])
            self.orphans += 1

    def write_early(self) -> None:
        """Let a writer write a file that it will commit later."""
        name = self._live()
        if name is not None:
            self.held.append(HeldFile(name, *self._new_file(self.tables[name])))

    def commit_late(self, *, oldest: bool = False) -> None:
        """Let a slow writer commit a file that it wrote days ago; it may have to write the file again."""
        commit = self._late_commit(oldest=oldest)
        if commit is not None:
            self._committed(commit, self.node.ask("POST", wire.table_path("a", commit.table), commit.body).status)

    async def commit_during(self, moment: str) -> None:
        """At a moment of a removal, a slow writer may commit its oldest file to a table that is not dropped."""
        if moment in self.moments and self.random.random() < 0.5:
            commit = self._late_commit(oldest=True)
            if commit is not None:
                answer = await self.node.answer("POST", wire.table_path("a", commit.table), commit.body)
                self._committed(commit, answer.status)

    def _late_commit(self, *, oldest: bool) -> LateCommit | None:
        """Prepare the commit of a late file. Returns None if no such file exists or its table was dropped."""
        if not self.held:
            return None
        if oldest:  # of a table that is not dropped
            self.held.sort(key=lambda late_file: self.tables[late_file.table].dropped)
        late_file = self.held.pop(0 if oldest else self.random.randrange(len(self.held)))
        if self.tables[late_file.table].dropped:
            return None
        writer = self.tables[late_file.table].writer
        added = entry(data_file(late_file.location, file_size_in_bytes=late_file.size))
        return self._prepare(late_file.table, [*writer.manifests, writer.manifest(self._manifest(), [added])])

    def overwrite(self) -> None:
        """Let a writer replace older files by a new one, so that only older snapshots name them.

        Its manifest has the older files as deleted entries, as Iceberg's writers make them.
        """
        name = self._live()
        if name is None or not self.tables[name].writer.snapshots:
            return
        table = self.tables[name]
        location, size = self._new_file(table)
        first = len(table.writer.manifests) // 2 + 1
        deleted_entries = [
            entry(data_file(path, file_size_in_bytes=length), status=DELETED, sequence=1)
            for each in table.writer.manifests[:first]
            for path, length in _entries(each["manifest_path"])
        ]
        added = entry(data_file(location, file_size_in_bytes=size))
        new = table.writer.manifest(self._manifest(), [added, *deleted_entries])
        self._commit_manifests(name, [*table.writer.manifests[first:], new])

    def _manifest(self) -> str:
        self.numbers += 1
        return f"late{self.numbers}.avro"

    def _commit_manifests(self, name: str, manifests: list[dict[str, Any]]) -> bool:
        commit = self._prepare(name, manifests)
        return self._committed(commit, self.node.ask("POST", wire.table_path("a", name), commit.body).status)

    def _prepare(self, name: str, manifests: list[dict[str, Any]]) -> LateCommit:
        writer, now_ms = self.tables[name].writer, self.clock.at_ms
        number = writer.snapshots + 1
        self.numbers += 1
        place = writer.write(f"snap-{number}-{self.numbers}.avro", manifest_list(manifests))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=writer.snapshots or None)
        sequence = number + writer.elsewhere
        more = {"timestamp-ms": now_ms, "sequence-number": sequence, "summary": {"operation": "append"}}
        snapshot_update["snapshot"] = {**snapshot_update["snapshot"], **more}  # type: ignore[dict-item]
        return LateCommit(
            table=name,
            body={"requirements": [], "updates": [snapshot_update, wire.point(number)]},
            number=number,
            at_ms=now_ms,
            manifests=manifests,
        )

    def _committed(self, commit: LateCommit, status: int) -> bool:
        """Record the effect of a commit. Returns whether the server accepted it."""
        if status != 200:
            self.refused += status == 409
            return False
        table = self.tables[commit.table]
        number, before = commit.number, table.writer.snapshots
        table.times[number], table.parents[number] = commit.at_ms, before or None
        if before:
            table.replaced[before] = commit.at_ms
        table.refs["main"] = {"snapshot": number, "type": "branch"}
        table.writer.snapshots, table.writer.manifests = number, commit.manifests
        return True

    def name_neighbour(self) -> None:
        """Let a table name a file in its neighbor's directory, whose location has the table's location as a text
        prefix. A tag keeps the snapshot, so the file must be kept, also while the table is in the trash.
        """
        name = self._live()
        if name is None or self.neighbour or not self.tables[name].writer.snapshots:
            return
        writer = self.tables[name].writer
        metadata = read_metadata(self.metadata_location(name))
        location = f"{writer.location}near"
        metadata |= {
            "location": location,
            "table-uuid": "00000000-0000-7000-8000-0000000000ff",
            "metadata-log": [],
            "snapshots": [],
            "snapshot-log": [],
            "refs": {},
            "statistics": [],
            "partition-statistics": [],
            "current-snapshot-id": -1,
        }
        path = f"{location}/metadata/00000-{metadata['table-uuid']}.metadata.json"
        for each, data in ((path, json.dumps(metadata)), (f"{location}/data/shared.parquet", "shared")):
            wire.local(each).parent.mkdir(parents=True, exist_ok=True)
            wire.local(each).write_text(data)
        response = self.node.post(f"{wire.SPACES}/a/register", {"name": "near", "metadata-location": path})
        assert response.status == 200, response.body
        self.neighbour = name
        added = entry(data_file(f"{location}/data/shared.parquet", file_size_in_bytes=6))
        if self._commit_manifests(name, [*writer.manifests, writer.manifest(self._manifest(), [added])]):
            tag = wire.point(writer.snapshots, "shared", "tag")
            assert wire.commit(self.node, "a", name, updates=[tag]).status == 200
            self.tables[name].refs["shared"] = {"snapshot": writer.snapshots, "type": "tag"}

    def engine_deletes(self) -> None:
        """Let an engine delete replaced files after an expiry, when only deleted entries name them."""
        name = self._live()
        if name is None or self.clones:  # a copy of the table may name the files, too
            return
        location = self.metadata_location(name)
        needed = files_of_table(location)
        for snapshot in read_metadata(location)["snapshots"]:
            with local(snapshot["manifest-list"]).open("rb") as listed:
                manifests = [each["manifest_path"] for each in fastavro.reader(listed)]
            for path in {path for each in manifests for path, _ in _entries(each, is_deleted=True)} - needed.keys():
                local(path).unlink(missing_ok=True)
                self.young.pop(path, None)

    def restore_backup(self) -> None:
        """Give the store a new epoch, as a restore of a backup does; the waiting time of all files starts again."""
        services, upkeep = self.node.built.services, self.node.built.upkeep
        change = Sql("UPDATE store SET epoch = epoch + 1")
        self.node.runner.run(services.store.submit(upkeep._permit, lambda tx: tx.count(change, {})))
        self.young = dict.fromkeys(self.young, self.forward_ms)

    def add_statistics(self) -> None:
        """Let an engine write a statistics file of the current snapshot."""
        name = self._live()
        if name is None or not self.tables[name].writer.snapshots:
            return
        self.numbers += 1
        table = self.tables[name]
        location = table.writer.write(f"{self.numbers}.stats", b"statistics")
        statistics = {
            "snapshot-id": table.writer.snapshots * 100,
            "statistics-path": location,
            "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        update = {"action": "set-statistics", "snapshot-id": table.writer.snapshots * 100, "statistics": statistics}
        if wire.commit(self.node, "a", name, updates=[update]).status == 200:
            self._acknowledged(name)

    def clone(self) -> None:
        """Register a copy of a table's metadata at another location. The new table names the first table's files."""
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
        """Drop the copied table, which may be restored from the trash with all its files."""
        for name in self.clones:
            self.node.delete(wire.table_path("a", name))

    def move_data_path(self) -> None:
        """Request that a table's data path be another table's directory, which the server refuses."""
        name, other = self._live(), self._live()
        if name is not None and other is not None and name != other:
            update = wire.set_properties(**{"write.data.path": f"{self.tables[other].writer.location}/data"})
            assert wire.commit(self.node, "a", name, updates=[update]).status == 400

    def rename(self) -> None:
        """Rename a table, and rename it back."""
        name = self._live()
        if name is not None:
            for source, target in ((name, "moved"), ("moved", name)):
                names = {
                    "source": {"namespace": ["a"], "name": source},
                    "destination": {"namespace": ["a"], "name": target},
                }
                assert self.node.post(f"{wire.ROOT}/tables/rename", names).status == 204

    # ------------------------------------------------------------------------------------------ removal

    def remove_orphans(self) -> None:
        """Run a round of the removal task. A slow writer may commit between the marks and the deletions."""
        self._remove()

    def remove_and_die(self) -> None:
        """Let the node crash at a point of the round, and another node continue."""
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
        round_.story = self
        self.node.runner.run(round_.run(0))
        ORPHAN_FENCE.of(self.node.built.services).fenced = FencedTables()  # the wait is over: all nodes know
        with self._writers_beside():
            self.node.runner.run(self._delete(round_))
        ORPHAN_FENCE.of(self.node.built.services).fenced = FencedTables()
        self.deleted += round_.files

    async def _delete(self, round_: OrphanRound) -> None:
        if round_.marked:
            await self.commit_during("marked")
        await OrphanRound.remove(round_)

    @contextmanager
    def _writers_beside(self) -> Iterator[None]:
        """Let slow writers commit while a removal lists files, and before it deletes them."""
        compare, find = search._compare, ForeignReferences.find

        async def listing(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
            await self.commit_during("listing")
            return await compare(*args, **named)

        async def deleting(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
            references = await find(*args, **named)
            await self.commit_during("deleting")
            return references

        search._compare, ForeignReferences.find = listing, deleting  # type: ignore[method-assign]
        try:
            yield
        finally:
            search._compare, ForeignReferences.find = compare, find  # type: ignore[method-assign]

    def check(self) -> list[str]:
        """Return lost files, and files that the server reports as missing although they exist."""
        self.forward_ms += max(0, self.clock.at_ms - self._seen_ms)
        self._seen_ms = self.clock.at_ms
        lost = super().check()
        for name, location in self.clones.items():
            lost += [f"{name}: file {each}" for each in lost_files(files_of_table(location))]
        for location, since_ms in list(self.young.items()):
            if not local(location).is_file():
                del self.young[location]
                if self.forward_ms - since_ms < AGE_MS:
                    lost.append(f"young file {location}")
        return lost or self._missed()

    def _missed(self) -> list[str]:
        """Return the tables for which the server reports missing files."""
        name = self._live()
        blocked = None if name is None else checked(self.node, f"a.{name}").get("blocked")
        return [f"{name}: {blocked}"] if "are missing" in str(blocked) else []


def _entries(manifest: str, *, is_deleted: bool = False) -> list[tuple[str, int]]:
    """Return a manifest's live files, or those of deleted entries, with their sizes."""
    with local(manifest).open("rb") as opened:
        rows = [each for each in fastavro.reader(opened) if (each["status"] == DELETED) == is_deleted]
    return [(each["data_file"]["file_path"], each["data_file"]["file_size_in_bytes"]) for each in rows]


class _PausedRound(OrphanRound):
    """A round that marks files and does not delete them before a test says so."""

    story: OrphanStory

    async def _mark(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - passed on
        await self.story.commit_during("marking")
        await super()._mark(*args, **named)

    async def remove(self) -> dict[int, Any]:
        """Return no result, instead of deleting the marked files."""
        return {}
