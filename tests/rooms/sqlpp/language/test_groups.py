# SPDX-License-Identifier: Apache-2.0
"""Delegated groups: grouping by an engine over columns gives the results of the evaluator over objects."""

from __future__ import annotations

import pytest
from msgspec import structs

from limnos.rooms.sqlpp.language import parse_body
from limnos.rooms.sqlpp.language.binder import BoundQuery, bind
from limnos.rooms.sqlpp.language.evaluator import results
from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.groups import EngineGrouping
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.scans import ScanRequirement, prepare_scans
from limnos.rooms.sqlpp.language.stored import RecordType, storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import MISSING, Float, Integer, Value
from limnos.rooms.sqlpp.language.values.order import key
from tests.rooms.sqlpp.language.evaluation import NameWorld
from tests.rooms.sqlpp.language.test_scans import meets

FORM = storage_form_of_record(
    type_of("{ id: bigint, g: string?, h: integer?, d: double?, f: float?, in_: { n: bigint }? }")
)
FOREIGN = structs.replace(FORM.type, foreign=True)
"""The type of a table that SQL++ did not create, whose NULL columns mean only MISSING."""
THINGS: list[Value] = [
    {"id": 1, "g": "a", "h": Integer(2_000_000_000), "d": 0.5, "f": Float(16_777_216), "in_": {"n": 3}, "x": 1},
    {"id": 2, "g": "a", "h": Integer(2_000_000_000), "d": 1.5, "f": Float(1)},
    {"id": 3, "g": "b", "h": 2, "in_": {"n": 5}},
    {"id": 4, "h": 2, "d": 2.5},
    {"id": 5, "x": "y"},
]
WORLD = NameWorld({("Default",): {"things": THINGS, "none": []}})


def at(value: Value, path: tuple[str, ...]) -> Value:
    """Return the value of a typed column: NULL if it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def group_objects(grouped: EngineGrouping, objects: list[Value]) -> list[Value]:
    """Return groups as an engine creates them from columns; an empty column of a group's row is absent."""
    groups: dict[bytes, list[Value]] = {} if grouped.keys else {b"": []}
    for one in objects:
        groups.setdefault(b"".join(key(at(one, path)) for _, path, _ in grouped.keys), []).append(one)
    rows: list[Value] = []
    for members in groups.values():
        row = {name: at(members[0], path) for name, path, _ in grouped.keys}
        for one in grouped.measures:
            values = [1 if one.path is None else at(member, one.path) for member in members]
            known = [value for value in values if value is not None]
            if one.distinct:
                known = list({key(value): value for value in known}.values())
            row[one.name] = FUNCTIONS[one.function].run(known)
        rows.append({name: value for name, value in row.items() if value is not None})
    return rows


def evaluate_query(
    text: str, type_: RecordType = FOREIGN
) -> tuple[list[Value], list[Value], tuple[ScanRequirement, ...]]:
    """Return the evaluator's result, its result over groups of an engine, and the requests to that engine."""
    bound = bind(parse_body(text), WORLD)
    expression, requirements = prepare_scans(bound.expression, types=lambda *_: type_)

    def rows(_: tuple[str, ...], number: str) -> list[Value]:
        want = requirements[int(number)]
        objects = [
            one for one in WORLD.rows(want.dataverse, want.name) if all(meets(one, each) for each in want.conditions)
        ]
        return objects if want.grouped is None else group_objects(want.grouped, objects)

    grouped_results = list(results(BoundQuery(expression, bound.slots, ()), rows))
    return list(results(bound, WORLD.rows)), grouped_results, requirements


@pytest.mark.parametrize(
    "text",
    [
        "select value count(*) from things t",
        (
            "select count(*) as n, count(t.d) as d, sum(t.d) as s, avg(t.id) as a, min(t.g) as l, max(t.h) as m from"
            " things t"
        ),
        "select count(*) as n, sum(t.d) as s from none t",
        "select t.g, count(*) as n from none t group by t.g",
        "select t.g, t.h, sum(t.id) as s from things t group by t.g, t.h order by t.g, t.h desc",
        (
            "select g, count(distinct t.h) as n from things t where t.id between 1 and 4 and t.h in [1, 2] group by t.g"
            " as g having count(*) > 1 order by count(*) desc, g"
        ),
        (
            "select value {'k': k, 'twice': 2 * max(t.in_.n)} from things t group by t.h as k let s = sum(t.id) having"
            " s > 2 order by s"
        ),
        "select h, rank() over (order by count(*) desc) as r from things t group by t.h as h order by h",
        "select t.g is null as n, count(*) as c from things t group by t.g order by c, n limit 2",
        "select t.g, sum(t.h) as s, avg(t.h) as a, sum(t.f) as f from things t group by t.g",
    ],
)
def test_delegated_groups_match_the_evaluator(text: str) -> None:
    """The results are the same, in order if there is one, and the engine created the groups."""
    expected, actual, asked_for = evaluate_query(text)

    assert any(one.grouped is not None for one in asked_for)
    assert sorted(map(key, actual)) == sorted(map(key, expected))
    if "order by" in text:
        assert [key(one) for one in actual] == [key(one) for one in expected]


@pytest.mark.parametrize(
    "text",
    [
        "select t.x, count(*) as n from things t group by t.x",
        "select t.d, count(*) as n from things t group by t.d",
        "select t.g as name, g from things t group by t.g group as g",
        "select t.g, array_agg(t.id) as a from things t group by t.g",
        "select t.g, count(*) filter (where t.id > 1) as n from things t group by t.g",
        "select count(*) as n from things t where t.id = t.h",
        "select count(*) as n from things t where t.x = 1",
        "select count(*) as n from things t, t.l as l",
        "select count(t) as n from things t",
        "select t.g, count(*) as n from things t group by rollup(t.g)",
    ],
)
def test_groupings_that_columns_cannot_represent_are_not_delegated(text: str) -> None:
    """Groupings that columns cannot represent are not delegated: the evaluator computes them over objects."""
    expected, actual, asked_for = evaluate_query(text)

    assert all(one.grouped is None for one in asked_for)
    assert sorted(map(key, actual)) == sorted(map(key, expected))
    assert MISSING not in actual


@pytest.mark.parametrize("key_path, is_delegated", [("id", True), ("g", False), ("in_.n", False)])
def test_groups_by_nullable_columns_are_not_delegated(key_path: str, is_delegated: bool) -> None:
    """Groups by a column that may be NULL or MISSING are not delegated, because these are two groups."""
    text = f"select k, count(*) as n from things t group by t.{key_path} as k"

    expected, actual, asked_for = evaluate_query(text, FORM.type)

    assert any(one.grouped is not None for one in asked_for) is is_delegated
    assert sorted(map(key, actual)) == sorted(map(key, expected))
