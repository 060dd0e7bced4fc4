# SPDX-License-Identifier: Apache-2.0
"""UPDATE as a query: the effect of each SET on an object."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.rooms.sqlpp.language import EmptyNameResolver, SqlppError, bind, parse, parse_body, results, tree
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.services.execution.update_queries import MOVES_MAX, STEPS_MAX, update_query

OBJECTS = "[{'id':1,'n':1,'t':'x','b':{'c':1}},{'id':2,'n':2}]"


def changed(sets: str, objects: str = OBJECTS) -> list[Any]:
    """Return the objects that an UPDATE would write."""
    text = render(update_query(statement(sets), ("x", "d"), keys=(("id",),))).replace("x.d", objects)
    return list(results(bind(parse_body(text), EmptyNameResolver()), lambda *_: ()))


def statement(sets: str) -> tree.Update:
    """Return an UPDATE of a dataset with the variable `u`."""
    (parsed,) = parse(f"update d as u {sets}")
    assert isinstance(parsed.statement, tree.Update)
    return parsed.statement


@pytest.mark.parametrize(
    "sets,expected",
    [
        ("set u.n = u.n + 1 where u.id = 2", [{"id": 2, "n": 3}]),
        ("set n = 5, m = u.n set u.t = null where u.id = 2", [{"id": 2, "n": 5, "m": 5, "t": None}]),
        ("set u.b = missing set u.t = missing where u.id = 1", [{"id": 1, "n": 1}]),
        ("set u.b.d = 2 where u.id = 1", [{"id": 1, "n": 1, "t": "x", "b": {"c": 1, "d": 2}}]),
        ("set u.b.c.e = 2 set u.t.y = 1 where u.id = 1", [{"id": 1, "n": 1, "t": {"y": 1}, "b": {"c": {"e": 2}}}]),
        ("set u.`b`.`q r` = u.id where u.id = 1", [{"id": 1, "n": 1, "t": "x", "b": {"c": 1, "q r": 1}}]),
        ("set u.b.c = 1 where u.id = 2", [{"id": 2, "n": 2}]),
        ("set u.b = null set u.b.c = 1 set u.b.c.d = 1 where u.id = 2", [{"id": 2, "n": 2, "b": None}]),
        ("set u.b = {} set u.b.c = 1 where u.id = 2", [{"id": 2, "n": 2, "b": {"c": 1}}]),
        ("set u.b.c = missing where u.id = 2", [{"id": 2, "n": 2, "b": {}}]),
        ("set u.b.c.d = missing, u.b.c.e = 1 where u.id = 2", [{"id": 2, "n": 2, "b": {"c": {"e": 1}}}]),
        ("set u.t.c = missing, u.b = null, u.b.c = missing where u.id = 1", [{"id": 1, "n": 1, "t": {}, "b": {}}]),
        ("set u.n = 0 where u.id = 3", []),
        ("set u.u = 1 where u.id = 2", [{"id": 2, "n": 2, "u": 1}]),
    ],
)
def test_each_set_applies_to_the_result_of_the_previous_one(sets: str, expected: list[object]) -> None:
    """MISSING removes a field. A field of a MISSING or NULL parent is not set; another parent becomes an object.

    The literal MISSING makes any parent an object.
    """
    assert changed(sets) == expected


ARRAYS = "[{'id':1,'a':['x','y'],'b':[{'n':1},{'n':2},{'n':3}]}]"


@pytest.mark.parametrize(
    "step,name,expected",
    [
        ("(insert into u.a ['z'])", "a", ["x", "y", "z"]),
        ("(insert into u.a at 0 ('z'))", "a", ["z", "x", "y"]),
        ("(insert into a at -2 (['z','w']))", "a", ["x", "z", "w", "y"]),
        ("(insert into u.a at -1 (['z']))", "a", ["x", "y", "z"]),
        ("(insert into u.a at 2 (['z']))", "a", ["x", "y", "z"]),
        ("(insert into u.a at 3 (['z']))", "a", ["x", "y"]),
        ("(insert into u.a at -4 (['z']))", "a", ["x", "y"]),
        ("(insert into u.c (['z']))", "c", ["z"]),
        ("(insert into u.b.c (['z']))", "b", {"c": ["z"]}),
        ("(delete from u.a at n where n = 0)", "a", ["y"]),
        ("(delete from u.a at n where n in [0, -1])", "a", []),
        ("(delete from u.a at n where n < 1)", "a", ["y"]),
        ("(delete from u.a as i where i = 'x' or i = u.id)", "a", ["y"]),
        ("(delete from u.b as i where i.m = 1)", "b", [{"n": 1}, {"n": 2}, {"n": 3}]),
        ("(delete from u.a)", "a", None),
        ("(update u.a as i set i = i || '!')", "a", ["x!", "y!"]),
        ("(update u.a as i at n set i = {'p': n} where n = -1)", "a", ["x", {"p": 1}]),
        ("(update u.a as i set i.k = 3 where i = 'y')", "a", ["x", {"k": 3}]),
        ("(update b as i set n = i.n + 1 set m = n where n > 2)", "b", [{"n": 1}, {"n": 2}, {"n": 4, "m": 4}]),
        ("(update u.b as i (insert into i.l [u.id]) where n = 1)", "b", [{"n": 1, "l": [1]}, {"n": 2}, {"n": 3}]),
        ("set u.a = missing (insert into u.a [1]) (update a as i set i = i + 1)", "a", [2]),
    ],
)
def test_array_positions_count_from_zero_or_from_the_end(step: str, name: str, expected: object) -> None:
    """Positions begin at 0, negative positions count from the end, and a position outside of the array changes
    nothing.
    """
    (one,) = changed(step, ARRAYS)

    assert one[name] == (() if expected is None else _frozen(expected))


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def test_whole_object_can_be_replaced_with_the_same_key() -> None:
    """An UPDATE may replace a whole object. A changed key becomes NULL, which every dataset refuses."""
    assert changed("set u = {'id': u.id, 'n': u.n + 1} where u.id = 1") == [{"id": 1, "n": 2}]
    assert changed("set u = {'id': 7} where u.id = 1") == [None]


@pytest.mark.parametrize(
    "keys,path", [((("id",),), "id"), ((("a", "b"),), "a"), ((("a",),), "a.b"), ((("c",), ("id",)), "id")]
)
def test_change_of_a_key_field_is_refused(keys: tuple[tuple[str, ...], ...], path: str) -> None:
    """A field that contains the key, or that is a part of the key, cannot be changed."""
    with pytest.raises(SqlppError, match="UPDATE can't change"):
        update_query(statement(f"set u.{path} = 1"), ("x", "d"), keys=keys)


def test_query_size_grows_quadratically_with_path_length() -> None:
    """The size of a query for twenty steps grows with the square of their number, not exponentially."""
    path = ".".join(f"f{number}" for number in range(20))

    assert len(render(update_query(statement(f"set u.{path} = 1"), ("x", "d"), keys=()))) < 30_000
    with pytest.raises(SqlppError, match="nested more than"):
        update_query(statement(f"set u.{'.'.join(['f'] * STEPS_MAX)} = 1"), ("x", "d"), keys=())


@pytest.mark.parametrize("paths", [["f"] * (STEPS_MAX + 1), [".".join(["f"] * (STEPS_MAX + 1))], ["a.b"] * STEPS_MAX])
def test_too_many_fields_are_refused(paths: list[str]) -> None:
    """The number and the depth of changes are limited."""
    with pytest.raises(SqlppError, match="The paths of UPDATE have more than"):
        update_query(statement("set " + ", ".join(f"u.{path} = 1" for path in paths)), ("x", "d"), keys=())


@pytest.mark.parametrize("paths", [["f"] * STEPS_MAX, ["a.b"] * (STEPS_MAX // 2), [".".join(["f"] * 20)] * 5])
def test_as_many_fields_as_allowed_can_be_bound(paths: list[str]) -> None:
    """An UPDATE with the maximal number of fields can be bound, except for the missing dataset."""
    update = statement("set " + ", ".join(f"u.{path} = 1" for path in paths))

    with pytest.raises(SqlppError, match="Cannot find dataverse"):
        bind(update_query(update, ("x", "d"), keys=()), EmptyNameResolver())


@pytest.mark.parametrize(
    "sets,names",
    [
        ("set u.n = 5 set u.m = 6", "m n id t b"),
        ("set u.b.d = 2", "b id n t"),
        ("set u.t = missing set u.n = 2", "n id b"),
        ("set u.n = 5, u.m = 6", "n m id t b"),
        ("set u.b.d = 2, u.b.c = 3, n = 0", "b n id t"),
        ("set u.t.d = missing, u.q.r = 1, u.n = 2", "t n id b"),
        ("set u.n = 2 (insert into u.l ([7]))", "n l id t b"),
    ],
)
def test_moves_puts_changed_fields_first(sets: str, names: str) -> None:
    """With `moves`, the fields of the last SET come first, also in nested objects. Their values are the same."""
    (changed_object,) = moved(f"{sets} where u.id = 1", OBJECTS)

    assert list(changed_object) == names.split()
    assert [changed_object] == changed(f"{sets} where u.id = 1")
    assert "d" not in changed_object.get("b", {}) or list(changed_object["b"]) == ["d", "c"]


@pytest.mark.parametrize(
    "sets,names",
    [
        ("set u.n = 2 (insert into u.b at 9 ([1])) set u.m = 1", "m n id a b"),
        ("set u.n = 2 (insert into u.b at 0 ([1])) set u.m = 1", "m n b id a"),
        ("(delete from u.b as i where i.n = 1)", "b id a"),
        ("(update u.b as i set i.n = 1 set i.m = 2)", "b id a"),
    ],
)
def test_array_without_changes_keeps_its_place(sets: str, names: str) -> None:
    """An array keeps its place if a step changes nothing in it, because the position is outside of the array."""
    (changed_object,) = moved(sets, ARRAYS)

    assert list(changed_object) == names.split()
    assert [changed_object] == changed(sets, ARRAYS)


def test_fields_keep_their_places_if_too_many_change() -> None:
    """If an UPDATE changes so many fields that the query would be nested too deeply, the fields keep their places."""
    for count, first in (
        (MOVES_MAX // 2, [f"f{MOVES_MAX // 2 - 1}", f"g{MOVES_MAX // 2 - 1}"]),
        (MOVES_MAX // 2 + 1, ["id", "n"]),
    ):
        sets = "set " + " set ".join(f"u.f{at} = {at}, u.g{at} = {at}" for at in range(count))
        (changed_object,) = moved(f"{sets} where u.id = 1", OBJECTS)
        assert list(changed_object)[:2] == first


def moved(sets: str, objects: str) -> list[Any]:
    """Return the objects that an UPDATE would write with changed fields first."""
    text = render(update_query(statement(sets), ("x", "d"), keys=(("id",),), moves=True)).replace("x.d", objects)
    return list(results(bind(parse_body(text), EmptyNameResolver()), lambda *_: ()))
