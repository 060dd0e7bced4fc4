# SPDX-License-Identifier: Apache-2.0
"""Evaluated queries, by hand-written examples."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget
from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import NameWorld, ask, value, written

EMPLOYEES = [
    {"id": 1, "name": "Ann", "dept": "x", "pay": 10, "langs": ["en", "de"]},
    {"id": 2, "name": "Bob", "dept": "x", "pay": 20, "langs": []},
    {"id": 3, "name": "Cid", "dept": "y", "pay": 30, "langs": ["fr"]},
    {"id": 4, "name": "Dee", "dept": None, "pay": 40},
    {"id": 5, "name": "Eve", "pay": None, "langs": ("en",)},
]
DEPARTMENTS = [{"code": "x", "boss": 2}, {"code": "y", "boss": 9}, {"code": "z", "boss": 1}]


def _frozen(value: object) -> Value:
    if isinstance(value, dict):
        return {name: _frozen(field_value) for name, field_value in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value  # type: ignore[return-value]


WORLD = NameWorld(
    {("Default",): {"emp": [_frozen(one) for one in EMPLOYEES], "dept": [_frozen(one) for one in DEPARTMENTS]}}
)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("SELECT VALUE e.id FROM emp e WHERE e.pay > 15 ORDER BY e.id", [2, 3, 4]),
        ("FROM emp e WHERE e.dept = 'x' SELECT VALUE e.name", ["Ann", "Bob"]),
        ("SELECT VALUE id FROM emp WHERE dept IS NULL", [4]),
        ("SELECT VALUE id FROM emp WHERE pay != 'x' ORDER BY id", [1, 2, 3, 4]),
        ("SELECT VALUE [3 IN [1, '3'], 3 NOT IN [1, '3'], 3 = '3', 3 < '3']", [(False, True, False, None)]),
        ("SELECT VALUE [x, p, q] FROM range(5, 6) x AT p, range(7, 7) y AT q", [(5, 0, 0), (6, 1, 0)]),
        ("SELECT VALUE p FROM (SELECT VALUE r FROM range(5, 6) r) x AT p", [1, 2]),
        ("SELECT VALUE id FROM emp WHERE dept IS MISSING", [5]),
        ("SELECT VALUE id FROM emp WHERE dept IS UNKNOWN ORDER BY id", [4, 5]),
        ("SELECT VALUE id FROM emp WHERE NOT (dept = 'x')", [3]),
        ("SELECT e.id, e.langs[0] AS first FROM emp e WHERE e.id IN [1, 2]", [{"id": 1, "first": "en"}, {"id": 2}]),
        ("SELECT id + 1, name FROM emp WHERE id = 1", [{"$1": 2, "name": "Ann"}]),
        ("SELECT id + 1, id + 2 FROM emp WHERE id = 1", [{"$1": 2, "$2": 3}]),
        ("SELECT * FROM [{'a': 1}] AS t", [{"t": {"a": 1}}]),
        ("SELECT t.*, 2 AS b FROM [{'a': 1}] AS t", [{"a": 1, "b": 2}]),
        ("SELECT * FROM [1] AS a, [2] AS b", [{"a": 1, "b": 2}]),
        ("SELECT t.* EXCLUDE b, c.d FROM [{'a': 1, 'b': 2, 'c': {'d': 3, 'e': 4}}] AS t", [{"a": 1, "c": {"e": 4}}]),
        (
            "SELECT * EXCLUDE b, t.c.d FROM [{'a': 1, 'b': 2, 'c': {'d': 3, 'e': 4}}] AS t",
            [{"t": {"a": 1, "c": {"e": 4}}}],
        ),
        ("SELECT * EXCLUDE b, t.a FROM [{'a': 1, 'b': 2}] AS t, [{'b': 3}] AS u", [{"t": {"b": 2}, "u": {"b": 3}}]),
        ("SELECT VALUE [x, p] FROM ['a', 'b'] AS x AT p", [("a", 1), ("b", 2)]),
        ("SELECT VALUE l FROM emp e, e.langs l WHERE e.id = 1", ["en", "de"]),
        (
            "SELECT VALUE [e.id, l] FROM emp e UNNEST e.langs AS l ORDER BY e.id, l",
            [(1, "de"), (1, "en"), (3, "fr"), (5, "en")],
        ),
        (
            "SELECT e.id, l FROM emp e LEFT UNNEST e.langs AS l WHERE e.id IN [2, 3] ORDER BY e.id",
            [{"id": 2}, {"id": 3, "l": "fr"}],
        ),
        (
            "SELECT e.name, d.boss FROM emp e JOIN dept d ON e.dept = d.code ORDER BY e.id",
            [{"name": "Ann", "boss": 2}, {"name": "Bob", "boss": 2}, {"name": "Cid", "boss": 9}],
        ),
        (
            "SELECT e.id, d.boss FROM emp e LEFT JOIN dept d ON e.dept = d.code ORDER BY e.id",
            [{"id": 1, "boss": 2}, {"id": 2, "boss": 2}, {"id": 3, "boss": 9}, {"id": 4}, {"id": 5}],
        ),
        (
            "SELECT e.id, d.code FROM emp e RIGHT JOIN dept d ON e.dept = d.code ORDER BY d.code, e.id",
            [{"id": 1, "code": "x"}, {"id": 2, "code": "x"}, {"id": 3, "code": "y"}, {"code": "z"}],
        ),
        ("SELECT VALUE [a, b] FROM [1, 2] a CROSS JOIN ['x'] b", [(1, "x"), (2, "x")]),
        ("SELECT VALUE y FROM [1, 2] AS x LET y = x * 10 WHERE y > 10", [20]),
        (
            "WITH big AS (SELECT VALUE e FROM emp e WHERE e.pay >= 30) SELECT VALUE b.id FROM big b ORDER BY b.id",
            [3, 4],
        ),
        ("LET a = 1, b = a + 1 SELECT VALUE [a, b]", [(1, 2)]),
        (
            "SELECT dept, COUNT(*) AS n FROM emp GROUP BY dept ORDER BY dept",
            [{"n": 1}, {"dept": None, "n": 1}, {"dept": "x", "n": 2}, {"dept": "y", "n": 1}],
        ),
        ("SELECT e.dept, SUM(e.pay) AS s FROM emp e WHERE e.dept = 'x' GROUP BY e.dept", [{"dept": "x", "s": 30}]),
        (
            "SELECT d, AVG(pay) AS a FROM emp e GROUP BY e.dept AS d HAVING COUNT(*) = 1 AND d = 'y'",
            [{"d": "y", "a": 30.0}],
        ),
        ("SELECT COUNT(*) AS n, COUNT(pay) AS p, MAX(pay) AS m FROM emp", [{"n": 5, "p": 4, "m": 40}]),
        ("SELECT COUNT(*) AS n, SUM(x) AS s FROM [] AS x", [{"n": 0, "s": None}]),
        ("SELECT VALUE COUNT(DISTINCT dept) FROM emp", [2]),
        ("SELECT SUM(pay) FILTER (WHERE id > 2) AS s FROM emp", [{"s": 70}]),
        ("SELECT VALUE array_agg(id) FROM emp", [(1, 2, 3, 4, 5)]),
        (
            (
                "SELECT d, (SELECT VALUE v.e.id FROM g AS v) AS ids FROM emp e GROUP BY e.dept AS d GROUP AS g ORDER BY"
                " d LIMIT 1 OFFSET 2"
            ),
            [{"d": "x", "ids": (1, 2)}],
        ),
        (
            "SELECT VALUE g FROM [1, 2] AS x GROUP BY x MOD 2 AS odd GROUP AS g(x AS item) ORDER BY odd",
            [({"item": 2},), ({"item": 1},)],
        ),
        ("SELECT VALUE n FROM emp e GROUP BY e.dept AS d LET n = COUNT(*) HAVING n > 1 ORDER BY d", [2]),
        (
            "SELECT k, SUM(v) AS s FROM [{'k': 'a', 'v': 1}, {'k': 'b', 'v': 2}] AS t GROUP BY ROLLUP(t.k) ORDER BY k",
            [{"k": None, "s": 3}, {"k": "a", "s": 1}, {"k": "b", "s": 2}],
        ),
        (
            "SELECT a, b, COUNT(*) AS n FROM [{'a': 1, 'b': 2}] AS t GROUP BY CUBE(t.a, t.b) ORDER BY a, b",
            [
                {"a": None, "b": None, "n": 1},
                {"a": None, "b": 2, "n": 1},
                {"a": 1, "b": None, "n": 1},
                {"a": 1, "b": 2, "n": 1},
            ],
        ),
        (
            "SELECT a, COUNT(*) AS n FROM [{'a': 1}, {'a': 2}] AS t GROUP BY GROUPING SETS ((t.a), ()) ORDER BY a",
            [{"a": None, "n": 2}, {"a": 1, "n": 1}, {"a": 2, "n": 1}],
        ),
        ("SELECT DISTINCT dept FROM emp WHERE dept IS NOT UNKNOWN ORDER BY dept DESC", [{"dept": "y"}, {"dept": "x"}]),
        ("SELECT DISTINCT VALUE x FROM [1, 1.0, 2] AS x ORDER BY x", [1, 2]),
        ("SELECT VALUE x FROM [1] AS x UNION ALL SELECT VALUE y FROM [2, 0] AS y", [1, 2, 0]),
        (
            "SELECT VALUE x FROM [{'a': 2}] AS x UNION ALL SELECT VALUE y FROM [{'a': 1}] AS y ORDER BY a",
            [{"a": 1}, {"a": 2}],
        ),
        ("(SELECT VALUE x FROM [1, 2, 3] AS x LIMIT 1)", [1]),
        ("SELECT VALUE x FROM [3, 1, 2] AS x ORDER BY x LIMIT 2", [1, 2]),
        ("SELECT VALUE x FROM [3, 1, 2] AS x ORDER BY x DESC OFFSET 1", [2, 1]),
        ("SELECT VALUE x FROM [1, 2] AS x LIMIT 0", []),
        ("SELECT VALUE x FROM [1, 2] AS x LIMIT -1", []),
        ("SELECT VALUE x FROM [null, 2, 'a', missing, true] AS x ORDER BY x", [MISSING, None, 2, "a", True]),
        ("SELECT VALUE x FROM [null, 2, 1] AS x ORDER BY x NULLS LAST", [1, 2, None]),
        ("SELECT VALUE x FROM [null, 2, 1] AS x ORDER BY x DESC NULLS FIRST", [None, 2, 1]),
        ("SELECT name AS n FROM emp WHERE id < 3 ORDER BY n DESC", [{"n": "Bob"}, {"n": "Ann"}]),
        ("SELECT VALUE CASE WHEN x > 1 THEN 'big' ELSE 'small' END FROM [1, 2] AS x", ["small", "big"]),
        ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", ["b"]),
        ("CASE 3 WHEN 1 THEN 'a' END", [None]),
        ("SOME x IN [1, 2] SATISFIES x > 1", [True]),
        ("SOME x IN [] SATISFIES x > 1", [False]),
        ("EVERY x IN [] SATISFIES x > 1", [True]),
        ("EVERY x IN [1, 2] SATISFIES x > 1", [False]),
        ("EVERY x IN [1, 2], y IN [3, 4] SATISFIES x < y", [True]),
        ("SOME AND EVERY x IN [] SATISFIES true", [False]),
        ("SOME AND EVERY x IN [1] SATISFIES x = 1", [True]),
        ("SELECT VALUE (SELECT VALUE d.boss FROM dept d WHERE d.code = e.dept)[0] FROM emp e WHERE e.id < 3", [2, 2]),
        ("SELECT VALUE e.id FROM emp e WHERE EXISTS (SELECT d FROM dept d WHERE d.boss = e.id) ORDER BY e.id", [1, 2]),
        ("SELECT VALUE e.id FROM emp e WHERE e.pay = (SELECT VALUE MAX(x.pay) FROM emp x)[0]", [4]),
        ("SELECT VALUE x FROM (SELECT VALUE y * 2 FROM [1, 2] AS y) AS x", [2, 4]),
        ("5 BETWEEN 1 AND 9", [True]),
        ("5 NOT BETWEEN 1 AND null", [None]),
        ("1 < null OR true", [True]),
        ("missing AND false", [False]),
        ("null IS DISTINCT FROM missing", [True]),
        ("-(-3)", [3]),
        ("[1, 2] = [1, 2]", [True]),
        ("SELECT VALUE 1", [1]),
        ("emp[0].name", ["Ann"]),
        ("array_count(emp)", [5]),
    ],
)
def test_queries_return_the_expected_results(text: str, expected: list[Value]) -> None:
    """The results, in their order."""
    assert ask(text, WORLD) == expected


@pytest.mark.parametrize(
    "text,expected",
    [
        ("row_number() OVER (ORDER BY x)", [1, 2, 3, 4]),
        ("rank() OVER (ORDER BY k)", [1, 1, 3, 3]),
        ("dense_rank() OVER (ORDER BY k)", [1, 1, 2, 2]),
        ("percent_rank() OVER (ORDER BY x)", [0.0, 1 / 3, 2 / 3, 1.0]),
        ("cume_dist() OVER (ORDER BY k)", [0.5, 0.5, 1.0, 1.0]),
        ("ntile(3) OVER (ORDER BY x)", [1, 1, 2, 3]),
        ("lag(x) OVER (ORDER BY x)", [None, 1, 2, 3]),
        ("lead(x, 2, 0) OVER (ORDER BY x)", [3, 4, 0, 0]),
        ("first_value(x) OVER (PARTITION BY k ORDER BY x DESC)", [2, 2, 4, 4]),
        ("last_value(x) OVER (ORDER BY x)", [1, 2, 3, 4]),
        ("nth_value(x, 2) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", [2, 2, 2, 2]),
        ("nth_value(x, 2) FROM FIRST OVER (ORDER BY x)", [None, 2, 2, 2]),
        ("nth_value(x, 1) FROM LAST OVER (ORDER BY x)", [1, 2, 3, 4]),
        ("nth_value(x, 2) FROM LAST OVER (ORDER BY x)", [None, 1, 2, 3]),
        ("nth_value(x, 2) FROM LAST OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)", [3, 3, 3, 3]),
        (
            "nth_value(x, 3) FROM LAST OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
            [2, 2, 2, 2],
        ),
        ("nth_value(x, 5) FROM LAST OVER (PARTITION BY k)", [None, None, None, None]),
        ("nth_value(nullif(x, 4), 1) FROM LAST IGNORE NULLS OVER ()", [3, 3, 3, 3]),
        ("nth_value(nullif(x, 4), 1) FROM LAST RESPECT NULLS OVER ()", [None, None, None, None]),
        ("ratio_to_report(x) OVER ()", [0.1, 0.2, 0.3, 0.4]),
        ("round(ratio_to_report(x) OVER (ORDER BY x), 2)", [1.0, 0.67, 0.5, 0.4]),
        ("SUM(x) OVER ()", [10, 10, 10, 10]),
        ("SUM(x) OVER (ORDER BY x)", [1, 3, 6, 10]),
        ("SUM(x) OVER (ORDER BY k)", [3, 3, 10, 10]),
        ("SUM(x) OVER (PARTITION BY k)", [3, 3, 7, 7]),
        ("COUNT(*) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", [2, 3, 3, 2]),
        ("SUM(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", [1, 3, 5, 7]),
        ("SUM(x) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)", [3, 3, 10, 10]),
        (
            "SUM(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)",
            [9, 8, 7, 6],
        ),
    ],
)
def test_window_functions_return_a_value_for_each_row(text: str, expected: list[Value]) -> None:
    """A window function returns a value for each row and does not change the rows."""
    rows = "[{'x': 1, 'k': 'a'}, {'x': 2, 'k': 'a'}, {'x': 3, 'k': 'b'}, {'x': 4, 'k': 'b'}] AS r"
    query = text.replace("x)", "r.x)").replace("x,", "r.x,").replace("BY x", "BY r.x").replace("BY k", "BY r.k")

    assert ask(f"SELECT VALUE {query} FROM {rows} ORDER BY r.x", WORLD) == pytest.approx(expected)


def test_range_frame_of_null_or_missing_ends_at_the_peers() -> None:
    """The distance to NULL or MISSING is undefined: the frame ends at the peers of the row, or at the end if it is
    unbounded.
    """
    frames = (
        "0 preceding and unbounded following",
        "unbounded preceding and 0 following",
        "0 preceding and 0 following",
    )
    counts = ", ".join(f"count(*) over (order by t.x range between {one}) w{at}" for at, one in enumerate(frames))

    assert ask(f"select t.x, {counts} from [{{}}, {{}}, {{'x': null}}, {{'x': 1}}] t") == [
        {"w0": 4, "w1": 2, "w2": 2},
        {"w0": 4, "w1": 2, "w2": 2},
        {"x": None, "w0": 2, "w1": 3, "w2": 1},
        {"x": 1, "w0": 1, "w1": 4, "w2": 1},
    ]


def test_windows_in_where_include_rows_that_where_removes() -> None:
    """A window function in WHERE is computed over all rows of FROM, as AsterixDB's `window/misc_01` expects."""
    text = (
        "FROM range(1, 10) x WHERE x > 1 AND SUM(x) OVER () = 55 AND x < 4 SELECT VALUE [x, COUNT(x) OVER ()] ORDER"
        " BY x"
    )

    assert ask(text) == [(2, 2), (3, 2)]


