# SPDX-License-Identifier: Apache-2.0
"""Tables: Gravitino's create and alter requests as Iceberg's, and stored Iceberg tables as Gravitino's JSON.

Must not know HTTP. Pure. Changes have the fields of Gravitino's `*UpdateRequest` classes of 1.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.formats.gravitino import partitions
from limnos.formats.gravitino.changes import SchemaDraft, indexes_of, set_identifiers
from limnos.formats.gravitino.columns import (
    ORIGINAL_TYPES,
    columns_of,
    original_types_of,
    original_types_text,
    table_schema_of,
)
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest

COMMENT: Final = "comment"
LOCATION: Final = "location"
FORMAT: Final = "format"
PROVIDER: Final = "provider"
FORMAT_VERSION: Final = "format-version"
MODE: Final = "write.distribution-mode"
RESERVED: Final = frozenset(
    {
        COMMENT,
        ORIGINAL_TYPES,
        PROVIDER,
        "creator",
        "current-snapshot-id",
        "cherry-pick-snapshot-id",
        "sort-order",
        "identifier-fields",
    }
)
"""Properties that clients may not set: other fields of a request or the table's own state determine them."""
_FILES: Final = frozenset({"parquet", "orc", "avro"})


class _TableEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="@type"):
    """Base class of the changes to a table."""


class SetTableProperty(_TableEdit, frozen=True, tag="setProperty"):
    """Add a table property, or replace its value."""

    property: str
    value: str


class RemoveTableProperty(_TableEdit, frozen=True, tag="removeProperty"):
    """Remove a table property. No-op if the property is missing."""

    property: str


class UpdateTableComment(_TableEdit, frozen=True, tag="updateComment"):
    """Change or remove (null) the comment of a table."""

    new_comment: str | None = None


class AddColumn(_TableEdit, frozen=True, tag="addColumn", kw_only=True):
    """Add a column to a table, at a position among its siblings."""

    field_name: tuple[str, ...]
    type: object
    comment: str | None = None
    position: object = None
    nullable: bool = True
    auto_increment: bool = False
    default_value: object = None


class RenameColumn(_TableEdit, frozen=True, tag="renameColumn"):
    """Rename the column at a path."""

    old_field_name: tuple[str, ...]
    new_field_name: str


class UpdateColumnDefaultValue(_TableEdit, frozen=True, tag="updateColumnDefaultValue"):
    """Change a column's default value, which applies to new rows."""

    field_name: tuple[str, ...]
    new_default_value: object = None


class UpdateColumnType(_TableEdit, frozen=True, tag="updateColumnType"):
    """Change a column's type to a wider one, such as integer to long."""

    field_name: tuple[str, ...]
    new_type: object


class UpdateColumnComment(_TableEdit, frozen=True, tag="updateColumnComment"):
    """Change a column's comment."""

    field_name: tuple[str, ...]
    new_comment: str | None = None


class UpdateColumnPosition(_TableEdit, frozen=True, tag="updateColumnPosition"):
    """Move a column to another position among its siblings."""

    field_name: tuple[str, ...]
    new_position: object


class UpdateColumnNullability(_TableEdit, frozen=True, tag="updateColumnNullability"):
    """Change whether a column is nullable."""

    field_name: tuple[str, ...]
    nullable: bool


class UpdateColumnAutoIncrement(_TableEdit, frozen=True, tag="updateColumnAutoIncrement"):
    """Change whether a column is auto-incremented."""

    field_name: tuple[str, ...]
    auto_increment: bool


class DeleteColumn(_TableEdit, frozen=True, tag="deleteColumn"):
    """Drop a column from a table's schema."""

    field_name: tuple[str, ...]
    if_exists: bool = False


class AddTableIndex(_TableEdit, frozen=True, tag="addTableIndex"):
    """Add an index in Gravitino's JSON; for Iceberg only a primary key."""

    index: dict[str, object]


class DeleteTableIndex(_TableEdit, frozen=True, tag="deleteTableIndex"):
    """Delete an index (the primary key) by name."""

    name: str
    if_exists: bool = False


ColumnChange = (
    AddColumn
    | RenameColumn
    | UpdateColumnDefaultValue
    | UpdateColumnType
    | UpdateColumnComment
    | UpdateColumnPosition
    | UpdateColumnNullability
    | UpdateColumnAutoIncrement
    | DeleteColumn
    | AddTableIndex
    | DeleteTableIndex
)
TableChange = SetTableProperty | RemoveTableProperty | UpdateTableComment | ColumnChange


