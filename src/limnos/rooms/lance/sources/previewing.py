# SPDX-License-Identifier: Apache-2.0
"""Reads the first rows of a Lance table for a preview, as values for JSON.

Must not know the wire protocol. Runs in a worker process; rows are read in small batches, so that large values do not
fill the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from limnos.formats.preview_cells import is_vector, rows_of
from limnos.model.errors import BadRequest
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_for_rows
from limnos.rooms.lance.sources.questions import Head, LanceHead

if TYPE_CHECKING:
    import lance

BATCH_ROWS: Final = 25
DECODED_BYTES_MAX: Final = 32 << 20
"""The number of decoded bytes after which no further batch is read."""


def head(request: Head) -> LanceHead:
    """Return the first rows of a table as JSON values, within the request's limits.

    Raises NotFound (table, version), BadRequest for an unknown column, StorageFailed if the storage cannot be read.
    """
    dataset = open_for_rows(request)
    fields = {field.name: field for field in dataset.schema}
    unknown = [name for name in request.columns if name not in fields]
    if unknown:
        raise BadRequest(f"The table has no column '{unknown[0][:100]}'")
    names = list(dict.fromkeys(request.columns or list(fields)[: request.columns_max]))
    with translate_library_errors(request.location):
        rows, is_complete = _first_rows(dataset, request, names=names)
    columns = [(name, _type_text(fields[name].type)) for name in names]
    return LanceHead(
        columns=columns,
        rows=rows,
        version=dataset.version,
        is_complete=is_complete,
        columns_left_out=len(fields) - len(names),
    )


def _first_rows(dataset: lance.LanceDataset, request: Head, *, names: list[str]) -> tuple[list[list[object]], bool]:
    """Return rows up to the limits, and whether the table has no further rows."""
    scanner = dataset.scanner(
        columns=names, limit=request.rows_max + 1, batch_size=BATCH_ROWS, io_buffer_size=DECODED_BYTES_MAX
    )
    rows: list[list[object]] = []
    size = decoded = 0
    for batch in scanner.to_batches():
        for row in rows_of(pa.Table.from_batches([batch])):
            size += len(msgspec.json.encode(row))
            if len(rows) >= request.rows_max or size > request.bytes_max:
                return rows, False
            rows.append(row)
        decoded += batch.nbytes
        if decoded >= DECODED_BYTES_MAX:
            return rows, False
    return rows, True


def _type_text(kind: pa.DataType) -> str:
    return f"vector of {kind.list_size} {kind.value_type}" if is_vector(kind) else str(kind)
