# SPDX-License-Identifier: Apache-2.0
"""The order of fields without ordered fields: fields of known types come before the others."""

from __future__ import annotations

import json
from typing import cast

import pytest

from limnos.rooms.sqlpp.language import parse, parse_body
from limnos.rooms.sqlpp.language.binder import BoundQuery, UserFunction, bind
from limnos.rooms.sqlpp.language.evaluator import results
from limnos.rooms.sqlpp.language.inference.field_order import with_known_fields_first
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.plan import Block, Subquery
from limnos.rooms.sqlpp.language.tree import DeclareFunction
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Duration, Interval, Point, Value
from tests.rooms.sqlpp.language.evaluation import NameWorld

DATASET = (("Default",), "d")
TYPE = type_of("OPEN { id: int, s: string?, a: `any`, o: OPEN { x: int }?, l: [int]? }")
OBJECT = {"id": 1, "s": "t", "a": 5, "o": {"x": 1, "y": 2}, "l": (7, 8), "free": 3}
(DECLARED,) = parse("declare function twice(v) { {'in': v, 'out': 2} }")
FUNCTION = cast("DeclareFunction", DECLARED.statement)
WORLD = NameWorld(
    {("Default",): {"d": [OBJECT], "w": "view select r.free, r.id from d r"}},
    functions=[UserFunction(("Default",), "twice", FUNCTION.parameters, FUNCTION.body)],
)


def ordered(text: str) -> list[object]:
    """Return the results of a query after its fields were reordered; the values are unchanged."""
    bound = bind(parse_body(text), WORLD)
    plan = with_known_fields_first(bound.expression, {DATASET: TYPE})
    again = with_known_fields_first(plan, {DATASET: TYPE})
    answers = [list(results(BoundQuery(each, bound.slots, ()), WORLD.rows)) for each in (plan, again)]
    assert json.dumps(answers[0]) == json.dumps(answers[1])  # a plan may be processed twice
    assert answers[0] == list(results(bound, WORLD.rows))
    return cast("list[object]", answers[0])


@pytest.mark.parametrize(
    "text, names",
    [
        ("select r.free, r.id, r.a, r.s from d r", "id s free a"),
        ("select value {'free': r.free, 'id': r.id, r.s: 1, 'one': 1} from d r", "id one free t"),
        ("select r.o.y, r.o.x, r.l[0] as i from d r", "x i y"),
        ("select r.free + 1 as n, r.id + 1 as m, r.free || '' as t, r.free = 1 as b from d r", "m t b n"),
        ("select r.free + 'x' as n, r.free as o, -r.id as m from d r", "n m o"),
        ("select r.free, missing as m, null as n, r.id is null as t from d r", "n t free"),
        ("select case when true then r.free else 1 end as c, case when true then 2 end as k from d r", "k c"),
        ("select lower(r.free) as t, abs(r.free) as n, sqrt(r.free) as q, to_number('1') as z from d r", "t q n z"),
        ("select r.free as k, count(*) as c, sum(r.free) as s, sum(r.id) as t from d r group by r.free", "c t k s"),
        ("select k, m, g from d r group by r.free as k, r.id as m group as g", "m g k"),
        ("select max(r.free) as a, avg(r.free) as b, array_agg(r.free) as c, min(r.id) as d from d r", "b c d a"),
        (
            "select r.free, (select value 1) as q, exists r.l as e, some x in r.l satisfies x = 1 as s from d r",
            "q e s free",
        ),
        ("select r.free, i, p from d r unnest r.l as i at p", "i p free"),
        ("select v.free, v.id from w v", "id free"),
        ("select value twice(r.free) from d r", "out in"),
        ("from d r let c = r.free, k = 1 select c, k", "k c"),
        ("from d r select *, r.free as z, 1 as y", "r y z"),
        ("select lag(r.free) over (order by r.id) as g, row_number() over (order by r.id) as n from d r", "n g"),
        (
            "select lag(r.id) over (order by r.id) as g, lag(r.id, 1, 'x') over (order by r.id) as h, r.free from d r",
            "g h free",
        ),
        ("select v.free, v.id from (select r.* from d r) v", "id free"),
        ("select v.s, v.id from (select r.* exclude s from d r) v", "id"),
        ("select nvl(r.free, 1) as a, nvl(r.id, 'x') as b, if_null(null, r.a) as c from d r", "b a c"),
        ("select value {'x': o, 'k': 1} from d r left unnest r.free as o", "k"),
        ("select if_missing(o.u, 'x') as c, 1 as k from d r join [{'u': 1}] o on o.u = r.id", "c k"),
        ("select if_missing(o.u, 'x') as c, 1 as k from d r left join [{'u': 1}] o on o.u = r.id", "k c"),
        ("select if_missing(i, 'x') as c, 1 as k from d r left unnest [1] as i", "k c"),
    ],
)
def test_fields_of_known_types_come_first(text: str, names: str) -> None:
    """The type is known for declared fields, literals, functions with a fixed result, and arithmetic over known
    types.
    """
    (first_object,) = ordered(text)[:1]
    assert list(cast("dict[str, object]", first_object)) == names.split()