def test_windows_after_group_by_see_the_groups() -> None:
    """A window sees groups when there are some."""
    text = (
        "SELECT d, SUM(COUNT(*)) OVER (ORDER BY d) AS running FROM emp e WHERE e.dept IS NOT UNKNOWN GROUP BY e.dept AS"
        " d ORDER BY d"
    )

    assert ask(text, WORLD) == [{"d": "x", "running": 2}, {"d": "y", "running": 3}]


@pytest.mark.parametrize(
    "text,message",
    [
        (
            "SELECT VALUE x FROM 5 AS x",
            "ASX1091: Type mismatch: expected value of type multiset or array, but got the value of type bigint",
        ),
        (
            "SELECT VALUE x FROM {'a': 1} AS x",
            "ASX1091: Type mismatch: expected value of type multiset or array, but got the value of type object",
        ),
        (
            "SELECT VALUE x FROM [1] AS x LIMIT 'a'",
            "ASX1091: Type mismatch: expected value of type integer, but got the value of type string",
        ),
        ("9223372036854775807 + 1", "ASX0007: Overflow in numeric-add"),
        (
            "SELECT ntile(0) OVER () FROM [1] AS x",
            "ASX0002: Type mismatch: ntile needs a whole number of at least 1",
        ),
    ],
)
def test_uncomputable_values_raise_sqlpp_errors(text: str, message: str) -> None:
    """Values that cannot be computed are errors of the language."""
    with pytest.raises(SqlppError) as refused:
        ask(text)

    assert refused.value.text.startswith(message)


