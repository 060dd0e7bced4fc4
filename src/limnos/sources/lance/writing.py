"""Writes the rows of a request into a Lance table.

May import Lance's library, pyarrow, `model` and this room. Runs in a process of its own. A table is opened for it in one place
(`opening.open_for_writing`), and made in one (`create_table`): where versions are kept by somebody else, that is where a commit goes by them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import lance

from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError
from limnos.sources.lance.bodies import ArrowBody
from limnos.sources.lance.library_errors import translate_library_errors
from limnos.sources.lance.managed_versions import create_managed
from limnos.sources.lance.opening import checkout_reference, no_data_error, open_for_writing
from limnos.sources.lance.opening import open_latest as opened_latest
from limnos.sources.lance.questions import LanceWriteResult

if TYPE_CHECKING:
    import pyarrow as pa

    from limnos.sources.lance.bodies import BodyPieces
    from limnos.sources.lance.questions import Write

CREATE, APPEND, OVERWRITE = "create", "append", "overwrite"


def write(asked: Write, body: BodyPieces) -> LanceWriteResult:
    """Write rows, as the mode says; a table that holds none yet is made by any mode.

    Raises AlreadyExists to `create` one that holds data, SchemaMismatch, BadRequest for what is no Arrow stream or did not end, TooLarge.
    """
    rows = ArrowBody(body, batch_bytes_max=asked.batch_bytes_max)
    found = None if asked.kept is not None else opened_latest(asked.location, asked.options, rows=True)
    is_held = found is not None or "" in (asked.kept or {})
    if is_held and asked.mode == CREATE:
        raise AlreadyExists("The table holds data already", kind="table")
    if not is_held and asked.branch is not None:
        raise no_data_error(asked)
    reader = rows.reader()
    try:
        with translate_library_errors(asked.location):
            done = _write_rows(asked, reader, found=found) if is_held else create_table(asked, reader)
    except LimnosError as error:
        raise _why(error, rows=rows, mode=asked.mode) from error
    return write_result(done, inserted=rows.rows)


def _why(error: LimnosError, *, rows: ArrowBody, mode: str) -> LimnosError:
    """Say what was wrong with the body, if that was it."""
    if rows.failure is not None:
        return rows.failure
    if mode == CREATE and isinstance(error, CommitConflict):
        return AlreadyExists("The table holds data already", kind="table")
    return error


def create_table(asked: Write, reader: pa.RecordBatchReader) -> lance.LanceDataset:
    """Make a table's first version."""
    if asked.kept is not None:
        return create_managed(asked, reader)
    return lance.write_dataset(reader, asked.location, mode=CREATE, storage_options=asked.options or None)


def _write_rows(asked: Write, reader: pa.RecordBatchReader, *, found: lance.LanceDataset | None) -> lance.LanceDataset:
    """Write into a table that is there: `found`, as it was opened, or one whose versions are kept elsewhere."""
    held = open_for_writing(asked) if found is None else checkout_reference(found, asked)
    return lance.write_dataset(reader, held, mode=asked.mode)


def write_result(
    found: lance.LanceDataset, *, inserted: int = 0, updated: int = 0, deleted: int = 0
) -> LanceWriteResult:
    """Say what a change left. It is committed: a storage that refuses now must not have it told as failed, or it is made again."""
    with suppress(OSError, ValueError, RuntimeError):
        transaction = found.read_transaction(found.version)
        uuid = None if transaction is None else transaction.uuid
        return LanceWriteResult(found.version, uuid, inserted=inserted, updated=updated, deleted=deleted)
    return LanceWriteResult(found.version, None, inserted=inserted, updated=updated, deleted=deleted)
