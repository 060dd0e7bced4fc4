# SPDX-License-Identifier: Apache-2.0
"""Manifests and manifest lists for tests: any version, with deletes and damage, and without data files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

import fastavro
from pyiceberg.manifest import DATA_FILE_TYPE, MANIFEST_LIST_FILE_SCHEMAS, manifest_entry_schema_with_data_file
from pyiceberg.types import NestedField, StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

EXISTING, ADDED, DELETED = 0, 1, 2
DATA, POSITIONS, EQUALITY = 0, 1, 2
Fields = Mapping[str, object]


def data_file(path: str, **more: object) -> dict[str, object]:
    """Return a data file's entry in a manifest: by default Parquet, ten rows, unpartitioned. Maps are plain dicts."""
    fields: dict[str, object] = {
        "content": DATA,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 1_000,
    }
    pairs = {
        name: [{"key": key, "value": each} for key, each in value.items()] if isinstance(value, dict) else value
        for name, value in more.items()
        if name != "partition"
    }
    return {**fields, **pairs, "partition": more.get("partition", {})}


def entry(
    file: Fields, *, status: int = ADDED, snapshot: int | None = None, sequence: int | None = None
) -> dict[str, object]:
    """Return an entry. Absent fields are inherited from its manifest."""
    return {
        "status": status,
        "snapshot_id": snapshot,
        "sequence_number": sequence,
        "file_sequence_number": sequence,
        "data_file": file,
    }


def manifest(
    entries: Iterable[Fields], *, partition: StructType | None = None, version: int = 2, codec: str = "deflate"
) -> bytes:
    """Return a manifest's bytes."""
    fields = [
        NestedField(102, "partition", partition or StructType(), required=True) if each.field_id == 102 else each
        for each in DATA_FILE_TYPE[version].fields  # type: ignore[index]
    ]
    schema = manifest_entry_schema_with_data_file(version, StructType(*fields))  # type: ignore[arg-type]
    return _written(AvroSchemaConversion().iceberg_to_avro(schema, schema_name="manifest_entry"), entries, codec=codec)


def listed(
    path: str, data: bytes, *, deletes: bool = False, sequence: int = 1, snapshot: int = 1, **more: object
) -> dict[str, object]:
    """Return a manifest's entry in a manifest list."""
    return {
        "manifest_path": path,
        "manifest_length": len(data),
        "partition_spec_id": 0,
        "content": int(deletes),
        "sequence_number": sequence,
        "min_sequence_number": 0,
        "added_snapshot_id": snapshot,
        "added_files_count": 1,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 10,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": None,
        "key_metadata": None,
        "first_row_id": None,
        **more,
    }


def manifest_list(manifests: Iterable[Fields], *, version: int = 3) -> bytes:
    """Return a manifest list's bytes."""
    schema = MANIFEST_LIST_FILE_SCHEMAS[version]  # type: ignore[index]
    return _written(
        AvroSchemaConversion().iceberg_to_avro(schema, schema_name="manifest_file"), manifests, codec="deflate"
    )


def _written(schema: object, rows: Iterable[Fields], *, codec: str) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, rows, codec=codec)  # type: ignore[arg-type]
    return target.getvalue()
