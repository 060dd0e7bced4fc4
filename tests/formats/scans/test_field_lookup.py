# SPDX-License-Identifier: Apache-2.0
"""Resolution of column names if a scan's schema is not the current one."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType

from limnos.formats.scans.field_lookup import FieldLookup

THEN = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "paid", LongType()),
    NestedField(3, "a", StringType()),
    NestedField(4, "b", StringType()),
    NestedField(5, "gone", DateType()),
)
TODAY = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "amount", LongType()),
    NestedField(3, "b", StringType()),
    NestedField(4, "a", StringType()),
    NestedField(6, "new", DateType()),
)


@pytest.mark.parametrize(
    "name,number",
    [
        ("paid", 2),  # as in the snapshot's schema
        ("amount", 2),  # as in the table's schema
        ("gone", 5),
        (2, 2),
        ("new", None),  # no row of the snapshot has this field
        ("id", None),  # the type has changed
        ("a", None),  # the name means different columns
        ("b", None),
    ],
)
def test_unambiguous_names_of_both_schemas_are_resolved(name: str | int, number: int | None) -> None:
    """A name that has the same meaning in both schemas is resolved. An ambiguous name is not."""
    field = FieldLookup(THEN, today=TODAY, case_sensitive=True).field(name)

    assert (None if field is None else field.field_id) == number


@pytest.mark.parametrize("today", [None, TODAY], ids=["one schema", "two"])
@pytest.mark.parametrize("name", ["nothing", "PAID", 77])
def test_unknown_name_or_id_is_an_error(name: str | int, today: Schema | None) -> None:
    """A name or an id that neither schema has is an error."""
    with pytest.raises(ValueError, match=str(name)):
        FieldLookup(THEN, today=today, case_sensitive=True).field(name)


def test_names_of_single_schema_are_resolved() -> None:
    """With only one schema, its names are found, in any case if the lookup is case-insensitive."""
    naming = FieldLookup(THEN, today=None, case_sensitive=False)

    assert [naming.field(name).field_id for name in ("ID", "a", "B", "Paid")] == [1, 3, 4, 2]  # type: ignore[union-attr]