def test_from_over_a_dataset_object_is_refused() -> None:
    """FROM over a variable that is an object of a dataset is refused, because the dataset itself was probably meant."""
    with pytest.raises(SqlppError) as refused:
        ask("SELECT VALUE (SELECT VALUE x.dept FROM emp AS x) FROM emp AS emp", WORLD)

    assert refused.value.text.startswith("ASX1091: Type mismatch: expected value of type multiset or array")


def test_source_that_is_not_a_collection_gives_a_warning() -> None:
    """A source that is not a collection, which is known only at run time, has no rows and gives a warning."""
    budget = Budget()

    results = ask("SELECT VALUE x FROM (SELECT VALUE {'a': 1})[0] AS x", budget=budget)

    assert results == []
    assert [each.number for each in budget.warnings.values()] == [2]


def test_visited_rows_count_against_the_budget() -> None:
    """Visited rows are counted against the budget, whatever is done with them."""
    rows = "range(1, 1000)"

    with pytest.raises(SqlppError, match="too many rows"):
        ask(f"SELECT COUNT(*) FROM {rows} a, {rows} b, {rows} c", budget=Budget(steps=100_000))
    with pytest.raises(SqlppError, match="keeps too many"):
        ask(f"SELECT VALUE x FROM {rows} x ORDER BY x", budget=Budget(rows_max=10))


