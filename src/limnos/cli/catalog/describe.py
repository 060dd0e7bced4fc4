# SPDX-License-Identifier: Apache-2.0
"""The fields that `describe` shows for each kind of object, as one flat map.

Must not know the output formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from limnos.cli.catalog.column_types import gravitino_column, iceberg_column, lance_column
from limnos.cli.catalog.metadata_values import UNNAMED, structs_of, utc_time, whole_number
from limnos.cli.output import Row, human_size
from limnos.client import ArgumentError, ClientError, NotFoundError, RefusedError
from limnos.client.paths import catalog_name
from limnos.client.values import AuditInfo, Json, Parts
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.model.restrictions import CLOSED_TO
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

_RESTRICTED = "you read a part of its rows or columns; 'limnos head' names the masked columns"


def fields_of(client: Client, kind: str, path: str) -> dict[str, object]:
    """Load an object by its path, and return its fields as `describe` prints them, by label."""
    if kind == "metalake":
        metalake = client.metalakes.get(path)
        return {
            "kind": kind,
            "name": metalake.name,
            "comment": metalake.comment,
            "properties": metalake.properties,
            **_audit(metalake.audit),
            **_owner(client, path, kind=kind),
        }
    if kind == "catalog":
        return _catalog(client, path) | _owner(client, path, kind=kind) | _protection(client, path, kind=kind)
    try:
        source_object_fields = _FOUND[kind](client, path)
    except (NotFoundError, RefusedError):
        parts = display.parse(path)
        if kind not in ("namespace", "table", "view") or not 1 < len(parts) < 4 or not client.schemas.holding(parts[0]):
            raise
        source_object_fields = _source_object_fields(client, tuple(parts))
    if kind in ("table", "view"):
        source_object_fields |= _dashboards(client, path)
    return source_object_fields | _owner(client, path, kind=kind) | _protection(client, path, kind=kind)


def hidden_fields(fields: Row) -> list[str]:
    """Return the fields that a table omits: those for programs, and of a fileset that has only the unnamed location,
    which `location` shows, the named ones and the property with the name.
    """
    if fields["kind"] != "fileset" or not fields.get("location"):
        return ["path", "metadata"]
    is_named_alone = fields["properties"] == {"default-location-name": UNNAMED}
    return ["path", "metadata", "locations", *(["properties"] if is_named_alone else [])]


def _namespace(client: Client, path: str) -> dict[str, object]:
    namespace = client.namespaces.load(path)
    name = display.render(namespace.path)
    comment = namespace.properties.get("comment")
    return {
        "kind": "namespace",
        "name": name,
        "path": namespace.path,
        "comment": comment,
        "properties": namespace.properties,
    }


def _source_object_fields(client: Client, parts: Parts) -> dict[str, object]:
    """Return the fields of a schema or a table of an external system."""
    fields = client.schemas.load(parts) if len(parts) == 2 else client.schemas.table(parts).table
    kind = "namespace" if len(parts) == 2 else "table"
    result: dict[str, object] = {
        "kind": kind,
        "name": display.render(parts),
        "path": parts,
        "comment": fields.get("comment"),
    }
    if kind == "table":
        columns = structs_of(fields, "columns")
        result["columns"] = {str(each.get("name")): gravitino_column(each) for each in columns}
        result["column_comments"] = {str(each.get("name")): each["comment"] for each in columns if each.get("comment")}
        result["keys"] = [f"{each.get('name')} ({each.get('indexType')})" for each in structs_of(fields, "indexes")]
        result["partition_by"] = [_source_partition(each) for each in structs_of(fields, "partitioning")]
        result["properties"] = fields.get("properties")
    return result


def _topic(client: Client, path: str) -> dict[str, object]:
    """Return the fields of a topic of an external system."""
    parts, topic = display.parse(path), client.schemas.topic(path)
    return {
        "kind": "topic",
        "name": display.render(parts),
        "path": parts,
        "comment": topic.get("comment"),
        "properties": topic.get("properties"),
    }


def _fileset(client: Client, path: str) -> dict[str, object]:
    """Return the fields of a fileset, with its storage locations."""
    parts, fileset = display.parse(path), client.filesets.get(path)
    only = fileset.storage_locations.get(UNNAMED) if len(fileset.storage_locations) == 1 else None
    return {
        "kind": "fileset",
        "name": display.render(parts),
        "path": parts,
        "type": fileset.type,
        "location": only,
        "locations": fileset.storage_locations,
        "comment": fileset.comment,
        "properties": fileset.properties,
        **_audit(fileset.audit),
    }


def _model(client: Client, path: str) -> dict[str, object]:
    """Return the fields of a model, with its versions, their aliases and URIs."""
    parts, model = display.parse(path), client.models.get(path)
    versions = client.models.versions(path)
    return {
        "kind": "model",
        "name": display.render(parts),
        "path": parts,
        "comment": model.comment,
        "properties": model.properties,
        "versions": {str(each.version): each.uris for each in versions},
        "version_comments": {str(each.version): each.comment for each in versions if each.comment},
        "version_properties": {str(each.version): each.properties for each in versions if each.properties},
        "aliases": {alias: each.version for each in versions for alias in each.aliases},
        **_audit(model.audit),
    }


def _declared_loader(declared: DeclaredKind) -> Callable[[Client, str], dict[str, object]]:
    """Return the function that loads the fields of an object of a declared kind."""

    def load(client: Client, path: str) -> dict[str, object]:
        result = client.declared(declared).get(path)
        return {
            "kind": declared.kind.word,
            "name": display.render(result.path),
            "path": result.path,
            **msgspec.structs.asdict(result.fields),
            "comment": result.comment,
            "properties": result.properties,
            "created_by": result.created_by,
            "created_at": result.created_at,
        }

    return load


def _dashboards(client: Client, path: str) -> dict[str, object]:
    """Return the field `dashboards`: name and URL of the dashboards in its namespace that show a table or view; empty
    if there is none or after an error of the server.
    """
    *namespace, name = display.parse(path)
    try:
        results = client.dashboards.list(namespace)
    except (ClientError, ArgumentError):  # a table directly in a Lance catalog has no namespace
        return {}
    urls = {each.name: each.fields.url for each in results if name in each.fields.tables}
    return {"dashboards": urls} if urls else {}


def _source_partition(part: Json) -> str:
    """Return a part of a partitioning of Gravitino, such as `day (identity)` or `id (bucket 8)`."""
    names = part.get("fieldNames", [part.get("fieldName")])
    columns = [".".join(map(str, each)) for each in names if isinstance(each, list)] if isinstance(names, list) else []
    size = part.get("numBuckets") or part.get("width")
    return f"{', '.join(columns)} ({part.get('strategy')}{'' if size is None else f' {size}'})"


def _owner(client: Client, path: str, *, kind: str) -> dict[str, object]:
    """Return the field `owner`; empty without an owner or after an error of the server."""
    try:
        owner = client.owners.get(path, kind=kind)
    except (ClientError, ArgumentError):
        return {}
    return {} if owner is None else {"owner": f"{owner.type.lower()} {owner.name}"}


def _protection(client: Client, path: str, *, kind: str) -> dict[str, object]:
    """Return the field `protected_by`: the object whose protection prevents drops; empty if there is none or after an
    error of the server.
    """
    try:
        protector = client.protection.get(path, kind=kind)
    except (ClientError, ArgumentError):  # objects directly in a catalog have another full name
        return {}
    return {} if protector is None else {"protected_by": f"{protector.by.kind} {protector.by.name}"}


def _catalog(client: Client, path: str) -> dict[str, object]:
    catalog = client.catalogs.get(catalog_name(path))
    return {
        "kind": "catalog",
        "name": catalog.name,
        "path": [catalog.name],
        "type": catalog.type,
        "provider": catalog.provider,
        "comment": catalog.comment,
        "properties": catalog.properties,
        **_audit(catalog.audit),
    }


def _audit(audit: AuditInfo) -> Row:
    return {
        "created_by": audit.creator,
        "created_at": audit.create_time,
        "modified_by": audit.last_modifier,
        "modified_at": audit.last_modified_time,
    }


def _lance_table(client: Client, path: str) -> dict[str, object]:
    table = client.lance.load(path)
    return {
        "kind": "table",
        "name": display.render(table.path),
        "path": table.path,
        "format": "lance",
        "location": table.location,
        "version": table.version,
        **_lance_size_fields(client, path),
        "columns": lance_columns(table.table_schema),
        "stats": table.stats,
        "properties": table.properties,
    }


def lance_columns(schema: Json) -> dict[str, str]:
    """Return the types of a Lance table's columns by name, from the schema's JSON."""
    return {str(field.get("name")): lance_column(field) for field in structs_of(schema, "fields")}


def _table(client: Client, path: str) -> dict[str, object]:
    if len(display.parse(path)) < 3:
        return _lance_table(client, path)
    try:
        table = client.tables.load(path)
    except NotFoundError:
        return _lance_table(client, path)
    metadata = table.metadata
    is_restricted = CLOSED_TO in str(metadata.get("location"))
    return {
        "kind": "table",
        "name": display.render(table.path),
        "path": table.path,
        "comment": _comment(metadata),
        "restricted": _RESTRICTED if is_restricted else None,
        "format": f"iceberg v{metadata.get('format-version')}",
        "uuid": metadata.get("table-uuid"),
        "location": None if is_restricted else metadata.get("location"),
        "metadata_location": None if is_restricted else table.metadata_location,
        "current_snapshot": metadata.get("current-snapshot-id"),
        "snapshots": len(structs_of(metadata, "snapshots")),
        **table_contents(metadata),
        "columns": _columns(metadata, metadata.get("current-schema-id")),
        "column_comments": _column_comments(metadata, metadata.get("current-schema-id")),
        "partition_by": _partitions(metadata),
        "properties": metadata.get("properties") or {},
        "metadata": metadata,
    }


def _view(client: Client, path: str) -> dict[str, object]:
    view = client.views.load(path)
    metadata = view.metadata
    results = [
        one for one in structs_of(metadata, "versions") if one.get("version-id") == metadata.get("current-version-id")
    ]
    current = results[0] if results else {}
    return {
        "kind": "view",
        "name": display.render(view.path),
        "path": view.path,
        "comment": _comment(metadata),
        "format": f"iceberg v{metadata.get('format-version')}",
        "uuid": metadata.get("view-uuid"),
        "location": metadata.get("location"),
        "metadata_location": view.metadata_location,
        "version": metadata.get("current-version-id"),
        "versions": len(structs_of(metadata, "versions")),
        "columns": _columns(metadata, current.get("schema-id")),
        "column_comments": _column_comments(metadata, current.get("schema-id")),
        "last_change": utc_time(current.get("timestamp-ms")),
        "default_catalog": current.get("default-catalog"),
        "default_namespace": current.get("default-namespace"),
        "sql": {str(one.get("dialect")): one.get("sql") for one in structs_of(current, "representations")},
        "properties": metadata.get("properties") or {},
        "metadata": metadata,
    }


def table_contents(metadata: Json) -> dict[str, object]:
    """Return the counts of rows, bytes and files from the current snapshot's summary, and the time of the table's last
    change.
    """
    current = metadata.get("current-snapshot-id")
    snapshot = next((one for one in structs_of(metadata, "snapshots") if one.get("snapshot-id") == current), {})
    summary = snapshot.get("summary")
    entries = summary if isinstance(summary, dict) else {}
    size = whole_number(entries.get("total-files-size"))
    return {
        "rows": whole_number(entries.get("total-records")),
        "size": None if size is None else human_size(size),
        "size_bytes": size,
        "data_files": whole_number(entries.get("total-data-files")),
        "last_change": utc_time(metadata.get("last-updated-ms")),
        "last_operation": entries.get("operation"),
        "last_operation_at": utc_time(snapshot.get("timestamp-ms")),
    }


def _comment(metadata: Json) -> object:
    """Return the comment of an Iceberg table or view, which is one of its properties."""
    properties = metadata.get("properties")
    return properties.get("comment") if isinstance(properties, dict) else None


def lance_sizes(client: Client, path: str | Parts) -> Row:
    """Return the rows and bytes of a Lance table. Raises ClientError."""
    size = client.lance.size(path)
    return {"rows": size.rows, "size": human_size(size.size_bytes), "size_bytes": size.size_bytes}


def _lance_size_fields(client: Client, path: str) -> Row:
    """Return the rows and bytes of a Lance table; empty after an error of the server, as for a table without data."""
    try:
        return lance_sizes(client, path)
    except ClientError:
        return {}


def _column_comments(metadata: Json, schema_id: object) -> dict[str, str]:
    schema = next((one for one in structs_of(metadata, "schemas") if one.get("schema-id") == schema_id), {})
    return {str(field.get("name")): str(field["doc"]) for field in structs_of(schema, "fields") if field.get("doc")}


def _columns(metadata: Json, schema_id: object) -> dict[str, str]:
    for schema in structs_of(metadata, "schemas"):
        if schema.get("schema-id") == schema_id:
            return {str(field.get("name")): iceberg_column(field) for field in structs_of(schema, "fields")}
    return {}


def _partitions(metadata: Json) -> list[str]:
    for spec in structs_of(metadata, "partition-specs"):
        if spec.get("spec-id") == metadata.get("default-spec-id"):
            return [f"{field.get('name')} ({field.get('transform')})" for field in structs_of(spec, "fields")]
    return []


_FOUND = {
    "namespace": _namespace,
    "table": _table,
    "view": _view,
    "topic": _topic,
    "fileset": _fileset,
    "model": _model,
    **{each.kind.word: _declared_loader(each) for each in DECLARED},
}
DESCRIBED = frozenset({"metalake", "catalog", *_FOUND})
"""The kinds of objects that `describe` shows."""
