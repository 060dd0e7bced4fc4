"""Changes rows and columns of a Lance table.

May import Lance's library, pyarrow, `model` and this room. Must not know the wire. Runs in a worker process; each
change is one commit.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limnos.model.errors import BadRequest, LimnosError, NotFound
from limnos.sources.lance.bodies import ArrowBody
from limnos.sources.lance.library_errors import translate_library_errors
from limnos.sources.lance.opening import open_for_writing
from limnos.sources.lance.questions import FieldMetadataResult, LanceWriteResult
from limnos.sources.lance.schemas import texts_of
from limnos.sources.lance.types import type_of
from limnos.sources.lance.writing import write_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    import lance
    import pyarrow as pa

    from limnos.sources.lance.bodies import BodyPieces
    from limnos.sources.lance.questions import (
        AddColumns,
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


def merge(asked: Merge, body: BodyPieces) -> LanceWriteResult:
    """Merge rows by their keys. Raises NotFound (table, column), SchemaMismatch, BadRequest, CommitConflict."""
    rows = ArrowBody(body, batch_bytes_max=asked.batch_bytes_max)
    found = open_for_writing(asked)
    reader = rows.reader()
    try:
        with translate_library_errors(asked.location):
            told: dict[str, int] = _merge_builder(found, asked).execute(reader)
    except LimnosError as error:
        raise rows.failure or error from error
    return write_result(
        found, inserted=told["num_inserted_rows"], updated=told["num_updated_rows"], deleted=told["num_deleted_rows"]
    )


def _merge_builder(found: lance.LanceDataset, asked: Merge) -> Any:  # noqa: ANN401 - the library's builder
    work = found.merge_insert(asked.on)
    if asked.updates:
        work = work.when_matched_update_all(asked.updates_if)
    if asked.inserts:
        work = work.when_not_matched_insert_all()
    if asked.deletes:
        work = work.when_not_matched_by_source_delete(asked.deletes_if)
    if asked.timeout_s is not None:
        work = work.retry_timeout(timedelta(seconds=asked.timeout_s))
    return work if asked.use_index else work.use_index(False)


def update(asked: Update) -> LanceWriteResult:
    """Set columns of rows. Raises NotFound (table, column), BadRequest, CommitConflict."""
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        told = found.update(asked.updates, where=asked.predicate or None)
        return write_result(found, updated=told["num_rows_updated"])


def delete(asked: Delete) -> LanceWriteResult:
    """Delete rows. Raises NotFound (table, column), BadRequest, CommitConflict."""
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        told = found.delete(asked.predicate)
        return write_result(found, deleted=told["num_deleted_rows"])


def restore(asked: Restore) -> LanceWriteResult:
    """Make an older version the latest again. Raises NotFound (table, version)."""
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        found.restore()  # type: ignore[no-untyped-call]
        return write_result(found)


def schema_metadata(asked: SchemaMetadata) -> dict[str, str]:
    """Replace the metadata of a schema. Returns the new metadata."""
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        told: dict[str, str] = found.update_schema_metadata(dict(asked.values), replace=True)
        return told


def field_metadata(asked: FieldMetadata) -> FieldMetadataResult:
    """Change metadata of fields, all in one commit.

    Raises NotFound (column), BadRequest for a field that is named twice.
    """
    found = open_for_writing(asked)
    paths = [each.path for each in asked.updates]
    if len(set(paths)) != len(paths):
        raise BadRequest("A field is named twice: say of each once what its metadata is to be")
    for path in paths:
        _field(found.schema, path)
    with translate_library_errors(asked.location):
        if asked.updates:
            replaces = any(each.replace for each in asked.updates)
            found.update_field_metadata(
                {each.path: _new_metadata(found, each, replaces=replaces) for each in asked.updates}, replace=replaces
            )
        return FieldMetadataResult(
            found.version, {path: texts_of(_field(found.schema, path).metadata) for path in paths}
        )


def _new_metadata(found: lance.LanceDataset, change: FieldChange, *, replaces: bool) -> dict[str, str | None]:
    """Return the new metadata of one field.

    One commit replaces the metadata of all its fields or merges it for all. If another field is replaced, a field that
    merges gets its old keys added here.
    """
    if change.replace or not replaces:
        return dict(change.metadata)
    kept = {**texts_of(_field(found.schema, change.path).metadata), **change.metadata}
    return {key: value for key, value in kept.items() if value is not None}


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
        places = [place for place in range(kind.num_fields) if kind.field(place).name == part]
        if not places:
            raise NotFound(path, kind="column")
        field = kind.field(places[0])
    return field


def _check_names(names: Iterable[str]) -> None:
    """Refuse column names that the library writes but cannot read again, which would lose the table.

    Raises BadRequest.
    """
    if any("\x00" in name or not name for name in names):
        raise BadRequest("The name of a column is empty, or has a zero byte in it: take another one")


def add_columns(asked: AddColumns) -> LanceWriteResult:
    """Add columns. Raises NotFound for a column that an expression names, BadRequest."""
    _check_names(asked.columns)
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        found.add_columns(dict(asked.columns))
        return write_result(found)


def alter_columns(asked: AlterColumns) -> LanceWriteResult:
    """Rename columns, or change their types or nullability. Raises NotFound (column), BadRequest."""
    _check_names(each.rename for each in asked.alterations if each.rename is not None)
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        changes: list[Any] = [_alteration(each) for each in asked.alterations]
        found.alter_columns(*changes)
        return write_result(found)


def _alteration(change: ColumnChange) -> dict[str, Any]:
    told: dict[str, Any] = {"path": change.path}
    if change.rename is not None:
        told["name"] = change.rename
    if change.nullable is not None:
        told["nullable"] = change.nullable
    if change.data_type is not None:
        told["data_type"] = type_of(change.data_type)
    return told


def drop_columns(asked: DropColumns) -> LanceWriteResult:
    """Drop columns. Raises NotFound (column), BadRequest."""
    found = open_for_writing(asked)
    with translate_library_errors(asked.location):
        found.drop_columns(list(asked.columns))
        return write_result(found)
