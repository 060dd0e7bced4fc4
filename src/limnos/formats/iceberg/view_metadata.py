# SPDX-License-Identifier: Apache-2.0
"""The metadata document of a view as a whole: its properties, its versions, and checks of an existing document.

Must not know single updates, files or stores. Source: Iceberg view specification, format version 1. Encoding, file
names and locations are those of `metadata`.
"""

from __future__ import annotations

from uuid import UUID

from limnos.formats.iceberg.class_properties import refuse_view_classes
from limnos.formats.iceberg.client_times import check_time
from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    integer_at,
    list_at,
    objects_at,
    optional_string_at,
    preview_value,
    string_at,
    string_map_at,
    strings_at,
    text_at,
)
from limnos.formats.iceberg.metadata import parse_whole_number, properties_of, property_of, rows
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.stored_schemas import refuse_null, refuse_unreadable
from limnos.model.errors import BadRequest

VERSION = 1
"""The only format version of views."""
HISTORY = "version.history.num-entries"
HISTORY_DEFAULT = 10
HISTORY_MAX = 1000
DROP_DIALECT = "replace.drop-dialect.allowed"
SQL_BYTES_MAX = 4 << 20
"""The maximum length of a SQL text in bytes. Programs may generate views, and each version stores its own text."""
HERE = "View metadata"


def history_size(metadata: Json) -> int:
    """Return the number of versions that a view retains: the property `version.history.num-entries`, else the default.

    Raises BadRequest unless the property is a number from 1 to the limit.
    """
    text = property_of(metadata, HISTORY)
    if text is None:
        return HISTORY_DEFAULT
    number = parse_whole_number(text)
    if number is None or not 1 <= number <= HISTORY_MAX:
        raise BadRequest(
            f"{HISTORY} must be positive but was {preview_value(text)}: a whole number from 1 to {HISTORY_MAX}"
        )
    return number


def may_drop_dialect(metadata: Json) -> bool:
    """Return whether a replace may omit a dialect of the current version (property `replace.drop-dialect.allowed`)."""
    return (property_of(metadata, DROP_DIALECT) or "false").lower() == "true"


def check_version(version: Json) -> None:
    """Check that a view version is complete and has at most one SQL text per dialect, ignoring case.

    Raises BadRequest otherwise.
    """
    where = "Invalid view version"
    integer_at(version, "timestamp-ms", where=where, low=0)
    strings_at(version, "default-namespace", where=where)
    optional_string_at(version, "default-catalog", where=where)
    if version.get("summary") is not None:
        string_map_at(version, "summary", where=where)
    texts = objects_at(version, "representations", where=where)
    if not texts:
        raise BadRequest(f"{where}: it has no representation; give its SQL in at least one dialect")
    seen_dialects: set[str] = set()
    for one in texts:
        kind = string_at(one, "type", where=f"{where}, representation")
        if kind != "sql":
            raise BadRequest(f"Found unsupported view representations: {preview_value(kind)}; known is sql")
        dialect = _dialect(one)
        if dialect in seen_dialects:
            raise BadRequest(f"{where}: Cannot add multiple queries for dialect {preview_value(dialect)}")
        seen_dialects.add(dialect)
        if len(text_at(one, "sql", where=f"{where}, representation").encode(errors="surrogatepass")) > SQL_BYTES_MAX:
            raise BadRequest(
                f"{where}: the SQL for dialect {preview_value(dialect)} is longer than {SQL_BYTES_MAX} bytes"
            )


def _dialect(representation: Json) -> str:
    return text_at(representation, "dialect", where="Invalid view version, representation").lower()


def dialects(version: Json) -> list[str]:
    """Return the dialects of a checked version, in lower case and in order."""
    return [_dialect(one) for one in objects_at(version, "representations", where=HERE)]


