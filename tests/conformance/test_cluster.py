# SPDX-License-Identifier: Apache-2.0
"""Two minutes of four kinds of work on one cluster, as `conformance/run cluster` has them for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cluster.__main__ import run
from conformance.cluster.kinds import ROWS, total_of
from conformance.cluster.watches import TokenSearch

TOKEN = "lim_7_abcdefghijklmnopqrst"


def test_search_finds_a_token_in_texts_and_files(tmp_path: Path) -> None:
    """A token in a text or a file is a fault that names the place and not the token."""
    search = TokenSearch(own_pages=(), application_pages=())
    (tmp_path / "stderr").write_text(f"Authorization: Bearer {TOKEN}")
    (tmp_path / "stdout").write_text("lim_7")
    search.read("limnos", place="pages", where="a page")
    search.read_files(tmp_path, place="logs")

    assert search.faults == {"a token in stderr"}
    assert search.places == {"pages": 1, "logs": 2}


def test_plain_totals_differ_by_day() -> None:
    """A day's row has the number of its odd ids, and a sum of its own."""
    first, second = total_of(1), total_of(2)

    assert (first[:2], second[:2]) == ((1, ROWS // 2), (2, ROWS // 2))
    assert first[2] != second[2]


@pytest.mark.heavy
@pytest.mark.spark
# PySpark leaves the closing of its sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.room("sqlpp")
@pytest.mark.room("maintenance")
@pytest.mark.room("exchange")
def test_four_kinds_of_work_share_a_cluster(tmp_path: Path) -> None:
    """Runs, statements, maintenance and reads are right beside two killed workers, each kind works again after the last
    restart, waits are reported, and no token is visible.
    """
    lines: list[str] = []
    faults = run(tmp_path, seconds=120, connect=False, say=lines.append)

    assert faults == [], "\n".join(lines)
