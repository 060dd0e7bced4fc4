# SPDX-License-Identifier: Apache-2.0
"""`maintenance plan | explain | run | status`: the requests, the output and its order."""

from __future__ import annotations

import pytest
from msgspec import to_builtins

from limnos.client.operation.maintenance_values import LeasedOperation
from limnos.rooms.maintenance.cli import maintenance
from limnos.rooms.maintenance.engine import runners
from limnos.rooms.maintenance.engine.executor import OperationEnd
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

BASE = "/api/limnos/v1/metalakes/lake/catalogs/main/maintenance"
SMALL = {
    "table": "raw.trips",
    "kind": "compact",
    "score": 40,
    "reason": "40 files of 1.0 MB",
    "figures": {"small_files": 40},
    "found_at": "2026-11-22T20:00:00Z",
}
OLD = {**SMALL, "table": "raw.days", "kind": "expire", "score": 90, "reason": "90 of 100 snapshots", "figures": {}}
OPERATION = {
    "id": 7,
    "table": "raw.trips",
    "kind": "expire",
    "state": "done",
    "user": "ana",
    "policy": None,
    "result": "removed 3 snapshots; 1 stay",
    "started_at": "2026-11-22T20:00:00Z",
    "ended_at": "2026-11-22T20:00:01Z",
    "leased_at": None,
}
REPORT = {
    "snapshots": 2,
    "removable": 1,
    "refs_removable": ["old"],
    "writer": "appends",
    "data_files": 40,
    "delete_files": 0,
    "total_bytes": 4000,
    "findings": [SMALL],
    "blocked": ["gc.enabled is false"],
    "operations": [OPERATION],
    "history": [
        {"snapshot_id": 200, "at": "2026-11-22T20:00:00Z", "kept_because": "is the head of branch main"},
        {"snapshot_id": 100, "at": "2026-11-12T20:00:00Z", "kept_because": None},
    ],
    "policies": [
        {
            "type": "system_iceberg_snapshot_expiration",
            "name": "p",
            "on": "main",
            "enabled": False,
            "content": {"olderThanDays": 7, "retainLast": 5},
            "not_applied": ["q"],
            "decides": ["expire"],
        },
        {
            "type": "system_iceberg_table_maintenance",
            "name": "w",
            "on": "main",
            "enabled": True,
            "content": {},
            "not_applied": [],
            "decides": [],
        },
        {
            "type": "system_iceberg_compaction",
            "name": "old",
            "on": "main",
            "enabled": True,
            "content": {},
            "not_applied": [],
        },
    ],
}


def test_plan_joins_pages_with_greatest_need_first(fake: FakeServer, limnos: Run) -> None:
    """Pages are joined, with the greatest need first. With a kind, only findings of that kind are shown."""
    fake.on("GET", f"{BASE}/findings", {"findings": [SMALL], "after": 5})
    fake.on("GET", f"{BASE}/findings?after=5", {"findings": [OLD], "after": None})

    assert limnos("maintenance", "plan", "main").result == [OLD, SMALL]
    assert limnos("maintenance", "plan", "main", "--kind", "compact").result == [SMALL]
    assert limnos("maintenance", "plan", "main", "--kind", "compactt").code == 2
    others = limnos("maintenance", "plan", "main", "--kind", "orphans", "--output", "table").err
    assert others.startswith("no table that you may modify needs orphans;")
    assert others.endswith("2 other findings: 'limnos maintenance plan main'\n")


def test_explanation_is_text_or_one_json_object(fake: FakeServer, run: Run) -> None:
    """Measurements, needs, policies and the reason why each snapshot is retained are text lines for people, and one
    object as JSON.
    """
    fake.on("GET", f"{BASE}/table?table=raw.trips", REPORT)
    output = run("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output", "table").out

    for line in (
        "needs compact: 40 files of 1.0 MB",
        "blocked: gc.enabled is false",
        (
            "policy p (system_iceberg_snapshot_expiration) on main decides about expire"
            " (disabled, so it turns these operations off)"
        ),
        "policy w (system_iceberg_table_maintenance) on main decides about nothing here",
        "policy old (system_iceberg_compaction) on main\n",
        "40 data files, 0 delete files, 4000 bytes",
        "1 of 2 snapshots may be removed",
        "200 2026-11-22T20:00:00Z is the head of branch main",
        "100 2026-11-12T20:00:00Z may be removed",
    ):
        assert line in output