def test_exception_of_the_callback_ends_the_query() -> None:
    """The callback is called regularly, and its exception ends the query."""

    class ClientDisconnect(Exception):
        """The caller has disconnected."""

    def stop() -> None:
        raise ClientDisconnect

    with pytest.raises(ClientDisconnect):
        ask("SELECT COUNT(*) FROM range(1, 100000) x", budget=Budget(stop=stop))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT DISTINCT t.a FROM [{'a': 3}, {'a': 1}, {'a': 3}] t ORDER BY t.a", [{"a": 1}, {"a": 3}]),
        (
            "SELECT DISTINCT t.a AS b FROM [{'a': 3}, {'a': 1}, {'a': 2}] t ORDER BY t.a DESC LIMIT 2",
            [{"b": 3}, {"b": 2}],
        ),
        ("SELECT DISTINCT VALUE t.a FROM [{'a': 1, 'b': 9}, {'a': 2, 'b': 3}] t ORDER BY t.b", [2, 1]),
        ("SELECT DISTINCT VALUE lower(x) FROM ['B', 'b', 'A'] x ORDER BY lower(x) DESC", ["b", "a"]),
        ("SELECT DISTINCT count(*) AS n FROM [1, 1, 2, 3] x GROUP BY x ORDER BY n DESC", [{"n": 2}, {"n": 1}]),
    ],
)
def test_order_by_with_distinct_sorts_before_deduplication(text: str, expected: list[Value]) -> None:
    """The rows are sorted, then the first of equal results is kept."""
    assert ask(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT * FROM [1] x AT p LET y = x + 1", [{"x": 1, "p": 1, "y": 2}]),
        ("SELECT * FROM [1, 2] x GROUP BY x AS k GROUP AS g ORDER BY k LIMIT 1", [{"k": 1, "g": ({"x": 1},)}]),
        ("SELECT * FROM [1] x GROUP BY x AS k LET l = k + 1", [{"k": 1, "$1": ({"x": 1},), "l": 2}]),
        ("SELECT *, 1 FROM [5] x GROUP BY x AS k", [{"k": 5, "$1": 1, "$2": ({"x": 5},)}]),
    ],
)
def test_star_includes_all_variables_of_the_block(text: str, expected: list[Value]) -> None:
    """`*` has the variables of FROM, AT and LET; after GROUP BY the keys, the group, which may have no name, and
    LET.
    """
    objects = ask(text)

    assert objects == expected
    assert [list(one) for one in objects] in ([list(one) for one in expected], [["k", "$2", "$1"]])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT VALUE p FROM ['a', 'b'] x AT p", [1, 2]),
        ("SELECT VALUE p FROM [1] y JOIN ['a', 'b'] x AT p ON true", [1, 2]),
        ("SELECT VALUE p FROM [1] y, ['a', 'b'] x AT p", [0, 1]),
        ("SELECT VALUE p FROM [1] y UNNEST ['a', 'b'] x AT p", [0, 1]),
        ("SELECT VALUE [x, p] FROM [[]] y LEFT UNNEST y x AT p", [(MISSING, MISSING)]),
        ("SELECT VALUE (SELECT VALUE p FROM y AS x AT p) FROM [['a', 'b']] y", [(1, 2)]),
    ],
)
def test_positions_count_from_one_only_in_the_first_from_term(text: str, expected: list[Value]) -> None:
    """Positions count from 1 in the first term; in later terms and UNNEST, which are evaluated for each row, from 0."""
    assert ask(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            (
                "SELECT t.a AS x, count(*) AS n FROM [{'a': 1}, {'a': 1}] t GROUP BY t.a HAVING (SOME x IN [5]"
                " SATISFIES x = 5)"
            ),
            [{"x": 1, "n": 2}],
        ),
        ("SELECT VALUE n FROM [2, 1] t LET n = t ORDER BY (SELECT VALUE n)[0]", [1, 2]),
        ("SELECT -t AS n FROM [1, 2] t ORDER BY (SELECT VALUE n)[0]", [{"n": -2}, {"n": -1}]),
        ("SELECT sum(t.v) AS v FROM [{'v': 1}, {'v': 2}] t GROUP BY 1 HAVING sum(v) > 2", [{"v": 3}]),
    ],
)
def test_order_by_can_use_select_names_without_affecting_having(text: str, expected: list[Value]) -> None:
    """ORDER BY can use SELECT's names, also in its subqueries. In HAVING, a name of SELECT hides neither an inner
    variable nor a field of the same name.
    """
    assert ask(text) == expected


