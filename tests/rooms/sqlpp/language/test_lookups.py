# SPDX-License-Identifier: Apache-2.0
"""Conditions that determine one key, and conditions for which an index is used."""

from __future__ import annotations

import uuid

import pytest

from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.lookups import Lookup, LookupIndex, key_in, key_of, lookup_in
from limnos.rooms.sqlpp.language.stored import storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import Date, Value

FORM = storage_form_of_record(
    type_of("{ id: bigint, seen: { day: date, who: uuid, x: double } }"), (("id",), ("seen", "day"))
)
MADE = storage_form_of_record(type_of("{ id: uuid }"), (("id",),))
ONE = uuid.UUID(int=1)


def _is(path: str, value: Value, by: str = "=") -> Condition:
    return Condition(tuple(path.split(".")), by, value)  # type: ignore[arg-type]


def test_equality_on_each_key_field_is_a_key_lookup() -> None:
    """Equality with a value for each key field determines a key, whatever the other conditions; a number of another
    type is converted.
    """
    conditions = key_in(FORM, [_is("id", 1, ">"), _is("seen.day", Date(3)), _is("id", 5.0), _is("seen.x", 2.0)])

    assert conditions == (_is("id", 5), _is("seen.day", Date(3)))
    assert type(conditions[0].value) is int
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
def test_incomplete_or_invalid_key_conditions_are_no_key_lookup(conditions: list[Condition]) -> None:
    """A key field without a value, with several values, or with a value outside of its type determines no key."""
    assert key_in(FORM, conditions) is None


def test_dataset_without_a_key_has_no_key_lookup() -> None:
    """A dataset without a key has no key lookup."""
    assert key_in(storage_form_of_record(type_of("{ id: bigint }")), [_is("id", 5)]) is None


def test_object_key_has_the_value_of_each_key_field() -> None:
    """The key of an object has the object's value for each key field."""
    assert key_of(FORM, {"id": 7, "seen": {"day": Date(3), "who": ONE}}) == (_is("id", 7), _is("seen.day", Date(3)))


PLACES = storage_form_of_record(
    type_of("{ id: bigint, n: integer?, name: string?, x: double?, seen: { day: date }? }"), (("id",),)
)
BY_N, BY_NAME, BY_DAY, BY_X = (
    LookupIndex(name, tuple(tuple(path.split(".")) for path in paths))
    for name, *paths in (("n", "n", "name"), ("name", "name"), ("day", "seen.day"), ("x", "x"))
)


def test_index_lookup_uses_values_and_bounds_of_its_fields() -> None:
    """An index is used with values and bounds of its fields; conditions on other fields are not part of the lookup."""
    lookup = lookup_in(PLACES, [_is("n", 3.0, ">"), _is("name", "a"), _is("x", 1.0)], indexes=[BY_NAME, BY_N])

    assert lookup == Lookup((_is("n", 3, ">"), _is("name", "a")), "n")
    assert lookup_in(PLACES, [_is("n", (1, 2.0), "in")], indexes=[BY_N]) == Lookup((_is("n", (1, 2), "in"),), "n")
    assert lookup_in(PLACES, [_is("seen.day", Date(3), "<=")], indexes=[BY_DAY]) == Lookup(
        (_is("seen.day", Date(3), "<="),), "day"
    )


def test_key_lookup_is_preferred_to_an_index() -> None:
    """A key is preferred to an index, because it determines one object."""
    assert lookup_in(PLACES, [_is("name", "a"), _is("id", 5)], indexes=[BY_NAME]) == Lookup((_is("id", 5),), None)


@pytest.mark.parametrize(
    "conditions, index",
    [
        ([], BY_N),
        ([_is("name", "a")], BY_N),
        ([_is("n", 2.5)], BY_N),
        ([_is("n", "2")], BY_N),
        ([_is("n", (1, "2"), "in")], BY_N),
        ([_is("x", 1.0)], BY_X),
        ([_is("what", 1)], LookupIndex("open", (("what",),))),
    ],
)
def test_index_without_a_usable_condition_is_not_used(conditions: list[Condition], index: LookupIndex) -> None:
    """An index is not used without a usable condition on its first field, for real numbers, and for undeclared
    fields.
    """
    assert lookup_in(PLACES, conditions, indexes=[index]) is None