def test_text_output_truncates_a_long_history(fake: FakeServer, run: Run) -> None:
    """The text output shows the newest snapshots and counts the others; JSON has all."""
    history = [{"snapshot_id": each, "at": "2026-11-22T20:00:00Z", "kept_because": None} for each in range(200, 0, -1)]
    fake.on("GET", f"{BASE}/table?table=raw.trips", {**REPORT, "history": history, "snapshots": 200})
    longer = {**REPORT, "history": history, "snapshots": 401, "data_files": 1}
    fake.on("GET", f"{BASE}/table?table=raw.trips", longer)
    explain = ("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output")

    text = run(*explain, "table").out
    assert "  171 2026" in text
    assert "  170 2026" not in text
    assert "and 170 more: --output json shows them" in text
    text = run(*explain, "table").out
    assert "and 371 more: --output json shows the newest 200" in text
    assert "1 data file," in text
    assert len(run(*explain, "json").result["history"]) == 200


def test_operation_is_requested_and_its_result_shown(fake: FakeServer, limnos: Run) -> None:
    """The request contains the table's path below the catalog. The output names the operation's id, and the status
    shows its result.
    """
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    assert limnos("maintenance", "run", "main.raw.trips").result == {"operation": 7}
    status = {"assess": True, "expire": False, "metadata_keep_s": 0, "operations": [OPERATION]}
    fake.on("GET", f"{BASE}/operations", status)
    done = limnos("maintenance", "status", "main")
    assert done.result == [OPERATION]
    assert "metadata files outside of the metadata log are kept forever" in done.err


def test_status_lists_unfinished_operations_first(fake: FakeServer, run: Run) -> None:
    """Operations that have not ended come first. The column of times is named for its content, and the output says that
    no executor runs.
    """
    waiting = {**OPERATION, "id": 5, "state": "waiting", "kind": "compact", "ended_at": None, "result": None}
    running = {**waiting, "id": 6, "state": "running", "leased_at": "2026-11-22T21:00:00Z"}
    status = {
        "assess": True,
        "operations": [OPERATION, running, waiting],
        "executor": "off",
        "waiting_for_executor": 1,
        "quiet_hours": ["22:00-06:00 UTC"],
        "bytes_per_day": 0,
    }
    fake.on("GET", f"{BASE}/operations", status).on("GET", f"{BASE}/operations", {**status, "executor": "local"})
    status_result = run("maintenance", "status", "main", "--uri", fake.uri, "--output", "table")
    rows = status_result.out.splitlines()

    assert [row.split()[0] for row in rows if row.split()[0] in ("5", "6", "7")] == ["5", "6", "7"]
    assert ("requested at" in rows[0].lower(), "started at" in rows[0].lower()) == (True, False)
    assert "2026-11-22T21:00:00Z" in status_result.out
    assert "22:00-06:00 UTC" in status_result.err
    assert "'limnos maintenance work'" in status_result.err
    assert "limnos maintenance work" not in run("maintenance", "status", "main", "--uri", fake.uri).err


def test_status_advises_no_executor_while_one_is_active(fake: FakeServer, run: Run) -> None:
    """While an executor is active, the status does not advise starting one. If no executor is reported as active, it
    advises starting one only on the condition that none runs.
    """
    status = {"assess": True, "operations": [], "executor": "off", "waiting_for_executor": 2}
    fake.on("GET", f"{BASE}/operations", {**status, "executor_active": True}).on("GET", f"{BASE}/operations", status)
    active, silent = (run("maintenance", "status", "main", "--uri", fake.uri).err for _ in range(2))

    assert ("2 listed operations wait for an executor; one is running" in active, "start one" in active) == (
        True,
        False,
    )
    assert "if no executor is running, start one with 'limnos maintenance work'" in silent


def test_status_of_lance_catalog_omits_iceberg_settings(fake: FakeServer, run: Run) -> None:
    """A Lance catalog has no lines about settings for Iceberg tables."""
    fake.on("GET", f"{BASE}/operations", {"assess": True, "operations": [], "table_format": "lance", "executor": "off"})

    assert run("maintenance", "status", "main", "--uri", fake.uri).err == "assessing tables: on\n"


