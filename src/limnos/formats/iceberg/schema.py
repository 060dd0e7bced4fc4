# SPDX-License-Identifier: Apache-2.0
"""Iceberg schemas as JSON: checks their structure, indexes their columns, compares them, and assigns fresh ids.

Must not know tables or commits. Source: Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import cast

import msgspec

from limnos.formats.iceberg.default_values import default_in_stored_form
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    as_object,
    boolean_at,
    integer_at,
    integers_at,
    json_kind,
    objects_at,
    preview_value,
    text_at,
)
from limnos.formats.iceberg.types import NESTED, PrimitiveType, parse_primitive, plain_primitive
from limnos.model.errors import BadRequest

DEPTH_MAX = 100
"""The maximum nesting depth; deeper documents are refused before they exhaust the stack."""
COLUMNS_MAX = 50_000
"""The maximum number of fields, at all levels together."""
NAME_MAX = 4_000
"""The maximum length of the dotted name of a nested field's parent, in characters: each field below repeats it."""

PROBLEMS_MAX = 10
"""The maximum number of problems that an error message lists."""

FIELD_ID_MAX = INT_MAX - 200
"""The highest field id: Iceberg reserves the 200 above it for metadata columns ("Reserved Field IDs")."""

_NO_DEFAULT = frozenset(("unknown", "variant", "geometry", "geography"))
_REWRITTEN_DEFAULTS = frozenset(("float", "double", "timestamptz", "timestamptz_ns"))
"""Types whose default values may be stored in another form than they came."""


