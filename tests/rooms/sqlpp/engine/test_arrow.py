# SPDX-License-Identifier: Apache-2.0
"""Objects as Arrow tables and back."""

from __future__ import annotations

import random

import pytest

from limnos.rooms.sqlpp.engine.arrow import objects_of, schema_of, table_of
from limnos.rooms.sqlpp.language.stored import FieldType, RecordType, Scalar, StorageForm, object_shaper
from tests.rooms.sqlpp.language.stored import values
from tests.rooms.sqlpp.language.stored.test_rows import typed


@pytest.mark.parametrize("seed", range(60))
def test_random_objects_round_trip_through_arrow(seed: int) -> None:
    """Objects of random types, including dates outside of Python's range, survive the conversion to Arrow and back."""
    of = random.Random(seed)
    form = values.form(of)
    objects = [object_shaper(form)(values.fields(of, form.type)) for _ in range(3)]

    table = table_of(form, objects)

    assert [typed(one) for one in objects_of(form, table.to_batches())] == [typed(one) for one in objects]
    assert table.schema == schema_of(form.type)


def test_selected_columns_become_objects_with_those_fields() -> None:
    """A table with the requested columns is converted to objects with those fields."""
    form = StorageForm(RecordType((FieldType("a", Scalar("date")), FieldType("b", Scalar("string")))), (("a",),))
    table = table_of(form, [object_shaper(form, lenient=True)({"a": "9999-12-31", "b": "x"})])

    assert [list(one) for one in objects_of(form, table.select(["b"]).to_batches())] == [["b"]]


def test_key_columns_are_required() -> None:
    """The column of a key, and the structs around it, are required."""
    record = RecordType(
        (FieldType("at", RecordType((FieldType("k", Scalar("bigint")),))), FieldType("b", Scalar("string")))
    )

    schema = schema_of(record, keys=frozenset({("at", "k")}))

    assert [field.nullable for field in schema] == [False, True, True]
    assert not schema.field("at").type.field("k").nullable
