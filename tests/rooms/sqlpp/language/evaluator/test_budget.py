# SPDX-License-Identifier: Apache-2.0
"""Budgets: a meter is charged for each piece of work before it is done."""

from __future__ import annotations

import tracemalloc

import pytest

from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget, MeteredBudget
from tests.rooms.sqlpp.language.evaluation import NameWorld, ask

UNITS = 20_000
ROWS = NameWorld({("Default",): {"t": [{"a": at, "b": "x" * 50} for at in range(200)]}})
ATTACKS = (
    "select value array_sort(array_flatten(array_repeat(array_repeat(1,3000),3000),1))",
    f"select value [{', '.join(['array_length(array_sort(array_range(0,999999)))'] * 30)}]",
    "select value array_repeat(repeat('x',16000000),50)",
    "select value repeat('x', 16000000)",
    "select value regexp_contains('a', 'a')",
    (
        "with a as [1,1,1,1,1,1,1,1], b as [a,a,a,a,a,a,a,a], c as [b,b,b,b,b,b,b,b], d as [c,c,c,c,c,c,c,c] select"
        " value [d,d,d,d,d,d,d,d] = []"
    ),
    "select value x from range(1,2000) x, range(1,2000) y",
    "select value [" + ",".join(["x"] * 300) + "] from range(1,900) x",
    "select value x from range(1,1500) x order by repeat('x', x)",
    "select distinct value [x, repeat('y', 900)] from range(1,500) x",
    "select x, count(*) from range(1,1500) x group by repeat('z', x) as x",
    "select sum(x) over (order by x range between 3 preceding and current row) from range(1,400) x",
    "select lag(x, 400) ignore nulls over (order by x) from (select value null from range(1,400) y) x",
    "select value some x in range(1,3000), y in range(1,3000) satisfies x = -y",
    "select value (select value y from range(1,99) y where y = x) from range(1,900) x",
    "select value repeat('a', 300) like repeat('%a', 300)",
    "select value case repeat('a', 500) when repeat('b', 500) then 1 end from range(1, 900) x",
    "select value (from range(1,200) y group by 1 as k group as g select value g) from range(1,60) x",
    "select a.*, b.* from t a, t b",
    "select value x[0:199] from (select value range(1,200)) x, range(1,900) y",
    "select value sum(distinct y.a) from t y group by cube(y.a, y.b)",
)


@pytest.mark.parametrize("text", ATTACKS)
def test_expensive_query_ends_when_the_budget_is_spent(text: str) -> None:
    """Expensive functions, operators, rows, keys, windows, subqueries and slices end with BudgetSpent when the units
    are used up.
    """
    with pytest.raises(BudgetSpent):
        ask(text, ROWS, budget=MeteredBudget(UNITS, slots=8))


@pytest.mark.parametrize("text", ATTACKS)
def test_large_value_is_charged_before_it_is_created(text: str) -> None:
    """Memory for a large value is charged before the value is created."""
    tracemalloc.start()
    try:
        with pytest.raises(BudgetSpent):
            ask(text, ROWS, budget=MeteredBudget(UNITS, slots=8))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 6_000_000


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select value 1", [1]),
        ("select value t.a from t where t.a < 3 order by t.a desc", [2, 1, 0]),
        ("select value count(*) from t", [200]),
        ("select value [upper('a'), 'a' || 'b', 1 in [1, 2], 2 between 1 and 3]", [("A", "ab", True, True)]),
        ("select value case x when 1 then 'one' else 'more' end from range(1, 2) x", ["one", "more"]),
        ("select value array_sort([3, 1, 2])", [(1, 2, 3)]),
        ("select g.k, count(*) as n from [{'k': 1}, {'k': 1}] g group by g.k", [{"k": 1, "n": 2}]),
    ],
)
def test_cheap_queries_return_the_same_results_with_a_meter(text: str, expected: list[object]) -> None:
    """Cheap queries give the same results as without a meter."""
    assert ask(text, ROWS, budget=MeteredBudget(UNITS, slots=8)) == ask(text, ROWS, budget=Budget()) == expected


def test_formatting_a_result_is_charged() -> None:
    """Formatting a result is charged, because a cheap result may have a long text."""
    budget = MeteredBudget(UNITS)
    once = (1,) * 100

    with pytest.raises(BudgetSpent):
        budget.charge_json((once,) * 100)


def test_function_without_a_declared_cost_is_not_called() -> None:
    """A function without a declared cost is not called, because its duration is unknown."""
    with pytest.raises(BudgetSpent):
        MeteredBudget(UNITS).charge(None, ())


def test_binding_stops_at_the_maximal_number_of_expressions() -> None:
    """Functions are inlined: 20 functions that double, in 800 characters, are a million expressions. Binding stops at
    the maximum.
    """
    text = "declare function f0(x) {x+x};" + "".join(
        f"declare function f{at}(x) {{f{at - 1}(x)+f{at - 1}(x)}};" for at in range(1, 20)
    )

    with pytest.raises(BudgetSpent):
        ask(f"{text} f19(1)", nodes_max=2000)
    assert ask("[1, 2, 3]", nodes_max=4) == [(1, 2, 3)]
    with pytest.raises(BudgetSpent):
        ask("[1, 2, 3]", nodes_max=3)


def test_too_many_expressions_are_refused_in_a_worker_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query with more expressions than the language allows is refused in a worker process, too."""
    monkeypatch.setattr("limnos.rooms.sqlpp.language.binder.expressions.NODES_MAX", 3)

    with pytest.raises(SqlppError, match="has more than 3 expressions"):
        ask("[1, 2, 3]")
