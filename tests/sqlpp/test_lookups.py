"""Which conditions leave one key."""

from __future__ import annotations

import uuid

import pytest

from limnos.sqlpp.conditions import Condition
from limnos.sqlpp.jobs import type_of
from limnos.sqlpp.lookups import key_in, key_of
from limnos.sqlpp.stored import declared
from limnos.sqlpp.values.model import Date, Value

FORM = declared(type_of("{ id: bigint, seen: { day: date, who: uuid, x: double } }"), (("id",), ("seen", "day")))
MADE = declared(type_of("{ id: uuid }"), (("id",),))
ONE = uuid.UUID(int=1)


def _is(path: str, value: Value, by: str = "=") -> Condition:
    return Condition(tuple(path.split(".")), by, value)  # type: ignore[arg-type]


def test_a_value_for_each_field_is_a_key() -> None:
    """Whatever else is asked; a number of another type is the field's own."""
    found = key_in(FORM, [_is("id", 1, ">"), _is("seen.day", Date(3)), _is("id", 5.0), _is("seen.x", 2.0)])

    assert found == (_is("id", 5), _is("seen.day", Date(3)))
    assert type(found[0].value) is int
    assert key_in(MADE, [_is("id", ONE)]) == (_is("id", ONE),)


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [_is("id", 5)],
        [_is("id", 5), _is("seen.day", Date(3), "<")],
        [_is("id", 5.5), _is("seen.day", Date(3))],
        [_is("id", "5"), _is("seen.day", Date(3))],
        [_is("id", (5, 6), "in"), _is("seen.day", Date(3))],
    ],
)
def test_less_is_none(conditions: list[Condition]) -> None:
    """A field without a value, with several, or with one that its type does not have."""
    assert key_in(FORM, conditions) is None


def test_a_dataset_without_a_key_has_none() -> None:
    """There is nothing to look up."""
    assert key_in(declared(type_of("{ id: bigint }")), [_is("id", 5)]) is None


def test_the_key_of_an_object() -> None:
    """Each field of the key with the object's value."""
    assert key_of(FORM, {"id": 7, "seen": {"day": Date(3), "who": ONE}}) == (_is("id", 7), _is("seen.day", Date(3)))
