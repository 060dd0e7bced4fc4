# SPDX-License-Identifier: Apache-2.0
"""Objects are converted to rows and back unchanged; values that do not fit are refused with AsterixDB's number."""

from __future__ import annotations

import random

import pytest

from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.stored import (
    AnyType,
    ArrayType,
    BagType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    form_of,
    object_shaper,
    to_object,
    to_row,
)
from limnos.rooms.sqlpp.language.values.model import Bag, Date, Float, Integer, TinyInt, Value, type_name
from limnos.rooms.sqlpp.language.values.order import key
from tests.rooms.sqlpp.language.stored import values

USERS = StorageForm(
    RecordType(
        (
            FieldType("id", Scalar("integer")),
            FieldType("name", Scalar("string"), optional=True),
            FieldType("born", Scalar("date"), optional=True),
            FieldType("tags", BagType(Scalar("string")), optional=True),
        )
    ),
    (("id",),),
)


def typed(value: Value) -> object:
    """Return a value with the types of all of its parts, so that 1 and 1.0 differ."""
    if isinstance(value, dict):
        return {name: typed(field_value) for name, field_value in value.items()}
    if isinstance(value, tuple) and type_name(value) in ("array", "multiset"):
        return type_name(value), [typed(item) for item in value]
    return type_name(value), key(value)


@pytest.mark.parametrize("seed", range(300))
def test_objects_round_trip_through_rows(seed: int) -> None:
    """Random objects of random types survive the conversion to a row and back, including types, MISSING and NULL."""
    of = random.Random(seed)
    form = values.form(of)
    original = values.fields(of, form.type)

    decoded = to_object(form)(to_row(form)(object_shaper(form)(original)))

    assert typed(decoded) == typed(original)


def test_declared_fields_are_columns_and_others_are_open() -> None:
    """Typed fields are columns, other fields are text in the open part; an explicit NULL is distinguished from a
    missing field.
    """
    row = to_row(USERS)(object_shaper(USERS)({"id": 1, "born": None, "tags": Bag(("x",)), "seen": Date(0)}))

    assert row == {
        "id": 1,
        "name": None,
        "born": None,
        "tags": ["x"],
        "_open": '{"born":null,"seen":{"$date":"1970-01-01"}}',
    }


def test_fields_come_in_the_declared_order() -> None:
    """A decoded object has its declared fields first, in declared order, including NULL ones."""
    row = to_row(USERS)({"x": 1, "born": None, "name": "Ann", "id": Integer(1)})

    assert list(to_object(USERS)(row)) == ["id", "name", "born", "x"]
    assert list(object_shaper(USERS)({"x": 1, "born": None, "name": "Ann", "id": 1})) == ["id", "name", "born", "x"]


def test_columns_that_were_not_read_are_missing() -> None:
    """A row with some columns is an object with those fields."""
    assert to_object(USERS)({"id": 4}) == {"id": 4}


@pytest.mark.parametrize(
    "original, expected",
    [
        ({"id": 7}, {"id": Integer(7)}),
        ({"id": TinyInt(7)}, {"id": Integer(7)}),
        ({"id": 7.0}, {"id": Integer(7)}),
    ],
)
def test_numbers_become_the_declared_type(original: dict[str, Value], expected: dict[str, Value]) -> None:
    """A number is converted to the declared type if it fits."""
    assert typed(object_shaper(USERS)(original)) == typed(expected)


@pytest.mark.parametrize(
    "invalid_value, number, word",
    [
        ({}, 37, "missing a required field id: integer"),
        ({"id": None}, 1, "Field type null cannot be promoted to type integer"),
        ({"id": 2**31}, 1, "bigint cannot be promoted to type integer (field id)"),
        ({"id": 1.5}, 1, "double cannot be promoted to type integer"),
        ({"id": "1"}, 1, "string cannot be promoted to type integer"),
        ({"id": True}, 1, "boolean cannot be promoted"),
        ({"id": 1, "tags": ("x",)}, 37, "of type multiset, but got the value of type array (field tags)"),
        ({"id": 1, "tags": Bag((1,))}, 1, "bigint cannot be promoted to type string (field tags)"),
        ({"id": 1, "born": "2012-01-01"}, 1, "string cannot be promoted to type date"),
        ((1,), 37, "of type object, but got the value of type array"),
        (None, 37, "of type object"),
    ],
)
def test_value_of_a_wrong_type_is_refused_with_field_and_types(invalid_value: Value, number: int, word: str) -> None:
    """The refusal names the field, the type and the value's type."""
    with pytest.raises(SqlppError) as error:
        object_shaper(USERS)(invalid_value)

    assert error.value.number == number
    assert word in error.value.text


@pytest.mark.parametrize("invalid_object", [{}, {"id": None}])
def test_missing_required_field_in_a_file_has_its_own_error(invalid_object: dict[str, Value]) -> None:
    """Files have a separate error for a missing required field."""
    with pytest.raises(SqlppError, match="ASX3075: Closed field id has null value"):
        object_shaper(USERS, lenient=True)(invalid_object)


def test_closed_type_refuses_undeclared_fields() -> None:
    """A field that a closed type does not declare is refused by name."""
    closed = StorageForm(RecordType((FieldType("id", Scalar("bigint")),), open=False), (("id",),))

    with pytest.raises(SqlppError, match=r"ASX3058.*new field name: x"):
        object_shaper(closed)({"id": 1, "x": 2})


def test_file_text_is_converted_to_the_declared_type() -> None:
    """For files with text only, text of the declared type is converted, and other text is refused."""
    lenient = object_shaper(USERS, lenient=True)

    assert lenient({"id": "7", "born": "1970-01-02", "tags": ("x",)}) == {"id": 7, "born": Date(1), "tags": Bag(("x",))}
    with pytest.raises(SqlppError, match="ASX0001"):
        lenient({"id": "seven"})


def test_closed_type_stores_fields_without_column_in_open_part() -> None:
    """A closed type stores fields whose names or types no column can have as text in the open part."""
    form = StorageForm(
        RecordType(
            (
                FieldType("id", Scalar("bigint")),
                FieldType("a.b", Scalar("float")),
                FieldType("_open", Scalar("string")),
                FieldType("any", ArrayType(AnyType())),
            ),
            open=False,
        ),
        (("id",),),
    )
    original: dict[str, Value] = {"id": 1, "a.b": Float(0.5), "_open": "x", "any": (1, "a")}

    row = to_row(form)(original)

    assert set(row) == {"id", "_open"}
    assert typed(to_object(form)(row)) == typed(original)


def test_foreign_table_refuses_fields_without_a_column() -> None:
    """In a table of another writer NULL is an empty column, and a field without a column is refused."""
    form = form_of(
        {
            "type": "struct",
            "fields": [
                {"id": 1, "name": "a", "required": False, "type": "long"},
                {"id": 2, "name": "m", "required": False, "type": {"type": "map"}},
            ],
        }
    )

    assert to_row(form)({"a": None}) == {"a": None}
    with pytest.raises(SqlppError, match="no column m"):
        to_row(form)({"a": 1, "m": {"x": 1}})
