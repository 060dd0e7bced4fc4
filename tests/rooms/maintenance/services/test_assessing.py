# SPDX-License-Identifier: Apache-2.0
"""Assessment: it follows changed tables, stores only differences, and deletes the findings of dropped tables."""

from __future__ import annotations

import json

import msgspec
import pytest

from limnos.app.task_kinds import KINDS
from limnos.rooms.maintenance.services import assessed_changes, assessing
from limnos.rooms.maintenance.services.assessed_changes import assess_changes
from limnos.rooms.maintenance.services.assessing import AssessmentPosition, AssessmentRound, CurrentState, current_read
from limnos.store.activity.maintenance import checkpoints_by, checkpoints_of, tables_page
from limnos.store.sql import Sql
from tests.http.driver import API, DriverNode
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    add_policy,
    assess,
    assess_counted,
    explained,
    findings,
    set_clock,
)

pytestmark = pytest.mark.slow


def test_small_files_need_compaction_and_old_snapshots_expiry(lake: DriverNode) -> None:
    """A table with many small files and old snapshots needs compaction and expiry; a table with two snapshots needs
    neither.
    """
    HistoryTable(lake).append(12)
    HistoryTable(lake, "small").append(2)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    assess(lake)

    listed_findings = findings(lake)
    assert sorted(listed_findings) == [("a.t", "compact"), ("a.t", "expire")]
    assert listed_findings["a.t", "compact"]["figures"]["small_files"] == 12
    assert listed_findings["a.t", "expire"]["figures"] == {"snapshots": 12, "removable": 11}


@pytest.mark.parametrize("keep_ms,kinds", [(10_000 * DAY_MS, ["compact"]), (0, ["compact", "expire"])])
def test_assessment_keeps_snapshots_that_scans_may_read(node: DriverNode, keep_ms: int, kinds: list[str]) -> None:
    """An assessment counts a snapshot as an expiry does: not within the time for which a scan may still read it."""
    content: dict[str, object] = {"olderThanDays": 0, "retainLast": 1, "minSnapshotCount": 2}
    add_policy(node, "soon", "system_iceberg_snapshot_expiration", content, on="main", kind="catalog")
    services = node.built.services
    services.defaults = services.defaults._replace(scan_keep_ms=keep_ms)
    HistoryTable(node).append(12)
    assess(node)

    assert sorted(kind for _, kind in findings(node)) == kinds


def test_finding_has_the_time_of_its_assessment(node: DriverNode) -> None:
    """A stored finding has the time of its assessment; a finding that the explanation computes has the time of the
    request.
    """
    HistoryTable(node).append(12)
    clock = set_clock(node, FIRST_MS + 30 * DAY_MS)
    before = {each["kind"]: each["found_at"] for each in explained(node)["findings"]}
    assess(node)
    clock.at_ms += 60_000
    after = {each["kind"]: each["found_at"] for each in explained(node)["findings"]}

    assert before == {"compact": "2023-12-14T22:13:20.000Z", "expire": "2023-12-14T22:13:20.000Z"}
    assert after == {"compact": "2023-12-14T22:13:20.000Z", "expire": "2023-12-14T22:14:20.000Z"}


