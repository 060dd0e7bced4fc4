# SPDX-License-Identifier: Apache-2.0
"""docs/start/data-engineer.md: its commands and files run in order on Spark, and print what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.page_scripts import run_page

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

PAGE = Path(__file__).parents[2] / "docs" / "start" / "data-engineer.md"


def test_tutorial_of_data_engineers_runs(tmp_path: Path) -> None:
    """All commands of the page succeed, and readers see what the page shows after each run."""
    done = run_page(PAGE, tmp_path, timeout_s=900)

    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    assert "exit code 10" in done.stdout
