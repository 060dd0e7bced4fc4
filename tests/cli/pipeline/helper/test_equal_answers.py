# SPDX-License-Identifier: Apache-2.0
"""Answers of the helper process are those of the command without it: checks, plans and unit tests of pipelines."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.cli.pipeline.helper import client
from tests.cli.conftest import CommandResult, Run
from tests.integration.live import LiveServer, serving
from tests.pipeline.test_column_checks import HEAD, PLANTED, SOUND

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]

FUNCTIONS = """
steps:
  raw.first: {sql: "SELECT 1 AS id, 'ana' AS customer"}
  marts.second:
    python: customers:ranked
    inputs: {first: raw.first}
    tests:
      ranks: {given: {raw.first: [{id: 3, customer: ben}]}, expect: [{id: 4, customer: ben}]}
"""
MODULE = "def ranked(first):\n    return first.withColumn('id', first.id + %s)\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that believes user names."""
    with serving(tmp_path_factory.mktemp("helper") / "data") as running:
        yield running


@pytest.fixture(autouse=True)
def _own_helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep helpers in a directory of the test's own. They end when their sockets are removed."""
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    monkeypatch.chdir(tmp_path)
    started = len(client._STARTED)
    yield
    for path in (run / "limnos-pipeline-helper").glob("*.sock"):
        path.unlink()
    for process in client._STARTED[started:]:
        process.wait(60)


def _both(run: Run, *words: str) -> tuple[CommandResult, CommandResult]:
    """Run a command with the helper, and without it."""
    return run(*words, "--helper"), run(*words, "--no-helper")


def _texts() -> dict[str, str]:
    """Return files of pipelines by name: each planted slip alone, all together, sound ones, and what is no pipeline."""

    def text(steps: str) -> str:
        return f"{HEAD}steps:\n{textwrap.indent(steps, '  ')}"

    own = {f"slip{number}": text(f"{SOUND}{slip}\n") for number, (slip, _) in enumerate(PLANTED)}
    return {
        **own,
        "all": text("\n".join([*(slip for slip, _ in PLANTED), *SOUND.splitlines()]) + "\n"),
        "sound": text(SOUND),
        "cut": text(SOUND)[:-40] + "{",
        "empty": "",
        "control": 'pipeline: "p\\e[2J"\ncatalog: main\nsteps: {a.t: {sql: SELECT 1}}\n',
    }


def test_checks_of_all_slips_are_equal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slip of the family, and files that are no pipelines, have equal output, errors and exit codes."""
    monkeypatch.setattr(client, "_SILENCE_S", 120.0)
    differing = {}
    for name, text in _texts().items():
        (tmp_path / f"{name}.yaml").write_text(text)
        for output in ("table", "json") if name == "all" else ("table",):
            words = ("pipeline", "check", f"{name}.yaml", "--offline", "--output", output)
            with_helper, without = _both(run, *words)
            if with_helper != without:
                differing[name] = (with_helper, without)
    absent = _both(run, "pipeline", "check", "absent.yaml", "--offline", "--output", "table")
    unclear = _both(run, "pipeline", "check", "all.yaml", "--output", "table", "--uri", "http://127.0.0.1:9")

    assert differing == {}
    assert absent[0] == absent[1]
    assert unclear[0] == unclear[1]
    assert len(list((tmp_path / "run").glob("*/*.sock"))) == 2


def test_plans_and_unit_tests_are_equal_and_see_edited_functions(
    run: Run, server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans at a server and unit tests have equal output, also after the function's module was edited and broken."""
    monkeypatch.setattr(client, "_SILENCE_S", 120.0)
    (tmp_path / "p.yaml").write_text(f"pipeline: helped\ncatalog: main\n{FUNCTIONS}")
    flags = ("--uri", server.uri, "--user", "admin", "--output", "table")
    plans, tests = [], []
    for module in (MODULE % "1", MODULE % "22", "import absent\n"):
        (tmp_path / "customers.py").write_text(module)
        plans.append(_both(run, "pipeline", "plan", "p.yaml", *flags))
        tests.append(_both(run, "pipeline", "test", "p.yaml", *flags))

    assert [one for one in plans if one[0] != one[1]] == []
    assert [one for one in tests if one[0] != one[1]] == []
    assert [one.code for one, _ in tests][:2] == [0, 10]
    assert "id bigint" in plans[0][0].out or "id int" in plans[0][0].out
    assert os.environ["XDG_RUNTIME_DIR"] == str(tmp_path / "run")


def test_run_uses_a_warm_session(run: Run, server: LiveServer, tmp_path: Path) -> None:
    """A run by the helper prints while it runs and publishes its tables; a second one, with another query, too."""
    flags = ("--uri", server.uri, "--user", "admin", "--output", "json")
    command = [sys.executable, "-c", client.ENTRY, "pipeline", "run", "w.yaml", *flags, "--helper"]
    ended = []
    for number in (1, 2):
        steps = f"steps: {{warm.t: {{sql: 'SELECT {number} AS id, {number} AS more'}}}}"
        (tmp_path / "w.yaml").write_text(f"pipeline: warm\ncatalog: main\n{steps}\n")
        ended.append(subprocess.run(command, capture_output=True, text=True, check=False))
    runs = run("pipeline", "runs", "warm", *flags).result

    assert [(one.returncode, "note:" in one.stderr) for one in ended] == [(0, False)] * 2
    assert all("published" in one.stdout for one in ended)
    assert isinstance(runs, list)
    assert [one["state"] for one in runs] == ["published", "published"]
    assert len(list((tmp_path / "run").glob("*/*.sock"))) == 1
