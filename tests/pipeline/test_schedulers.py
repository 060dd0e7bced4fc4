# SPDX-License-Identifier: Apache-2.0
"""The examples for schedulers: the plain function is run; the code for Airflow and Dagster is parsed, and its commands
are run.
"""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from limnos.pipeline.run.result import EXIT_CODES, EndReason
from tests.cli.test_docs import COMMANDS
from tests.integration.live import LiveServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "schedulers"


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_airflow_command_exists_with_its_flags() -> None:
    """Airflow's command exists with its flags, and its exit code is that of invalid data."""
    example = _example("airflow_dag")
    command = COMMANDS["pipeline run"]
    flags = {name for argument in command.assemble_argument_collection() for name in argument.names}

    assert example.COMMAND[:3] == ("limnos", "pipeline", "run")
    assert {word for word in example.COMMAND if word.startswith("--")} <= flags
    assert EXIT_CODES[EndReason.DATA] == example.BROKEN_DATA
    assert shlex.split(example.script())[0] == "limnos"


def test_dagster_op_calls_the_plain_function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The op calls the plain function with the day as a parameter, and with server and token from its environment."""
    example = _example("dagster_job")
    (tmp_path / "token").write_text("t0ken\n")
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("LIMNOS_URI", "http://h:1")
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        example, "publish", lambda file, **options: calls.append((file, *sorted(options.items()))) or {"run": "r"}
    )

    assert example.publish_day("2013-01-31") == {"run": "r"}
    assert calls == [
        ("pipeline.yaml", ("parameters", {"day": "2013-01-31"}), ("token", "t0ken"), ("uri", "http://h:1"))
    ]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_plain_function_publishes_a_listed_run(served_spark: object, server: LiveServer, tmp_path: Path) -> None:
    """The plain function publishes a table from a file, and the server lists the run."""
    file = tmp_path / "pipeline.yaml"
    file.write_text("pipeline: plain\ncatalog: main\nsteps:\n  plain.t: {sql: SELECT id FROM range(3)}\n")
    (tmp_path / "token").write_text(server.token)

    run_result = _example("plain").main(
        [str(file), "--uri", server.uri, "--token-file", str(tmp_path / "token"), "--master", "local[2]"]
    )

    assert (run_result["state"], run_result["rows"]) == ("published", 3)
