# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of a request into a Lance table.

Must not know the wire protocol. Runs in a worker process. Tables are opened for writing only in
`opening.open_for_writing` and created only in `create_table`; both commit to the server if it manages the versions.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import lance

from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError
from limnos.rooms.lance.sources.bodies import ArrowBody
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.managed_versions import create_managed
from limnos.rooms.lance.sources.opening import checkout_reference, no_data_error, open_for_writing
from limnos.rooms.lance.sources.opening import open_latest as opened_latest
from limnos.rooms.lance.sources.questions import LanceWriteResult

if TYPE_CHECKING:
    import pyarrow as pa

    from limnos.rooms.lance.sources.bodies import BodyPieces
    from limnos.rooms.lance.sources.questions import Write

CREATE, APPEND, OVERWRITE = "create", "append", "overwrite"


def write(request: Write, body: BodyPieces) -> LanceWriteResult:
    """Write rows in the requested mode. Any mode creates a table that has no data yet.

    Raises:
        AlreadyExists: The mode is `create` and the table has data.
        NotFound: The request names a missing branch, or a branch of a table without data.
        SchemaMismatch: The rows do not fit the table's schema.
        BadRequest: The body is not an Arrow stream or is incomplete.
        TooLarge: A batch is larger than `batch_bytes_max`.
    """
    rows = ArrowBody(body, batch_bytes_max=request.batch_bytes_max)
    dataset = None if request.kept is not None else opened_latest(request.location, request.options, rows=True)
    is_held = dataset is not None or "" in (request.kept or {})
    if is_held and request.mode == CREATE:
        raise AlreadyExists("The table has data already", kind="table")
    if not is_held and request.branch is not None:
        raise no_data_error(request)
    reader = rows.reader()
    try:
        with translate_library_errors(request.location):
            done = _write_rows(request, reader, dataset=dataset) if is_held else create_table(request, reader)
    except LimnosError as error:
        raise _convert_error(error, rows=rows, mode=request.mode) from error
    return write_result(done, inserted=rows.rows)


def _convert_error(error: LimnosError, *, rows: ArrowBody, mode: str) -> LimnosError:
    """Return the error to raise: the error in the body if that caused the failure, else `error`."""
    if rows.failure is not None:
        return rows.failure
    if mode == CREATE and isinstance(error, CommitConflict):
        return AlreadyExists("The table has data already", kind="table")
    return error


def create_table(request: Write, reader: pa.RecordBatchReader) -> lance.LanceDataset:
    """Create a table by writing its first version, to its directory or, for managed versions, by a commit to the
    server.
    """
    if request.kept is not None:
        return create_managed(request, reader)
    return lance.write_dataset(reader, request.location, mode=CREATE, storage_options=request.options or None)


def _write_rows(
    request: Write, reader: pa.RecordBatchReader, *, dataset: lance.LanceDataset | None
) -> lance.LanceDataset:
    """Write rows into an existing table. `dataset` is the opened table; None means a table whose versions the server
    manages.
    """
    lance_dataset = open_for_writing(request) if dataset is None else checkout_reference(dataset, request)
    return lance.write_dataset(reader, lance_dataset, mode=request.mode)


def write_result(
    dataset: lance.LanceDataset, *, inserted: int = 0, updated: int = 0, deleted: int = 0
) -> LanceWriteResult:
    """Return the result of a committed change.

    A storage error at this point must not fail the request: its client would repeat the change.
    """
    with suppress(OSError, ValueError, RuntimeError):
        transaction = dataset.read_transaction(dataset.version)
        uuid = None if transaction is None else transaction.uuid
        return LanceWriteResult(
            version=dataset.version, transaction_id=uuid, inserted=inserted, updated=updated, deleted=deleted
        )
    return LanceWriteResult(
        version=dataset.version, transaction_id=None, inserted=inserted, updated=updated, deleted=deleted
    )
