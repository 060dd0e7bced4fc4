# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a run or a scan plan needs cannot be removed by commits until the run or the plan has ended."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from limnos.store.objects.snapshot_pins import PinHolder, holders_read
from limnos.store.sql import Sql
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.wire import ROOT, commit, error_of, metadata_of, set_properties
from tests.iceberg_manifests import data_file, entry
from tests.rooms.pipelines.http.test_runs import RUNS, declare, finish, started


class History(WrittenTable):
    """A table with three snapshots, of which the last one is current."""

    def __init__(self, node: DriverNode) -> None:
        super().__init__(node)
        manifests = []
        for number in (1, 2, 3):
            manifests.append(
                self.manifest(f"m{number}.avro", [entry(data_file(f"{self.location}/data/{number}.parquet"))])
            )
            self.commit(manifests)

    def remove(self, *numbers: int, updates: tuple[object, ...] = ()) -> DriverAnswer:
        """Send a commit that removes snapshots."""
        removal = {"action": "remove-snapshots", "snapshot-ids": [number * 100 for number in numbers]}
        return commit(self.node, "a", self.name, updates=[*updates, removal])

    def ids(self) -> list[int]:
        """Return the ids of the table's snapshots."""
        return [each["snapshot-id"] for each in metadata_of(self.node, "a", self.name)["snapshots"]]


@pytest.fixture
def table(lake: DriverNode) -> History:
    """The table."""
    return History(lake)


def refused(answer: DriverAnswer, *words: str) -> None:
    """Check that a commit is refused in Iceberg's form, with advice."""
    assert error_of(answer)[:2] == (409, "CommitFailedException"), answer.body
    for word in words:
        assert word in error_of(answer)[2], error_of(answer)[2]


def pins(*snapshots: int, table: str = "t") -> dict[str, object]:
    """Return the pins in the form in which a runner reports them."""
    return {"pins": [{"table": ["main", "a", table], "snapshot": each, "fingerprint": None} for each in snapshots]}


def test_snapshots_read_by_a_run_cannot_be_removed(table: History) -> None:
    """Snapshots that a run reads cannot be removed, even after a rename of the table. Other snapshots can, and these
    can after the end of the run.
    """
    node = table.node
    run = started(node, options=pins(100))
    node.done("PUT", f"{RUNS}/{run}/steps/raw", {"attempt": 1, "state": "running"})
    names = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
    assert node.post(f"{ROOT}/tables/rename", names).status == 204
    table.name = "u"

    refused(
        table.remove(1), "snapshot 100", f"pipeline run {run}", f"limnos pipeline cancel {run}", "iceberg.keep_pinned"
    )
    refused(table.remove(1, 2), "snapshot 100")
    assert table.remove(2).status == 200
    assert finish(node, run, "failed").status == 200
    assert table.remove(1).status == 200
    assert table.ids() == [300]


def test_snapshots_of_a_held_run_branch_cannot_be_removed(table: History) -> None:
    """Base and head of a held run's branch cannot be removed, and the message says what to do. Discarding the run
    releases them.
    """
    node = table.node
    run = started(node)
    output = {"table": ["main", "a", "t"], "branch": "run_1", "base": 100, "head": 200, "is_new": False}
    node.done("PUT", f"{RUNS}/{run}/steps/raw", {"attempt": 1, "state": "done", "outputs": [output]})
    assert finish(node, run, "held").status == 200

    for number in (1, 2):
        refused(table.remove(number), f"run {run}, which is held", "Publish or discard")
    assert finish(node, run, "discarded").status == 200
    assert table.remove(1, 2).status == 200


def test_caller_without_load_privilege_pins_no_snapshot(table: History) -> None:
    """A user who may start runs but not load a table cannot pin its snapshots. Unknown names and invalid options pin
    nothing either.
    """
    node = table.node
    declare(node)
    grant(node, "bob", "run_job use_job_template", kind="METALAKE", on="lake")
    grant(node, "bob", "use_catalog select_table", kind="CATALOG", on="main")  # but not use_schema
    option_sets = (pins(100, table="nothing"), {"pins": 5}, {"pins": [{"table": []}]}, pins(100))
    for at, options in enumerate(option_sets):
        body = {"id": f"00000000-0000-4000-8000-00000000000{at}", "holder": "h:1", "options": options}
        run = node.post(f"{RUNS.removesuffix('/runs')}/pipelines/nyc/runs", body, user="bob")
        assert run.status == 200, run.body
        if at < len(option_sets) - 1:
            ended = {"attempt": 1, "state": "failed", "message": "so"}
            assert node.post(f"{RUNS}/{run['id']}/finish", ended, user="bob").status == 200

    assert table.remove(1).status == 200