def current_version(metadata: Json) -> Json:
    """Return the current version. Raises BadRequest if it is missing."""
    integer = integer_at(metadata, "current-version-id", where=HERE)
    for one in rows(metadata, "versions"):
        if one.get("version-id") == integer:
            return one
    raise BadRequest(f"{HERE}: field 'current-version-id' is {integer}, which is none of the versions")


def check_registrable(metadata: Json, *, latest_ms: int | None = None) -> None:
    """Check that a document is complete view metadata of a format version that can be served and replaced.

    Args:
        metadata: The document.
        latest_ms: The latest allowed time in its log, in milliseconds since 1970; None for any.

    Raises:
        BadRequest: The document is not valid metadata, or has a property that names a class.
    """
    check_readable(metadata)
    refuse_view_classes(properties_of(metadata))
    for entry in objects_at(metadata, "version-log", where=HERE) if latest_ms is not None else ():
        check_time(
            integer_at(entry, "timestamp-ms", where=f"{HERE}, version-log"),
            latest_ms=latest_ms or 0,
            what="time of a view version",
            next_step="register the view after that time",
        )


def check_readable(metadata: Json) -> None:
    """Check that all readers accept a document as metadata of a view. Raises BadRequest."""
    if "table-uuid" in metadata or "partition-specs" in metadata:
        raise BadRequest("This is the metadata of a table; register it as a table")
    version = integer_at(metadata, "format-version", where=HERE)
    if version != VERSION:
        raise BadRequest(f"{HERE}: format-version {preview_value(version)} is not supported (supported: v{VERSION})")
    check_uuid(text_at(metadata, "view-uuid", where=HERE))
    text_at(metadata, "location", where=HERE)
    refuse_null({key: metadata[key] for key in ("properties",) if key in metadata}, HERE)
    properties_of(metadata)
    _check_schemas(metadata)
    for one in objects_at(metadata, "versions", where=HERE):
        integer_at(one, "version-id", where=f"{HERE}, versions", low=0, high=INT_MAX)
        integer_at(one, "schema-id", where=f"{HERE}, versions", low=0, high=INT_MAX)
        string_map_at(one, "summary", where=f"{HERE}, versions")
        check_version(one)
    for entry in objects_at(metadata, "version-log", where=HERE):
        integer_at(entry, "timestamp-ms", where=f"{HERE}, version-log")
        integer_at(entry, "version-id", where=f"{HERE}, version-log", low=0, high=INT_MAX)
    for key, id_key in (("schemas", "schema-id"), ("versions", "version-id")):
        ids = [one.get(id_key) for one in rows(metadata, key)]
        if len(set(ids)) < len(ids):
            raise BadRequest(f"{HERE}, {key}: two have the same {id_key}")
    check_current(metadata)
    schema_ids = {one.get("schema-id") for one in rows(metadata, "schemas")}
    for one in rows(metadata, "versions"):
        if one.get("schema-id") not in schema_ids:
            raise BadRequest(
                f"{HERE}: version {one.get('version-id')} has schema {one.get('schema-id')}, which is missing"
            )


def _check_schemas(metadata: Json) -> None:
    list_at(metadata, "schemas", where=HERE)
    for schema in rows(metadata, "schemas"):
        integer_at(schema, "schema-id", where=f"{HERE}, schemas", low=0, high=INT_MAX)
        columns(schema)
        refuse_unreadable(schema, HERE)


def check_current(metadata: Json) -> None:
    """Check that the current version and its schema exist. Raises BadRequest otherwise."""
    target = current_version(metadata).get("schema-id")
    if target not in [one.get("schema-id") for one in rows(metadata, "schemas")]:
        raise BadRequest(f"{HERE}: schema {preview_value(target)} of the current version is none of the schemas")


def check_uuid(text: str) -> None:
    """Raise BadRequest if a view's uuid is malformed."""
    try:
        UUID(text)
    except ValueError:
        raise BadRequest(f"{HERE}: view-uuid '{preview_value(text)}' is not a UUID") from None
