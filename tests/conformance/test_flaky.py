# SPDX-License-Identifier: Apache-2.0
"""The repeated-test runner: it counts tests that fail in some runs, and fails if pytest cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.flaky.__main__ import main

pytestmark = pytest.mark.heavy

SOMETIMES = """
from pathlib import Path

def test_steady():
    pass

def test_sometimes(request):
    runs = Path(__file__).with_name("runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    assert count % 3 != 1, "words of the failure"
"""


def test_flaky_test_is_reported_with_count_and_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A test that fails in one of three runs is reported with its count and message; the others are not."""
    (tmp_path / "test_some.py").write_text(SOMETIMES)

    code = main(["--times", "3", "--busy", "1", "--workers", "0", str(tmp_path)])
    output = capsys.readouterr().out

    assert code == 1
    assert "1 of 3: " in output
    assert "words of the failure" in output
    assert "run 2 of 3: 1 failed" in output
    assert "test_steady" not in output


def test_pytest_error_is_not_a_success(tmp_path: Path) -> None:
    """A missing file ends the command with pytest's message."""
    with pytest.raises(SystemExit, match="ended with code 4"):
        main(["--times", "1", "--busy", "0", "--workers", "0", str(tmp_path / "none.py")])