def test_having_cannot_use_names_of_select() -> None:
    """HAVING cannot use names of SELECT, as in AsterixDB."""
    with pytest.raises(SqlppError) as refused:
        ask("SELECT t.a AS k, count(*) AS n FROM [{'a': 1}] t GROUP BY t.a HAVING n = 1")

    assert refused.value.number == 1073


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{'a': 1, 'a': 2}", [{"a": 1}]),
        ("{lower('A'): 1, 'a': 2}", [{"a": 2}]),
        ("SELECT VALUE {t.n: 1, lower('A'): 2} FROM [{'n': 'a'}] t", [{"a": 2}]),
        ("SELECT VALUE {t.n: 1, t.m: 2} FROM [{'n': 'a', 'm': 'a'}] t", [{"a": 1}]),
        ("SELECT x.*, y.* FROM [{'a': 1, 'b': 1}] x, [{'b': 2}] y", [{"a": 1, "b": 2}]),
    ],
)
def test_duplicate_field_names_are_resolved_by_precedence(text: str, expected: Value) -> None:
    """Of fields with one name the first literal one is kept, then computed constants, then computed names; of `value.*`
    the last field.
    """
    assert ask(text) == expected


def test_groups_are_sorted_by_their_keys() -> None:
    """Groups are sorted by their keys, also without ORDER BY."""
    assert ask("SELECT VALUE k FROM ['b', 'a', 'c', 'a'] x GROUP BY x AS k") == ["a", "b", "c"]


