# SPDX-License-Identifier: Apache-2.0
"""The requests and the output of the commands on pipelines and runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from limnos.pipeline.engine.differences import BranchDifference
from limnos.rooms.pipelines.cli import pipeline_runs
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

LAKE = "/api/limnos/v1/metalakes/lake"
PIPES, RUNS = f"{LAKE}/pipelines", f"{LAKE}/runs"
PIPELINE = {"name": "nyc", "version": 2, "digest": "d"}
RUN = {
    "id": "r-1",
    "pipeline": "nyc",
    "state": "running",
    "attempt": 1,
    "user": "ana",
    "holder": "host:7",
    "version": 2,
    "parameters": {"day": "x"},
    "options": {},
}
STEP = {"name": "raw", "state": "done", "attempt": 1, "rows": 7, "reads": [], "outputs": [], "inputs": []}
FOUND = {
    "step": "raw",
    "rule": "not_empty",
    "kind": "row",
    "action": "warn",
    "broken": 2,
    "checked": 10,
    "held": True,
    "message": "2 of 10",
}


def test_pipelines_and_runs_are_listed(fake: FakeServer, limnos: Run) -> None:
    """`list` shows pipelines; `runs` shows runs, filtered by pipeline and state and limited in number."""
    fake.on("GET", PIPES, {"pipelines": [PIPELINE]})
    fake.on("GET", f"{RUNS}?limit=20", {"runs": [RUN], "next": None})
    fake.on("GET", f"{RUNS}?pipeline=nyc&state=failed&limit=3", {"runs": [], "next": None})

    assert [row["name"] for row in limnos("pipeline", "list").result] == ["nyc"]
    assert [(row["id"], row["state"]) for row in limnos("pipeline", "runs").result] == [("r-1", "running")]
    assert limnos("pipeline", "runs", "nyc", "--state", "failed", "--limit", "3").result == []


def test_runs_are_listed_over_pages(fake: FakeServer, limnos: Run) -> None:
    """Pages are requested until the limit is reached."""
    fake.on("GET", f"{RUNS}?limit=3", {"runs": [RUN, RUN], "next": "40"})
    fake.on("GET", f"{RUNS}?page=40&limit=1", {"runs": [RUN], "next": "7"})

    assert len(limnos("pipeline", "runs", "--limit", "3").result) == 3


def test_a_run_is_shown_whole(fake: FakeServer, limnos: Run) -> None:
    """A run is one document as JSON. As a table, the run, its steps and its findings are printed one below the
    other.
    """
    step = {**STEP, "phases_s": {"reading": 0.5, "writing": 1.25}}
    fake.on("GET", f"{RUNS}/r-1", {**RUN, "phases_s": {"steps": 2.0}, "steps": [step], "findings": [FOUND]})

    run_record = limnos("pipeline", "show", "r-1").result
    table = limnos("pipeline", "show", "r-1", "--output", "table")

    assert (run_record["state"], run_record["steps"][0]["rows"], run_record["findings"][0]["rule"]) == (
        "running",
        7,
        "not_empty",
    )
    assert table.code == 0
    assert all(word in table.out for word in ("host:7", "raw", "done", "not_empty", "2 of 10"))
    assert all(word in table.out for word in ("steps 2.00", "reading 0.50, writing 1.25"))
    assert "earlier attempt" not in table.out


def test_resumed_run_is_shown_with_its_earlier_attempts(fake: FakeServer, limnos: Run) -> None:
    """`show run` of a resumed run has a table of the attempts before, with their messages; `--columns` of the steps
    leaves it out.
    """
    earlier = {"attempt": 1, "state": "failed", "holder": "host:6", "message": "step raw: no such column"}
    fake.on("GET", f"{RUNS}/r-1", {**RUN, "attempt": 2, "earlier_attempts": [earlier], "steps": [STEP]})

    table = limnos("pipeline", "show", "r-1", "--output", "table", "--wide")
    chosen = limnos("pipeline", "show", "r-1", "--output", "table", "--columns", "name,rows")

    assert [row["state"] for row in limnos("pipeline", "show", "r-1").result["earlier_attempts"]] == ["failed"]
    assert all(word in table.out for word in ("earlier attempt", "host:6", "step raw: no such column"))
    assert "host:6" not in chosen.out.split("raw")[-1]


def test_columns_may_be_those_of_one_list_of_a_run(fake: FakeServer, limnos: Run) -> None:
    """`--columns` of a run takes columns of its steps and of its findings. A list without any of them is left out; a
    name of neither is refused.
    """
    steps_of_run = [{"name": "a.t", "state": "done", "attempt": 1}]
    fake.on("GET", f"{RUNS}/r-1", {**RUN, "steps": steps_of_run, "findings": [FOUND]})

    steps = limnos("show", "run", "r-1", "--columns", "name,attempt", "--output", "table")
    neither = limnos("show", "run", "r-1", "--columns", "colour", "--output", "table")

    assert steps.code == 0
    assert "attempt" in steps.out
    assert "rule" not in steps.out
    assert neither.code == 2


def test_table_output_shows_only_options_the_caller_set(fake: FakeServer, limnos: Run) -> None:
    """Tables are shown by name, without those that a step only might have written. Options that are not set, and data
    that a runner stores for a resume, are only in the JSON.
    """
    options = {
        "tables": [["main", "a", "t.u"], ["main", "b"]],
        "digests": {"a": "x1"},
        "pins": [],
        "full": False,
        "hold": True,
    }
    steps = [
        {**STEP, "output": "main.a.`t.u`", "outputs": [{"table": ["main", "a", "t.u"]}, {"table": ["main", "kept"]}]},
        {**STEP, "name": "b", "state": "waiting", "output": "main.c"},
    ]
    fake.on("GET", f"{RUNS}/r-1", {**RUN, "options": options, "steps": steps})

    table = limnos("pipeline", "show", "r-1", "--output", "table").out
    document = limnos("pipeline", "show", "r-1").result

    assert "tables = main.a.`t.u`, main.c, main.kept\n" in table
    assert "hold = yes" in table
    assert not any(word in table for word in ("digests", "pins", "full"))
    assert document["options"] == options


def test_a_run_is_cancelled(fake: FakeServer, limnos: Run) -> None:
    """The output names the runner that was asked to stop, or reports the run as cancelled."""
    fake.on("POST", f"{RUNS}/r-1/cancel", {**RUN, "state": "cancelling"}).on(
        "POST", f"{RUNS}/r-1/cancel", {**RUN, "state": "cancelled"}
    )

    first, second = (limnos("pipeline", "cancel", "r-1", "--output", "table").out for _ in range(2))

    assert "host:7" in first
    assert second.strip() == "run r-1 is cancelled"


def test_findings_of_a_pipeline_are_listed_with_their_runs(fake: FakeServer, limnos: Run) -> None:
    """Findings of a pipeline are listed with their runs."""
    fake.on(
        "GET",
        f"{PIPES}/nyc/findings?rule=not_empty&limit=100",
        {"findings": [{**FOUND, "run": "r-1", "run_state": "failed"}]},
    )

    (row,) = limnos("pipeline", "findings", "nyc", "--rule", "not_empty").result

    assert (row["broken"], row["run"]) == (2, "r-1")


def test_findings_of_a_state_are_listed(fake: FakeServer, limnos: Run) -> None:
    """`--state` shows broken rules, tolerated breaks, or rules that hold, as many as the limit."""
    results = [("a", False, 2), ("b", True, 0), ("c", True, 1), ("d", False, 0)]
    findings = [{**FOUND, "rule": rule, "held": holds, "broken": broken} for rule, holds, broken in results]
    for _ in range(4):
        fake.on("GET", f"{PIPES}/nyc/findings?limit=1000", {"findings": findings})

    listed = {
        state: [row["rule"] for row in limnos("list", "findings", "nyc", "--state", state).rows]
        for state in ("broken", "tolerated", "holds")
    }
    first = limnos("list", "findings", "nyc", "--state", "broken", "--limit", "1").rows

    assert listed == {"broken": ["a", "d"], "tolerated": ["c"], "holds": ["b"]}
    assert [row["rule"] for row in first] == ["a"]


@pytest.mark.parametrize(
    "fields, result",
    [
        ({"action": "fail", "held": True, "broken": 0}, "holds"),
        ({"action": "fail", "held": True, "broken": 2}, "2 tolerated"),
        ({"action": "fail", "held": False, "broken": 2}, "2 broken, the run failed"),
        ({"action": "fail", "held": False, "broken": 0}, "the run failed"),
        ({"action": "warn", "held": False, "broken": 2}, "2 broken, a warning"),
        ({"action": "quarantine", "held": True, "broken": 2}, "2 in quarantine"),
        ({"action": "quarantine", "held": False, "broken": 2}, "2 broken, the run failed"),
        ({"action": "keep", "held": True, "broken": 2}, "2 kept as malformed"),
        ({"action": "drop", "held": True, "broken": 2}, "2 dropped"),
    ],
)
def test_list_of_findings_shows_what_became_of_rows(
    fake: FakeServer, limnos: Run, fields: dict[str, object], result: str
) -> None:
    """A narrow table has the step, the rule and its result in words; the run's id is left out first."""
    finding = {**FOUND, **fields, "run": "r" * 36, "run_state": "failed"}
    fake.on("GET", f"{PIPES}/nyc/findings?limit=100", {"findings": [finding]})

    lines = limnos("pipeline", "findings", "nyc", "--output", "table").out.splitlines()

    assert lines[0].split()[:3] == ["step", "rule", "result"]
    assert result in lines[1]