@pytest.mark.parametrize("command", ["plan", "status"])
def test_table_path_as_catalog_refers_to_explain(fake: FakeServer, run: Run, command: str) -> None:
    """If a table's path is given in place of a catalog, the error refers to `explain`. For a missing catalog the
    message is unchanged.
    """
    route = f"/api/limnos/v1/metalakes/lake/catalogs/%s/maintenance/{'findings' if command == 'plan' else 'operations'}"
    missing = {"error": {"code": "not-found", "message": "Catalog does not exist"}}
    fake.on("GET", route % "main.none", missing, status=404).on("GET", route % "none", missing, status=404)
    refused = run("maintenance", command, "main.none", "--uri", fake.uri)

    assert refused.code == 2
    assert all(each in refused.err for each in ("give a catalog, such as main", "limnos show maintenance"))
    assert "give a catalog" not in run("maintenance", command, "none", "--uri", fake.uri).err


def test_operation_is_cancelled_by_its_number(fake: FakeServer, limnos: Run, run: Run) -> None:
    """An operation is cancelled by its number alone. For an operation that has already ended, the output says so."""
    route = "/api/limnos/v1/metalakes/lake/maintenance/operations/7/cancel"
    for state in ("cancelled", "done"):
        fake.on("POST", route, {"operation": 7, "state": state})

    assert limnos("maintenance", "cancel", "7").result == {"operation": 7, "state": "cancelled"}
    output = run("maintenance", "cancel", "7", "--uri", fake.uri, "--output", "table").out
    assert output == "operation 7 had ended before: it is done\n"


def test_finding_without_operation_has_its_reason(fake: FakeServer, run: Run) -> None:
    """A finding without an operation has its reason, and a policy lists the kinds that its content turns off."""
    policy = {
        "type": "system_iceberg_table_maintenance",
        "name": "w",
        "on": "main",
        "enabled": True,
        "content": {},
        "not_applied": [],
        "decides": ["compact", "manifests"],
        "turned_off": ["compact"],
    }
    report = {**REPORT, "policies": [policy], "inactions": {"compact": "off in policy w"}}
    fake.on("GET", f"{BASE}/table?table=raw.trips", report)
    output = run("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output", "table").out

    assert "needs compact: 40 files of 1.0 MB\n  no operation follows: off in policy w\n" in output
    assert "on main decides about compact (off in this policy), manifests\n" in output


def test_explanation_shows_orphan_sizes_and_waiting_days(fake: FakeServer, run: Run) -> None:
    """The sizes are those of the orphan files, and waiting times are in days."""
    file = {
        "name": "data/x.parquet",
        "size": 5,
        "state": "waiting",
        "first_seen_at": "2026-11-22T20:00:00Z",
        "waited_s": 129_600,
    }
    orphans = {
        "removal": "on",
        "age_s": 259_200,
        "checked_at": "2026-11-23T20:00:00Z",
        "listed": 81,
        "candidates": 1,
        "candidate_bytes": 5,
        "files": [file],
    }
    fake.on("GET", f"{BASE}/table?table=raw.trips", {**REPORT, "orphans": orphans})
    output = run("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output", "table").out

    assert "1 orphan of 5 bytes among 81 files, checked" in output
    assert "  waiting for 1.5 of 3 days: data/x.parquet" in output


@pytest.mark.parametrize(
    "waiting",
    [[], [LeasedOperation(operation=7, kind="compact", catalog="main", path=("raw", "trips"), token="lim_1_x")]],
)
def test_work_reports_each_operation_and_their_count(
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch, waiting: list[LeasedOperation]
) -> None:
    """The result has the count of finished operations, also if it is zero. Each operation has a line on standard
    error.
    """
    monkeypatch.setattr(runners, "runner_for", lambda *_, **__: FakeRunner())
    leases = "/api/limnos/v1/metalakes/lake/maintenance/leases"
    fake.on("POST", leases, {"lease_s": 60, "operations": [to_builtins(each) for each in waiting]})
    fake.on("POST", leases, {"lease_s": 60, "operations": []})
    fake.on("POST", leases.replace("leases", "operations/7/report"), {"accepted": True})
    done = run("maintenance", "work", "--idle", "0", "--uri", fake.uri, "--output", "json")

    assert (done.code, done.result) == (0, {"done": len(waiting)}), done.err
    assert done.err == ("operation 7 done: 40 files became 1\n" if waiting else "")


