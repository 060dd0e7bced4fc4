"""`maintenance plan | explain | run | status`: the requests, the output and its order."""

from __future__ import annotations

import pytest

from limnos.cli.operation import maintenance
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

BASE = "/api/limnos/v1/metalakes/lake/catalogs/main/maintenance"
SMALL = {
    "table": "raw.trips", "kind": "compact", "score": 40, "reason": "40 files of 1.0 MB", "figures": {"small_files": 40},
    "found_at": "2026-11-22T20:00:00Z",
}  # fmt: skip
OLD = {**SMALL, "table": "raw.days", "kind": "expire", "score": 90, "reason": "90 of 100 snapshots", "figures": {}}
OPERATION = {
    "id": 7, "table": "raw.trips", "kind": "expire", "state": "done", "user": "ana", "policy": None,
    "result": "removed 3 snapshots; 1 stay", "started_at": "2026-11-22T20:00:00Z", "ended_at": "2026-11-22T20:00:01Z",
}  # fmt: skip
REPORT = {
    "snapshots": 2, "removable": 1, "refs_removable": ["old"], "writer": "appends", "data_files": 40, "delete_files": 0,
    "total_bytes": 4000, "findings": [SMALL], "blocked": ["gc.enabled is false"], "operations": [OPERATION],
    "history": [
        {"snapshot_id": 200, "at": "2026-11-22T20:00:00Z", "kept_because": "is the head of branch main"},
        {"snapshot_id": 100, "at": "2026-11-12T20:00:00Z", "kept_because": None},
    ],
    "policies": [
        {"type": "system_iceberg_snapshot_expiration", "name": "p", "on": "main", "enabled": False,
         "content": {"olderThanDays": 7, "retainLast": 5}, "not_applied": ["q"]},
    ],
}  # fmt: skip


def test_the_plan(fake: FakeServer, limnos: Run) -> None:
    """Pages are put together, the greatest need first; one kind is shown alone."""
    fake.on("GET", f"{BASE}/findings", {"findings": [SMALL], "after": 5})
    fake.on("GET", f"{BASE}/findings?after=5", {"findings": [OLD], "after": None})

    assert limnos("maintenance", "plan", "main").result == [OLD, SMALL]
    assert limnos("maintenance", "plan", "main", "--kind", "compact").result == [SMALL]
    assert limnos("maintenance", "plan", "main", "--kind", "compactt").code == 2


def test_an_explanation(fake: FakeServer, run: Run) -> None:
    """Figures, needs, policies and what keeps each snapshot are lines for people, and one object as JSON."""
    fake.on("GET", f"{BASE}/table?table=raw.trips", REPORT)
    shown = run("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output", "table").out

    for line in (
        "needs compact: 40 files of 1.0 MB",
        "blocked: gc.enabled is false",
        "policy p (system_iceberg_snapshot_expiration) on main (disabled, so it turns this off)",
        "1 of 2 snapshots may be removed",
        "200 2026-11-22T20:00:00Z is the head of branch main",
        "100 2026-11-12T20:00:00Z may be removed",
    ):
        assert line in shown


def test_a_long_history_is_cut_as_text(fake: FakeServer, run: Run) -> None:
    """The newest snapshots are shown, and how many there are beside them; JSON has all."""
    history = [{"snapshot_id": each, "at": "2026-11-22T20:00:00Z", "kept_because": None} for each in range(200, 0, -1)]
    fake.on("GET", f"{BASE}/table?table=raw.trips", {**REPORT, "history": history})
    explain = ("maintenance", "explain", "main.raw.trips", "--uri", fake.uri, "--output")

    text = run(*explain, "table").out
    assert "  171 2026" in text
    assert "  170 2026" not in text
    assert "and 170 more" in text
    assert len(run(*explain, "json").result["history"]) == 200


def test_an_operation(fake: FakeServer, limnos: Run) -> None:
    """It is asked for by the table's path below the catalog, and its id is told; the status shows what became of it."""
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    assert limnos("maintenance", "run", "main.raw.trips").result == {"operation": 7}
    status = {"assess": True, "expire": False, "metadata_keep_s": 0, "operations": [OPERATION]}
    fake.on("GET", f"{BASE}/operations", status)
    done = limnos("maintenance", "status", "main")
    assert done.result == [OPERATION]
    assert "metadata files outside of the metadata log are kept forever" in done.err


def test_waiting_for_an_operation(fake: FakeServer, limnos: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --wait the result is shown when it is there; an operation that takes too long is an error."""
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


def test_waiting_for_an_operation_that_fails(fake: FakeServer, limnos: Run) -> None:
    """The command fails with the reason."""
    fake.on("POST", f"{BASE}/operations", {"operation": 7})
    failed = {**OPERATION, "state": "failed", "result": "no right"}
    fake.on("GET", f"{BASE}/operations?before=8", {"assess": True, "operations": [failed]})
    refused = limnos("maintenance", "run", "main.raw.trips", "--wait")
    assert refused.code == 1
    assert "no right" in refused.err


def test_an_executor_sends_no_tokens_unencrypted(fake: FakeServer, run: Run) -> None:
    """An address over HTTP of another machine is refused before any request, unless a flag allows it."""
    refused = run("maintenance", "work", "--uri", "http://lake.example:8090", "--idle", "0")
    assert refused.code == 2
    assert "http://lake.example:8090 is not encrypted" in refused.err
    assert "--allow-http" in refused.err

    allowed = run("maintenance", "work", "--uri", "http://lake.invalid:1", "--idle", "0", "--allow-http")
    assert "is not encrypted" not in allowed.err
    fake.on("POST", "/api/limnos/v1/metalakes/lake/maintenance/leases", {"lease_s": 60, "operations": []})
    assert run("maintenance", "work", "--uri", fake.uri, "--idle", "0").code == 0
    for wrong in (
        ("--threads", "0"), ("--idle", "-1"), ("--executor-wait", "0"), ("--conf", "spark.cores.max"), ("--master", "banana"),
    ):  # fmt: skip
        answer = run("maintenance", "work", "--uri", fake.uri, "--idle", "0", *wrong)
        assert (answer.code != 0, "internal error" in answer.err) == (True, False), answer.err