@pytest.mark.parametrize(
    "fields, tolerated",
    [
        ({"action": "quarantine", "held": True, "tolerated": 0.0}, ""),
        ({"action": "quarantine", "held": True, "tolerated": 0.5}, "0.5"),
        ({"action": "quarantine", "held": False, "tolerated": 0.0}, "0.0"),
        ({"action": "fail", "held": True, "tolerated": 0.0}, "0.0"),
    ],
)
def test_rule_that_removes_rows_without_limit_has_no_tolerated_share(
    fake: FakeServer, limnos: Run, fields: dict[str, object], tolerated: str
) -> None:
    """A rule that removes rows and has no limit shows no share: 0.0 would read as if no row could be removed."""
    finding = {**FOUND, **fields, "run": "r" * 36, "run_state": "failed"}
    fake.on("GET", f"{PIPES}/nyc/findings?limit=100", {"findings": [finding]})

    lines = limnos("pipeline", "findings", "nyc", "--output", "table", "--columns", "rule,tolerated").out.splitlines()

    assert lines[1].split()[1:] == ([tolerated] if tolerated else [])


def test_a_pipeline_is_dropped(fake: FakeServer, limnos: Run) -> None:
    """`pipeline drop --yes` drops a pipeline."""
    fake.on("DELETE", f"{PIPES}/nyc", {"dropped": "nyc"})

    assert limnos("pipeline", "drop", "nyc", "--yes").result == {"dropped": "nyc"}


