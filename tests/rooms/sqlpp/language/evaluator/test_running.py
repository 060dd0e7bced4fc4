# SPDX-License-Identifier: Apache-2.0
"""Aggregates over frames: computed incrementally, with the values of an aggregate over the whole frame."""

from __future__ import annotations

import random

import pytest

from limnos.rooms.sqlpp.language.evaluator import Budget
from limnos.rooms.sqlpp.language.functions import table
from tests.rooms.sqlpp.language.evaluation import ask

VALUES = ("null", "missing", "1", "2", "-3", "1.5", "0.1", "smallint('7')", "float('2.5')", "'a'", "'b'", "[1]", "true")
FRAMES = (
    "",
    "rows between unbounded preceding and current row",
    "rows between 2 preceding and 1 following",
    "rows between 3 preceding and 2 preceding",
    "rows between 1 following and 3 following",
    "rows between current row and unbounded following",
    "rows between a preceding and a following",
    "range between 2 preceding and 2 following",
    "groups between 1 preceding and 1 following",
)
FUNCTIONS = ("sum(v)", "count(v)", "count(*)", "min(v)", "max(v)", "sum(v) filter (where a < 3)", "avg(v)", "countn(v)")


def _both(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    """Return the values and warnings of a query, computed incrementally and completely."""
    outcomes = []
    for anew in (False, True):
        if anew:
            for name, entry in list(table.FUNCTIONS.items()):
                if entry.fold is not None:
                    monkeypatch.setitem(table.FUNCTIONS, name, _without_fold(entry))
        budget = Budget()
        outcomes.append((repr(list(ask(text, budget=budget))), sorted(budget.warnings)))
    return outcomes[0], outcomes[1]


def _without_fold(entry: table.Function) -> table.Function:
    return table.Function(**{**{name: getattr(entry, name) for name in entry.__struct_fields__}, "fold": None})


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "kinds", [VALUES, VALUES[:5], VALUES[:9], VALUES[9:11]], ids=["all", "integers", "numbers", "strings"]
)
def test_incremental_aggregate_equals_that_of_the_whole_frame(
    frame: str, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each kind of frame and value both computations give the same values, and the same warnings of ignored
    values.
    """
    chance = random.Random(f"{frame}/{kinds}")
    for _ in range(6):
        rows = ", ".join(f"{{'n': {at}, 'a': {chance.randint(0, 4)}, 'v': {chance.choice(kinds)}}}" for at in range(14))
        calls = ", ".join(f"{call} over (order by n {frame}) as c{at}" for at, call in enumerate(FUNCTIONS))
        with monkeypatch.context() as patched:
            continued, anew = _both(f"select n, {calls} from [{rows}] as r order by n", patched)

        assert continued == anew


def test_a_running_total_visits_each_value_once() -> None:
    """For ten thousand rows, a growing frame and a moving frame visit each value once."""
    visited = 0

    class CountingBudget(Budget):
        def work(self, values: int) -> None:
            nonlocal visited
            visited += values

    for bounds in ("unbounded preceding and current row", "500 preceding and 500 following"):
        visited = 0
        text = f"select value sum(x) over (order by x rows between {bounds}) from range(1, 10000) x"
        sums = list(ask(text, budget=CountingBudget()))

        assert visited == 10_000
        assert sums[-1] == (50_005_000 if "unbounded" in bounds else sum(range(9_500, 10_001)))


def test_time_limit_applies_within_a_frame() -> None:
    """A moving frame of doubles is computed completely for each row; the time limit applies within it."""
    stop_calls = 0

    def stop() -> None:
        nonlocal stop_calls
        stop_calls += 1

    text = (
        "select value sum(x + 0.5) over (order by x rows between 900 preceding and current row) from range(1, 1800) x"
    )
    ask(text, budget=Budget(stop=stop))

    assert stop_calls > 300


def test_overflow_within_a_frame_is_an_error() -> None:
    """A sum of a frame that overflows a bigint is an error, also for a moving frame."""
    text = (
        "select value sum(x) over (order by i rows between 1 preceding and current row)"
        " from [{'i': 1, 'x': 1}, {'i': 2, 'x': 9223372036854775000}, {'i': 3, 'x': 9223372036854775000}] r"
    )
    with pytest.raises(Exception, match="agg-sum"):
        ask(text)