def test_unread_manifests_make_the_file_count_a_minimum(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with more manifests than a round reads is reported as having at least the number of files counted
    so far.
    """
    monkeypatch.setattr(assessing, "MANIFESTS_MAX", 7)
    HistoryTable(node).append(12)
    assess(node)
    finding = findings(node)["a.t", "compact"]

    assert finding["reason"].startswith("at least 7 files")
    assert (finding["figures"]["manifests"], finding["figures"]["manifests_read"]) == (12, 7)


def test_only_changed_tables_are_assessed_again(lake: DriverNode) -> None:
    """After all tables were assessed, a round reads only the tables that the change feed names, and none if nothing
    changed.
    """
    one, two = HistoryTable(lake), HistoryTable(lake, "u")
    one.append()
    at = assess(lake)
    at, tables = assess_counted(lake, at)
    assert tables == 0
    two.append(11)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    at = AssessmentPosition(
        epoch=at.epoch, positions=at.positions, after=None, whole_at_ms=FIRST_MS + 30 * DAY_MS, policies=at.policies
    )
    at, tables = assess_counted(lake, at)
    assert tables == 1
    assert {table for table, _ in findings(lake)} == {"a.u"}
    assert assess_counted(lake, at)[1] == 0


def test_full_assessment_continues_across_rounds(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An assessment of all tables continues where the last round ended, and includes changes made meanwhile."""
    monkeypatch.setattr(assessing, "AT_ONCE", 2)
    tables = [HistoryTable(lake, f"t{number}") for number in range(5)]
    at, count = assess_counted(lake, tables_max=2)
    assert (count, at.after is None) == (2, False)
    tables[0].append()
    while at.after is not None:
        at, count = assess_counted(lake, at, tables_max=2)
    assert assess_counted(lake, at)[1] == 1


def test_new_epoch_or_feed_gap_assesses_all_tables_again(lake: DriverNode) -> None:
    """All tables are assessed again after a new epoch, after a gap in the feed, after a day, and after the clock is set
    back.
    """
    HistoryTable(lake).append()
    HistoryTable(lake, "u").append()
    at = assess(lake)
    assert (
        assess_counted(
            lake,
            AssessmentPosition(
                epoch=at.epoch + 1, positions=at.positions, after=None, whole_at_ms=at.whole_at_ms, policies=-1
            ),
        )[1]
        == 2
    )
    for moved in (-DAY_MS, 2 * DAY_MS):
        set_clock(lake, at.whole_at_ms + moved)
        assert assess_counted(lake, at)[1] == 2


def test_gap_in_the_feed_of_a_new_catalog_assesses_all_tables(lake: DriverNode) -> None:
    """All tables are assessed if the feed of a catalog was pruned before its first changes were assessed."""
    HistoryTable(lake).append()
    at, services = assess(lake), lake.built.services
    body = {"name": "late", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    lake.done("POST", f"{API}/lake/catalogs", body)
    lake.done("POST", "/iceberg/v1/lake.late/namespaces", {"namespace": ["a"]})
    lake.done("POST", "/iceberg/v1/lake.late/namespaces/a/tables", {"name": "t", "schema": wire.SCHEMA})
    current = lake.runner.run(services.gate.look_up(current_read))
    clocks = [each if each.zone in at.positions else each._replace(pruned_to=1) for each in current.clocks]

    def assessed(state: CurrentState) -> int:
        round_ = AssessmentRound(services, tables_max=100)
        lake.runner.run(round_.run(at, current=state))
        return round_.tables

    assert (assessed(current), assessed(current._replace(clocks=clocks))) == (1, 2)


def test_changed_figures_of_a_finding_are_stored(lake: DriverNode) -> None:
    """A finding whose figures alone differ from the stored ones is stored, because operations are planned by them."""
    HistoryTable(lake).append(12)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    assess(lake)
    known = findings(lake)
    permit = lake.built.upkeep._permit
    change = Sql("UPDATE maintenance_finding SET figures = '{}'")
    lake.runner.run(lake.built.services.store.submit(permit, lambda tx: tx.count(change, {})))
    assert findings(lake)["a.t", "compact"]["figures"] == {}
    wire.commit(lake, "a", "t", updates=[wire.set_properties(x="1")])
    assess(lake)

    assert {key: each["figures"] for key, each in findings(lake).items()} == {
        key: each["figures"] for key, each in known.items()
    }


def test_findings_of_repaired_and_dropped_tables_are_deleted(lake: DriverNode) -> None:
    """Repaired findings and those of dropped tables are deleted. A rename changes only the name of a finding."""
    table = HistoryTable(lake)
    table.append(11)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    at = assess(lake)
    assert ("a.t", "expire") in findings(lake)
    names = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
    assert lake.post(f"{wire.ROOT}/tables/rename", names).status == 204
    assert ("a.u", "expire") in findings(lake)
    removal = {"action": "remove-snapshots", "snapshot-ids": [number * 100 for number in range(1, 11)]}
    assert wire.commit(lake, "a", "u", updates=[removal]).status == 200
    at = assess(lake, at)
    assert ("a.u", "expire") not in findings(lake)
    assert ("a.u", "compact") in findings(lake)
    assert lake.delete(wire.table_path("a", "u")).status == 204
    assert findings(lake) == {}


def test_assessment_of_unchanged_tables_writes_no_row(node: DriverNode) -> None:
    """A second assessment of unchanged tables writes no row."""
    HistoryTable(node).append(12)
    set_clock(node, FIRST_MS + 30 * DAY_MS)
    assess(node)
    rows = wire.rows_of(node)
    assess(node)
    assert wire.rows_of(node) == rows


def test_manifests_of_unchanged_tables_are_read_once(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests of an unchanged table are not read again, and a round reads a limited number of them."""
    HistoryTable(node).append(12)
    HistoryTable(node, "u").append(12)
    monkeypatch.setattr(assessing, "MANIFEST_TABLES_PER_ROUND", 1)
    at = assess(node)
    assert [key for key in findings(node) if key[1] == "compact"] == [("a.t", "compact")]
    assess(node)
    assert {key for key in findings(node) if key[1] == "compact"} == {("a.t", "compact"), ("a.u", "compact")}
    assert at.after is None


def test_explanation_of_unassessed_table_reads_its_manifests(node: DriverNode) -> None:
    """The explanation of a table that no round has assessed, or that has changed since, describes the table's current
    state.
    """
    table = HistoryTable(node)
    table.append(12)
    assert findings(node) == {}
    kinds = {each["kind"]: each for each in explained(node)["findings"]}
    assert kinds["compact"]["figures"]["small_files"] == 12
    assert findings(node) == {}

    assess(node)
    table.append(3)
    (compact,) = [each for each in explained(node)["findings"] if each["kind"] == "compact"]
    assert compact["figures"]["small_files"] == 15


def test_unreadable_manifest_keeps_the_earlier_finding(node: DriverNode) -> None:
    """If a manifest cannot be read, the table's earlier finding is kept, and other tables are assessed."""
    table = HistoryTable(node)
    table.append(12)
    set_clock(node, FIRST_MS + 30 * DAY_MS)
    assess(node)
    table.append()
    wire.local(f"{table.location}/metadata/m1.avro").unlink()
    assess(node)
    listed_findings = findings(node)
    assert listed_findings["a.t", "compact"]["figures"]["small_files"] == 12
    assert listed_findings["a.t", "expire"]["figures"]["snapshots"] == 13


def test_manifest_list_outside_the_table_is_not_opened(node: DriverNode) -> None:
    """A manifest list outside of the table's location is not opened."""
    table, other = HistoryTable(node), HistoryTable(node, "other")
    other.append(12)
    for number in range(1, 13):
        snapshot_update = wire.snapshot(
            number, manifest_list=f"{other.location}/metadata/snap-12.avro", parent=number - 1 or None
        )
        totals = {"total-data-files": "40", "total-files-size": "40"}
        snapshot_update["snapshot"]["summary"] = {"operation": "append", **totals}  # type: ignore[index]
        with wire.foreign_paths_accepted():
            assert wire.commit(node, "a", table.name, updates=[snapshot_update, wire.point(number)]).status == 200
    assess(node)
    assert ("a.t", "compact") not in findings(node)
    assert ("a.other", "compact") in findings(node)


def test_policies_set_thresholds(lake: DriverNode) -> None:
    """The nearest policy decides. Attaching a policy causes the assessment of all tables."""
    HistoryTable(lake).append(6)
    HistoryTable(lake, "u").append(6)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    at = assess(lake)
    assert [key for key in findings(lake) if key[1] == "expire"] == []
    kind = "system_iceberg_snapshot_expiration"
    add_policy(lake, "wide", kind, {"olderThanDays": 1, "minSnapshotCount": 2}, on="main", kind="catalog")
    add_policy(lake, "near", kind, {"olderThanDays": 90, "minSnapshotCount": 2}, on="main.a.u", kind="table")
    at = assess(lake, at)
    assert [key for key in findings(lake) if key[1] == "expire"] == [("a.t", "expire")]
    assert at.policies >= 0


def test_newest_checkpoint_of_an_incremental_reader_is_stored(lake: DriverNode) -> None:
    """A checkpoint is stored by the source's path below the metalake. The reader's next checkpoint replaces it."""
    table = HistoryTable(lake)
    table.append(**{"limnos.inputs": json.dumps({"main.a.source": 7, "`main`.a.`so.urce`": 9, "..": 1})})
    at = assess(lake)
    metalake = lake.runner.run(_metalake_id(lake))

    def read(source: str) -> list[int]:
        work = lake.built.services.gate.look_up(lambda: checkpoints_of(f"{metalake}:{source}", since_ms=0))
        return [row.snapshot_id for row in lake.runner.run(work)]

    assert (read("main.a.source"), read("main.a.`so.urce`")) == ([7], [9])
    table.append(**{"limnos.inputs": json.dumps({"main.a.source": 8})})
    assess(lake, at)
    assert (read("main.a.source"), read("main.a.`so.urce`")) == ([8], [])


async def _metalake_id(node: DriverNode) -> int:
    from limnos.access.authentication import Credential
    from limnos.services.request.context import Context
    from limnos.services.request.request_scope import RequestScope
    from tests.inprocess import ADMIN  # noqa: F401 - the user of the credential below

    ctx = Context(node.built.services, Credential(user="admin"), "test")
    return await ctx.read(RequestScope("lake"), lambda request_view: request_view.metalake.id)


def test_reader_in_a_dropped_catalog_keeps_its_checkpoints(lake: DriverNode) -> None:
    """The checkpoints of a reader stay while its catalog is dropped, since both may be restored."""
    reader = HistoryTable(lake)
    reader.append(**{"limnos.inputs": json.dumps({"main.a.source": 7})})
    services, permit = lake.built.services, lake.built.upkeep._permit
    assess(lake)
    (head,) = lake.runner.run(services.gate.look_up(lambda: tables_page(0, limit=9)))
    before = lake.runner.run(services.gate.look_up(lambda: checkpoints_by([head.node_id])))
    drop = Sql("UPDATE node SET deleted = 1 WHERE id = :id")
    lake.runner.run(services.store.submit(permit, lambda tx: tx.count(drop, {"id": head.catalog_id})))
    assess(lake)

    assert [row.snapshot_id for row in before] == [7]
    assert lake.runner.run(services.gate.look_up(lambda: checkpoints_by([head.node_id]))) == before


def test_task_assesses_tables_unless_disabled(node: DriverNode) -> None:
    """The recurring task assesses tables and reports their number. If it is disabled, it does nothing."""
    HistoryTable(node).append(12)
    upkeep, services = node.built.upkeep, node.built.services
    store, permit = services.store, upkeep._permit
    node.runner.run(store.submit(permit, lambda tx: tx.tasks.create(assessing.ASSESS_TABLES, "{}")))
    assert node.runner.run(upkeep.run_one()) is True
    assert ("a.t", "compact") in findings(node)
    rows = node.runner.run(store.submit(permit, lambda tx: tx.tasks.of_kind(assessing.ASSESS_TABLES)))
    assert json.loads(rows[0][1])["after"] is None
    assert 0 <= services.store.time.now_ms() - json.loads(rows[0][1])["ended_at_ms"] < 60_000
    assert KINDS[assessing.ASSESS_TABLES].every_s == assessing.ASSESS_EVERY_S

    off = services.defaults.maintenance._replace(assess=False)
    services.defaults = services.defaults._replace(maintenance=off)
    HistoryTable(node, "u").append(12)
    node.runner.run(store.submit(permit, lambda tx: tx.tasks.create(assessing.ASSESS_TABLES, "{}")))
    assert node.runner.run(upkeep.run_one()) is True
    assert ("a.u", "compact") not in findings(node)


def test_expiry_assesses_changes_since_the_task_position(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expiry assesses the changes since the task's position. The result says if there are too many, or if all tables
    were never assessed. Neither a day nor a policy causes an assessment of all tables here.
    """
    services = node.built.services
    one, two = HistoryTable(node), HistoryTable(node, "u")

    def up_to_date() -> bool:
        return node.runner.run(assess_changes(services))

    monkeypatch.setattr(assessed_changes, "TABLES_PER_REQUEST", 2)
    assert not up_to_date()
    at = assess(node)
    put_position(node, at)
    add_policy(node, "p", "system_iceberg_snapshot_expiration", {}, on="main", kind="catalog")
    set_clock(node, at.whole_at_ms + 2 * DAY_MS)
    one.append()
    assert up_to_date()
    one.append()
    two.append()
    assert not up_to_date()
    assert up_to_date(), "the next expiry starts after these changes"


def test_expiries_assess_each_change_once(node: DriverNode) -> None:
    """Between two rounds of the task, an expiry assesses only the changes since the last expiry on its node. After a
    restore of the store it assesses all tables.
    """
    services = node.built.services
    one, two = HistoryTable(node), HistoryTable(node, "u")
    put_position(node, assess(node))

    def assessed() -> float:
        before = sum(assessing.ASSESSED.values())
        assert node.runner.run(assess_changes(services))
        return sum(assessing.ASSESSED.values()) - before

    one.append()
    assert assessed() == 1
    two.append()
    assert (assessed(), assessed()) == (1, 0)
    change = Sql("UPDATE store SET epoch = epoch + 1")  # as a restore of a backup does
    permit = node.built.upkeep._permit
    node.runner.run(services.store.submit(permit, lambda tx: tx.count(change, {})))
    one.append()
    assert (assessed(), assessed()) == (2, 0)


def test_late_assessment_does_not_replace_newer_checkpoints(lake: DriverNode) -> None:
    """A slow assessment of an earlier version of a reader's metadata does not replace the checkpoints of the reader's
    last commit.
    """
    source, reader = HistoryTable(lake), HistoryTable(lake, "out")
    source.append(5)
    reader.append(**{"limnos.inputs": json.dumps({"main.a.t": 100})})
    reader.append(**{"limnos.inputs": json.dumps({"main.a.t": 200})})
    assess(lake)
    services, permit = lake.built.services, lake.built.upkeep._permit
    heads = lake.runner.run(services.gate.look_up(lambda: tables_page(0, limit=9)))
    (row,) = lake.runner.run(services.gate.look_up(lambda: checkpoints_by([each.node_id for each in heads])))
    (head,) = [each for each in heads if each.node_id == row.reader_id]

    def replace(version: int) -> int:
        """Store a checkpoint of snapshot 100, as an assessment of the given version would. Returns the snapshot of the
        stored checkpoint.
        """
        old = row._replace(snapshot_id=100)
        versions = {row.reader_id: version}
        lake.runner.run(
            services.store.submit(
                permit, lambda tx: tx.maintenance.replace_checkpoints([row.reader_id], [old], versions=versions)
            )
        )
        (stored,) = lake.runner.run(services.gate.look_up(lambda: checkpoints_by([row.reader_id])))
        return stored.snapshot_id

    assert row.snapshot_id == 200
    assert replace(head.version - 1) == 200
    assert replace(head.version) == 100


def put_position(node: DriverNode, at: AssessmentPosition) -> None:
    """Restore the state of the recurring task after a round."""
    text = msgspec.json.encode(at).decode()
    permit = node.built.upkeep._permit
    node.runner.run(node.built.services.store.submit(permit, lambda tx: tx.tasks.create(assessing.ASSESS_TABLES, text)))
