# SPDX-License-Identifier: Apache-2.0
"""Applies Gravitino's column changes to an Iceberg schema: existing fields keep their ids, new fields get new ids
(reference section 2.3).

Must not know tables. Pure. Only changes that Iceberg's schema evolution allows are made: types are widened and columns
become optional.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from limnos.formats.gravitino.columns import FieldBuilder, default_of, plain_of, stands_for
from limnos.formats.iceberg.evolution import is_promotion
from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.types import parse_primitive
from limnos.model.errors import BadRequest, UnsupportedOperation

PRIMARY: Final = "PRIMARY_KEY"


class FieldPosition(NamedTuple):
    """The list that contains a field, and the field's index in it."""

    fields: list[Json]
    position: int

    @property
    def field(self) -> Json:
        """The field's JSON object in the list."""
        return self.fields[self.position]


class SchemaDraft:
    """A schema with pending changes. The original schema is not modified."""

    def __init__(self, schema: Json, *, original_types: Mapping[str, str], last_id: int, version: int) -> None:
        self.schema: Json = copy.deepcopy(schema)
        self.original_types = dict(original_types)
        self.last_id = last_id
        self.version = version

    def build_schema(self) -> tuple[Json, dict[str, str]]:
        """Return the changed schema, and the original types (by field id) of the fields that still have them.

        Raises BadRequest if the changed schema is invalid.
        """
        schema_columns = columns(self.schema)
        types = {
            str(each.id): each.primitive.text for each in schema_columns.by_id.values() if each.primitive is not None
        }
        entries = {
            key: word for key, word in self.original_types.items() if key in types and stands_for(word, types[key])
        }
        return self.schema, entries

    def add(self, path: Sequence[str], column: Json, *, position: object) -> None:
        """Add a column at a position.

        Raises BadRequest for a name that exists, a missing parent, an invalid position or type, and a required column
        without a default value, because existing rows would lack a value. Raises UnsupportedOperation for a feature
        that Iceberg lacks.
        """
        *above, name = path
        fields = self._fields(above)
        self._refuse_taken(fields, name)
        maker = FieldBuilder(self.last_id + 1)
        new_field = maker.field({**column, "name": name})
        if new_field["required"] and new_field.get("write-default") is None:
            raise BadRequest(
                f"Column {_join_path(path)} is not nullable, and existing rows have no value for it: make it nullable"
            )
        if "write-default" in new_field:
            new_field["initial-default"] = new_field["write-default"]
        self.original_types |= maker.original_types
        self.last_id = columns({"type": "struct", "fields": [new_field]}).highest_id
        fields.append(new_field)
        self._put(fields, len(fields) - 1, position=position)

    def rename(self, path: Sequence[str], new_name: str) -> None:
        """Rename a column. Its id, and all references to it, stay the same.

        Raises BadRequest for a missing column, and for a new name that is empty or exists.
        """
        if not new_name:
            raise BadRequest(f"Column {_join_path(path)} needs a name: the new one is empty")
        place = self._find(path)
        if new_name != place.field["name"]:
            self._refuse_taken(place.fields, new_name)
        place.field["name"] = new_name

    def retype(self, path: Sequence[str], new_type: object) -> None:
        """Promote a column's type to a wider primitive type.

        Raises BadRequest for a missing column, a nested or unknown type, and a type that is not wider.
        """
        field = self._find(path).field
        old, name = field["type"], _join_path(path)
        if not isinstance(old, str) or not isinstance(new_type, str):
            raise BadRequest(
                f"Column {name}: only primitive types can change; add, rename or delete the columns within it"
            )
        new = plain_of(new_type, name)
        if not is_promotion(parse_primitive(old), parse_primitive(new.iceberg), version=self.version):
            raise BadRequest(
                f"Column {name} of type {old} cannot become {preview_value(new_type)}: Iceberg only widens types"
            )
        field["type"] = new.iceberg
        self.original_types.pop(str(field["id"]), None)
        if new.word is not None:
            self.original_types[str(field["id"])] = new.word

    def comment(self, path: Sequence[str], comment: str | None) -> None:
        """Change or remove (None) a column's comment. Raises BadRequest for a missing column."""
        field = self._find(path).field
        field.pop("doc", None)
        if comment is not None:
            field["doc"] = comment

    def nullability(self, path: Sequence[str], *, nullable: bool) -> None:
        """Make a column nullable.

        Raises BadRequest for a missing column, and if a nullable column is made required: existing rows may contain
        nulls.
        """
        field = self._find(path).field
        if not nullable and field.get("required") is not True:
            raise BadRequest(f"Column {_join_path(path)} is nullable and may contain nulls: it cannot become required")
        field["required"] = not nullable

    def default(self, path: Sequence[str], value: object) -> None:
        """Change or remove (None) a column's default value for new rows.

        Raises BadRequest for a missing column, otherwise as `default_of` does.
        """
        field = self._find(path).field
        word = self.original_types.get(str(field["id"]))
        result = None if value is None else default_of(value, field["type"], word=word, name=_join_path(path))
        field.pop("write-default", None)
        if result is not None:
            field["write-default"] = result

    def refuse_counting(self, *, counts: bool) -> None:
        """Raise UnsupportedOperation if `counts`: Iceberg has no auto-increment columns."""
        if counts:
            raise UnsupportedOperation("Iceberg has no auto-increment: leave autoIncrement out")

    def reposition(self, path: Sequence[str], position: object) -> None:
        """Move a column among its siblings. Raises BadRequest for a missing column or an invalid position."""
        place = self._find(path)
        self._put(place.fields, place.position, position=position)

    def delete(self, path: Sequence[str], *, if_exists: bool, used: Mapping[object, str]) -> None:
        """Delete a column.

        Raises BadRequest for a column that is in `used` or in the primary key, and for a missing column unless
        `if_exists`. `used` maps the ids of fields in use to their use, such as partitioning.
        """
        try:
            place = self._find(path)
        except BadRequest:
            if if_exists:
                return
            raise
        by_id = columns({"type": "struct", "fields": [place.field]}).by_id
        for field_id in by_id:
            if field_id in used:
                raise BadRequest(f"Column {_join_path(path)} cannot be deleted: {used[field_id]} needs it")
            if field_id in self._identifiers():
                raise BadRequest(f"Column {_join_path(path)} cannot be deleted: the primary key needs it")
        del place.fields[place.position]

    def add_index(self, index: Json) -> None:
        """Set the primary key: Iceberg's identifier fields. Raises as `set_identifiers` does."""
        set_identifiers(self.schema, index)

    def delete_index(self, name: str, *, if_exists: bool) -> None:
        """Remove the primary key. Raises BadRequest if it does not exist, unless `if_exists`."""
        if not self._identifiers() or name.upper() not in (PRIMARY, "PRIMARY"):
            if if_exists:
                return
            raise BadRequest(
                f"The table has no index {preview_value(name)}: Iceberg has only primary keys, called {PRIMARY}"
            )
        self.schema.pop("identifier-field-ids", None)

    def _identifiers(self) -> list[object]:
        return cast("list[object]", self.schema.get("identifier-field-ids") or [])

    def _find(self, path: Sequence[str]) -> FieldPosition:
        *above, name = path
        fields = self._fields(above)
        for index, field in enumerate(fields):
            if field["name"] == name:
                return FieldPosition(fields, index)
        raise BadRequest(f"The table has no column {_join_path(path)}")

    def _fields(self, path: Sequence[str]) -> list[Json]:
        """Return the list of fields at a path: of the table, or of a nested struct.

        Raises BadRequest if the path does not exist or is not a struct.
        """
        schema: object = self.schema
        walked: list[str] = []
        for name in path:
            walked.append(name)
            schema = _child_type(schema, name)
            if schema is None:
                raise BadRequest(f"The table has no column {_join_path(walked)}")
        if not isinstance(schema, dict) or schema.get("type") != "struct":
            raise BadRequest(f"Column {_join_path(path)} is not a struct: it has no columns within it")
        return cast("list[Json]", schema["fields"])

    def _refuse_taken(self, fields: list[Json], name: str) -> None:
        if any(each["name"] == name for each in fields):
            raise BadRequest(f"The table has a column {preview_value(name)} already")

    def _put(self, fields: list[Json], index: int, *, position: object) -> None:
        """Move a field to a position: first, after another field, or unchanged.

        Raises BadRequest for a malformed position, or if the other field does not exist.
        """
        if isinstance(position, str) and position.lower() == "first":
            fields.insert(0, fields.pop(index))
        elif isinstance(position, dict) and isinstance(position.get("after"), str):
            after = next((each for each in fields if each["name"] == position["after"]), None)
            if after is None:
                raise BadRequest(f"There is no column {preview_value(position['after'])} in the same struct")
            field = fields.pop(index)
            fields.insert(fields.index(after) + 1 if after is not field else index, field)
        elif not (position is None or (isinstance(position, str) and position.lower() == "default")):
            raise BadRequest("A position must be first, default or an object with after")


