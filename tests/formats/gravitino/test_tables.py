# SPDX-License-Identifier: Apache-2.0
"""Gravitino's alters of Iceberg tables agree with a model of columns and ids, step by step."""

from __future__ import annotations

import random

import msgspec
import pytest

from limnos.formats.gravitino.tables import (
    GravitinoCreate,
    IcebergTableMetadata,
    TableChange,
    commit_of,
    iceberg_create_of,
    table_json,
)
from limnos.formats.iceberg.create import new_table
from limnos.formats.iceberg.updates import apply
from limnos.model.errors import BadRequest, LimnosError

Json = dict[str, object]
COLUMNS: list[Json] = [
    {"name": "id", "type": "long", "nullable": False},
    {"name": "n", "type": "integer"},
    {
        "name": "s",
        "type": {"type": "struct", "fields": [{"name": "a", "type": "float"}, {"name": "b", "type": "varchar(9)"}]},
    },
    {"name": "at", "type": "date"},
]


def create_metadata(version: str = "2", **more: object) -> Json:
    """Return the metadata of a table that a create has made."""
    arguments: Json = {
        "comment": "c",
        "columns": COLUMNS,
        "properties": {"format-version": version},
        "partitioning": (),
        "sort_orders": (),
        "distribution": None,
        "indexes": (),
    }
    iceberg_create = iceberg_create_of(GravitinoCreate(**{**arguments, **more}))  # type: ignore[arg-type]
    return new_table(
        uuid="01234567-0123-4567-89ab-0123456789ab",
        location="file:///w/t",
        schema=iceberg_create.schema,
        partition_spec=iceberg_create.partition_spec,
        write_order=iceberg_create.write_order,
        properties=iceberg_create.properties,
        now_ms=1,
    )


def changed(metadata: Json, *changes: Json) -> Json:
    """Return the metadata after an alter."""
    decoded = [msgspec.convert(each, type=TableChange) for each in changes]  # type: ignore[arg-type]
    commit = commit_of(msgspec.convert(metadata, type=IcebergTableMetadata), decoded)
    return apply(metadata, commit.updates, now_ms=2, previous_location=None) if commit.updates else metadata


def convert_to_gravitino(metadata: Json) -> Json:
    """Return the table in Gravitino's format."""
    return table_json(msgspec.convert(metadata, type=IcebergTableMetadata))


def ids(metadata: Json) -> dict[str, int]:
    """Return the ids of the top-level columns by name."""
    schema = msgspec.convert(metadata, type=IcebergTableMetadata).schema
    return {each["name"]: each["id"] for each in schema["fields"]}  # type: ignore[attr-defined]


def names(metadata: Json) -> list[str]:
    """Return the names of the columns."""
    return [each["name"] for each in convert_to_gravitino(metadata)["columns"]]  # type: ignore[attr-defined]


def test_created_table_round_trip() -> None:
    """A created table is returned as it was sent, including partitioning, sort order, distribution and primary key."""
    partitioning: list[Json] = [
        {"strategy": "day", "fieldName": ["at"]},
        {"strategy": "bucket", "numBuckets": 8, "fieldNames": [["id"]]},
        {"strategy": "truncate", "width": 4, "fieldName": ["s", "b"]},
        {"strategy": "identity", "fieldName": ["n"]},
    ]
    field = {"type": "field", "fieldName": ["id"]}
    literal = {"type": "literal", "dataType": "integer", "value": "8"}
    orders: list[Json] = [
        {"sortTerm": field, "direction": "desc", "nullOrdering": "nulls_first"},
        {
            "sortTerm": {"type": "function", "funcName": "bucket", "funcArgs": [literal, field]},
            "direction": "asc",
            "nullOrdering": "nulls_last",
        },
    ]
    key: Json = {"indexType": "PRIMARY_KEY", "name": "PRIMARY_KEY", "fieldNames": [["id"]]}
    hashed: Json = {"strategy": "hash", "number": 0, "funcArgs": []}

    table = convert_to_gravitino(
        create_metadata(partitioning=partitioning, sort_orders=orders, distribution=hashed, indexes=[key])
    )

    assert (table["partitioning"], table["sortOrders"], table["distribution"], table["indexes"]) == (
        partitioning,
        orders,
        hashed,
        [key],
    )
    assert table["comment"] == "c"
    assert "gravitino.types" not in str(table["properties"])


