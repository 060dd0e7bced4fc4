# SPDX-License-Identifier: Apache-2.0
"""Subqueries are evaluated again only if a variable that they read has changed."""

from __future__ import annotations

from limnos.rooms.sqlpp.language import bind, parse_body
from limnos.rooms.sqlpp.language.binder import BoundDataset
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.values.model import Value

BUYERS: list[Value] = [{"id": number} for number in range(20)]
SALES: list[Value] = [{"id": number, "buyer": number % 20, "level": number * number % 7 % 3} for number in range(200)]


class Names:
    """Two datasets."""

    def has_dataverse(self, _dataverse: tuple[str, ...]) -> bool:
        return True

    def resolve(self, dataverse: tuple[str, ...], name: str) -> BoundDataset | None:
        return BoundDataset(dataverse, name)

    def function(self, _dataverse: tuple[str, ...], _name: str, *, arity: int) -> None:
        del arity


def evaluate_query(text: str, *, steps: int = 1_000_000) -> list[Value]:
    """Return the results of a query that visits at most the given number of rows."""
    bound = bind(parse_body(text), Names(), dataverse=("d",))
    rows = {"buyers": BUYERS, "sales": SALES}
    return list(results(bound, lambda _, name: rows[name], budget=Budget(steps=steps)))


def test_subquery_is_evaluated_once_per_row_of_its_outer_query() -> None:
    """The subquery is evaluated once per buyer, not once per sale: fewer than 20 * 200 * 200 rows are visited."""
    levels: dict[int, set[int]] = {}
    for number in range(200):
        levels.setdefault(number % 20, set()).add(number * number % 7 % 3)
    every = set().union(*levels.values())

    buyer_ids = evaluate_query(
        "select value b.id from buyers b where not exists (select value a from sales a where a.level not in "
        "(select value s.level from sales s where s.buyer = b.id)) order by b.id",
        steps=30_000,
    )

    assert buyer_ids == [buyer for buyer in range(20) if levels[buyer] == every]


def test_repeated_lookups_in_a_dataset_use_equalities() -> None:
    """Objects are found by equalities with outer variables: fewer than 20 * 200 * 200 rows are visited."""
    every = {one["level"] for one in SALES if isinstance(one, dict)}
    query = """select value b.id from buyers b where not exists (select * from sales s1 where not exists
        (select * from sales s2 where s2.buyer = b.id and s1.level = s2.level)) order by b.id"""

    assert evaluate_query(query, steps=60_000) == [
        number
        for number in range(20)
        if {one["level"] for one in SALES if isinstance(one, dict) and one["buyer"] == number} == every
    ]


def test_changed_outer_values_cause_a_new_evaluation() -> None:
    """Changed values of sources, LET, groups and quantifiers cause a new evaluation, also when they return to an
    earlier value.
    """
    assert evaluate_query("select value (select value x + y from [1] as x) from [1, 2, 1, 1] as y") == [
        (2,),
        (3,),
        (2,),
        (2,),
    ]
    assert evaluate_query("select value (select value z from [0] as x) from [1, 2, 1] as y let z = y * 10") == [
        (10,),
        (20,),
        (10,),
    ]
    assert evaluate_query(
        "from [1, 1, 2] as y group by y as k group as g select value (select value v.y from g as v)"
    ) == [(1, 1), (2,)]
    assert evaluate_query("every y in [1, 2] satisfies (select value y from [0] as x)[0] = y") == [True]
    assert evaluate_query("select value (let z = y select value z from [0] as x) from [3, 4] as y") == [(3,), (4,)]


def test_random_subqueries_are_evaluated_each_time() -> None:
    """Subqueries with random values are evaluated each time."""
    random_values = evaluate_query("select value (select value random() from [1] as x)[0] from range(1, 5) as y")

    assert len(set(random_values)) == 5
