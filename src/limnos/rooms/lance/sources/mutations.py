# SPDX-License-Identifier: Apache-2.0
"""Changes rows and columns of a Lance table.

Must not know the wire protocol. Runs in a worker process; each change is one commit.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limnos.model.errors import BadRequest, LimnosError, NotFound
from limnos.rooms.lance.sources.bodies import ArrowBody
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_for_writing
from limnos.rooms.lance.sources.questions import FieldMetadataResult, LanceWriteResult
from limnos.rooms.lance.sources.schemas import texts_of
from limnos.rooms.lance.sources.types import type_of
from limnos.rooms.lance.sources.writing import write_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    import lance
    import pyarrow as pa

    from limnos.rooms.lance.sources.bodies import BodyPieces
    from limnos.rooms.lance.sources.questions import (
        AddColumns,
        AddFields,
        AlterColumns,
        ColumnChange,
        Delete,
        DropColumns,
        FieldChange,
        FieldMetadata,
        Merge,
        Restore,
        SchemaMetadata,
        Update,
    )


def merge(request: Merge, body: BodyPieces) -> LanceWriteResult:
    """Merge the rows of the body into the table by key columns (upsert). Raises NotFound (table, column),
    SchemaMismatch, BadRequest for a malformed body, CommitConflict.
    """
    rows = ArrowBody(body, batch_bytes_max=request.batch_bytes_max)
    dataset = open_for_writing(request)
    reader = rows.reader()
    try:
        with translate_library_errors(request.location):
            entries: dict[str, int] = _merge_builder(dataset, request).execute(reader)
    except LimnosError as error:
        raise rows.failure or error from error
    return write_result(
        dataset,
        inserted=entries["num_inserted_rows"],
        updated=entries["num_updated_rows"],
        deleted=entries["num_deleted_rows"],
    )


def _merge_builder(dataset: lance.LanceDataset, request: Merge) -> Any:  # noqa: ANN401 - the library's builder
    work = dataset.merge_insert(request.on)
    if request.updates:
        work = work.when_matched_update_all(request.updates_if)
    if request.inserts:
        work = work.when_not_matched_insert_all()
    if request.deletes:
        work = work.when_not_matched_by_source_delete(request.deletes_if)
    if request.timeout_s is not None:
        work = work.retry_timeout(timedelta(seconds=request.timeout_s))
    return work if request.use_index else work.use_index(False)


def update(request: Update) -> LanceWriteResult:
    """Set columns to SQL expressions in the rows that match the predicate. Raises NotFound (table, column), BadRequest
    for an invalid expression, CommitConflict.
    """
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        result = dataset.update(request.updates, where=request.predicate or None)
        return write_result(dataset, updated=result["num_rows_updated"])


def delete(request: Delete) -> LanceWriteResult:
    """Delete the rows that match the predicate. Raises NotFound (table, column), BadRequest for an invalid predicate,
    CommitConflict.
    """
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        result = dataset.delete(request.predicate)
        return write_result(dataset, deleted=result["num_deleted_rows"])


def restore(request: Restore) -> LanceWriteResult:
    """Make an older version the latest again. Raises NotFound (table, version)."""
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        dataset.restore()  # type: ignore[no-untyped-call]
        return write_result(dataset)


def schema_metadata(metadata: SchemaMetadata) -> dict[str, str]:
    """Replace the key-value metadata of the table's schema. Returns the new metadata."""
    dataset = open_for_writing(metadata)
    with translate_library_errors(metadata.location):
        entries: dict[str, str] = dataset.update_schema_metadata(dict(metadata.values), replace=True)
        return entries


