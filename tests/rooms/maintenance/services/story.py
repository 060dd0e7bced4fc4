# SPDX-License-Identifier: Apache-2.0
"""A random sequence of operations on tables with writers, readers and maintenance, compared with a model.

The model records its own actions: snapshots with their times, references with their retention, and the needs of runs,
scan plans and incremental readers. After each step it computes by its own rules which snapshots and files must still
exist. It does not ask the product.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from limnos.rooms.maintenance.services import expiry, operations
from limnos.rooms.maintenance.services.task import MaintenancePosition, MaintenanceRound
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, MAINTENANCE, HistoryTable, add_policy, assess, set_clock
from tests.rooms.maintenance.services.live_files import files_of_table, lost_files, read_metadata
from tests.rooms.pipelines.http.test_runs import finish, started

HOUR_MS = 3_600_000
START_MS = 1_760_000_000_000
FAR_MS = 4_000_000_000_000
PIN_MS = 7 * DAY_MS
"""The time for which a run pins a snapshot."""


@dataclass(kw_only=True)
class ModelTable:
    """The model's state of one table."""

    writer: HistoryTable
    times: dict[int, int] = field(default_factory=dict)
    """The creation time of each snapshot, by its number."""
    parents: dict[int, int | None] = field(default_factory=dict)
    replaced: dict[int, int] = field(default_factory=dict)
    """The time at which the next snapshot replaced each snapshot of `main`."""
    refs: dict[str, dict[str, Any]] = field(default_factory=dict)
    checkpoints: dict[str, int] = field(default_factory=dict)
    """The newest snapshot of `main` with each checkpoint key."""
    read: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By reader: the snapshot that it has read last, and when it reported that."""
    shared: bool = False
    dropped: bool = False
    location: str = ""
    """The metadata file of the last acknowledged commit."""


class Story:
    """One random sequence of operations on a node, determined by a seed."""

    start_ms = START_MS
    often: tuple[str, ...] = ()
    """Steps that are more frequent in this sequence."""

    def __init__(self, node: DriverNode, seed: int) -> None:
        self.node = node
        self.random = random.Random(seed)
        self.clock = set_clock(node, self.start_ms)
        self.tables: dict[str, ModelTable] = {}
        self.runs: dict[str, tuple[str, int, int]] = {}
        """By run: the table, the snapshot that it pinned, and the expiry of the pin."""
        self.plans: list[tuple[str, int, int]] = []
        """Table, snapshot, and the expiry of the plan."""
        self.policy_days: int | None = None
        self.present: dict[str, set[int]] = {}
        """The snapshots of each table after the last step."""
        self.kills = 0
        self.expired = self.files = self.gone = 0
        services = node.built.services
        services.defaults = services.defaults._replace(
            maintenance=services.defaults.maintenance._replace(expire=True, metadata_keep_ms=DAY_MS)
        )
        for name in ("t", "u", "v"):
            self.make(name)

    # ------------------------------------------------------------------------------------------ steps

    def make(self, name: str) -> None:
        """Create a table with a short metadata log."""
        writer = HistoryTable(self.node, name)
        update = wire.set_properties(**{"write.metadata.previous-versions-max": "3"})
        assert wire.commit(self.node, "a", name, updates=[update]).status == 200
        self.tables[name] = ModelTable(writer=writer)
        self._acknowledged(name)

    def step(self) -> str:
        """Execute a random step. Returns its name."""
        weights = {act: weight * (8 if act.__name__ in self.often else 1) for act, weight in self.weights().items()}
        (act,) = self.random.choices(list(weights), list(weights.values()))
        act()
        return act.__name__

    def weights(self) -> dict[Callable[[], None], int]:
        """Return the steps with their frequencies."""
        return {
            self.append: 10,
            self.wait: 8,
            self.tag: 3,
            self.branch: 3,
            self.retention: 1,
            self.start_run: 2,
            self.end_run: 2,
            self.plan: 2,
            self.read_incrementally: 2,
            self.policy: 1,
            self.share: 1,
            self.drop_or_restore: 1,
            self.maintain: 8,
            self.maintain_and_die: 2,
            self.maintain_and_plan: 2,
        }

    def append(self) -> None:
        """Let a writer commit a snapshot, sometimes with a checkpoint."""
        name = self._live()
        if name is None:
            return
        table = self.tables[name]
        summary = {}
        if self.random.random() < 0.2:
            summary = {self.random.choice(["flink.job-id", "spark.sql.streaming.epochId"]): "1"}
        self._append(table, summary)
        self._acknowledged(name)

    def _append(self, table: ModelTable, summary: dict[str, str]) -> bool:
        number, now_ms = table.writer.snapshots + 1, self.clock.at_ms
        parent = table.writer.snapshots or None
        if not table.writer.append_at(now_ms, **summary):
            return False  # after the clock was set back, the snapshot times would not be in order
        table.times[number], table.parents[number] = now_ms, parent
        if parent is not None:
            table.replaced[parent] = now_ms
        table.refs["main"] = {"snapshot": number, "type": "branch"}  # the writer's update carries no retention
        table.checkpoints |= dict.fromkeys(summary, number)
        return True

    def wait(self) -> None:
        """Advance the time; the clock rarely jumps by months or is set back."""
        kind = self.random.random()
        if kind < 0.03:
            self.clock.at_ms -= self.random.randrange(20) * HOUR_MS
        elif kind < 0.06:
            self.clock.at_ms += 60 * DAY_MS
        else:
            self.clock.at_ms += self.random.choice([60_000, HOUR_MS, DAY_MS, 3 * DAY_MS])

    def tag(self) -> None:
        """Tag a snapshot, sometimes with a retention time."""
        self._point("tag")

    def branch(self) -> None:
        """Create a branch with its own retention."""
        self._point("branch")

    def _point(self, kind: str) -> None:
        name = self._live()
        numbers = [] if name is None else self._present(name)
        if name is None or not numbers:
            return
        number, ref = self.random.choice(numbers), f"{kind}{self.random.randrange(3)}"
        retention: dict[str, int] = {}
        if self.random.random() < 0.5:
            retention["max-ref-age-ms"] = self.random.choice([1, 10]) * DAY_MS
        if kind == "branch" and self.random.random() < 0.5:
            retention["min-snapshots-to-keep"] = self.random.randrange(1, 4)
        update = {**wire.point(number, ref, kind), **retention}
        if wire.commit(self.node, "a", name, updates=[update]).status == 200:
            self.tables[name].refs[ref] = {"snapshot": number, "type": kind, **retention}
            self._acknowledged(name)

    def retention(self) -> None:
        """Set the number of snapshots of `main` that a table keeps, as its owner."""
        name = self._live()
        if name is None or "main" not in self.tables[name].refs:
            return
        table, least = self.tables[name], self.random.randrange(1, 6)
        update = {**wire.point(table.refs["main"]["snapshot"]), "min-snapshots-to-keep": least}
        assert wire.commit(self.node, "a", name, updates=[update]).status == 200
        table.refs["main"]["min-snapshots-to-keep"] = least
        self._acknowledged(name)

    def start_run(self) -> None:
        """Let a pipeline run pin a snapshot."""
        name = self._live()
        numbers = [] if name is None else self._present(name)
        if name is None or not numbers or len(self.runs) > 3:
            return
        number = self.random.choice(numbers)
        pin = {"table": ["main", "a", name], "snapshot": number * 100, "fingerprint": None}
        run = started(self.node, options={"pins": [pin]})
        assert finish(self.node, run, "held").status == 200
        self.runs[run] = (name, number, self.clock.at_ms + PIN_MS)

    def end_run(self) -> None:
        """Discard a held run."""
        if self.runs:
            run = self.random.choice(sorted(self.runs))
            assert finish(self.node, run, "discarded").status == 200
            del self.runs[run]

    def plan(self) -> None:
        """Let a client plan a scan and read its files later."""
        name = self._live()
        numbers = [] if name is None else self._present(name)
        if name is None or not numbers:
            return
        number = self.random.choice(numbers)
        if self.tables[name].writer.plan(snapshot_id=number * 100).status == 200:
            self._planned(name, number)

    def _planned(self, name: str, number: int) -> None:
        keep_ms = self.node.built.services.defaults.scan_keep_ms
        self.plans.append((name, number, self.clock.at_ms + keep_ms))

    def read_incrementally(self) -> None:
        """Let an incremental step read a table and record that in its output."""
        live = [name for name, table in self.tables.items() if not table.dropped and table.writer.snapshots]
        if len(live) < 2:
            return
        source, output = self.random.sample(live, 2)
        numbers = self._present(source)
        if not numbers:
            return
        number = self.random.choice(numbers)
        mark = json.dumps({f"main.a.{source}": number * 100})
        if not self._append(self.tables[output], {"limnos.inputs": mark}):
            return
        for each in self.tables.values():
            each.read.pop(output, None)
        self.tables[source].read[output] = (number, self.clock.at_ms)
        self._acknowledged(output)

    def policy(self) -> None:
        """Attach a policy to the catalog, at most once."""
        if self.policy_days is None:
            self.policy_days = self.random.randrange(0, 8)
            content: dict[str, object] = {"olderThanDays": self.policy_days, "minSnapshotCount": 0}
            add_policy(self.node, "p", "system_iceberg_snapshot_expiration", content, on="main", kind="catalog")

    def share(self) -> None:
        """Set or remove the property that says that a table's files are shared, as the table's owner."""
        name = self._live()
        if name is not None:
            table = self.tables[name]
            table.shared = not table.shared
            update = wire.set_properties(**{"gc.enabled": str(not table.shared).lower()})
            assert wire.commit(self.node, "a", name, updates=[update]).status == 200
            self._acknowledged(name)

    def drop_or_restore(self) -> None:
        """Drop a table, or restore one."""
        name = self.random.choice(sorted(self.tables))
        table = self.tables[name]
        if not table.dropped:
            assert self.node.delete(wire.table_path("a", name)).status == 204
            table.dropped = True
            return
        rows = self.node.get("/api/limnos/v1/metalakes/lake/catalogs/main/trash").json()["trash"]
        (row,) = [each for each in rows if each["path"][-1] == name] or [None]
        if row is not None:
            answer = self.node.post(f"/api/limnos/v1/metalakes/lake/catalogs/main/trash/{row['id']}/undrop", {})
            table.dropped = answer.status != 200

    def maintain(self) -> None:
        """Expire each existing table on request, or run a round of the recurring task."""
        if self.random.random() < 0.5:
            assess(self.node)
            self._round()
            return
        name = self._live()
        if name is not None:
            self.node.post(f"{MAINTENANCE}/operations", {"table": f"a.{name}"})
            self._tasks()

    def maintain_and_plan(self) -> None:
        """Let a client plan a scan between the decision of an expiry and its commit."""
        real = expiry._commit

        async def commit(*args: Any, path: Any, plan: Any, **named: Any) -> None:  # noqa: ANN401 - passed on
            if plan.removed and self.random.random() < 0.7:
                number = self.random.choice(plan.removed) // 100
                target = f"{wire.table_path('a', path[-1])}/plan"
                if (await self.node.answer("POST", target, {"snapshot-id": number * 100})).status == 200:
                    self._planned(path[-1], number)
            await real(*args, path=path, plan=plan, **named)

        expiry._commit = commit  # type: ignore[assignment]
        try:
            self.maintain()
        finally:
            expiry._commit = real

    def maintain_and_die(self) -> None:
        """Let the node crash before or after the commit of an expiry. Another node takes over the task after the
        lease.
        """
        name = self._live()
        if name is None:
            return
        self.kills += 1
        real, late = operations.table_expire, self.random.random() < 0.5

        async def die(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
            if late:
                await real(*args, **named)
            raise asyncio.CancelledError

        operations.table_expire = die  # type: ignore[assignment]
        try:
            self.node.post(f"{MAINTENANCE}/operations", {"table": f"a.{name}"})
            self._tasks(dies=True)
        finally:
            operations.table_expire = real  # type: ignore[assignment]
        self.clock.at_ms += 600_000
        self._tasks()

    def _tasks(self, *, dies: bool = False) -> None:
        upkeep = self.node.built.upkeep
        try:
            while self.node.runner.run(upkeep.run_one()) or self.node.runner.run(upkeep.run_one(among_long=True)):
                pass
        except asyncio.CancelledError:
            assert dies

    def _round(self) -> None:
        upkeep, services = self.node.built.upkeep, self.node.built.services
        task = _Task(self.node)
        work = upkeep._work(task, task.kind)  # type: ignore[arg-type]
        round_ = MaintenanceRound(work, services, now_ms=self.clock.at_ms)
        self.node.runner.run(round_.expire(0))
        self.expired += round_.expired
        later = MaintenanceRound(work, services, now_ms=FAR_MS)  # file names contain the machine's time
        self.node.runner.run(later.delete_metadata_files(MaintenancePosition(epoch=1, since_ms=0)))
        self.files += later.files

    # ------------------------------------------------------------------------------------------ the model

    def _live(self) -> str | None:
        live = [name for name, table in self.tables.items() if not table.dropped]
        return self.random.choice(live) if live else None

    def _present(self, name: str) -> list[int]:
        metadata = read_metadata(self.metadata_location(name))
        return [each["snapshot-id"] // 100 for each in metadata["snapshots"]]

    def metadata_location(self, name: str) -> str:
        """Return the table's current metadata file as the server states it. For a dropped table, return the last one
        stated.
        """
        if not self.tables[name].dropped:
            self._acknowledged(name)
        return self.tables[name].location

    def _acknowledged(self, name: str) -> None:
        answer = self.node.get(wire.table_path("a", name))
        if answer.status == 200:  # else the metadata file is lost, which the check reports
            self.tables[name].location = str(answer["metadata-location"])

    def check(self) -> list[str]:
        """Return the required snapshots and files that are lost."""
        losses: list[str] = []
        for name, table in self.tables.items():
            location = self.metadata_location(name)
            if not self._is_there(location):
                losses.append(f"{name}: metadata file {location}")
                continue
            metadata = read_metadata(location)
            present = {each["snapshot-id"] // 100 for each in metadata["snapshots"]}
            self.gone += len(self.present.get(name, set()) - present)
            needed = self.needed(name, previous_ids=self.present.get(name, set()))
            losses += [f"{name}: snapshot {number}, {why}" for number, why in needed if number not in present]
            self.present[name] = present
            refs = metadata["refs"]
            losses += [f"{name}: {ref}" for ref in table.refs if ref not in refs and not self._may_ref_go(table, ref)]
            for ref in [ref for ref in table.refs if ref not in refs]:
                del table.refs[ref]
            losses += [f"{name}: file {each}" for each in lost_files(files_of_table(location))]
        return losses

    def _is_there(self, location: str) -> bool:
        from tests.rooms.maintenance.services.live_files import local

        return local(location).is_file()

    def _may_ref_go(self, table: ModelTable, ref: str) -> bool:
        row = table.refs[ref]
        age_ms = self.clock.at_ms - table.times[row["snapshot"]]
        return ref != "main" and not table.shared and age_ms > row.get("max-ref-age-ms", 1 << 60)

    def needed(self, name: str, *, previous_ids: set[int]) -> list[tuple[int, str]]:
        """Return the snapshots of a table that must exist by the model's own rules, each with the reason.
        `previous_ids` has those that the table had before the step, because older ones cannot be kept.
        """
        table, now_ms = self.tables[name], self.clock.at_ms
        required: list[tuple[int, str]] = []
        for pins, why in ((self.runs.values(), "a run"), (self.plans, "a plan")):
            required += [(number, why) for owner, number, until in pins if owner == name and until > now_ms]
        head = table.writer.snapshots
        for number, at in table.read.values():
            if now_ms - at < 7 * DAY_MS and previous_ids.issuperset(range(number, head + 1)):
                required += [(each, "a reader walks along it") for each in range(number, head + 1)]
        for key, number in table.checkpoints.items():
            is_young = all(now_ms - table.times[each] < 30 * DAY_MS for each in range(number, head + 1))
            if is_young and previous_ids.issuperset(range(number, head + 1)):
                required += [(each, f"checkpoint {key} is found along it") for each in range(number, head + 1)]
        for ref, row in table.refs.items():
            if self._may_ref_go(table, ref):
                continue
            required.append((row["snapshot"], f"the head of {ref}"))
            if row["type"] == "branch":
                number: int | None = row["snapshot"]
                for _ in range(row.get("min-snapshots-to-keep", 1)):
                    if number in previous_ids:
                        required.append((number, f"one of the newest of {ref}"))
                        number = table.parents[number]
        return [each for each in required if each[0] in previous_ids]


class _Task:
    """A leased task, for a round that a test starts directly."""

    def __init__(self, node: DriverNode) -> None:
        from limnos.app.task_kinds import KINDS
        from limnos.rooms.maintenance.services.task import MAINTAIN_TABLES

        self.id, self.payload, self.attempts = 1, "{}", 0
        self.kind = KINDS[MAINTAIN_TABLES]
