# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's current schema: rows that exist stay readable."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.evolution import check_column_names, is_promotion
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.types import parse_primitive
from limnos.model.errors import BadRequest
from limnos.names.columns import METADATA_COLUMNS
from tests.formats.iceberg.samples import add, appended, commit, field, ref, schema, table

TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 2)",
    "decimal(10, 2)",
    "decimal(10, 3)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[2]",
    "binary",
    "timestamp_ns",
    "unknown",
)
FROM_V1 = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(10, 2)")}
FROM_V3 = {("date", "timestamp"), ("date", "timestamp_ns"), *(("unknown", each) for each in TYPES[:-1])}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_promotions_are_those_of_the_specification(version: int) -> None:
    """Each pair of types, in each format version."""
    allowed = {
        (old, new)
        for old in TYPES
        for new in TYPES
        if old != new and is_promotion(parse_primitive(old), parse_primitive(new), version=version)
    }

    assert allowed == FROM_V1 | (FROM_V3 if version > 2 else set())


def evolve(base: Json, *fields: Json, more: tuple[Json, ...] = ()) -> Json:
    """Commit a new current schema."""
    updates: list[Json] = [
        {"action": "add-schema", "schema": schema(*fields)},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    return commit(base, *updates, *more)


ID, NAME, DAY = field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date")
INNER: Json = {"type": "struct", "fields": [field(5, "x", required=True)]}
GOOD: dict[str, tuple[Json, ...]] = {
    "new optional column": (ID, NAME, DAY, field(4, "more", "int")),
    "required becomes optional": (field(1, "id"), NAME, DAY),
    "dropped and renamed": (ID, field(3, "when", "date")),
    "another type under a new id": (ID, field(4, "name", "int"), DAY),
    "required in a new optional struct": (ID, NAME, DAY, field(4, "s", INNER)),
}
BAD: dict[str, tuple[tuple[Json, ...], str]] = {
    "type": ((ID, field(2, "name", "int"), DAY), "name of type string cannot become int"),
    "struct": ((ID, field(2, "name", INNER), DAY), "name was string and cannot become a struct"),
    "narrower": ((field(1, "id", "int", required=True), NAME, DAY), "id of type long cannot become int"),
    "optional becomes required": ((ID, field(2, "name", "string", required=True), DAY), "cannot become required"),
    "new required": ((ID, NAME, DAY, field(4, "more", required=True)), "more is new and required"),
}


@pytest.mark.parametrize("name", GOOD)
def test_schema_that_reads_existing_rows_is_accepted(name: str) -> None:
    """Rows that exist can be read with the next schema."""
    assert evolve(appended(1), *GOOD[name])["current-schema-id"] == 1


@pytest.mark.parametrize("name", BAD)
def test_schema_that_cannot_read_existing_rows_is_refused(name: str) -> None:
    """The message names the column and the change."""
    fields, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        evolve(appended(1), *fields)

    assert text in caught.value.message


def test_new_required_column_with_an_initial_default_is_accepted() -> None:
    """Rows that exist get the default."""
    more = field(4, "more", "int", required=True, **{"initial-default": 5, "write-default": 5})

    assert evolve(appended(1, version=3), ID, NAME, DAY, more)["current-schema-id"] == 1


@pytest.mark.parametrize("name", BAD)
def test_table_without_rows_takes_any_schema(name: str) -> None:
    """No row exists: none was written, all were deleted, or the commit replaces them."""
    fields = BAD[name][0]
    empty = add(1, summary={"operation": "delete", "total-records": "0"})
    no_main: Json = {"action": "remove-snapshot-ref", "ref-name": "main"}

    assert evolve(table(2), *fields)["current-schema-id"] == 1
    assert evolve(commit(table(2), empty, ref(1)), *fields)["current-schema-id"] == 1
    assert evolve(appended(1), *fields, more=(no_main,))["current-schema-id"] == 1
    assert evolve(appended(1), *fields, more=(add(2), ref(2)))["current-schema-id"] == 1


def test_rows_with_a_parent_keep_their_columns() -> None:
    """A commit that adds rows to those that exist does not change the type of a column."""
    with pytest.raises(BadRequest, match="name of type string cannot become int"):
        evolve(appended(1), ID, field(2, "name", "int"), DAY, more=(add(2, parent=1), ref(2)))


@pytest.mark.parametrize("name", sorted(METADATA_COLUMNS))
def test_names_of_metadata_columns_are_refused(name: str) -> None:
    """A new column, a renamed one, and one of a new table or of a replaced one must not have such a name; a nested
    field may.
    """
    inner: Json = {"type": "struct", "fields": [field(5, name)]}
    for fields in ((ID, NAME, DAY, field(4, name)), (ID, field(2, name, "string"), DAY)):
        with pytest.raises(BadRequest, match=f"field '{name}': Iceberg reserves this name"):
            evolve(appended(1), *fields)
        with pytest.raises(BadRequest, match="Iceberg reserves this name"):
            evolve(table(2), *fields)

    assert evolve(appended(1), ID, NAME, DAY, field(4, "s", inner))["current-schema-id"] == 1


def test_reserved_column_of_an_older_release_stays() -> None:
    """A table that has such a column takes other columns, and its rename, but no second one."""
    old = schema(ID, field(2, "_file", "string"))

    check_column_names(columns(schema(ID, field(2, "_file", "string"), field(3, "more"))), old)
    check_column_names(columns(schema(ID, field(2, "file", "string"))), old)
    with pytest.raises(BadRequest, match="'_pos'"):
        check_column_names(columns(schema(ID, field(2, "_file", "string"), field(3, "_pos"))), old)
    with pytest.raises(BadRequest, match="'_file'"):
        check_column_names(columns(schema(ID, field(3, "_file", "string"))), old)


def test_heal_of_a_damaged_schema_adds_no_reserved_column() -> None:
    """A current schema that cannot be parsed says nothing of its rows, and its names still count."""
    damaged = schema(ID, field(2, "_pos"), field(3, "a", "date", **{"write-default": "2024-02-30"}), **{"schema-id": 0})
    base = {**appended(1), "schemas": [damaged]}

    healed = evolve(base, ID, field(2, "_pos"), field(3, "a", "date"))

    assert healed["current-schema-id"] == 1
    with pytest.raises(BadRequest, match="field '_file': Iceberg reserves this name"):
        evolve(base, ID, field(2, "_pos"), field(3, "a", "date"), field(4, "_file", "string"))