def test_snapshot_of_a_scan_plan_cannot_be_removed(table: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's snapshot cannot be removed until the plan is cancelled or expires. A second plan of the same snapshot
    writes no row.
    """
    time = table.node.built.services.store.time
    at = [time.now_ms()]
    monkeypatch.setattr(time, "now_ms", lambda: at[0])
    one, two = table.plan(snapshot_id=100), table.plan(snapshot_id=100)
    assert one.status == two.status == 200
    refused(table.remove(1), "snapshot 100", "a planned scan")

    cancelled = [table.node.delete(f"{table.path}/plan/{each.json()['plan-id']}") for each in (one, two)]

    assert [each.status for each in cancelled] == [204, 204]
    assert table.remove(1).status == 200
    assert table.plan(snapshot_id=200).status == 200
    refused(table.remove(2))
    at[0] += table.node.built.services.defaults.scan_keep_ms + 1
    assert table.remove(2).status == 200


def test_cancelling_one_plan_keeps_the_pin_of_another(table: History) -> None:
    """Cancelling one of two plans keeps the pin of the other."""
    one, _ = table.plan(snapshot_id=100), table.plan(snapshot_id=100)
    table.node.delete(f"{table.path}/plan/{one.json()['plan-id']}")

    refused(table.remove(1))


def test_snapshot_of_a_paged_plan_is_pinned_until_cancel(table: History) -> None:
    """A plan that is fetched in parts pins its snapshot until it is cancelled."""
    steer(table.node, scan_files_max=1)
    planned = table.plan(snapshot_id=200)
    assert "plan-tasks" in planned.json()
    refused(table.remove(2), "a planned scan")

    assert table.node.delete(f"{table.path}/plan/{planned.json()['plan-id']}").status == 204
    assert table.remove(2).status == 200


def test_incremental_plan_pins_all_snapshots_it_reads(table: History) -> None:
    """An incremental plan pins all snapshots whose files it reads. Its start snapshot may be removed."""
    assert table.plan(start_snapshot_id=100, end_snapshot_id=300).status == 200

    refused(table.remove(2))
    assert table.remove(1).status == 200


def test_no_commit_or_register_removes_a_pinned_snapshot(table: History) -> None:
    """Large commits, transactions and registers over the table are refused like small commits."""
    node = table.node
    started(node, options=pins(100))
    removal = {"action": "remove-snapshots", "snapshot-ids": [100]}
    change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": [removal]}
    metadata = metadata_of(node, "a", "t")
    file = wire.local(table.location) / "metadata" / "00099-less.metadata.json"
    less = {
        **metadata,
        "snapshots": [each for each in metadata["snapshots"] if each["snapshot-id"] != 100],
        "snapshot-log": [],
    }
    file.write_text(json.dumps(less))
    over = {"name": "t", "metadata-location": f"file://{file}", "overwrite": True}

    refused(table.remove(1, updates=(set_properties(k="x" * 70_000),)), "snapshot 100")
    refused(node.post(f"{ROOT}/transactions/commit", {"table-changes": [change]}), "snapshot 100")
    refused(node.post(f"{wire.space_path('a')}/register", over), "snapshot 100")
    assert table.ids() == [100, 200, 300]
    assert metadata_of(node, "a", "t") == metadata


def test_pins_can_be_turned_off(table: History) -> None:
    """With `iceberg.keep_pinned` off, no snapshot is pinned and no commit is checked."""
    steer(table.node, keep_pinned=False)
    started(table.node, options=pins(100))
    assert table.plan(snapshot_id=100).status == 200

    assert table.remove(1).status == 200


def test_commit_without_snapshot_removal_does_not_read_pins(table: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that removes no snapshot does not read the pins. A commit that removes some reads them once."""
    from limnos.store.objects.snapshot_pins import SnapshotPinWrites

    table_ids: list[int] = []
    holders = SnapshotPinWrites.holders
    monkeypatch.setattr(
        SnapshotPinWrites, "holders", lambda self, table_id: table_ids.append(table_id) or holders(self, table_id)
    )

    commit(table.node, "a", "t", updates=[set_properties(k="v")])
    assert table_ids == []
    assert table.remove(1).status == 200
    assert len(table_ids) == 1


def may_read(node: DriverNode, user: str, *privileges: str) -> None:
    """Let a user run pipelines, and perform some actions on all tables."""
    declare(node)
    grant(node, user, "run_job use_job_template", kind="METALAKE", on="lake")
    grant(node, user, f"use_catalog use_schema {' '.join(privileges)}", kind="CATALOG", on="main")


def start_as(node: DriverNode, user: str, options: object) -> str:
    """Start a run of a user, and return its id."""
    body = {"id": str(uuid4()), "holder": "h:1", "options": options, "steps": [{"name": "raw"}]}
    answer = node.post(f"{RUNS.removesuffix('/runs')}/pipelines/nyc/runs", body, user=user)
    assert answer.status == 200, answer.body
    return str(answer["id"])


def report_as(node: DriverNode, user: str, run: str, **output: object) -> None:
    """Report that a step of a run has written a table, as its record says."""
    outputs = [{"table": ["main", "a", "t"], "branch": "run_1", "is_new": False, **output}]
    node.done("PUT", f"{RUNS}/{run}/steps/raw", {"attempt": 1, "state": "done", "outputs": outputs}, user=user)


def test_run_pins_only_snapshots_that_exist(table: History) -> None:
    """Made-up snapshots are not pinned, so they do not delay the maintenance of the table."""
    started(table.node, options=pins(12345))

    assert holders_of(table) == []
    assert table.remove(1).status == 200


def holders_of(table: History) -> list[PinHolder]:
    """Return the pins of the table."""
    services, run = table.node.built.services, table.node.runner.run
    ((node_id,),) = run(services.gate.find((Sql("SELECT id FROM node WHERE name = 't' AND deleted = 0"), {})))
    return run(services.gate.look_up(lambda: holders_read(node_id, now_ms=services.store.time.now_ms())))


@pytest.mark.parametrize("privilege, pinned", [("modify_table", False), ("select_table", True)])
def test_inputs_of_a_run_are_pinned_with_the_right_to_read(table: History, privilege: str, *, pinned: bool) -> None:
    """A user who may write a table but not read it does not pin the snapshots that a run names as its input."""
    may_read(table.node, "bob", privilege)
    start_as(table.node, "bob", pins(100))

    assert table.remove(1).status == (409 if pinned else 200)


@pytest.mark.parametrize("privilege, pinned", [("modify_table", True), ("select_table", False)])
def test_outputs_of_a_step_are_pinned_with_the_right_to_write(table: History, privilege: str, *, pinned: bool) -> None:
    """A user who may read a table but not write it does not pin the snapshots that a step says to have written."""
    may_read(table.node, "bob", privilege)
    run = start_as(table.node, "bob", {})
    report_as(table.node, "bob", run, base=100, head=200)

    assert table.remove(1).status == (409 if pinned else 200)


def test_pins_of_a_held_run_end_after_a_bounded_time(table: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A held run releases its snapshots `iceberg.keep_pinned_s` after it began; it stays held."""
    time = table.node.built.services.store.time
    at = [time.now_ms()]
    monkeypatch.setattr(time, "now_ms", lambda: at[0])
    run = started(table.node, options=pins(100))
    assert finish(table.node, run, "held").status == 200
    at[0] += 604_800_000 - 1
    refused(table.remove(1), f"pipeline run {run}, which is held")
    at[0] += 1

    assert table.remove(1).status == 200
    assert table.node.get(f"{RUNS}/{run}").json()["state"] == "held"


def test_pins_of_a_cancelled_run_end_though_its_process_goes_on(table: History) -> None:
    """A run that is being cancelled holds no snapshots, also if its process does not stop."""
    run = started(table.node, options=pins(100))
    table.node.done("POST", f"{RUNS}/{run}/cancel")

    assert table.remove(1).status == 200


def test_owner_of_a_table_discards_the_run_that_holds_it(table: History) -> None:
    """The owner of a pinned table sees the run without its content, stops it, and discards it; other users with rights
    on the table do not. Nothing of it depends on rights on the pipeline.
    """
    node = table.node
    may_read(node, "bob", "select_table")
    run = start_as(node, "bob", pins(100) | {"secret": "x"})
    grant(node, "carol", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "dave", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    missing = node.get(f"{RUNS}/{uuid4()}", user="carol")
    assert node.get(f"{RUNS}/{run}", user="carol").status == missing.status
    node.done("PUT", f"{API}/lake/owners/table/main.a.t", {"name": "carol", "type": "USER"})

    seen = node.get(f"{RUNS}/{run}", user="carol").json()
    assert (seen["state"], seen["options"], seen["steps"], seen["user"]) == ("running", {}, [], "bob")
    for user, status in (("dave", missing.status), ("carol", 200)):
        assert node.post(f"{RUNS}/{run}/cancel", user=user).status == status
    assert finish_as(node, "carol", run, "discarded").status == 403, "its process works on it"
    assert finish_as(node, "bob", run, "cancelled").status == 200
    for user, status in (("dave", missing.status), ("carol", 200)):
        assert finish_as(node, user, run, "discarded").status == status
    assert finish_as(node, "carol", run, "failed").status == missing.status


def finish_as(node: DriverNode, user: str, run: str, state: str) -> DriverAnswer:
    """Report the end of a run as a user."""
    return node.post(f"{RUNS}/{run}/finish", {"attempt": 1, "state": state, "message": "so"}, user=user)