def field_metadata(metadata: FieldMetadata) -> FieldMetadataResult:
    """Change the key-value metadata of fields in one commit.

    Raises NotFound (column), BadRequest for a field that is named twice.
    """
    dataset = open_for_writing(metadata)
    paths = [each.path for each in metadata.updates]
    if len(set(paths)) != len(paths):
        raise BadRequest("A field is named twice: give the metadata of each field once")
    for path in paths:
        _field(dataset.schema, path)
    with translate_library_errors(metadata.location):
        if metadata.updates:
            replaces = any(each.replace for each in metadata.updates)
            dataset.update_field_metadata(
                {each.path: _new_metadata(dataset, each, replaces=replaces) for each in metadata.updates},
                replace=replaces,
            )
        return FieldMetadataResult(
            dataset.version, {path: texts_of(_field(dataset.schema, path).metadata) for path in paths}
        )


def _new_metadata(dataset: lance.LanceDataset, change: FieldChange, *, replaces: bool) -> dict[str, str | None]:
    """Return the new metadata of one field.

    One commit either replaces or merges the metadata of all its fields. If it replaces, the old keys of a field that is
    to be merged are added here.
    """
    if change.replace or not replaces:
        return dict(change.metadata)
    entries = {**texts_of(_field(dataset.schema, change.path).metadata), **change.metadata}
    return {key: value for key, value in entries.items() if value is not None}


def _field(schema: pa.Schema, path: str) -> pa.Field:
    """Find a field by its path. Raises NotFound."""
    if path in schema.names:
        return schema.field(path)
    name, *rest = path.split(".")
    if name not in schema.names:
        raise NotFound(path, kind="column")
    field = schema.field(name)
    for part in rest:
        kind = field.type
        positions = [index for index in range(kind.num_fields) if kind.field(index).name == part]
        if not positions:
            raise NotFound(path, kind="column")
        field = kind.field(positions[0])
    return field


def _check_names(names: Iterable[str]) -> None:
    """Raise BadRequest for column names that the library writes but cannot read again, which would lose the table."""
    if any("\x00" in name or not name for name in names):
        raise BadRequest("The name of a column is empty, or has a zero byte in it: choose another one")


def add_columns(columns: AddColumns) -> LanceWriteResult:
    """Add columns whose values are computed by SQL expressions. Raises NotFound for a column that an expression names,
    BadRequest for an invalid name or expression.
    """
    _check_names(columns.columns)
    dataset = open_for_writing(columns)
    with translate_library_errors(columns.location):
        dataset.add_columns(dict(columns.columns))
        return write_result(dataset)


def add_fields(fields: AddFields, body: BodyPieces) -> LanceWriteResult:
    """Add the columns of the body's schema, with null in all stored rows. Raises NotFound (table), BadRequest for a
    malformed body, a body with rows, and a column that exists, is required or has an invalid name.
    """
    rows = ArrowBody(body, batch_bytes_max=fields.batch_bytes_max)
    reader = rows.reader()
    if any(batch.num_rows for batch in reader):
        raise BadRequest("New columns have no rows: send their schema alone, as an Arrow stream")
    _check_names(reader.schema.names)
    dataset = open_for_writing(fields)
    with translate_library_errors(fields.location):
        dataset.add_columns(reader.schema)
        return write_result(dataset)


def alter_columns(columns: AlterColumns) -> LanceWriteResult:
    """Rename columns, or change their types or nullability. Raises NotFound (column), BadRequest for an invalid name or
    type.
    """
    _check_names(each.rename for each in columns.alterations if each.rename is not None)
    dataset = open_for_writing(columns)
    with translate_library_errors(columns.location):
        changes: list[Any] = [_alteration(each) for each in columns.alterations]
        dataset.alter_columns(*changes)
        return write_result(dataset)


def _alteration(change: ColumnChange) -> dict[str, Any]:
    fields: dict[str, Any] = {"path": change.path}
    if change.rename is not None:
        fields["name"] = change.rename
    if change.nullable is not None:
        fields["nullable"] = change.nullable
    if change.data_type is not None:
        fields["data_type"] = type_of(change.data_type)
    return fields


def drop_columns(columns: DropColumns) -> LanceWriteResult:
    """Drop columns by name, as one commit. Raises NotFound (column), BadRequest if the library refuses."""
    dataset = open_for_writing(columns)
    with translate_library_errors(columns.location):
        dataset.drop_columns(list(columns.columns))
        return write_result(dataset)
