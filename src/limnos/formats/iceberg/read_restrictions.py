# SPDX-License-Identifier: Apache-2.0
"""Read restrictions of one table: binding them to its columns, combining them, and the metadata visible to a restricted
user.

Must not know users or storage. JSON form and actions: Iceberg REST specification, read restrictions. Combination and
visibility: decision record 0093.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json, as_object, objects_at, optional_string_at, preview_value, text_at
from limnos.formats.iceberg.name_mappings import NAME_MAPPING
from limnos.formats.iceberg.row_filters import check_filter, references, with_references
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.restrictions import CLOSED_TO, ColumnMask, RestrictionTerms

NULL: Final = "replace-with-null"
FIXED: Final = "mask-to-fixed-value"
QUERY_LOCAL: Final = "sha-256-query-local"
_TEXTS: Final = frozenset(("string",))
_HASHED: Final = frozenset(("string", "binary"))
_MOMENTS: Final = frozenset(("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"))
_PLAIN: Final = frozenset(
    (
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "fixed",
        "binary",
    )
)
FITS: Final[Mapping[str, frozenset[str] | None]] = {
    NULL: None,
    FIXED: _PLAIN,
    "mask-alphanum": _TEXTS,
    "show-first-4": _TEXTS,
    "show-last-4": _TEXTS,
    "truncate-to-year": _MOMENTS,
    "truncate-to-month": _MOMENTS,
    "sha-256-global": _HASHED,
    QUERY_LOCAL: _HASHED,
}
"""The nine mask actions with the type families to which each applies; None for every type."""
_REPEATABLE: Final = frozenset((NULL, FIXED, "show-first-4", "show-last-4", "truncate-to-year", "truncate-to-month"))
"""The idempotent mask actions."""
_HIDES_MORE: Final = {
    frozenset(("truncate-to-year", "truncate-to-month")): "truncate-to-year",
    frozenset(("sha-256-global", QUERY_LOCAL)): QUERY_LOCAL,
}
ANY_NAME: Final = ""
"""The former name of a column whose former name is unknown."""
_VISIBLE_PREFIXES: Final = ("read.", "write.")
_HERE: Final = "Table metadata"


class BoundRestrictions(msgspec.Struct, frozen=True):
    """The restrictions that apply to one user of one table: a filter over field ids (None for all rows), and an action
    for each masked field.
    """

    row_filter: Json | None
    masks: dict[int, str]

    @property
    def digest(self) -> str:
        """A hash of filter and masks: users with equal digests see the same rows and values."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]

    @property
    def is_local(self) -> bool:
        """Whether a mask's values differ from query to query, so that rewritten files cannot be shared."""
        return QUERY_LOCAL in self.masks.values()


class TopField(msgspec.Struct, frozen=True):
    """A top-level column. `kind` is its type in Iceberg's notation, or struct, list or map."""

    id: int
    name: str
    kind: str

    @property
    def family(self) -> str:
        """The type's name without parameters, such as `decimal` for `decimal(10, 2)`."""
        return self.kind.partition("[")[0].partition("(")[0].strip()


def fields_of(schema: Json) -> list[TopField]:
    """Return the top-level columns of a schema."""
    fields = []
    for each in objects_at(schema, "fields", where=_HERE):
        kind = each.get("type")
        word = kind if isinstance(kind, str) else text_at(as_object(kind, _HERE), "type", where=_HERE)
        fields.append(TopField(int(str(each["id"])), text_at(each, "name", where=_HERE), word))
    return fields


def check_action(action: str) -> str:
    """Return the name of a mask's action. Raises BadRequest for an unknown action."""
    if action not in FITS:
        raise BadRequest(f"There is no mask '{preview_value(action)}': use one of {', '.join(FITS)}")
    return action


def fits(action: str, field: TopField) -> bool:
    """Return whether a mask's action is defined for a column's type."""
    families = FITS[action]
    return families is None or field.family in families


def strictest(one: str, other: str) -> str:
    """Return a mask's action that hides at least as much as each of two actions."""
    if one == other:
        return one
    if NULL in (one, other):
        return NULL
    return _HIDES_MORE.get(frozenset((one, other)), FIXED)