@pytest.mark.parametrize(
    "text, names",
    [
        ("select r.free, r.id, o.* from d r, [{'u': 1, 'v': 2}] o", "u v id free"),
        ("select o.*, r.free, r.id from d r, [{'u': 1, 'id': 2}] o", "id free u"),
        ("select o.*, r.free from d r, [1] o", "free"),
        ("select r.id, o.*, 1 as w exclude v, w from d r, [{'u': 1, 'v': 2}] o", "u id"),
        ("select r.id, o.* exclude u.x from d r, [{'u': {'x': 1}, 'v': 2}] o", "id u v"),
        ("select r.* from d r", "id s a o l free"),
        ("select value object_add(r, 'n', 1) from d r", "id s a o l n free"),
        ("select value object_put(r, 'id', r.free) from d r", "s a o l id free"),
        ("select value object_put(object_put(r, 'free', 'x'), 's', missing) from d r", "id a o l free"),
        ("select r.free, r.id from d r union all select r.free, 2 as id from d r", "id free"),
        ("select value r from d r union all select value {'z': 1, 'l': r.l, 's': ''} from d r", "s l id a o free"),
        ("select r.free, 1 as n from d r union all select r.free, 'x' as n from d r", "n free"),
    ],
)
def test_merged_and_union_objects_have_a_known_field_order(text: str, names: str) -> None:
    """Of `a.*, b.*` the fields of the last object come first; of UNION ALL the fields whose type is the same in all
    operands.
    """
    (first_object,) = ordered(text)[:1]
    assert list(cast("dict[str, object]", first_object)) == names.split()


VALUES = (Date(7), DateTime(7), Duration(1, 2), Interval(Date(1), Date(2)), Point((1.0, 2.0)), (1, {"x": 2}))


@pytest.mark.parametrize("value", VALUES)
def test_constants_of_the_plan_are_unchanged(value: Value) -> None:
    """Statement time and request parameters are constants of the plan, some of which are tuples; they are not
    changed.
    """
    bound = bind(parse_body("select r.free, $p as p from d r"), WORLD, parameters={"p": value})
    plan = with_known_fields_first(bound.expression, {DATASET: TYPE})
    (result,) = results(BoundQuery(plan, bound.slots, ()), WORLD.rows)

    assert type(cast("dict[str, object]", result)["p"]) is type(value)
    assert result == {"p": value, "free": 3}


def test_duplicate_field_names_retain_their_order() -> None:
    """If two fields have one name, the order is kept, because the first of them counts."""
    assert [
        list(cast("dict[str, object]", each)) for each in ordered("select value {'a': r.free, 'a': 1, 'b': 2} from d r")
    ] == [["a", "b"]]


def test_returning_variable_has_the_type_given_by_the_caller() -> None:
    """The object of RETURNING is a variable whose type the caller knows."""
    bound = bind(parse_body("{'free': r.free, 'id': r.id}"), WORLD, variables=("r",))
    plan = with_known_fields_first(bound.expression, {}, variables={0: TYPE})
    (returned_object,) = results(BoundQuery(plan, bound.slots, ()), WORLD.rows, arguments={0: OBJECT})

    assert list(cast("dict[str, object]", returned_object)) == ["id", "free"]


def test_long_plans_are_ordered_in_linear_time() -> None:
    """Chains of LET and many fields are ordered in linear time, without recursion along the variables."""
    lets = ", ".join(f"v{at} = v{at - 1} + 1" for at in range(1, 2000))
    fields = ", ".join(f"r.f{at} as f{at}" for at in range(2000))
    bound = bind(parse_body(f"from d r let v0 = 0, {lets} select r.free, v1999"), WORLD)
    plan = cast("Subquery", with_known_fields_first(bound.expression, {DATASET: TYPE}))
    many = ordered(f"select {fields}, r.id from d r")

    assert [each.name for each in cast("Block", plan.query.arms[0]).select.projections] == ["v1999", "free"]
    assert many == [{"id": 1}]
