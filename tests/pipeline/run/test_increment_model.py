# SPDX-License-Identifier: Apache-2.0
"""Increments, histories and whole reads compared with a plain computation, for thousands of keys at once."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline import load
from limnos.pipeline.run.options import RunOptions
from tests.pipeline.run.increment_model import CHANGES, EVENTS, EXPORT, Computation, Row, Stories

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STORIES = int(os.environ.get("LIMNOS_TEST_INCREMENTS", "700"))
"""The number of stories of keys: one for each key and table."""
SEED = os.environ.get("LIMNOS_TEST_INCREMENTS_SEED", "increments")
TABLES = ("added", "merged", "exact", "states", "closed", "timed", "back")
RULE = "expect: [{row: v >= 0, action: quarantine}]"
PIPELINE = f"""
pipeline: increments
catalog: main
sources:
  d: {{files: "d/*.csv", options: {{header: true}}, schema: "id int, v int, w int, at timestamp"}}
  e: {{files: "e/*.csv", options: {{header: true}}, schema: "id int, v int, w int, at timestamp"}}
  s: {{files: s.csv, options: {{header: true}}, schema: "id int, v int, w int, at timestamp"}}
steps:
  @.added: {{load: d, incremental: true, write: append}}
  @.merged: {{load: d, incremental: true, write: {{mode: merge, keys: id, delete_when: v = 9}}}}
  @.exact: {{load: s, write: {{mode: merge, keys: id, delete_missing: true}}, {RULE}}}
  @.states: {{load: d, incremental: true, write: {{mode: history, keys: id, tracked: v}}}}
  @.closed: {{load: s, write: {{mode: history, keys: id, delete_missing: true}}, {RULE}}}
  @.timed: {{sql: SELECT * FROM e, incremental: true, write: {{mode: history, keys: id, as_of: at, tracked: v}}}}
  @.back: {{load: s, write: {{mode: history, keys: id, as_of: at, delete_missing: true}}, {RULE}}}
"""


def test_increments_equal_a_plain_computation(
    spark: SparkSession, place: tuple[str, str], admin: Client, tmp_path: Path
) -> None:
    """After each of five runs, and after a further whole read, every table has the rows of the plain computation: for
    new, equal, late, missing, returning, deleted and re-exported rows, and rows that rules take out.
    """
    stories = Stories(-(-STORIES // len(TABLES)), seed=SEED)
    computation = Computation()
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("@", place[1]))
    for number, turn in enumerate(stories.turns):
        for name, files in ((CHANGES, turn.changes), (EVENTS, turn.events)):
            for file, rows in files.items():
                write(tmp_path / name / f"{file}.csv", rows, at=2 * number + (file < number))
        write(tmp_path / f"{EXPORT}.csv", turn.export, at=number)
        computation.turn(turn, now=run(spark, admin, tmp_path))
        require_equal(spark, place, computation, where=f"seed {SEED!r}, run {number}")
    run(spark, admin, tmp_path, full=True)

    require_equal(spark, place, computation, where=f"seed {SEED!r}, the whole read")
    print(f"\nincrements: {stories.keys * len(TABLES)} stories, seed {SEED!r}: {dict(stories.counts)}")
    assert min(stories.counts.values()) > 0


def run(spark: SparkSession, admin: Client, directory: Path, *, full: bool = False) -> dt.datetime:
    """Run the pipeline and return its time, as Spark gives it back."""
    ended = load(directory / "p.yaml").run(spark, options=RunOptions(full=full)).require()
    started = admin.runs.load(ended.run).started_at
    assert started is not None
    return dt.datetime.fromisoformat(started).astimezone(dt.UTC).replace(tzinfo=None)


def write(path: Path, rows: list[Row], *, at: int) -> None:
    """Write a file with its time of change."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("id,v,w,at\n" + "".join(f"{key},{v},{w},{when}\n" for key, v, w, when in rows))
    os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))


def require_equal(spark: SparkSession, place: tuple[str, str], computation: Computation, *, where: str) -> None:
    """Compare all tables; a difference is reported with the rows of its first key."""
    for name, expected in computation.tables().items():
        actual = [tuple(row) for row in spark.sql(f"SELECT * FROM main.`{place[1]}`.{name}").collect()]
        differing = sorted(set(actual) ^ set(expected), key=repr)
        key = differing[0][0] if differing else None

        assert [row for row in sorted(actual, key=repr) if row[0] == key] == [
            row for row in sorted(expected, key=repr) if row[0] == key
        ], f"{where}: key {key} of {name}"
        assert len(actual) == len(expected), f"{where}: {name}"
