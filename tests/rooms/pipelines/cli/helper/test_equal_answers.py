# SPDX-License-Identifier: Apache-2.0
"""Answers of the helper process are those of the command without it: checks of pipelines with each slip of the pen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.rooms.pipelines.cli.helper import client
from tests.cli.conftest import CommandResult, Run
from tests.pipeline.test_column_checks import HEAD, PLANTED, SOUND

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


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
