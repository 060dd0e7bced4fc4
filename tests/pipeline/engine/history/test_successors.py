# SPDX-License-Identifier: Apache-2.0
"""Events that follow the rows of their key: the changes equal those of the key's whole timeline."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from limnos.pipeline.declaration import WriteDeclaration, WriteMode
from limnos.pipeline.engine.history.columns import ACTION, RANK, HistoryColumns, columns_of
from limnos.pipeline.engine.history.successors import are_comparable, changes_of, successors
from limnos.pipeline.engine.history.timelines import differences, intervals, timeline_events
from tests.pipeline.engine.steps import step_of
from tests.pipeline.engine.write_models import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KEYS = 3_000
TABLE = "id int, v string, m map<string, int>, note int, at timestamp, valid_from timestamp, valid_to timestamp"
EVENT = "id int, v string, m map<string, int>, note int, at timestamp, _limnos_at timestamp, _limnos_end boolean"


@pytest.mark.parametrize("as_of", ["at", None])
def test_changes_equal_those_of_whole_timelines(here: SparkSession, as_of: str | None) -> None:
    """For random keys, an event that follows its key's rows has the changes of the whole timeline. One that
    changes nothing is left out, and every kind of event occurs.
    """
    chance = random.Random(f"successors {as_of}")
    shape = history(here, as_of)
    states = [
        event(key, chance, at=at) for key in range(KEYS) for at in chance.sample(range(1, 8), chance.randint(0, 3))
    ]
    rows = intervals(here.createDataFrame(states, EVENT).withColumn(RANK, f.lit(2)), shape).cache()
    events = here.createDataFrame([event(key, chance, at=chance.randint(1, 12)) for key in range(KEYS)], EVENT).cache()

    pairs = successors(events, rows, shape=shape).cache()

    actions = [(row["id"], row[ACTION]) for row in pairs.select("id", ACTION).collect()]
    undecided = {key for key, action in actions if action is None}
    others = ~f.col("id").isin(undecided)
    timelines = differences(rows, intervals(timeline_events(rows, events, shape=shape), shape), shape=shape)
    assert rows_by_key(changes_of(pairs.where(others), shape)) == rows_by_key(timelines.where(others))
    counts = Counter(action for _, action in actions)
    assert set(counts) == {None, "begin", "end", "update", "replace"}
    assert min(counts.values()) > KEYS // 100


def test_events_without_a_row_of_their_own_are_undecided(here: SparkSession) -> None:
    """Timelines are computed for a key with two current rows, which an editor of the table can make, for a key with two
    events, for another state at the time of a row's newest event, and for events without key or time.
    """
    shape = history(here, "at")
    row = (1, "a", None, 1, instant(1), instant(1), None)
    confirmed = (5, "a", None, 1, instant(5), instant(1), None)
    current = [row, (*row[:5], instant(2), None), confirmed]
    rows = here.createDataFrame(current, TABLE).withColumn("is_current", f.lit(True))
    facts = [(1, instant(5)), (2, instant(5)), (2, instant(6)), (3, None), (None, instant(5)), (4, instant(5))]
    facts.append((5, instant(5)))
    events = here.createDataFrame([(key, "b", None, 1, at, at, False) for key, at in facts], EVENT)

    pairs = successors(events, rows, shape=shape)

    undecided = sorted((row["id"] or 0) for row in pairs.where(f.col(ACTION).isNull()).collect())
    assert undecided == [0, 1, 1, 2, 2, 3, 5]
    assert [(row["id"], row[ACTION]) for row in pairs.where(f.col(ACTION).isNotNull()).collect()] == [(4, "begin")]


def test_values_without_comparison_need_timelines(here: SparkSession) -> None:
    """A map can be compared by its entries; a list of maps cannot, so its history has no direct changes."""
    assert are_comparable(history(here, "at"))
    assert not are_comparable(history(here, "at", more=", deep array<map<string, int>>"))


def history(here: SparkSession, as_of: str | None, *, more: str = "") -> HistoryColumns:
    """Return the columns of a history that tracks `v` and `m`."""
    schema = StructType.fromDDL(f"{TABLE}, is_current boolean{more}")
    write = WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), as_of=as_of, tracked=("v", "m"))
    return columns_of(step_of(("main", "t"), write), schema)


def event(key: int, chance: random.Random, *, at: int) -> tuple[object, ...]:
    """Return a random event of a key: one in six ends its validity."""
    values = (chance.choice(["a", "b", None]), chance.choice([None, {"x": 1, "y": 2}, {"x": 1}]), chance.randint(1, 2))
    return (key, *values, instant(at), instant(at), chance.random() < 1 / 6)


def rows_by_key(frame: DataFrame) -> dict[int, list[str]]:
    """Return the rows of each key as texts, sorted, whose columns and map entries are in order of their names."""
    frame = frame.withColumn("m", f.array_sort(f.map_entries("m"))).select(*sorted(frame.columns))
    texts: dict[int, list[str]] = {}
    for row in frame.collect():
        texts.setdefault(row["id"], []).append(repr(row))
    return {key: sorted(each) for key, each in texts.items()}
