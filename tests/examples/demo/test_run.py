# SPDX-License-Identifier: Apache-2.0
"""The exit of a demo that fails."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from examples.demo import run
from examples.demo.tables import CountsDiffer
from limnos.model.errors import ServiceUnavailable


@pytest.mark.parametrize(
    "error, words",
    [
        (CountsDiffer("main.raw.nyc.planes has 1 rows"), "has 1 rows"),
        (ServiceUnavailable("No Java 17 or 21"), "No Java 17 or 21"),
        (ZeroDivisionError("odd [thing]\nsecond line"), "ZeroDivisionError: odd [thing]"),
    ],
)
def test_failure_exits_with_code_1_and_reason(
    error: Exception, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any failure exits with code 1 and prints its reason; nothing is reported as created."""
    out = io.StringIO()

    def fail(_run: object) -> None:
        raise error

    monkeypatch.setattr(run, "_run_demo", fail)

    code = run.main(tmp_path / "out", console=Console(file=out, width=200))

    assert code == 1
    assert words in out.getvalue()
    assert not (tmp_path / "out" / "report.html").exists()


def test_unexpected_error_writes_traceback_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of an unexpected error is written next to the data, and the terminal names the file."""
    out = io.StringIO()

    def fail(_run: object) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(run, "_run_demo", fail)

    run.main(tmp_path, console=Console(file=out, width=400))

    assert "ZeroDivisionError: odd" in (tmp_path / "error.log").read_text()
    assert str(tmp_path / "error.log") in out.getvalue()


def test_sigterm_has_own_exit_code_and_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM has its own exit code and message, even if a library turns it into an error."""
    out = io.StringIO()

    def terminated(_run: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except SystemExit as exit_:
            raise RuntimeError("does not exist in the JVM") from exit_

    monkeypatch.setattr(run, "_run_demo", terminated)

    code = run.main(tmp_path, console=Console(file=out, width=200))

    assert code == 143
    assert "Stopped" in out.getvalue()
