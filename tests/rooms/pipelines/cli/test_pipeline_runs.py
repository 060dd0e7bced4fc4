# SPDX-License-Identifier: Apache-2.0
"""The effect of the flags of `pipeline run` and `pipeline resume`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from limnos.pipeline.engine.launch import ServerConnection
from limnos.pipeline.run.dry_run import DryRun, StepIntent
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.rooms.pipelines.cli import pipeline_runs
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

RUNS = "/api/limnos/v1/metalakes/lake/runs"
CANCELLED = {
    "id": "01a2298e-50a9-77a0-8a10-efca47f558b2",
    "pipeline": "nyc",
    "state": "cancelled",
    "attempt": 1,
    "user": "ana",
    "holder": "host",
    "ended_at": "2026-11-01T08:00:00Z",
    "message": "Cancelled by ben; no process held it any more",
}


@pytest.mark.parametrize("words", [("run", "file.yaml"), ("resume", "r1")])
@pytest.mark.parametrize("flags, away_s", [((), 600.0), (("--away", "7.5"), 7.5)])
def test_away_sets_the_wait_for_an_unreachable_server(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], flags: tuple[str, ...], away_s: float
) -> None:
    """`--away` sets the option for how long the run waits for an unreachable server; the default is ten minutes."""
    seen: list[RunOptions] = []

    def note(*_: object, options: RunOptions, **__: object) -> SimpleNamespace:
        seen.append(options)
        return SimpleNamespace(exit_code=0)

    command = SimpleNamespace(run_file=note, resume_run=note, SparkOptions=lambda **_: None)
    monkeypatch.setattr(pipeline_runs, "_command", lambda: command)
    monkeypatch.setattr(pipeline_runs, "_connection", lambda _: None)
    done = run("pipeline", *words, *flags)

    assert (done.code, [each.away_s for each in seen]) == (0, [away_s])


@pytest.mark.parametrize("words", [("run", "file.yaml"), ("promote", "file.yaml", "--env", "dev"), ("resume", "r1")])
def test_conf_sets_settings_of_spark(run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    """`--conf` may be repeated and sets Spark's settings; another form is refused, and a helper has its own Spark."""
    seen: list[dict[str, object]] = []
    command = SimpleNamespace(
        run_file=lambda *_, **__: SimpleNamespace(exit_code=0),
        resume_run=lambda *_, **__: SimpleNamespace(exit_code=0),
        SparkOptions=lambda **options: seen.append(options),
    )
    monkeypatch.setattr(pipeline_runs, "_command", lambda: command)
    monkeypatch.setattr(pipeline_runs, "_connection", lambda _: None)
    done = run("pipeline", *words, "--conf", "spark.cores.max=1", "--conf", "spark.executor.memory=1g")
    refused = run("pipeline", *words, "--conf", "spark.cores.max")

    assert (done.code, refused.code) == (0, 2)
    assert [each["config"] for each in seen] == [{"spark.cores.max": "1", "spark.executor.memory": "1g"}]
    assert "write KEY=VALUE" in refused.err
    if words[0] == "run":
        assert "leave --conf or --helper out" in run("pipeline", *words, "--conf", "spark.cores.max=1", "--helper").err


@pytest.mark.parametrize("words", [("run", "file.yaml"), ("resume", "r1"), ("diff", "r1")])
def test_ca_file_is_used_for_the_connection_of_a_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """`--ca-file` is used for the run's connection to the server."""
    connections: list[ServerConnection] = []

    def note(*_: object, connection: ServerConnection, **__: object) -> SimpleNamespace:
        connections.append(connection)
        return SimpleNamespace(exit_code=0)

    command = SimpleNamespace(
        run_file=note, resume_run=note, diff_run=lambda *_, **more: note(**more) and [], SparkOptions=lambda **_: None
    )
    monkeypatch.setattr(pipeline_runs, "_command", lambda: command)
    run("pipeline", *words, "--uri", "https://lake.example:8090", "--ca-file", "company.pem")

    assert [each.ca_file for each in connections] == [str(Path("company.pem").absolute())]


@pytest.mark.parametrize("typed, is_resumed", [("last", False), (CANCELLED["id"], True)])
def test_cancelled_run_is_resumed_by_its_id_alone(
    fake: FakeServer, limnos: Run, monkeypatch: pytest.MonkeyPatch, typed: str, *, is_resumed: bool
) -> None:
    """A cancelled run that is named by `last` is refused with its time, its reason and both ways on; by its id it is
    resumed with a note.
    """
    resumed: list[object] = []

    def note(run: str, **_: object) -> SimpleNamespace:
        resumed.append(run)
        return SimpleNamespace(exit_code=0)

    monkeypatch.setattr(
        pipeline_runs, "_command", lambda: SimpleNamespace(resume_run=note, SparkOptions=lambda **_: None)
    )
    monkeypatch.setattr(pipeline_runs, "_connection", lambda _: None)
    fake.on("GET", f"{RUNS}?limit=1", {"runs": [CANCELLED]})
    fake.on("GET", f"{RUNS}/{CANCELLED['id']}", CANCELLED)

    done = limnos("pipeline", "resume", typed, "--output", "table")

    assert (done.code == 0, resumed) == (is_resumed, [CANCELLED["id"]] if is_resumed else [])
    assert "was cancelled at 2026-11-01T08:00:00Z (Cancelled by ben; no process held it any more)" in done.err
    assert ("'limnos delete run" in done.err) == (not is_resumed)


INTENT = StepIntent(step="shop.a", after=(), reads=("main.raw.t at 7",), writes="main.shop.a (replace)")
DENIED = RunResult(
    run="", pipeline="shop", attempt=0, state="refused", why=EndReason.DENIED, message="a privilege is missing"
)


@pytest.mark.parametrize(
    "planned, code, last",
    [
        (DryRun(steps=(INTENT,)), 0, "     writes main.shop.a (replace)"),
        (
            DryRun(steps=(INTENT, replace(INTENT, step="shop.b", refused="p.yaml:7:5: no column x"))),
            2,
            "     is refused: p.yaml:7:5: no column x\n1 step is refused",
        ),
        (DryRun(ended=DENIED), 4, "refused: a privilege is missing"),
    ],
)
def test_dry_run_has_the_reasons_of_refused_steps(
    run: Run, monkeypatch: pytest.MonkeyPatch, planned: DryRun, code: int, last: str
) -> None:
    """A dry run prints the steps; where a step or the run would be refused, it says why and has a plan's exit code."""
    command = SimpleNamespace(dry_run=lambda *_, **__: planned, SparkOptions=lambda **_: None)
    monkeypatch.setattr(pipeline_runs, "_command", lambda: command)
    monkeypatch.setattr(pipeline_runs, "_connection", lambda _: None)
    monkeypatch.setenv("LIMNOS_OUTPUT", "table")

    done = run("pipeline", "run", "file.yaml", "--dry-run")

    assert (done.code, done.out.rstrip().endswith(last)) == (code, True), done.out