class FakeRunner:
    """An executor's runner without Spark."""

    def run(self, operation: LeasedOperation) -> OperationEnd:
        """Execute an operation at once."""
        return OperationEnd("done", "40 files became 1")

    def cancel(self, operation: int) -> None:
        """Stop nothing."""

    def close(self) -> None:
        """Release nothing."""


def test_unknown_kind_of_operation_is_a_usage_error(fake: FakeServer, run: Run) -> None:
    """An unknown kind of operation is a usage error, as for `plan`."""
    assert run("maintenance", "run", "main.raw.trips", "--kind", "vacuum", "--uri", fake.uri).code == 2
    assert fake.asked == []


def test_a_missing_table_is_named_with_its_catalog(fake: FakeServer, run: Run) -> None:
    """The server's message names the table below the catalog; the command adds the catalog."""
    missing = {"error": {"code": "not-found", "message": "Table does not exist: raw.nope"}}
    fake.on("GET", f"{BASE}/table?table=raw.nope", missing, status=404)
    refused = run("maintenance", "explain", "main.raw.nope", "--uri", fake.uri)

    assert "raw.nope in catalog main" in refused.err


def test_wait_shows_result_or_fails_after_a_timeout(
    fake: FakeServer, limnos: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--wait` the result is shown as soon as the operation has ended. If it takes too long, the command fails."""
    pauses: list[float] = []
    monkeypatch.setattr(maintenance, "pause", pauses.append)
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    running = {**OPERATION, "kind": "orphans", "state": "running", "result": None, "ended_at": None}
    status = {"assess": True, "operations": [running]}
    fake.on("GET", f"{BASE}/operations?before=8", status)
    late = limnos("maintenance", "run", "main.raw.trips", "--wait", "--wait-s", "0")
    assert (late.code, pauses) == (6, [])
    fake.on("GET", f"{BASE}/operations?before=8", {"assess": True, "operations": [OPERATION]})
    assert limnos("maintenance", "run", "main.raw.trips", "--wait", "--kind", "orphans").result["state"] == "done"


def test_wait_for_failed_operation_reports_the_reason(fake: FakeServer, limnos: Run) -> None:
    """The command fails with the reason."""
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    failed = {**OPERATION, "state": "failed", "result": "no right"}
    fake.on("GET", f"{BASE}/operations?before=8", {"assess": True, "operations": [failed]})
    refused = limnos("maintenance", "run", "main.raw.trips", "--wait")
    assert refused.code == 1
    assert "no right" in refused.err


def test_wait_for_operation_of_dropped_table_fails(fake: FakeServer, limnos: Run) -> None:
    """If the server no longer lists the operation, the command fails with the exit code for missing objects."""
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    fake.on("GET", f"{BASE}/operations?before=8", {"assess": True, "operations": []})
    dropped = limnos("maintenance", "run", "main.raw.trips", "--wait")
    assert (dropped.code, dropped.error["code"]) == (3, "not-found")


def test_an_executor_sends_no_tokens_unencrypted(fake: FakeServer, run: Run) -> None:
    """A plain HTTP address of another machine is refused before any request, unless a flag allows it."""
    refused = run("maintenance", "work", "--uri", "http://lake.example:8090", "--idle", "0")
    assert refused.code == 2
    assert "http://lake.example:8090 is not encrypted" in refused.err
    assert "--allow-http" in refused.err

    allowed = run("maintenance", "work", "--uri", "http://lake.invalid:1", "--idle", "0", "--allow-http")
    assert "is not encrypted" not in allowed.err
    fake.on("POST", "/api/limnos/v1/metalakes/lake/maintenance/leases", {"lease_s": 60, "operations": []})
    assert run("maintenance", "work", "--uri", fake.uri, "--idle", "0").code == 0
    for wrong in (
        ("--threads", "0"),
        ("--idle", "-1"),
        ("--executor-wait", "0"),
        ("--conf", "spark.cores.max"),
        ("--master", "banana"),
    ):
        answer = run("maintenance", "work", "--uri", fake.uri, "--idle", "0", *wrong)
        assert (answer.code != 0, "internal error" in answer.err) == (True, False), answer.err