class IcebergTableMetadata(msgspec.Struct, rename="kebab", kw_only=True):
    """The fields of an Iceberg table's metadata that Gravitino's representation needs."""

    format_version: int
    location: str
    current_schema_id: int
    schemas: list[dict[str, object]]
    last_column_id: int = 0
    default_spec_id: int = 0
    partition_specs: list[dict[str, object]] = []
    default_sort_order_id: int = 0
    sort_orders: list[dict[str, object]] = []
    properties: dict[str, str] = {}

    @property
    def schema(self) -> Json:
        """The current schema."""
        return next(each for each in self.schemas if each.get("schema-id") == self.current_schema_id)

    @property
    def spec(self) -> Json:
        """The default partition spec; one without fields if the metadata has no specs."""
        results = [each for each in self.partition_specs if each.get("spec-id") == self.default_spec_id]
        return results[0] if results else {"fields": []}

    @property
    def order(self) -> Json:
        """The default sort order; one without fields if the metadata has no sort orders."""
        results = [each for each in self.sort_orders if each.get("order-id") == self.default_sort_order_id]
        return results[0] if results else {"fields": []}


def iceberg_metadata_of(body: bytes) -> IcebergTableMetadata:
    """Decode the fields that Gravitino's representation needs from an Iceberg table's metadata JSON."""
    return msgspec.json.decode(body, type=IcebergTableMetadata)


class IcebergCreate(NamedTuple):
    """A new table, as an Iceberg create request."""

    location: str | None
    schema: Json
    partition_spec: Json
    write_order: Json
    properties: dict[str, str]


class GravitinoCreate(NamedTuple):
    """A new table, as a Gravitino create request."""

    comment: str | None
    columns: Sequence[Json]
    properties: dict[str, str]
    partitioning: Sequence[Json]
    sort_orders: Sequence[Json]
    distribution: Json | None
    indexes: Sequence[Json]


def iceberg_create_of(create: GravitinoCreate) -> IcebergCreate:
    """Convert a create request of Gravitino to one of Iceberg.

    Raises BadRequest for a malformed request, UnsupportedOperation for a feature that Iceberg lacks.
    """
    if not create.columns:
        raise BadRequest("A table needs at least one column: columns is empty")
    schema, entries = table_schema_of(list(create.columns))
    for index in create.indexes:
        set_identifiers(schema, index)
    properties = dict(create.properties)
    location = properties.pop(LOCATION, None)
    _take_format(properties)
    for key in properties:
        _refuse_reserved(key)
    mode = None if create.distribution is None else partitions.mode_of(create.distribution)
    properties |= {} if mode is None else {MODE: mode}
    properties |= {} if create.comment is None else {COMMENT: create.comment}
    properties |= {ORIGINAL_TYPES: original_types_text(entries)} if entries else {}
    spec = partitions.spec_of(list(create.partitioning), schema)
    return IcebergCreate(
        location=location,
        schema=schema,
        partition_spec=spec,
        write_order=partitions.order_of(list(create.sort_orders), schema),
        properties=properties,
    )


def _take_format(properties: dict[str, str]) -> None:
    """Replace the properties for provider and format by Iceberg's properties. Raises BadRequest for another format."""
    provider = properties.pop(PROVIDER, "iceberg").lower()
    text = properties.pop(FORMAT, "iceberg").lower()
    table, _, rest = text.replace("/", " ").partition(" ")
    if table in _FILES:
        table, rest = "iceberg", table
    if provider in _FILES:
        provider, rest = "iceberg", provider
    if "iceberg" not in (table, provider) or table != "iceberg" or provider != "iceberg":
        raise BadRequest(f"This catalog holds Iceberg tables: leave format {text} out, or name parquet, orc or avro")
    if rest in _FILES:
        properties.setdefault("write.format.default", rest)
    elif rest.startswith("v"):
        properties.setdefault(FORMAT_VERSION, rest[1:])


def _refuse_reserved(key: str) -> None:
    if key in RESERVED:
        raise BadRequest(
            f"Property {key} is reserved: it follows from the table, and other fields of the request set it"
        )


class IcebergCommit(NamedTuple):
    """A change of a table, as an Iceberg commit request."""

    requirements: list[object]
    updates: list[object]


def commit_of(stored: IcebergTableMetadata, changes: Sequence[TableChange]) -> IcebergCommit:
    """Convert changes of a stored table to an Iceberg commit.

    Raises BadRequest for an invalid change, UnsupportedOperation for a feature that Iceberg lacks.
    """
    original_types = original_types_of(stored.properties)
    draft = SchemaDraft(
        stored.schema,
        original_types=original_types,
        last_id=stored.last_column_id,
        version=_version_after(stored, changes),
    )
    updates: list[object] = []
    for change in changes:
        if isinstance(change, SetTableProperty | RemoveTableProperty | UpdateTableComment):
            updates += _property_updates(change)
        else:
            _apply(draft, change, stored=stored)
    schema, words = draft.build_schema()
    if words != original_types:
        removed: Json = {"action": "remove-properties", "removals": [ORIGINAL_TYPES]}
        updates.append(_set_property(ORIGINAL_TYPES, original_types_text(words)) if words else removed)
    if schema == stored.schema:
        return IcebergCommit([], updates)
    requirements: list[object] = [
        {"type": "assert-current-schema-id", "current-schema-id": stored.current_schema_id},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": stored.last_column_id},
    ]
    updates.append({"action": "add-schema", "schema": schema, "last-column-id": draft.last_id})
    updates.append({"action": "set-current-schema", "schema-id": -1})
    return IcebergCommit(requirements, updates)