def bind_terms(terms: RestrictionTerms, schema: Json) -> RestrictionTerms:
    """Bind the terms of a restriction to a table's columns: replace names by field ids and convert values to the
    columns' types.

    Raises BadRequest if they do not fit.
    """
    fields = fields_of(schema)
    by_name = {each.name: each for each in fields}
    masks = []
    for mask in terms.masks:
        field = _column(mask.column, by_name)
        if not fits(mask.action, field):
            raise BadRequest(
                f"Mask '{mask.action}' does not fit column {field.name}, which is {field.kind}:"
                f" {_suggest_actions(field)}"
            )
        masks.append(ColumnMask(field.name, mask.action, field.id))
    return msgspec.structs.replace(terms, row_filter=_filter_text(terms.row_filter, fields), masks=tuple(masks))


def _column(name: str, by_name: Mapping[str, TopField]) -> TopField:
    field = by_name.get(name)
    if field is not None:
        return field
    nested = ": nested fields cannot be restricted; restrict the top-level column" if "." in name else ""
    raise BadRequest(
        f"The table has no column {preview_value(name)}: it has {preview_value(', '.join(by_name))}{nested}"
    )


def _suggest_actions(field: TopField) -> str:
    return f"use one of {', '.join(action for action in FITS if fits(action, field))}"


def _filter_text(text: str, fields: Iterable[TopField]) -> str:
    """Replace a filter's column references, by name or id, by references with id and name.

    Returns the filter as JSON.
    """
    if not text:
        return ""
    by_name, by_id = {each.name: each for each in fields}, {each.id: each for each in fields}

    def bind(reference: Json) -> Json:
        field = by_id.get(int(str(reference["id"]))) if "id" in reference else _column(str(reference["name"]), by_name)
        if field is None:
            raise BadRequest(
                f"The table has no field {reference['id']} at its top level: only top-level columns can be restricted"
            )
        return {"type": "reference", "id": field.id, "name": field.name}

    bound_filter = with_references(msgspec.json.decode(text), bind)
    return msgspec.json.encode(check_filter(bound_filter, {each.id: each.kind for each in by_id.values()})).decode()


def combine_restrictions(
    applying: Iterable[tuple[str, RestrictionTerms]], schema: Json, *, table_id: int = 0
) -> BoundRestrictions:
    """Combine the restrictions that apply to a user: filters by AND, and for each column the strictest of its masks.

    Raises PermissionDenied if a restriction no longer fits the table: restricted users then cannot read the table.

    Args:
        applying: The name and terms of each restriction.
        schema: The table's current schema.
        table_id: The id of the table, for columns that had another name when a restriction was set.
    """
    fields = fields_of(schema)
    filters: list[Json] = []
    masks: dict[int, str] = {}
    for name, terms in applying:
        columns = _RestrictedColumns(name, fields, _former_names(terms, table_id), terms.inherited)
        if terms.row_filter:
            filters.append(columns.rebind_filter(terms.row_filter))
        for mask in terms.masks:
            for field in columns.find_masked(mask):
                action = mask.action if fits(mask.action, field) else FIXED if fits(FIXED, field) else NULL
                masks[field.id] = strictest(masks.get(field.id, action), action)
    joined_filter = (
        reduce(lambda left, right: {"type": "and", "left": left, "right": right}, filters) if filters else None
    )
    return BoundRestrictions(joined_filter, dict(sorted(masks.items())))


def _former_names(terms: RestrictionTerms, table_id: int) -> dict[str, set[int]]:
    """Return the field ids of a table's columns by their former names, in lower case."""
    names: dict[str, set[int]] = {}
    for each in terms.former:
        if each.table_id == table_id:
            names.setdefault(each.name.casefold(), set()).add(each.field_id)
    return names


