"""The whole demo, as a user runs it, twice in a row."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    """The first run loads all but a day, merges that day, and finds the source's counts."""
    assert "336,000 rows" in runs.first
    assert "776 new, 216 corrected, 336,776 rows now" in runs.first
    assert "equal" in runs.first
    assert "kept" not in runs.first.partition("Tables")[0]


def test_second_run_says_what_it_kept(runs: Runs) -> None:
    """The second run keeps every table, has nothing to merge, and ends with the same counts."""
    steps = runs.second.partition("Tables")[0]
    assert steps.count("kept from before") == 6
    assert steps.count("nothing new, 336,776 rows kept") == 2
    assert "equal" in steps


def test_access_is_shown_at_both_servers(runs: Runs) -> None:
    """At each of two processes ana is refused with the privilege's name, allowed, and refused again."""
    report = runs.second.partition("Tables")[2]
    assert report.count("│ refused") == 4
    assert report.count("│ allowed, 776 flights") == 2
    assert "needs SELECT_TABLE" in report


def test_page_has_two_plots_and_loads_nothing(runs: Runs) -> None:
    """The HTML page carries both plots inside and refers to nothing outside."""
    page = (runs.directory / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert 'src="http' not in page


def test_servers_are_stopped(runs: Runs) -> None:
    """After the run, no process holds the store's directory in its command line."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(runs.directory / "server") not in found