def test_subquery_in_select_can_use_group_keys() -> None:
    """A path that is a group key can be used in a subquery of SELECT; a variable of the same name hides it."""
    text = "SELECT (SELECT VALUE t.a FROM [1] x) AS v FROM [{'a': 7}] t GROUP BY t.a"
    hidden = "SELECT (SELECT VALUE t.a FROM [{'a': 8}] t) AS v FROM [{'a': 7}] t GROUP BY t.a"

    assert ask(text) == [{"v": (7,)}]
    assert ask(hidden) == [{"v": (8,)}]


def test_function_names_in_group_keys_are_case_insensitive() -> None:
    """Names of built-in functions are case-insensitive, also when a key and its use are compared."""
    assert ask("SELECT VALUE SUBSTR(t, 0, 1) FROM ['ab', 'ac'] t GROUP BY substr(t, 0, 1)") == ["a"]


def test_quantifier_iterates_over_a_field_of_the_only_variable() -> None:
    """If no dataset has the name, a quantifier iterates over a field of the only variable."""
    assert ask("SELECT VALUE (SOME i IN items SATISFIES i = 2) FROM [{'items': [1, 2]}] t") == [True]


def test_first_of_two_group_keys_with_equal_names_gets_the_name() -> None:
    """Of two keys whose paths end in one name, the first gets the name."""
    text = "SELECT x, j.x AS other FROM [{'x': 1}] i, [{'x': 2}] j GROUP BY i.x, j.x"

    assert ask(text) == [{"x": 1, "other": 2}]


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "FROM [3, 1, 2] x LET r = rank() OVER (ORDER BY x) WHERE r > 1 SELECT x, r ORDER BY x",
            [{"x": 2, "r": 2}, {"x": 3, "r": 3}],
        ),
        ("FROM [1, 2, 3] x LET y = x * 2, s = sum(y) OVER () + y SELECT VALUE s ORDER BY s", [14, 16, 18]),
        (
            (
                "FROM [1, 1, 2] x GROUP BY x AS k LET n = count(*), r = rank() OVER (ORDER BY n DESC) HAVING r = 1"
                " SELECT k, n, r"
            ),
            [{"k": 1, "n": 2, "r": 1}],
        ),
        (
            (
                "FROM [3, 1] x LET a = row_number() OVER (ORDER BY x), b = row_number() OVER (ORDER BY a DESC) SELECT"
                " VALUE [x, a, b] ORDER BY x"
            ),
            [(1, 1, 2), (3, 2, 1)],
        ),
    ],
)
def test_window_functions_in_let_see_all_rows_of_their_clause(text: str, expected: list[Value]) -> None:
    """Window functions in LET see all rows of their clause: those before WHERE, or the groups before HAVING."""
    assert ask(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("FROM [{'a': 1, 'v': 2}] t GROUP BY a AS k GROUP AS g(v AS w) SELECT VALUE g", [({"w": 2},)]),
        ("FROM [{'a': 1, 'v': 2}] t GROUP BY a AS k GROUP AS g(t AS u, v AS w) SELECT VALUE g[0].u.v", [2]),
    ],
)
def test_group_as_names_implied_fields(text: str, expected: list[Value]) -> None:
    """A name that is not a variable is a field of FROM's only variable."""
    assert ask(text) == expected


