# SPDX-License-Identifier: Apache-2.0
"""Declared types of the arguments of `get_object_fields`."""

from __future__ import annotations

from typing import cast

import pytest

from limnos.rooms.sqlpp.language import parse_body
from limnos.rooms.sqlpp.language.binder import BoundQuery, bind
from limnos.rooms.sqlpp.language.evaluator import results
from limnos.rooms.sqlpp.language.field_types import with_field_types
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.values.model import Date
from tests.rooms.sqlpp.language.evaluation import NameWorld

DATASET = (("Default",), "d")
TYPE = type_of("OPEN { id: int, o: OPEN { a: string }?, l: [OPEN { b: int }]? }")
WORLD = NameWorld({("Default",): {"d": [{"id": 1, "o": {"a": "x", "c": {"e": 1}}, "l": ({"b": 1, "f": 2},), "z": 1}]}})


def fields(text: str) -> dict[str, object]:
    """Return whether each field that a query finds is open, by path."""
    bound = bind(parse_body(text), WORLD)
    typed = with_field_types(bound.expression, {DATASET: TYPE})
    (entries,) = results(BoundQuery(typed, bound.slots, ()), WORLD.rows)
    return dict(_flat(cast("tuple[dict[str, object], ...]", entries), ""))


def _flat(entries: tuple[dict[str, object], ...], prefix: str) -> list[tuple[str, object]]:
    flat: list[tuple[str, object]] = []
    for entry in entries:
        name = f"{prefix}{entry.get('field-name', '')}"
        if "is-open" in entry:
            flat.append((name, entry["is-open"]))
        for parts in ("nested", "list"):
            flat += _flat(cast("tuple[dict[str, object], ...]", entry.get(parts, ())), f"{name}/")
    return flat


def test_constants_of_the_plan_are_unchanged() -> None:
    """The time of the statement is a constant of the plan and a tuple; it is unchanged."""
    bound = bind(parse_body("select value [get_object_fields({}), $p] from d r"), WORLD, parameters={"p": Date(7)})
    typed = with_field_types(bound.expression, {DATASET: TYPE})
    (result,) = results(BoundQuery(typed, bound.slots, ()), WORLD.rows)

    assert type(cast("tuple[object, ...]", result)[1]) is Date


DECLARED = {
    "id": False,
    "o": False,
    "o/a": False,
    "o/c": True,
    "o/c/e": True,
    "l": False,
    "l//b": False,
    "l//f": True,
    "z": True,
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select value get_object_fields(r) from d r", DECLARED),
        ("select value get_object_fields(s) from d r let s = r", DECLARED),
        ("select value get_object_fields(r.o) from d r", {"a": False, "c": True, "c/e": True}),
        ("select value get_object_fields(r.o.c) from d r", {"e": True}),
        ("select value get_object_fields(i) from d r, r.l i", {"b": False, "f": True}),
        ("select value get_object_fields(r.l[0]) from d r", {"b": False, "f": True}),
        ("select value get_object_fields({'a': {'b': 1}}) from d r", {"a": False, "a/b": False}),
    ],
)
def test_undeclared_field_is_open(text: str, expected: dict[str, object]) -> None:
    """Declared types are propagated through variables, paths, items of arrays and LET; a constructor declares its
    fields.
    """
    assert fields(text) == expected


def test_an_absent_field_has_its_declared_type() -> None:
    """An absent field is listed with its declared type, without parts."""
    world = NameWorld({("Default",): {"d": [{"id": 1, "o": None}]}})
    bound = bind(parse_body("select value get_object_fields(r) from d r"), world)
    typed = with_field_types(bound.expression, {DATASET: TYPE})

    (entries,) = results(BoundQuery(typed, bound.slots, ()), world.rows)

    assert [(each["field-name"], each["field-type"]) for each in cast("tuple[dict[str, object], ...]", entries)][
        :3
    ] == [
        ("id", "bigint"),
        ("o", "object"),
        ("l", "array"),
    ]


def test_a_plan_without_the_function_is_unchanged() -> None:
    """A plan without the function is returned unchanged after one walk."""
    expression = bind(parse_body("select value r from d r"), WORLD).expression

    assert with_field_types(expression, {DATASET: TYPE}) is expression