class SchemaColumn(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One field of a schema at any depth. `primitive` is None for struct, list and map, whose word is `nested`."""

    id: int
    name: str
    primitive: PrimitiveType | None
    required: bool
    parent: int | None
    by_struct: bool
    """Whether its ancestors are all structs, not lists or maps."""
    nested: str | None = None
    is_item: bool = False
    """Whether it is the element of a list, or the key or value of a map."""
    is_key: bool = False
    """Whether it is the key of a map."""
    has_default: bool = False
    initial_default: object = None
    """The default value of rows from before the column, as it was sent; None if there is none."""


class SchemaColumns(msgspec.Struct, frozen=True):
    """A checked schema's columns, by id and by dotted name."""

    by_id: dict[int, SchemaColumn]
    by_name: dict[str, SchemaColumn]
    newer: list[SchemaColumn]
    """The columns that format version 1 does not support."""
    loose: list[str]
    """Names of columns whose fields `in_stored_form` changes."""

    @property
    def highest_id(self) -> int:
        """The highest field id; 0 if there are no columns."""
        return max(self.by_id, default=0)


def columns(schema: Json) -> SchemaColumns:
    """Check a schema and index its columns.

    Raises BadRequest for malformed JSON, unknown types, a duplicate field id or full name, a schema beyond the limits,
    and identifier fields that are not required primitives outside of lists and maps, or are floating-point numbers.
    """
    if schema.get("type") != "struct":
        raise BadRequest("Invalid schema: field 'type' must be \"struct\"")
    schema_columns = SchemaColumns({}, {}, [], [])
    _add_struct(schema_columns, schema, "", None, by_struct=True, depth=1)
    _check_identifiers(schema, schema_columns)
    return schema_columns


def check_version(schema_columns: SchemaColumns, version: int) -> None:
    """Raise BadRequest if a column's type or default needs a newer table format version than `version`."""
    problems = []
    for column in schema_columns.newer:
        parsed = column.primitive
        if parsed and parsed.version > version:
            problems.append(f"{column.name}: {parsed.text} is not supported until v{parsed.version}")
        elif column.has_default and version < 3:
            problems.append(f"{column.name}: non-null default values are not supported until v3")
    if problems:
        raise BadRequest(
            f"Invalid schema for v{version}: {'; '.join(problems[:PROBLEMS_MAX])}. Upgrade the table's format-version"
            " or change the schema"
        )


def _add(schema_columns: SchemaColumns, column: SchemaColumn) -> None:
    if column.id in schema_columns.by_id:
        other = schema_columns.by_id[column.id].name
        raise BadRequest(f"Invalid schema: field id {column.id} is used by both '{other}' and '{column.name}'")
    if column.name in schema_columns.by_name:
        raise BadRequest(f"Invalid schema: more than one field is named '{column.name}'; rename one")
    schema_columns.by_id[column.id] = column
    schema_columns.by_name[column.name] = column
    if column.has_default or (column.primitive and column.primitive.version > 1):
        schema_columns.newer.append(column)


def _add_struct(
    schema_columns: SchemaColumns, struct: Json, prefix: str, parent: int | None, *, by_struct: bool, depth: int
) -> None:
    where = f"Invalid schema, struct '{prefix[:-1]}'" if prefix else "Invalid schema"
    by_id, by_name = schema_columns.by_id, schema_columns.by_name
    fields = objects_at(struct, "fields", where=where)
    _check_size(prefix, len(by_id) + len(fields))
    for one in fields:
        ordinary = _ordinary(one, prefix, parent, by_struct=by_struct)
        if ordinary is not None and ordinary.id not in by_id and ordinary.name not in by_name:
            by_id[ordinary.id] = by_name[ordinary.name] = ordinary
            continue
        name = prefix + text_at(one, "name", where=where)
        column = _column(one, _FIELD, name, one.get("type"), parent=parent, by_struct=by_struct)
        _add(schema_columns, column)
        if _is_loose(one, column, part=_FIELD):
            schema_columns.loose.append(name)
        if column.primitive is None:
            _add_type(schema_columns, one["type"], column, by_struct=by_struct, depth=depth)


def _check_size(prefix: str, count: int) -> None:
    if count > COLUMNS_MAX:
        raise BadRequest(f"Invalid schema: more than {COLUMNS_MAX} fields; make it smaller")
    if len(prefix) > NAME_MAX:
        raise BadRequest(
            f"Invalid schema: the name '{preview_value(prefix)}' is longer than {NAME_MAX} characters; shorten it"
        )


def _ordinary(one: Json, prefix: str, parent: int | None, *, by_struct: bool) -> SchemaColumn | None:
    """Fast path: check and return a field of primitive type without optional attributes but `doc`.

    None for any other field, which needs the full checks.
    """
    try:
        field_id, name, type_value, required = one["id"], one["name"], one["type"], one["required"]
    except KeyError:
        return None
    if (
        type(field_id) is int
        and 0 <= field_id <= FIELD_ID_MAX
        and type(name) is str
        and name
        and type(type_value) is str
        and type(required) is bool
        and (len(one) == 4 or (len(one) == 5 and type(one.get("doc")) is str))
        and (parsed := plain_primitive(type_value)) is not None
        and parsed.text == type_value
    ):
        return SchemaColumn(
            id=field_id, name=prefix + name, primitive=parsed, required=required, parent=parent, by_struct=by_struct
        )
    return None


def _add_type(
    schema_columns: SchemaColumns, value: object, owner: SchemaColumn, *, by_struct: bool, depth: int
) -> None:
    if depth >= DEPTH_MAX:
        raise BadRequest(f"Invalid schema: more than {DEPTH_MAX} levels of nesting")
    nested = as_object(value, "type")
    if nested["type"] == "struct":
        _add_struct(schema_columns, nested, f"{owner.name}.", owner.id, by_struct=by_struct, depth=depth + 1)
        return
    for part in (_ELEMENT,) if nested["type"] == "list" else (_KEY, _VALUE):
        name = f"{owner.name}.{part.holds}"
        column = _column(nested, part, name, nested.get(part.holds), parent=owner.id, by_struct=False)
        _add(schema_columns, column)
        if _is_loose(nested, column, part=part):
            schema_columns.loose.append(name)
        if column.primitive is None:
            _add_type(schema_columns, nested[part.holds], column, by_struct=False, depth=depth + 1)


@dataclass(frozen=True, slots=True)
class _PartKeys:
    """The keys of a field's attributes: in the field's object, or in the object of the list or map that contains it
    (`element-id`, for example).
    """

    holds: str
    id: str
    required: str | None


_FIELD = _PartKeys("type", "id", "required")
_ELEMENT = _PartKeys("element", "element-id", "element-required")
_KEY = _PartKeys("key", "key-id", None)
_VALUE = _PartKeys("value", "value-id", "value-required")


def _column(
    holder: Json, part: _PartKeys, name: str, type_value: object, *, parent: int | None, by_struct: bool
) -> SchemaColumn:
    # Called often for wide schemas: messages are only built for errors.
    field_id, required = holder.get(part.id), holder.get(part.required) if part.required else True
    if type(field_id) is not int or not 0 <= field_id <= FIELD_ID_MAX:
        field_id = integer_at(holder, part.id, where=_error_prefix(name), low=0, high=FIELD_ID_MAX)
    if not isinstance(required, bool):
        required = boolean_at(holder, part.required or "", where=_error_prefix(name))
    parsed = _check_type(type_value, name)
    if parsed and parsed.family == "unknown" and required:
        raise BadRequest(f"{_error_prefix(name)}: a field of type unknown must be optional")
    has_default = part is _FIELD and _check_extras(holder, parsed, name)
    return SchemaColumn(
        id=field_id,
        name=name,
        primitive=parsed,
        required=required,
        parent=parent,
        by_struct=by_struct,
        nested=None if parsed is not None else str(as_object(type_value, "type")["type"]),
        is_item=part is not _FIELD,
        is_key=part is _KEY,
        has_default=has_default,
        initial_default=holder.get("initial-default") if has_default else None,
    )


def _error_prefix(name: str) -> str:
    return f"Invalid schema, field '{name}'"


def _check_type(value: object, name: str) -> PrimitiveType | None:
    if isinstance(value, str) and value not in NESTED:
        try:
            return parse_primitive(value)
        except BadRequest as error:
            raise BadRequest(f"{_error_prefix(name)}: {error.message}") from None
    if isinstance(value, dict) and value.get("type") in NESTED:
        return None
    if value is None:
        raise BadRequest(f"{_error_prefix(name)}: its type is required")
    shape = f"an object of type {preview_value(value.get('type'))}" if isinstance(value, dict) else json_kind(value)
    raise BadRequest(
        f"{_error_prefix(name)}: a type is a type name or an object of type struct, list or map, not {shape}"
    )


def _check_extras(holder: Json, parsed: PrimitiveType | None, name: str) -> bool:
    """Check `doc` and the default values of a struct's field. Returns whether it has a default.

    Raises BadRequest for a `doc` that is not a string, or a default value that is not of the field's type.
    """
    if not isinstance(holder.get("doc"), (str, NoneType)):
        raise BadRequest(f"{_error_prefix(name)}: field 'doc' must be a string, not {json_kind(holder['doc'])}")
    if holder.get("initial-default") is None and holder.get("write-default") is None:
        return False
    for key in ("initial-default", "write-default"):
        value = holder.get(key)
        if value is None:
            continue
        if parsed is None or parsed.family in _NO_DEFAULT:
            kind = as_object(holder.get("type"), "type")["type"] if parsed is None else parsed.family
            raise BadRequest(f"{_error_prefix(name)}: a field of type {kind} can only have null as its {key}")
        try:
            default_in_stored_form(value, parsed)
        except ValueError:
            raise BadRequest(
                f"{_error_prefix(name)}: {key} is {json_kind(value)}, {preview_value(value)}, which is not a"
                " value of type "
                f"{parsed.text} in the JSON form of Iceberg's specification, Appendix D"
            ) from None
    return True


def _is_loose(holder: Json, column: SchemaColumn, *, part: _PartKeys) -> bool:
    """Return whether `in_stored_form` changes the attributes of a checked field."""
    if None in holder.values() or (column.primitive is not None and holder[part.holds] != column.primitive.text):
        return True
    return column.has_default and column.primitive is not None and column.primitive.family in _REWRITTEN_DEFAULTS


def _check_identifiers(schema: Json, schema_columns: SchemaColumns) -> None:
    if schema.get("identifier-field-ids") is None:
        return
    for field_id in dict.fromkeys(integers_at(schema, "identifier-field-ids", where="Invalid schema")):
        problem = _identifier_problem(schema_columns, field_id)
        if problem:
            raise BadRequest(f"Invalid schema: cannot use field {field_id} as an identifier field: {problem}")


def _identifier_problem(schema_columns: SchemaColumns, field_id: int) -> str | None:
    column = schema_columns.by_id.get(field_id)
    if column is None:
        return "there is no such field"
    if column.primitive is None or column.primitive.family == "variant":
        return f"'{column.name}' is not a primitive"
    if column.primitive.family in ("float", "double"):
        return f"'{column.name}' is a {column.primitive.family}"
    if not column.by_struct:
        return f"'{column.name}' is inside a list or map"
    step: SchemaColumn | None = column
    while step is not None:
        if not step.required:
            return f"'{step.name}' is optional; make it required"
        step = None if step.parent is None else schema_columns.by_id[step.parent]
    return None


def same_schema(one: Json, other: Json) -> bool:
    """Return whether two checked schemas have equal fields and identifier fields. Schema ids are ignored."""
    if one is other:
        return True
    left, right = one.get("identifier-field-ids") or [], other.get("identifier-field-ids") or []
    if not isinstance(left, list) or not isinstance(right, list) or set(left) != set(right):
        return False
    fields, others = one.get("fields"), other.get("fields")
    if not isinstance(fields, list) or not isinstance(others, list) or len(fields) != len(others):
        return False
    # Pair by pair: most schemas differ early, and normalizing costs more than comparing.
    pairs = zip(fields, others, strict=True)
    return all(left == right or _comparable(left) == _comparable(right) for left, right in pairs)


def content_of(schema: Json) -> bytes:
    """Return a key of a checked schema: equal keys mean equal fields and identifier fields. Schema ids are ignored.

    Types are normalized, and null entries are omitted.
    """
    ids = schema.get("identifier-field-ids")
    identifier_ids = sorted({str(one) for one in ids}) if isinstance(ids, list) else []
    return msgspec.json.encode([identifier_ids, _comparable(schema.get("fields"))], order="deterministic")


def _comparable(value: object) -> object:
    """Return a type or list of fields in normalized form. Uses one call per level, for speed."""
    if isinstance(value, list):
        items: list[object] = []
        for item in value:
            items.append(_comparable(item))  # noqa: PERF401 - a comprehension is a call of its own
        return items
    if not isinstance(value, dict):
        return value
    entries: dict[str, object] = {}
    for key, item in value.items():
        if item is None:
            continue
        # A default is a value, not a type, so its keys have no meaning here. `repr` distinguishes true from 1.
        if key in ("initial-default", "write-default"):
            entries[key] = repr(item)
        elif key in ("type", "element", "key", "value") and isinstance(item, str) and item not in NESTED:
            entries[key] = _spelling(item)
        else:
            entries[key] = _comparable(item)
    return entries


def _spelling(text: str) -> str:
    """Return the canonical form of a primitive type, such as `decimal(9, 2)`; an unknown type is returned unchanged."""
    try:
        return parse_primitive(text).text
    except BadRequest:
        return text


@dataclass(slots=True)
class FreshIds:
    """Assigns field ids from 1 and records the mapping from old to new ids."""

    last: int = 0
    renumbered: dict[object, int] = field(default_factory=dict)

    def take(self, old: object) -> int:
        """Return the next id, for the field with the old id `old`."""
        self.last += 1
        self.renumbered[old] = self.last
        return self.last


def with_fresh_ids(schema: Json) -> tuple[Json, FreshIds]:
    """Return a checked schema with new field ids, which begin at 1: all fields of a struct before the fields within
    them.

    The reference implementation uses this order, and its compatibility kit compares ids. The ids in
    `identifier-field-ids` are replaced, too; `schema-id` becomes 0.
    """
    ids = FreshIds()
    fresh_schema = {**_fresh_struct(schema, ids), "schema-id": 0}
    if schema.get("identifier-field-ids") is not None:
        old_ids = integers_at(schema, "identifier-field-ids", where="Invalid schema")
        fresh_schema["identifier-field-ids"] = [ids.renumbered[old] for old in old_ids]
    return fresh_schema, ids


def _fresh_struct(struct: Json, ids: FreshIds) -> Json:
    fields = cast("list[Json]", struct["fields"])
    new_ids = range(ids.last + 1, ids.last + 1 + len(fields))
    ids.renumbered.update(zip([one["id"] for one in fields], new_ids, strict=True))
    ids.last += len(fields)
    numbered = [
        (
            one
            if one["id"] == new and type(one["type"]) is str
            else {**one, "id": new, "type": _fresh_type(one["type"], ids)}
        )
        for one, new in zip(fields, new_ids, strict=True)
    ]
    return {**struct, "fields": numbered}


def _fresh_type(value: object, ids: FreshIds) -> object:
    if not isinstance(value, dict):
        return value
    if value["type"] == "struct":
        return _fresh_struct(value, ids)
    parts = ("element",) if value["type"] == "list" else ("key", "value")
    numbered = {f"{part}-id": ids.take(value.get(f"{part}-id")) for part in parts}
    return {**value, **numbered, **{part: _fresh_type(value.get(part), ids) for part in parts}}