def _version_after(stored: IcebergTableMetadata, changes: Sequence[TableChange]) -> int:
    requested_names = [
        each.value for each in changes if isinstance(each, SetTableProperty) and each.property == FORMAT_VERSION
    ]
    return _version(requested_names[-1]) if requested_names else stored.format_version


def _version(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 2:
        raise BadRequest(f"Property {FORMAT_VERSION} must be a number, such as 2 or 3")
    return int(text)


def _set_property(key: str, value: str) -> Json:
    return {"action": "set-properties", "updates": {key: value}}


def _property_updates(change: SetTableProperty | RemoveTableProperty | UpdateTableComment) -> list[object]:
    match change:
        case UpdateTableComment(None):
            return [{"action": "remove-properties", "removals": [COMMENT]}]
        case UpdateTableComment(comment):
            return [_set_property(COMMENT, str(comment))]
        case SetTableProperty(property=key, value=value):
            _refuse_reserved(key)
            if key == LOCATION:
                return [{"action": "set-location", "location": value}]
            if key == FORMAT_VERSION:
                return [{"action": "upgrade-format-version", "format-version": _version(value)}]
            if key == FORMAT:
                raise BadRequest(f"Property {FORMAT} cannot change: set {FORMAT_VERSION} or write.format.default")
            return [_set_property(_key(key), value)]
        case RemoveTableProperty(property=key):
            _refuse_reserved(key)
            if key in (LOCATION, FORMAT, FORMAT_VERSION):
                raise BadRequest(f"Property {key} cannot be removed: every table has it")
            return [{"action": "remove-properties", "removals": [_key(key)]}]
    raise AssertionError(change)


def _key(key: str) -> str:
    if not key:
        raise BadRequest("A property needs a name: it is empty")
    return key


def _apply(draft: SchemaDraft, change: ColumnChange, *, stored: IcebergTableMetadata) -> None:
    for path in (getattr(change, "field_name", None), getattr(change, "old_field_name", None)):
        if path is not None and (not path or not all(path)):
            raise BadRequest("A column's name must be a list of at least one part, none of them empty")
    match change:
        case AddColumn(field_name=path):
            column: Json = {"type": change.type, "nullable": change.nullable, "autoIncrement": change.auto_increment}
            column |= {"comment": change.comment, "defaultValue": change.default_value}
            draft.add(path, column, position=change.position)
        case RenameColumn(old_field_name=path, new_field_name=name):
            draft.rename(path, name)
        case UpdateColumnDefaultValue(field_name=path, new_default_value=value):
            draft.default(path, value)
        case UpdateColumnType(field_name=path, new_type=kind):
            draft.retype(path, kind)
        case UpdateColumnComment(field_name=path, new_comment=comment):
            draft.comment(path, comment)
        case UpdateColumnPosition(field_name=path, new_position=position):
            draft.reposition(path, position)
        case UpdateColumnNullability(field_name=path, nullable=nullable):
            draft.nullability(path, nullable=nullable)
        case UpdateColumnAutoIncrement(auto_increment=counts):
            draft.refuse_counting(counts=counts)
        case DeleteColumn(field_name=path, if_exists=if_exists):
            draft.delete(path, if_exists=if_exists, used=_fields_in_use(stored))
        case AddTableIndex(index=index):
            draft.add_index(index)
        case DeleteTableIndex(name=name, if_exists=if_exists):
            draft.delete_index(name, if_exists=if_exists)


def _fields_in_use(stored: IcebergTableMetadata) -> dict[object, str]:
    """Return the fields that partitioning or sort order use: a description of the use for messages, by field id."""
    results: dict[object, str] = {}
    for what, holder in (("the sort order", stored.order), ("the partitioning", stored.spec)):
        fields = holder.get("fields")
        for each in fields if isinstance(fields, list) else []:
            if each.get("transform") != "void":
                results[each.get("source-id")] = what
    return results


def table_json(stored: IcebergTableMetadata) -> Json:
    """Return a stored table as Gravitino's JSON, without its name and audit information."""
    schema, properties = stored.schema, dict(stored.properties)
    original_types, comment, mode = original_types_of(properties), properties.pop(COMMENT, None), properties.get(MODE)
    properties.pop(ORIGINAL_TYPES, None)
    properties |= {FORMAT: f"iceberg v{stored.format_version}", LOCATION: stored.location}
    fields: Json = {
        "columns": columns_of(schema, original_types),
        "properties": properties,
        "distribution": partitions.distribution_of(mode),
        "sortOrders": partitions.sort_orders_of(stored.order, schema),
        "partitioning": partitions.partitioning_of(stored.spec, schema),
        "indexes": indexes_of(schema),
    }
    return fields if comment is None else {**fields, COMMENT: comment}
