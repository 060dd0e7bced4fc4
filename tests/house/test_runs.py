# SPDX-License-Identifier: Apache-2.0
"""A test run ends every process that it started, also when it is interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WAITS = """
import threading
import pytest

@pytest.fixture(scope="session")
def started():
    yield
    print("taken down", flush=True)

def test_waits(started):
    print("begun", flush=True)
    threading.Event().wait()
"""


def test_sigterm_tears_down_session_fixtures(tmp_path: Path) -> None:
    """SIGTERM, which `timeout` sends, ends the session's fixtures in order."""
    (tmp_path / "test_waits.py").write_text(WAITS)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "tests.conftest"]

    with subprocess.Popen(
        [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as run:
        assert run.stdout is not None
        output_lines = []
        for line in run.stdout:
            output_lines.append(line)
            if "begun" in line:
                run.terminate()

    assert any("taken down" in line for line in output_lines), "".join(output_lines)
