# SPDX-License-Identifier: Apache-2.0
"""Queries in SQL compatibility mode: each rewriting by its results, and the refused ones."""

from __future__ import annotations

import msgspec
import pytest

from limnos.rooms.sqlpp.language import EmptyNameResolver, bind, parse_body, results
from limnos.rooms.sqlpp.language.binding import PackedBinding, QueryBinding, ResolvedNames, UnparsedQuery
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition
from limnos.rooms.sqlpp.language.sql_compat import as_sql
from limnos.rooms.sqlpp.language.values.model import Value

TWO = "with T as (select r x, -r y from range(1, 2) r)"


def rows(text: str) -> list[Value]:
    """The results of a query."""
    return list(results(bind(as_sql(parse_body(text)), EmptyNameResolver()), lambda *_: ()))


@pytest.mark.parametrize(
    "text,expected",
    [
        ("select value r from range(0, 3) r where r in (2)", [2]),
        ("select value r from range(0, 3) r where r not in 2", [0, 1, 3]),
        ("select value r from range(0, 3) r where r in [1, 2]", [1, 2]),
        ("select value r from range(1, 4) r where r in (select s from [2, 9] s)", [2]),
        ("select value r from range(1, 4) r where (r, r + 1) in (select s, s + 1 from [2, 9] s)", [2]),
        ("select value r from range(1, 4) r where r in (select value s from [2, 9] s)", [2]),
        ("select (select max(s) from range(0, r) s) m from range(1, 2) r", [{"m": 1}, {"m": 2}]),
        ("select value (select s from [1, 2] s) is missing", [True]),
        ("select value (select s from [] s) is missing", [True]),
        ("select value (select value s from [1] s)", [(1,)]),
        (
            "select value r from range(1, 3) r where r = (select s as t from range(0, r) s order by t desc limit 1)",
            [1, 2, 3],
        ),
        ("select value r from range(0, 1) r where (select s - 1, s from [2] s) = (r, r + 1)", [1]),
        ("select value r from range(1, 3) r where exists (select s, s t from range(2, r) s)", [2, 3]),
        ("select value some a in (select b from [1] b) satisfies a.b = 1", [True]),
        (f"{TWO} select * from T t order by x", [{"x": 1, "y": -1}, {"x": 2, "y": -2}]),
        (f"{TWO} select x from T t union all select y from T t order by x", [{"x": -2}, {"x": -1}, {"x": 1}, {"x": 2}]),
        (
            "select a.x, b.y from [{'x': 1}, {'x': 2}] a left join [{'x': 1, 'y': 5}] b on a.x = b.x",
            [{"x": 1, "y": 5}, {"x": 2, "y": None}],
        ),
        ("select b from [{'y': [missing, 2]}] a left unnest a.y b", [{}, {"b": 2}]),
        (
            "with b as [{'x': 1}] select b.x from [1, 2] a left join b on a = b.x left join b c on c.x = b.x",
            [{"x": 1}, {"x": None}],
        ),
        ("select value r from range(1, 3) r where {{r, r + 1}} in (select s, s + 1 from [2] s)", [2]),
        ("select a.x, b from [{'x': 1}] a left unnest a.none b", [{"x": 1, "b": None}]),
        (
            "select b, p from [{'y': 1}, {'x': [7]}] a left unnest a.x b at p",
            [{"b": None, "p": None}, {"b": 7, "p": 0}],
        ),
        (
            "select a.x, b.y from [{'x': 1}] a right join [{'y': 1}, {'y': 2}] b on a.x = b.y",
            [{"x": 1, "y": 1}, {"x": None, "y": 2}],
        ),
        (
            (
                "select a.x, c.x as z, b.y from [{'x': 1}] a join [{'x': 1}] c on a.x = c.x right join [{'y': 2}] b on"
                " c.x = b.y"
            ),
            [{"x": None, "z": None, "y": 2}],
        ),
    ],
)
def test_sql_compat_results_equal_those_of_sql(text: str, expected: list[Value]) -> None:
    """The results equal those of SQL."""
    assert rows(text) == expected


@pytest.mark.parametrize(
    "text,number,says",
    [
        ("select (select s, s from [1] s) r", 1169, "Subquery returns more than one field"),
        ("select value 1 in (select s a, s b from [1] s)", 1169, "Subquery returns more than one field"),
        ("select (select * from [1] s) r", 1169, "Unsupported projection kind"),
        ("select (select s from [1] s union all select value s from [1] s) r", 1169, "Both SELECT and SELECT VALUE"),
        ("select (select s from [1] s union all (let x = 1 select x)) r", 1169, "Unable to do subquery coercion"),
        ("select 1 a union all select value 1", 1171, "Both SELECT and SELECT VALUE are present"),
        ("select 1 a union all select 1 a, 2 b", 1171, "Unequal number of input fields"),
        ("select * from [1] a union all select * from [1] a", 1171, "Unsupported projection kind"),
        (f"{TWO} select * from T t1, T t2", 1168, "Ambiguous projection in SELECT clause"),
        (f"{TWO} select * from T t1 join T t2 on t1.x = t2.x", 1168, "Ambiguous projection in SELECT clause"),
    ],
)
def test_sql_compat_refusals_have_asterixdb_numbers(text: str, number: int, says: str) -> None:
    """Refusals have AsterixDB's numbers and messages."""
    with pytest.raises(SqlppError, match=says) as raised:
        rows(text)

    assert raised.value.number == number


def test_worker_process_parses_in_sql_compat_mode() -> None:
    """A long text is parsed in a worker process, in the same mode."""
    body = UnparsedQuery(TextPosition(1, 1), "select value (select y from [4] y)")
    packed = PackedBinding.of(
        QueryBinding(body=body, dataverse=("Default",), parameters={}, moment={}, sql_compat=True), ResolvedNames({})
    )
    binding, known = msgspec.msgpack.decode(msgspec.msgpack.encode(packed), type=PackedBinding).unpack()

    assert list(results(binding.bind(known), lambda _dataverse, _name: ())) == [4]