@pytest.mark.parametrize(
    "more",
    [
        {"partitioning": [{"strategy": "list", "fieldNames": [["id"]], "assignments": []}]},
        {"partitioning": [{"strategy": "bucket", "numBuckets": 8, "fieldNames": [["id"], ["n"]]}]},
        {"partitioning": [{"strategy": "day", "fieldName": ["none"]}]},
        {"partitioning": [{"strategy": "day"}]},
        {"distribution": {"strategy": "even", "number": 2, "funcArgs": []}},
        {"distribution": {"strategy": "hash", "number": 4}},
        {"sort_orders": [{"sortTerm": {"type": "field", "fieldName": ["none"]}}]},
        {"indexes": [{"indexType": "UNIQUE_KEY", "name": "u", "fieldNames": [["id"]]}]},
        {"columns": []},
        {"indexes": [{"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["gone"]]}]},
        {"properties": {"comment": "x"}},
        {"properties": {"format": "delta"}},
        {"properties": {"provider": "hive"}},
    ],
    ids=str,
)
def test_create_without_iceberg_equivalent_is_refused(more: Json) -> None:
    """A create that Iceberg cannot represent is refused with a client error."""
    with pytest.raises(LimnosError):
        create_metadata(**more)  # type: ignore[arg-type]


def test_columns_keep_ids_after_every_change() -> None:
    """Columns keep their ids after every kind of change, whatever their new names and positions."""
    before = create_metadata("3")
    literal = {"type": "literal", "dataType": "integer", "value": "7"}
    after = changed(
        before,
        {
            "@type": "addColumn",
            "fieldName": ["new"],
            "type": "short",
            "comment": "x",
            "position": {"after": "id"},
            "nullable": True,
            "autoIncrement": False,
            "defaultValue": literal,
        },
        {
            "@type": "addColumn",
            "fieldName": ["s", "c"],
            "type": {"type": "list", "containsNull": True, "elementType": "char(2)"},
            "position": "first",
        },
        {"@type": "renameColumn", "oldFieldName": ["n"], "newFieldName": "m"},
        {"@type": "updateColumnType", "fieldName": ["m"], "newType": "long"},
        {"@type": "updateColumnType", "fieldName": ["s", "b"], "newType": "varchar(99)"},
        {"@type": "updateColumnComment", "fieldName": ["at"], "newComment": "when"},
        {"@type": "updateColumnPosition", "fieldName": ["at"], "newPosition": "first"},
        {"@type": "updateColumnNullability", "fieldName": ["id"], "nullable": True},
        {"@type": "updateColumnDefaultValue", "fieldName": ["m"], "newDefaultValue": {**literal, "dataType": "long"}},
        {"@type": "updateColumnAutoIncrement", "fieldName": ["m"], "autoIncrement": False},
        {"@type": "deleteColumn", "fieldName": ["none"], "ifExists": True},
        {"@type": "setProperty", "property": "k", "value": "v"},
        {"@type": "updateComment", "newComment": "d"},
    )

    table = convert_to_gravitino(after)
    assert names(after) == ["at", "id", "new", "m", "s"]
    assert {name: ids(after)[name] for name in ("id", "at", "s")} == {
        name: ids(before)[name] for name in ("id", "at", "s")
    }
    assert ids(after)["m"] == ids(before)["n"]
    assert ids(after)["new"] == before["last-column-id"] + 1  # type: ignore[operator]
    kinds = {each["name"]: each for each in table["columns"]}  # type: ignore[attr-defined]
    assert [each["name"] for each in kinds["s"]["type"]["fields"]] == ["c", "a", "b"]
    assert kinds["s"]["type"]["fields"][0]["type"]["elementType"] == "char(2)"
    assert (kinds["s"]["type"]["fields"][2]["type"], kinds["m"]["type"], kinds["new"]["type"]) == (
        "varchar(99)",
        "long",
        "short",
    )
    assert (kinds["id"]["nullable"], kinds["at"]["comment"], table["comment"], table["properties"]["k"]) == (
        True,
        "when",
        "d",
        "v",
    )  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        {"@type": "addColumn", "fieldName": ["id"], "type": "long"},
        {"@type": "addColumn", "fieldName": ["x"], "type": "long", "nullable": False},
        {"@type": "addColumn", "fieldName": ["none", "x"], "type": "long"},
        {"@type": "addColumn", "fieldName": ["n", "x"], "type": "long"},
        {"@type": "addColumn", "fieldName": ["x"], "type": "long", "position": {"after": "none"}},
        {"@type": "addColumn", "fieldName": [], "type": "long"},
        {"@type": "addColumn", "fieldName": ["x"], "type": "long", "position": "last"},
        {"@type": "renameColumn", "oldFieldName": ["n"], "newFieldName": "id"},
        {"@type": "renameColumn", "oldFieldName": ["none"], "newFieldName": "x"},
        {"@type": "updateColumnType", "fieldName": ["id"], "newType": "integer"},
        {"@type": "updateColumnType", "fieldName": ["s"], "newType": "long"},
        {"@type": "updateColumnNullability", "fieldName": ["n"], "nullable": False},
        {"@type": "deleteColumn", "fieldName": ["none"]},
        {"@type": "deleteColumn", "fieldName": ["at"]},
        {"@type": "deleteColumn", "fieldName": ["id"]},
        {"@type": "updateColumnAutoIncrement", "fieldName": ["n"], "autoIncrement": True},
        {"@type": "addTableIndex", "index": {"indexType": "VECTOR", "name": "v", "fieldNames": [["n"]]}},
        {"@type": "deleteTableIndex", "name": "none"},
        {"@type": "setProperty", "property": "gravitino.types", "value": "{}"},
        {"@type": "removeProperty", "property": "location"},
        {"@type": "setProperty", "property": "format-version", "value": "x"},
        {"@type": "setProperty", "property": "", "value": "x"},
    ],
    ids=str,
)
def test_breaking_changes_are_refused(change: Json) -> None:
    """A change that would break existing rows, or that names a missing column, is a client error."""
    metadata = create_metadata(
        partitioning=[{"strategy": "day", "fieldName": ["at"]}],
        indexes=[{"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["id"]]}],
    )

    with pytest.raises(LimnosError):
        changed(metadata, change)


def test_random_alters_agree_with_model() -> None:
    """After each of two hundred random alters, names, order and ids of the columns equal those of the model."""
    dice = random.Random(7)
    metadata = create_metadata()
    model = list(ids(metadata).items())
    last = metadata["last-column-id"]
    for number in range(200):
        name = dice.choice(model)[0] if model else "none"
        at = [each[0] for each in model].index(name)
        other = f"c{number}"
        match dice.randrange(4):
            case 0:
                last += 1  # type: ignore[operator]
                change: Json = {
                    "@type": "addColumn",
                    "fieldName": [other],
                    "type": dice.choice(["integer", "varchar(5)"]),
                    "position": {"after": name},
                }
                model.insert(at + 1, (other, last))  # type: ignore[arg-type]
            case 1:
                change = {"@type": "renameColumn", "oldFieldName": [name], "newFieldName": other}
                model[at] = (other, model[at][1])
            case 2:
                change = {"@type": "updateColumnPosition", "fieldName": [name], "newPosition": "first"}
                model.insert(0, model.pop(at))
            case _:
                if len(model) < 3:
                    continue
                change = {"@type": "deleteColumn", "fieldName": [name]}
                del model[at]
        metadata = changed(metadata, change)

        assert list(ids(metadata).items()) == model
        assert names(metadata) == [each[0] for each in model]


def test_stored_type_is_deleted_with_its_column() -> None:
    """When a column is deleted, its stored original type is deleted, too."""
    metadata = changed(create_metadata(), {"@type": "deleteColumn", "fieldName": ["s"]})

    assert "gravitino.types" not in metadata["properties"]  # type: ignore[operator]


def test_alter_without_change_commits_nothing() -> None:
    """An alter that sets a column to its current state returns the same metadata."""
    metadata = create_metadata()

    assert changed(metadata, {"@type": "updateColumnNullability", "fieldName": ["n"], "nullable": True}) is metadata


def test_partition_without_strategy_is_refused() -> None:
    """The refusal of a partition without a strategy says so."""
    with pytest.raises(BadRequest, match="strategy"):
        create_metadata(partitioning=[{"fieldName": ["id"]}])
