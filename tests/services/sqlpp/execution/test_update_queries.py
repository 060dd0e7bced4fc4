"""UPDATE as a query: what each SET makes of an object."""

from __future__ import annotations

import pytest

from limnos.services.sqlpp.execution.update_queries import update_query
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
