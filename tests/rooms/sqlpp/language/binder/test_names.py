# SPDX-License-Identifier: Apache-2.0
"""Name resolution: each rule of asterixdb.md, 3.4, with its example; and the errors for unknown names."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.binder import bind
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition
from limnos.rooms.sqlpp.language.parser import parse_body
from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.language.evaluation import NameWorld, ask, written

WORLD = NameWorld(
    {
        ("Default",): {
            "orders": [{"id": 1, "east": {"n": 7}}],
            "here": "synonym sales.east.orders",
            "round": "synonym again",
            "again": "synonym round",
        },
        ("sales",): {
            "east": [{"id": 2}],
            "v": "view SELECT VALUE o.id FROM orders o",
            "orders": [{"id": 3}],
            "w": "view sales.w",
            "x": "view sales.y",
            "y": "view sales.x",
        },
        ("sales", "east"): {"orders": [{"id": 4, "a": 5}], "alias": "synonym orders"},
        ("sales", "east", "orders"): {"deep": [{"id": 6}]},
    },
    functions=(
        written("double", "x", "x * 2"),
        written("double", "x y", "(x + y) * 2"),
        written("many", None, "array_count(args)"),
        written("count_all", "d", "(SELECT VALUE COUNT(*) FROM orders o)[0] + d"),
        written("echo", "v", "v", ("sales", "east")),
        written("f", "x", "g(x)"),
        written("g", "x", "f(x)"),
    ),
)


@pytest.mark.parametrize(
    "text,expected",
    [
        # 1: a variable takes precedence, everywhere.
        ("SELECT VALUE orders FROM [5] AS orders", [5]),
        ("SELECT VALUE x FROM [[1, 2]] AS orders, orders AS x", [1, 2]),
        ("LET orders = [8] SELECT VALUE o FROM orders o", [8]),
        # 2: otherwise, in FROM, the whole path is a dataset's name.
        ("SELECT VALUE o.id FROM orders o", [1]),
        ("SELECT VALUE e.id FROM sales.east e", [2]),
        ("SELECT VALUE o.id FROM sales.east.orders o", [4]),
        ("SELECT VALUE o.id FROM `sales`.`east`.`orders` o", [4]),
        ("SELECT VALUE o.id FROM sales.east.orders.deep o", [6]),
        ("sales.east.orders[0].a", [5]),
        ("array_count(sales.east.orders)", [1]),
        ("SOME o IN sales.east SATISFIES o.id = 2", [True]),
        ("SELECT VALUE o.id FROM here o", [4]),
        ("SELECT VALUE o.id FROM sales.east.alias o", [4]),
        ("SELECT VALUE v FROM sales.v AS v", [3]),
        # 3: otherwise it is a field of the only variable of this block's FROM.
        ("SELECT VALUE east.n FROM orders o", [7]),
        ("SELECT VALUE orders FROM [{'orders': 9}] AS t", [9]),
        ("SELECT VALUE id FROM orders o LET z = 1", [1]),
        ("SELECT VALUE id FROM orders o AT p", [1]),
        # Functions are recognized by their parentheses and their number of arguments.
        ("double(4)", [8]),
        ("double(1, 2)", [6]),
        ("many(1, 2, 3)", [3]),
        ("many()", [0]),
        ("sales.east.echo('a')", ["a"]),
        ("count_all(10)", [11]),
        ("DECLARE FUNCTION double(x) { x * 100 }; double(2)", [200]),
        ("DECLARE FUNCTION twice(x) { double(x) }; twice(2)", [4]),
        ("SELECT VALUE double(id) FROM orders o", [2]),
    ],
)
def test_names_are_bound_to_variables_fields_or_datasets(text: str, expected: list[Value]) -> None:
    """Each name is bound to the expected variable, field, dataset or function."""
    assert ask(text, WORLD) == expected


@pytest.mark.parametrize(
    "text,number,place,message",
    [
        (
            "SELECT VALUE o FROM nope o",
            1077,
            (1, 21),
            "Cannot find dataset nope in dataverse Default nor an alias with name nope",
        ),
        (
            "SELECT VALUE o FROM sales.nope o",
            1077,
            (1, 21),
            "Cannot find dataset nope in dataverse sales nor an alias with name sales.nope",
        ),
        (
            "SELECT VALUE o FROM sales.east.orders.east o",
            1077,
            (1, 21),
            "Cannot find dataset east in dataverse sales.east.orders",
        ),
        ("SELECT VALUE o FROM no.such o", 1063, (1, 21), "Cannot find dataverse with name no"),
        ("no.such", 1063, (1, 1), "Cannot find dataverse with name no"),
        ("nope", 1077, (1, 1), "Cannot find dataset nope in dataverse Default nor an alias with name nope"),
        ("SELECT VALUE a", 1073, (1, 14), "Cannot resolve alias reference for undefined identifier a"),
        (
            "SELECT VALUE a\nFROM [1] AS x,\n  [2] AS y",
            1074,
            (1, 14),
            "Cannot resolve ambiguous alias reference for identifier a",
        ),
        ("SELECT VALUE o.id FROM orders o GROUP BY o.east AS e", 1073, (1, 14), "undefined identifier o"),
        (
            "SELECT VALUE (SELECT VALUE id FROM [1] x, [2] y) FROM orders o",
            1074,
            (1, 28),
            "ambiguous alias reference for identifier id",
        ),
        ("SELECT VALUE (SELECT VALUE id) FROM orders o", 1073, (1, 28), "undefined identifier id"),
        ("nope(1, 2)", 1081, (1, 1), "Cannot find function with signature nope(2 arguments)"),
        ("double()", 1081, (1, 1), "Cannot find function with signature double(0 arguments)"),
        ("abs(1, 2)", 1081, (1, 1), "Cannot find function with signature abs(2 arguments)"),
        ("sales.west.f(1)", 1063, (1, 1), "Cannot find dataverse with name sales.west"),
        ("SELECT VALUE r FROM round r", 1079, (1, 21), "Synonym Default.round refers to itself"),
        (
            "SELECT VALUE w FROM sales.w w",
            1149,
            None,
            "Illegal function or view recursion: the view sales.w uses itself",
        ),
        (
            "SELECT VALUE w FROM sales.x w",
            1149,
            None,
            "Illegal function or view recursion: the view sales.x uses itself",
        ),
        ("f(1)", 1149, None, "uses itself"),
        ("$x + 1", 1086, (1, 1), "No value for parameter: $x"),
        (
            "SELECT VALUE SUM(x) FROM [1] AS x WHERE SUM(x) > 1",
            1079,
            (1, 41),
            "sum is a SQL-92 aggregate function. The SQL++ core aggregate function array_sum",
        ),
        (
            "SUM([1])",
            1079,
            (1, 1),
            (
                "array_sum could potentially express the intent. sum itself stands in SELECT, HAVING or ORDER BY of a"
                " query"
            ),
        ),
        ("rank()", 1079, (1, 1), "Function rank needs OVER"),
        (
            "SELECT VALUE x FROM [1] AS x GROUP BY x HAVING rank() OVER () = 1",
            1079,
            (1, 48),
            "is only allowed in SELECT, LET, WHERE and ORDER BY",
        ),
        ("SELECT x.a, x.a FROM [1] AS x", 13, (1, 1), "Duplicate field name 'a'"),
        ("SELECT VALUE x FROM [1] x, [2] x", 1079, (1, 28), "Duplicate alias definitions: x"),
        ("WITH y AS nowhere SELECT VALUE x FROM y x, y x", 1079, (1, 44), "Duplicate alias definitions: x"),
        ("SELECT VALUE 1 UNION ALL SELECT VALUE x FROM [1] x, [2] x", 1079, (1, 53), "Duplicate alias definitions: x"),
        (
            "SELECT VALUE 1 UNION SELECT VALUE 2",
            1079,
            (1, 16),
            "Operation UNION with set semantics is not supported",
        ),
        ("SELECT *", 1079, (1, 8), "SELECT * needs a FROM"),
        ("length(DISTINCT 'a')", 1079, (1, 1), "DISTINCT is for aggregate functions, and length is not one"),
    ],
)
def test_unresolvable_name_has_code_position_and_message(
    text: str, number: int, place: tuple[int, int] | None, message: str
) -> None:
    """The error for an unresolvable name has the expected code, position and message."""
    with pytest.raises(SqlppError) as refused:
        ask(text, WORLD)

    assert refused.value.number == number
    assert message in refused.value.message
    assert place is None or refused.value.place == TextPosition(*place)


def test_parameters_and_current_times_are_bound() -> None:
    """Parameters belong to the request, by name or number; current times belong to the statement."""
    body = parse_body("[$a, $1, current_date()]")
    bound = bind(body, WORLD, parameters={"a": "x", 1: 5}, moment={"current_date": None})

    assert [getattr(item, "value", None) for item in bound.expression.items] == ["x", 5, None]  # type: ignore[attr-defined]


def test_bound_query_lists_the_datasets_it_reads() -> None:
    """The bound query lists the datasets that it reads, including those in views and functions."""
    bound = bind(parse_body("SELECT VALUE [v, count_all(1)] FROM sales.v AS v, here h"), WORLD)

    assert set(bound.reads) == {(("sales",), "orders"), (("sales", "east"), "orders"), (("Default",), "orders")}


def test_too_deep_chains_of_views_are_refused() -> None:
    """Views over views are expanded up to a maximum depth, then refused, without a stack overflow."""
    views: dict[str, object] = {f"v{at}": f"view v{at + 1}" for at in range(100)}
    world = NameWorld({("Default",): {**views, "v100": [{"id": 1}]}})

    with pytest.raises(SqlppError, match="more than 64 deep"):
        ask("SELECT VALUE x FROM v0 x", world)
    assert ask("SELECT VALUE x.id FROM v50 x", world) == [1]


def test_too_deep_nesting_is_refused_without_stack_overflow() -> None:
    """Views that nest expressions too deeply, and values that are nested too deeply, are refused, without a stack
    overflow.
    """
    inner = "[" * 100 + "v{}" + "]" * 100
    views: dict[str, object] = {f"v{at}": "view " + inner.format(at + 1) for at in range(40)}
    world = NameWorld({("Default",): {**views, "v40": [{"id": 1}]}})

    with pytest.raises(SqlppError, match="nested too deep"):
        ask("SELECT VALUE x FROM v0 x", world)
    with pytest.raises(SqlppError, match="nested"):
        ask("SELECT VALUE to_string(x) FROM v35 x ORDER BY x", world)


def test_function_body_does_not_see_names_of_the_call() -> None:
    """A function body sees its parameters and no names of the call; an argument is evaluated once, outside of the
    body.
    """
    world = NameWorld(functions=(written("pair", "a b", "[a, b]"), written("leak", "a", "[a, x]")))

    assert ask("SELECT VALUE pair(b, a) FROM [{'a': 1, 'b': 2}] AS t", world) == [(2, 1)]
    with pytest.raises(SqlppError, match="Cannot find dataset x"):
        ask("SELECT VALUE leak(x) FROM [1] AS x", world)