def test_missing_run_hints_at_the_list_of_runs(fake: FakeServer, limnos: Run) -> None:
    """For a missing run the hint names the command that lists runs."""
    error = {"code": "not-found", "message": "Run r-9 does not exist in metalake lake: see 'limnos list runs'"}
    fake.on("GET", f"{RUNS}/r-9", {"error": error}, status=404)

    done = limnos("pipeline", "show", "r-9")

    assert done.code == 3
    assert "limnos list runs" in done.err


@pytest.mark.parametrize("also", ["--hold", "--dry-run"])
def test_backfill_with_hold_or_dry_run_is_refused(limnos: Run, also: str) -> None:
    """`--backfill` is refused with `--hold` or `--dry-run` before the file is read, because each run needs the
    published result of the run before.
    """
    refused = limnos("pipeline", "run", "nowhere.yaml", "--backfill", "day=2026-01-01..2026-01-02", also)

    assert refused.code == 2
    assert "--backfill publishes one run before the next begins" in refused.err


def test_rows_that_differ_are_shown_on_a_terminal_too(limnos: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`diff --rows` prints the rows of each table below the counts; JSON has them in its document."""
    sample = ({"_side": "added", "_times": 1, "id": 7},)
    difference = BranchDifference(table="main.a.t", added=3, removed=0, changed=None, sample=sample)
    same = BranchDifference(table="main.a.u", added=0, removed=0, changed=0)
    command = SimpleNamespace(diff_run=lambda *_, **__: (difference, same), SparkOptions=lambda **_: None)
    monkeypatch.setattr(pipeline_runs, "_command", lambda: command)

    table = limnos("pipeline", "diff", "r-1", "--rows", "1", "--output", "table").out
    document = limnos("pipeline", "diff", "r-1", "--rows", "1").result

    assert "main.a.t: 1 of 3 rows that differ" in table
    assert table.rstrip().splitlines()[-1].split() == ["added", "1", "7"]
    assert "main.a.u:" not in table
    assert [row["sample"] for row in document] == [list(sample), []]  # type: ignore[attr-defined]
