"""UPDATE as a query: what each SET makes of an object."""

from __future__ import annotations

import pytest

from limnos.services.sqlpp.execution.update_queries import STEPS_MAX, update_query
from limnos.sqlpp import EmptyNameResolver, SqlppError, bind, parse, parse_body, results, tree
from limnos.sqlpp.printer import render

OBJECTS = "[{'id':1,'n':1,'t':'x','b':{'c':1}},{'id':2,'n':2}]"


def changed(sets: str) -> list[object]:
    """The objects that an UPDATE of two writes."""
    text = render(update_query(statement(sets), ("x", "d"), keys=(("id",),))).replace("x.d", OBJECTS)
    return list(results(bind(parse_body(text), EmptyNameResolver()), lambda *_: ()))


def statement(sets: str) -> tree.Update:
    """An UPDATE of a dataset with the variable `u`."""
    (parsed,) = parse(f"update d as u {sets}")
    assert isinstance(parsed.statement, tree.Update)
    return parsed.statement


@pytest.mark.parametrize(
    "sets,found",
    [
        ("set u.n = u.n + 1 where u.id = 2", [{"id": 2, "n": 3}]),
        ("set n = 5, m = u.n set u.t = null where u.id = 2", [{"id": 2, "n": 5, "m": 5, "t": None}]),
        ("set u.b = missing set u.t = missing where u.id = 1", [{"id": 1, "n": 1}]),
        ("set u.b.d = 2 where u.id = 1", [{"id": 1, "n": 1, "t": "x", "b": {"c": 1, "d": 2}}]),
        ("set u.b.c.e = 2 set u.t.y = 1 where u.id = 1", [{"id": 1, "n": 1, "t": {"y": 1}, "b": {"c": {"e": 2}}}]),
        ("set u.`b`.`q r` = u.id where u.id = 2", [{"id": 2, "n": 2, "b": {"q r": 2}}]),
        ("set u.n = 0 where u.id = 3", []),
        ("set u.u = 1 where u.id = 2", [{"id": 2, "n": 2, "u": 1}]),
    ],
)
def test_each_set_sees_the_one_before_it(sets: str, found: list[object]) -> None:
    """MISSING removes a field; objects on the way to a nested field are made."""
    assert changed(sets) == found


@pytest.mark.parametrize(
    "keys,path", [((("id",),), "id"), ((("a", "b"),), "a"), ((("a",),), "a.b"), ((("c",), ("id",)), "id")]
)
def test_a_key_is_not_changed(keys: tuple[tuple[str, ...], ...], path: str) -> None:
    """Nor an object that holds it, nor a part of it."""
    with pytest.raises(SqlppError, match="UPDATE can't change"):
        update_query(statement(f"set u.{path} = 1"), ("x", "d"), keys=keys)


def test_deep_path_costs_no_more_than_its_length() -> None:
    """Twenty steps make a query of a few thousand characters, not of a million copies."""
    path = ".".join(f"f{number}" for number in range(20))

    assert len(render(update_query(statement(f"set u.{path} = 1"), ("x", "d"), keys=()))) < 20_000
    with pytest.raises(SqlppError, match="nested more than"):
        update_query(statement(f"set u.{'.'.join(['f'] * STEPS_MAX)} = 1"), ("x", "d"), keys=())


@pytest.mark.parametrize("paths", [["f"] * (STEPS_MAX + 1), [".".join(["f"] * (STEPS_MAX + 1))], ["a.b"] * STEPS_MAX])
def test_too_many_fields_are_refused(paths: list[str]) -> None:
    """Whether they are many changes or few deep ones."""
    with pytest.raises(SqlppError, match="The paths of UPDATE have more than"):
        update_query(statement("set " + ", ".join(f"u.{path} = 1" for path in paths)), ("x", "d"), keys=())


@pytest.mark.parametrize("paths", [["f"] * STEPS_MAX, ["a.b"] * (STEPS_MAX // 2), [".".join(["f"] * 20)] * 5])
def test_as_many_fields_as_allowed_can_be_bound(paths: list[str]) -> None:
    """The binder comes as far as the dataset, which there is not."""
    update = statement("set " + ", ".join(f"u.{path} = 1" for path in paths))

    with pytest.raises(SqlppError, match="Cannot find dataverse"):
        bind(update_query(update, ("x", "d"), keys=()), EmptyNameResolver())