def test_unnamed_values_are_numbered_throughout_the_statement() -> None:
    """Unnamed values are numbered throughout the statement, outer blocks first, so that each number occurs once."""
    assert ask("SELECT 1, (SELECT 2) UNION ALL SELECT 3") == [{"$1": 1, "$2": ({"$3": 2},)}, {"$4": 3}]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("FROM [1, 2, 3] x SELECT VALUE array_sum((FROM w SELECT VALUE w.x)) OVER w AS (ORDER BY x)", [1, 3, 6]),
        ("FROM [1, 2, 3] x SELECT VALUE SUM(x) OVER w AS (ORDER BY x)", [1, 3, 6]),
        ("FROM [1, 2] x SELECT VALUE first_value(x) OVER w AS (ORDER BY x DESC) ORDER BY x", [2, 2]),
        ("FROM [1, 2] x LET y = -x SELECT VALUE array_max((FROM w SELECT VALUE w.b)) OVER w(y AS b) AS ()", [-1, -1]),
        (
            "FROM [1, 1, 2] x GROUP BY x AS k LET n = array_sum((FROM w SELECT VALUE w.k)) OVER w AS () SELECT VALUE n",
            [3, 3],
        ),
    ],
)
def test_window_variable_is_the_array_of_the_frames_rows(text: str, expected: list[Value]) -> None:
    """The window's variable is the array of the frame's rows, as for GROUP AS."""
    assert ask(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("FROM [{'a': 1, 'b': 2}] t GROUP BY ROLLUP(a, b) SELECT VALUE grouping(a, b)", [0, 1, 3]),
        ("FROM [{'a': 1, 'b': 2}] t GROUP BY CUBE(t.a, t.b) SELECT VALUE grouping(t.b)", [0, 1, 0, 1]),
        ("FROM [{'a': 1}] t GROUP BY t.a AS k SELECT VALUE grouping(k)", [0]),
    ],
)
def test_grouping_sets_a_bit_for_each_absent_key(text: str, expected: list[Value]) -> None:
    """`grouping` has a bit for each argument, the last one lowest, which is set if the grouping set lacks the key."""
    assert ask(text) == expected