class _RestrictedColumns(NamedTuple):
    """The columns of a table to which one restriction refers.

    `former` are field ids by former name. With `inherited`, each mask must have a column.
    """

    name: str
    fields: list[TopField]
    former: Mapping[str, set[int]]
    inherited: bool = False

    def find_ids(self, name: str) -> set[int]:
        """Return the ids of all columns that have a name, or had it since the restriction was set, ignoring case."""
        folded = name.casefold()
        return {each.id for each in self.fields if each.name.casefold() == folded} | self.former.get(folded, set())

    def find_masked(self, mask: ColumnMask) -> list[TopField]:
        """Return the columns that a mask applies to: by field id, and by name.

        Raises PermissionDenied if no column has the field id, or if an inherited mask has no column.
        """
        ids = self.find_ids(mask.column) | {mask.field_id}
        fields = [each for each in self.fields if each.id in ids]
        is_missing = mask.field_id and not any(each.id == mask.field_id for each in fields)
        if is_missing or (self.inherited and not fields):
            raise _broken_restriction(self.name, f"masks column {mask.column}, which the table no longer has")
        return fields

    def rebind_filter(self, text: str) -> Json:
        """Return a filter over the current columns.

        Raises PermissionDenied for a column that was dropped, or a name that meant several columns since the
        restriction was set: the default of a new column must not decide which rows are visible.
        """
        by_id = {each.id: each for each in self.fields}

        def bind(reference: Json) -> Json:
            ids = {int(str(reference["id"]))} if "id" in reference else self.find_ids(str(reference["name"]))
            if len(ids) > 1:
                raise _broken_restriction(
                    self.name, f"filters by column {reference.get('name')}, a name of more than one column"
                )
            field = by_id.get(ids.pop()) if ids else None
            if field is None:
                raise _broken_restriction(
                    self.name, f"filters by column {reference.get('name')}, which the table does not have"
                )
            return {"type": "reference", "id": field.id, "name": field.name}

        try:
            return check_filter(
                with_references(msgspec.json.decode(text), bind), {each.id: each.kind for each in by_id.values()}
            )
        except BadRequest as error:
            raise _broken_restriction(self.name, f"is not valid for the table: {error.message}") from None


def former_columns(before: Json, after: Json) -> tuple[tuple[int, str], ...]:
    """Return the field ids and the former names of top-level columns that a change of a schema renames or drops."""
    current = {each.id: each.name for each in fields_of(after)}
    return tuple((each.id, each.name) for each in fields_of(before) if current.get(each.id) != each.name)


def returning_columns(before: Json, after: Json, *, last_id: int) -> tuple[tuple[int, str], ...]:
    """Return the field ids of top-level columns that a change of a schema adds with an id that is not new, each with
    `ANY_NAME`: older files have values of a dropped or nested column under that id.

    The schemas in the metadata do not tell the former name reliably, since a commit may remove some of them. `last_id`
    is the highest field id that the table has assigned before the change.
    """
    former_ids = {each.id for each in fields_of(before)}
    return tuple((each.id, ANY_NAME) for each in fields_of(after) if each.id <= last_id and each.id not in former_ids)


def referenced_names(terms: RestrictionTerms) -> set[str]:
    """Return the names to which the terms of a restriction refer without a field id, and those of masks, in lower
    case.
    """
    names = {mask.column for mask in terms.masks}
    if terms.row_filter:
        names |= {str(each["name"]) for each in references(msgspec.json.decode(terms.row_filter)) if "id" not in each}
    return {each.casefold() for each in names}


def _broken_restriction(name: str, why: str) -> PermissionDenied:
    return PermissionDenied(
        f"Restriction {name} {why}, so restricted users cannot read the table: its owner must set it again, 'limnos set"
        f" restriction {name}'"
    )


def restrictions_json(bound: BoundRestrictions) -> Json:
    """Return the restrictions as JSON for a load result, without those that must not be applied twice.

    The server rewrites the files with all restrictions, and the client applies the returned ones again. So masks that
    are not idempotent, and a filter on a masked column, are omitted.
    """
    fields: Json = {}
    if bound.row_filter is not None and not bound.masks.keys() & {
        int(str(each["id"])) for each in references(bound.row_filter)
    }:
        fields["required-row-filter"] = with_references(
            bound.row_filter, lambda each: {"type": "reference", "id": each["id"]}
        )
    masks = [
        {"field-id": field_id, "action": action} for field_id, action in bound.masks.items() if action in _REPEATABLE
    ]
    if masks:
        fields["required-column-projections"] = masks
    return fields


def fictitious_location(metadata: Json) -> str:
    """Return the fictitious location that restricted users get for every file of a table.

    No file exists there; a directory name in the path states that the table is restricted.
    """
    scheme, sign, rest = text_at(metadata, "location", where=_HERE).partition("://")
    root = f"{scheme}://{rest.partition('/')[0]}" if sign else "file://"
    return f"{root}/{CLOSED_TO}/{optional_string_at(metadata, 'table-uuid', where=_HERE) or 'table'}"