def set_identifiers(schema: Json, index: Json) -> None:
    """Make the columns of a primary key a schema's identifier fields.

    Raises UnsupportedOperation for an index other than a primary key, BadRequest if the schema has identifier fields
    already or lacks a column.
    """
    kind = str(index.get("indexType", "")).upper()
    if kind != PRIMARY:
        raise UnsupportedOperation(
            f"Iceberg has no index of type {preview_value(kind)}: only {PRIMARY}, which names the identifier fields"
        )
    if schema.get("identifier-field-ids"):
        raise BadRequest("The table has a primary key already: delete it first")
    schema_columns = columns(schema)
    ids: list[object] = []
    for path in cast("list[list[str]]", index.get("fieldNames") or []):
        column = schema_columns.by_name.get(_join_path(path))
        if column is None:
            raise BadRequest(f"The table has no column {_join_path(path)}")
        ids.append(column.id)
    schema["identifier-field-ids"] = ids


def indexes_of(schema: Json) -> list[Json]:
    """Return a schema's identifier fields as a primary key."""
    ids = schema.get("identifier-field-ids")
    if not ids:
        return []
    schema_columns = columns(schema)
    names = [schema_columns.by_id[cast("int", each)].name.split(".") for each in cast("list[object]", ids)]
    return [{"indexType": PRIMARY, "name": PRIMARY, "fieldNames": names}]


def _child_type(value: object, name: str) -> object:
    """Return the type of the child `name` of a struct, list or map type.

    A list's item is called `element`, a map's `key` and `value`.
    """
    if not isinstance(value, dict):
        return None
    if value["type"] == "struct":
        return next((each["type"] for each in value["fields"] if each["name"] == name), None)
    return value.get(name) if name in ("element", "key", "value") else None


def _join_path(path: Sequence[str]) -> str:
    return ".".join(path)