def test_grouping_refuses_arguments_that_are_not_keys() -> None:
    """`grouping` refuses arguments that are not keys."""
    with pytest.raises(SqlppError, match="grouping takes keys of GROUP BY"):
        ask("FROM [{'a': 1}] t GROUP BY t.a AS k SELECT VALUE grouping(k + 1)")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("FROM [{'c': [{'d': 5}]}] s WHERE SOME x IN s.c SATISFIES d = 5 SELECT VALUE 1", [1]),
        ("FROM [{'c': [{'d': 5}], 'd': 4}] s WHERE EVERY x IN s.c SATISFIES d = 5 SELECT VALUE 1", [1]),
    ],
)
def test_bare_name_in_a_quantifier_is_a_field_of_its_variable(text: str, expected: list[Value]) -> None:
    """A bare identifier in a quantifier's condition is a field of its variable, not of FROM's."""
    assert ask(text) == expected


def test_call_of_a_query_function_returns_its_rows() -> None:
    """A call of a function whose body is a query has the rows of the query."""
    world = NameWorld(functions=[written("f", "a", "SELECT VALUE x FROM range(1, a) x")])

    assert ask("f(3)", world) == [1, 2, 3]
    assert ask("[f(2)]", world) == [((1, 2),)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[1, 2, 3] ~= [1, 2, 4]", True),
        ("[1, 2, 3] ~= [1, 5, 4]", False),
        ("{{1, 2}} ~= null", None),
    ],
)
def test_similarity_operator_follows_request_options(text: str, expected: Value) -> None:
    """`~=` compares by the Jaccard similarity and 0.5, unless options of the request say otherwise."""
    assert value(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "LET a = 1, b = a + 1, a = b * 10 SELECT a, b",
        "WITH a AS 1, b AS a + 1, a AS b * 10 SELECT a, b",
        "SELECT a, b FROM [1] AS a LET b = a + 1, a = b * 10",
    ],
)
def test_let_variable_hides_an_earlier_one_of_the_same_name(text: str) -> None:
    """A variable of LET hides an earlier one of the same name; variables between them keep the earlier value."""
    assert ask(text) == [{"a": 20, "b": 2}]


def test_declared_function_can_be_called_with_the_dataverse_name() -> None:
    """A declared function may be called with the name of the current dataverse."""
    assert ask("DECLARE FUNCTION f() { 7 }; SELECT VALUE Default.f()") == [7]


@pytest.mark.parametrize(
    "text, message",
    [
        ("SELECT * FROM none a, none b JOIN none b ON true", "Duplicate alias definitions: b"),
        ("array_concat([1], {{2}})", "Input contains different list types"),
        ("array_intersect([1], {{2}})", "Input contains different list types"),
        ("array_symdiff([1], [2], {{2}})", "Input contains different list types"),
    ],
)
def test_duplicate_aliases_and_mixed_list_types_are_refused(text: str, message: str) -> None:
    """Duplicate variables are reported before datasets are looked up; array functions over arrays and multisets
    together are refused.
    """
    with pytest.raises(SqlppError) as refused:
        ask(text)

    assert message in refused.value.text


def test_group_without_a_variable_is_named_in_star() -> None:
    """As in AsterixDB's select-star/group_by; the name uses no number of projections, as in
    tpcds/query-ASTERIXDB-1602.
    """
    rows = "[{'a': 1}] t group by t.a"

    assert ask(f"select * from {rows}") == [{"a": 1, "$1": ({"t": {"a": 1}},)}]
    assert ask(f"with g as (select * from {rows}) select array_count(g)") == [{"$1": 1}]
    assert ask(f"select *, 7 from {rows}") == [{"a": 1, "$1": 7, "$2": ({"t": {"a": 1}},)}]
