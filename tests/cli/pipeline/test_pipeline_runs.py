# SPDX-License-Identifier: Apache-2.0
"""The effect of the flags of `pipeline run` and `pipeline resume`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from limnos.cli.pipeline import pipeline_runs
from limnos.pipeline.engine.launch import ServerConnection
from limnos.pipeline.run.options import RunOptions
from tests.cli.conftest import Run


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

    assert [each.ca_file for each in connections] == ["company.pem"]