def restrict_metadata(metadata: Json, bound: BoundRestrictions) -> Json:
    """Return the metadata of a table for a restricted user: its current columns, and ids, timestamps and operations of
    its snapshots.

    The result contains an allow-list of fields that reveal no values, so fields of later specifications are omitted.
    All locations are fictitious, and there are no partitions or sort orders.
    """
    shaped = iceberg_metadata.with_current_shape(metadata)
    version, location = shaped["format-version"], fictitious_location(metadata)
    schema = _schema(iceberg_metadata.current_schema(shaped), bound)
    fields: Json = {
        "format-version": version,
        "table-uuid": shaped.get("table-uuid"),
        "location": location,
        "last-updated-ms": shaped["last-updated-ms"],
        "last-column-id": shaped["last-column-id"],
        "schemas": [schema],
        "current-schema-id": schema["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {
            key: value for key, value in iceberg_metadata.properties_of(shaped).items() if _is_visible_property(key)
        },
        "current-snapshot-id": iceberg_metadata.current_snapshot_id(shaped),
        "snapshots": [
            _snapshot(each, location=location, schema=schema) for each in iceberg_metadata.rows(shaped, "snapshots")
        ],
        "snapshot-log": [
            {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]}
            for each in iceberg_metadata.rows(shaped, "snapshot-log")
        ],
        "metadata-log": [],
        "refs": iceberg_metadata.references(shaped),
    }
    if version == 1:  # readers of version 1 need these
        fields |= {"schema": schema, "partition-spec": []}
    else:
        fields["last-sequence-number"] = shaped.get("last-sequence-number", 0)
    if version == 3:
        fields["next-row-id"] = 0
    if fields["current-snapshot-id"] is None:
        fields["current-snapshot-id"] = iceberg_metadata.no_snapshot(int(str(version)))
    return fields


def reading_shape(metadata: Json) -> Json:
    """Return the parts of a table's metadata that the server needs to read its files.

    They are the current columns, the partition specs, and the name mapping. A commit of rows does not change them, so
    restricted files can be reused.
    """
    shaped = iceberg_metadata.with_current_shape(metadata)
    schema = iceberg_metadata.current_schema(shaped)
    mapping = iceberg_metadata.property_of(shaped, NAME_MAPPING)
    keys = (
        "format-version",
        "table-uuid",
        "last-column-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
    )
    fields: Json = {key: shaped[key] for key in keys if key in shaped}
    more: Json = (
        {"last-sequence-number": 0} if shaped["format-version"] != 1 else {"schema": schema, "partition-spec": []}
    )
    more |= {"next-row-id": 0} if shaped["format-version"] == 3 else {}
    return (
        fields
        | more
        | {
            "location": fictitious_location(metadata),
            "last-updated-ms": 0,
            "schemas": [schema],
            "current-schema-id": schema.get("schema-id", 0),
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {} if mapping is None else {NAME_MAPPING: mapping},
        }
    )


def _is_visible_property(key: str) -> bool:
    """Return whether restricted users receive a property: the comment, and `read.` and `write.` except paths."""
    return key == "comment" or (key.startswith(_VISIBLE_PREFIXES) and "path" not in key)


def _schema(schema: Json, bound: BoundRestrictions) -> Json:
    """Return the schema for a restricted user.

    A column masked with null becomes optional, and a masked column loses its default values.
    """
    nulls = {field_id for field_id, action in bound.masks.items() if action == NULL}
    fields = []
    for each in objects_at(schema, "fields", where=_HERE):
        field = {
            key: value for key, value in each.items() if not (each["id"] in bound.masks and key.endswith("-default"))
        }
        fields.append({**field, "required": False} if each["id"] in nulls else field)
    response = {"type": "struct", "schema-id": schema.get("schema-id", 0), "fields": fields}
    identifiers = schema.get("identifier-field-ids")
    return response | {"identifier-field-ids": identifiers} if identifiers and not bound.masks else response


def _snapshot(snapshot: Json, *, location: str, schema: Json) -> Json:
    keys = ("snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms")
    fields = {key: snapshot[key] for key in keys if key in snapshot}
    summary = snapshot.get("summary")
    operation = summary.get("operation", "append") if isinstance(summary, dict) else "append"
    more: Json = {"first-row-id": 0, "added-rows": 0} if "first-row-id" in snapshot else {}
    return (
        fields
        | more
        | {
            "manifest-list": f"{location}/snap-{snapshot['snapshot-id']}.avro",
            "summary": {"operation": operation},
            "schema-id": schema["schema-id"],
        }
    )
