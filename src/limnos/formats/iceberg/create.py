# SPDX-License-Identifier: Apache-2.0
"""Builds the metadata of a new table from a create request.

Must not know commits. Source: Iceberg REST specification, schema CreateTableRequest. Ids are assigned as in the
reference implementation.
"""

from __future__ import annotations

from limnos.formats.iceberg import partitioning, sorting
from limnos.formats.iceberg.draft import empty_history
from limnos.formats.iceberg.evolution import check_column_names
from limnos.formats.iceberg.json_types import Json, as_object, as_string_map, preview_value
from limnos.formats.iceberg.metadata import DEFAULT_VERSION, VERSIONS, VERSIONS_TEXT, strip_slash
from limnos.formats.iceberg.schema import SchemaColumns, check_version, columns, with_fresh_ids
from limnos.formats.iceberg.stored_schemas import in_stored_form
from limnos.formats.iceberg.update_properties import format_version, persistent
from limnos.model.errors import BadRequest

_DEFAULT_PROPERTIES = {"write.parquet.compression-codec": "zstd"}
_COLUMN_METRICS = "write.metadata.metrics.column."


def new_table(
    *,
    uuid: str,
    location: str,
    schema: object,
    partition_spec: object,
    write_order: object,
    properties: object,
    now_ms: int,
) -> Json:
    """Return the metadata of a new table.

    The server assigns all ids and ignores those of the request: columns from 1, partition fields from 1000, the sort
    order 1, or 0 if it is unsorted. The property `format-version` selects the version (2 by default). Like all reserved
    properties it is not stored.

    Args:
        uuid: The table's uuid.
        location: The table's location.
        schema: The schema of the request.
        partition_spec: The spec of the request, or None.
        write_order: The sort order of the request, or None.
        properties: The properties of the request, or None.
        now_ms: The time in milliseconds since 1970.

    Raises:
        BadRequest: The schema, spec, order or a property is invalid.
    """
    requested = {} if properties is None else as_string_map(properties, "Field 'properties'")
    version = _version(requested)
    stored_properties = _DEFAULT_PROPERTIES | persistent(requested)
    arguments = as_object(schema, "Field 'schema'")
    schema_columns = columns(arguments)
    check_version(schema_columns, version)
    check_column_names(schema_columns)
    _check_metrics(stored_properties, schema_columns)
    fresh_schema, ids = with_fresh_ids(in_stored_form(arguments, schema_columns))
    spec = _spec(partition_spec, schema_columns, ids.renumbered)
    order = _order(write_order, schema_columns, ids.renumbered)
    doc: Json = {"format-version": version, "table-uuid": uuid, "location": strip_slash(location)}
    if version > 1:
        doc["last-sequence-number"] = 0
    doc |= {"last-updated-ms": now_ms, "last-column-id": ids.last}
    return {
        **doc,
        **_layout(version, fresh_schema, spec, order),
        "properties": stored_properties,
        **empty_history(version),
    }


def _version(properties: dict[str, str]) -> int:
    version = format_version(properties)
    if version is not None and version not in VERSIONS:
        raise BadRequest(f"Unsupported format version: v{preview_value(version)} (supported: {VERSIONS_TEXT})")
    return DEFAULT_VERSION if version is None else version


def _check_metrics(properties: dict[str, str], schema_columns: SchemaColumns) -> None:
    for key in properties:
        if key.startswith(_COLUMN_METRICS) and key.removeprefix(_COLUMN_METRICS) not in schema_columns.by_name:
            raise BadRequest(
                f"Invalid metrics config: property '{key}' names no column of the schema; correct or drop it"
            )


def _spec(spec: object, schema_columns: SchemaColumns, source_ids: dict[object, int]) -> Json:
    if spec is None:
        return {"spec-id": 0, "fields": []}
    fields = partitioning.spec_fields(spec)
    partitioning.check_binding(fields, schema_columns)
    partitioning.check_readable(fields, schema_columns)
    _check_sources(fields, source_ids, "partition spec")
    return {**as_object(spec, "spec"), "spec-id": 0, "fields": partitioning.renumber_spec(fields, source_ids)}


def _order(order: object, schema_columns: SchemaColumns, source_ids: dict[object, int]) -> Json:
    if order is None:
        return {"order-id": sorting.UNSORTED_ID, "fields": []}
    fields = sorting.order_fields(order)
    sorting.check_binding(fields, schema_columns)
    order_id = sorting.FIRST_SORTED_ID if fields else sorting.UNSORTED_ID
    return {**as_object(order, "order"), "order-id": order_id, "fields": sorting.renumber_order(fields, source_ids)}


def _check_sources(fields: list[Json], source_ids: dict[object, int], what: str) -> None:
    for one in fields:
        if one.get("source-id") not in source_ids:
            raise BadRequest(f"Invalid {what}: cannot find source column {one.get('source-id')} in the schema")


def _layout(version: int, schema: Json, spec: Json, order: Json) -> Json:
    fields = partitioning.stored_fields(spec)
    legacy: Json = {"schema": schema, "partition-spec": fields} if version == 1 else {}
    return {
        **legacy,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [spec],
        "last-partition-id": partitioning.highest_field_id(fields),
        "default-sort-order-id": order["order-id"],
        "sort-orders": [order],
    }
