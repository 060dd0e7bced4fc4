# SPDX-License-Identifier: Apache-2.0
"""Compaction by an engine: the rows are unchanged, the number of files decreases, and old snapshots and orphan files
are removed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec import structs

from limnos.rooms.sqlpp.engine.compaction import SWEEP_EVERY_MS, sweep_plan
from limnos.rooms.sqlpp.language.jobs import CompactionOptions
from tests.rooms.sqlpp.engine.conftest import Do
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

TYPE = "{ id: bigint, v: bigint? }"
OLD_S = 86_400


def compact(
    asking: EngineDataverse, do: Do, name: str, *, expires: bool = False, debris: bool = False, checked: bool = True
) -> dict[str, int]:
    """Compact a dataset; returns the engine's report."""
    now_ms = time.time_ns() // 1_000_000
    expirable = tuple(each.manifest_list for each in asking.table(name).snapshots()) if checked else ()
    options = CompactionOptions(
        target_bytes=64 << 20,
        expires_before_ms=now_ms if expires else 0,
        retained_after_ms=0,
        states_max=100,
        debris_before_ms=now_ms - OLD_S * 500 if debris else None,
        expirable=expirable,
    )
    job = structs.replace(asking.job("1", target=name), kind="compact", plan=b"", compaction=options)
    (report,) = do(asking.run(job))
    assert isinstance(report, dict)
    return report


def counted(asking: EngineDataverse, name: str) -> tuple[int, int]:
    """Return the numbers of data files and delete files of a dataset."""
    snapshot = asking.table(name).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return int(snapshot.summary["total-data-files"] or 0), int(snapshot.summary["total-delete-files"] or 0)


def directory_of(asking: EngineDataverse, name: str) -> Path:
    """Return the directory of a dataset's files."""
    return Path(urlsplit(asking.table(name).location()).path)


def test_compaction_keeps_rows_in_one_file(asking: EngineDataverse, do: Do) -> None:
    """After single INSERTs, UPSERTs and DELETEs a compaction leaves every row once, in one file without deletes; a
    second one has nothing to do.
    """
    asking.make("many", TYPE, "id")
    for number in range(4):
        do(asking.insert("many", f"{{'id': {number}, 'v': {number}, 'open': [{number}]}}"))
    do(asking.upsert("many", "[{'id': 1, 'v': 10}, {'id': 7}]"))
    do(asking.delete("many", "t.id = 2"))
    text = "select value m from many as m order by m.id"
    before, files = do(asking.query(text)), counted(asking, "many")

    report = compact(asking, do, "many")
    again = compact(asking, do, "many")

    assert len(before) == 4
    assert files[0] > 3
    assert files[1] > 0
    assert report["rewritten"] == files[0]
    assert counted(asking, "many") == (1, 0)
    assert do(asking.query(text)) == before
    assert again["rewritten"] == 0
    do(asking.insert("many", "{'id': 2, 'v': 22}"))
    assert do(asking.query("select value m.v from many as m where m.id = 2")) == [22]


def test_unchecked_snapshots_do_not_expire(asking: EngineDataverse, do: Do) -> None:
    """No snapshot expires while the server has not checked the files of all old ones, since their files are deleted."""
    asking.make("unchecked", TYPE, "id")
    for number in range(3):
        do(asking.insert("unchecked", f"{{'id': {number}}}"))

    compact(asking, do, "unchecked", expires=True, checked=False)

    assert len(list(asking.table("unchecked").snapshots())) == 4
    assert do(asking.query("select value count(*) from unchecked as u")) == [3]


def test_old_snapshots_and_orphan_files_are_removed(asking: EngineDataverse, do: Do) -> None:
    """Old snapshots and their files are removed, and so is an old orphan file; a recent orphan and all files in use
    remain.
    """
    asking.make("old", TYPE, "id")
    for number in range(3):
        do(asking.insert("old", f"{{'id': {number}}}"))
    data = directory_of(asking, "old") / "data"
    left, fresh = data / "left.parquet", data / "fresh.parquet"
    for each in (left, fresh):
        each.write_bytes(b"what a killed statement left")
    then = time.time() - OLD_S
    for each in directory_of(asking, "old").rglob("*"):
        if each != fresh:
            os.utime(each, (then, then))  # the dataset's own files as well: not their age protects them

    report = compact(asking, do, "old", expires=True, debris=True)

    assert report["debris"] == 1
    assert (left.exists(), fresh.exists()) == (False, True)
    assert len(asking.table("old").snapshots()) == 1
    assert len([each for each in data.iterdir() if each.suffix == ".parquet"]) == 2
    assert do(asking.query("select value o.id from old as o order by o.id")) == [0, 1, 2]
    do(asking.insert("old", "{'id': 3}"))
    assert len(asking.table("old").scan().to_arrow()) == 4
    left.write_bytes(b"what another one left")
    os.utime(left, (then, then))
    assert compact(asking, do, "old", debris=True) == {"rewritten": 2, "written": 1, "debris": 0}  # not again so soon
    assert len(asking.table("old").snapshots()) == 3


@pytest.mark.parametrize(
    "marks,before_ms,expected",
    [
        ([], 100, (100, "100")),
        ([], None, (None, None)),
        (["100"], None, (None, "100")),
        (["100", "90"], 100 + SWEEP_EVERY_MS - 1, (None, "100")),
        (["90", "100"], 100 + SWEEP_EVERY_MS, (100 + SWEEP_EVERY_MS, str(100 + SWEEP_EVERY_MS))),
        (["500"], 100, (None, "500")),
        (["x", "-1", "²"], 100, (100, "100")),
    ],
)
def test_files_are_swept_once_a_day(
    marks: list[str], before_ms: int | None, expected: tuple[int | None, str | None]
) -> None:
    """Orphan files are removed once a day, according to the snapshots' summaries; an invalid time there is ignored."""
    assert sweep_plan(marks, before_ms) == expected


def test_compacting_an_empty_dataset_does_nothing(asking: EngineDataverse, do: Do) -> None:
    """Compacting a dataset without rows does nothing."""
    asking.make("empty", TYPE, "id")

    assert compact(asking, do, "empty", expires=True, debris=True) == {"rewritten": 0, "written": 0, "debris": 0}
