# SPDX-License-Identifier: Apache-2.0
"""The whole demo as a user runs it, twice in a row."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

COMMAND = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())", "demo")


@dataclass(frozen=True)
class Runs:
    """The directory of the demo, and what its first and second run printed."""

    directory: Path
    first: str
    second: str


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run the demo twice in one directory; both runs must succeed."""
    directory = tmp_path_factory.mktemp("demo") / "demo-out"
    texts = []
    for _ in range(2):
        done = subprocess.run([*COMMAND, str(directory)], capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        texts.append(done.stdout)
    return Runs(directory, *texts)


def test_first_run_loads_merges_and_compares(runs: Runs) -> None:
    """The first run loads all but a day, then that day and corrections, and finds the source's counts; the reader saw
    only complete runs.
    """
    report = runs.first.partition("Tables")[2]
    assert "336,000 rows" in runs.first
    assert "992 rows" in runs.first
    assert "then 336,776 rows in each, never one without the other" in runs.first
    assert "every count equals the source's" in report


def test_second_run_has_no_new_rows_and_the_same_counts(runs: Runs) -> None:
    """The second run finds nothing new in any table, and ends with the same counts."""
    report = runs.second.partition("Tables")[2]
    assert runs.second.count("336,776 rows in each, never one without the other") == 2
    assert report.count("written") == report.count("written anew") == 1, "only vectors are computed again"
    assert "every count equals the source's" in report


def test_grants_take_effect_at_both_servers(runs: Runs) -> None:
    """At each of two processes ana is refused with the privilege's name, allowed, and refused again."""
    report = runs.second.partition("Tables")[2]
    assert report.count("│ refused") == 8
    assert report.count("│ allowed, 776 flights") == 2
    assert "needs SELECT_TABLE or MODIFY_TABLE on main.curated.nyc.delays" in report


def test_a_lance_table_is_searched_at_both_servers(runs: Runs) -> None:
    """Vectors computed by Spark find a misspelled name, a full-text index finds a name with the word; refusals and
    grants are as for the other table.
    """
    for text in (runs.first, runs.second):
        report = text.partition("Tables")[2]
        assert re.search(r"lance\.nyc\.airports +│ +1,458 │ +1,458 │ written anew", report)
        assert report.count("nearest to Chicago Ohare Intl") == 2
        assert "needs SELECT_TABLE on lance.nyc.airports" in report


def test_page_has_two_plots_and_loads_nothing(runs: Runs) -> None:
    """The HTML page embeds both plots and loads nothing from elsewhere."""
    page = (runs.directory / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert 'src="http' not in page


def test_servers_are_stopped(runs: Runs) -> None:
    """After the run no process has the store's directory in its command line."""
    process_list = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(runs.directory / "server") not in process_list
