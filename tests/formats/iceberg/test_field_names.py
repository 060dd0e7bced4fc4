# SPDX-License-Identifier: Apache-2.0
"""Field ids and names in all schemas of a table's metadata."""

from __future__ import annotations

import json

from limnos.formats.iceberg import field_names as module
from limnos.formats.iceberg.field_names import NOTHING, field_names


def schema(schema_id: int, **fields: object) -> dict[str, object]:
    """Return a schema. A field is given by its id, or by id and type."""
    listed = [
        {"id": each[0], "name": name, "type": each[1]}
        if isinstance(each, tuple)
        else {"id": each, "name": name, "type": "long"}
        for name, each in fields.items()
    ]
    return {"type": "struct", "schema-id": schema_id, "fields": listed}


def read(
    *schemas: dict[str, object], current: int = 0, snapshots: tuple[tuple[int, int], ...] = ()
) -> module.FieldNames:
    """Return the field names of a document."""
    listed = [{"snapshot-id": snapshot, "schema-id": schema_id} for snapshot, schema_id in snapshots]
    return field_names(json.dumps({"schemas": schemas, "current-schema-id": current, "snapshots": listed}).encode())


def test_current_schema_takes_precedence() -> None:
    """A name has its id in the current schema, else in the latest schema that has it. An id has its latest name."""
    names = read(schema(0, a=1, b=2), schema(1, b=1, c=3), schema(2, z=9), current=1)

    assert (names.id_of("b"), names.id_of("c"), names.id_of("a"), names.id_of("z"), names.id_of("no")) == (
        1,
        3,
        1,
        9,
        None,
    )
    assert (names.names[1], names.names[2], names.names[9]) == ("b", "b", "z")
    assert names.current == {"b": 1, "c": 3}


def test_names_are_resolved_in_schema_of_snapshot() -> None:
    """For an event about a snapshot, a name has the id that it has in that snapshot's schema."""
    names = read(schema(0, a=1, b=2), schema(1, b=1), current=1, snapshots=((70, 0), (71, 1)))

    assert (names.id_of("b", snapshot=70), names.id_of("b", snapshot=71), names.id_of("b", snapshot=99)) == (2, 1, 1)


def test_nested_fields_have_dotted_names() -> None:
    """Fields of structs, elements of lists, and keys and values of maps have dotted names."""
    struct = {"type": "struct", "fields": [{"id": 4, "name": "x", "type": "long"}]}
    listed = {"type": "list", "element-id": 5, "element": struct}
    mapped = {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "long"}

    assert read(schema(0, l=(2, listed), m=(3, mapped))).current == {
        "l": 2,
        "l.element": 5,
        "l.element.x": 4,
        "m": 3,
        "m.key": 6,
        "m.value": 7,
    }


def test_document_without_schemas_has_no_names() -> None:
    """A document without schemas, an invalid document, and one that is too large have no names."""
    assert field_names(b"{}").current == {}
    assert field_names(b"[]") == field_names(b"{") == field_names(b" " * (module.BYTES_MAX + 1)) == NOTHING
