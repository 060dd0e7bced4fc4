# SPDX-License-Identifier: Apache-2.0
"""Previews of files: the first rows or characters of Parquet, CSV, JSON and plain text files.

Other files count as binary. Must not know stores or users: the file is opened by the caller. The content is only
decoded, never executed: HTML, for example, is text. The extension of the name selects the format, and a file that does
not have that format is shown as text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from limnos.formats.preview_cells import cell_of, cut_text, rows_of

TEXT_BYTES_MAX: Final = 256 << 10
"""The number of bytes of a text file that are read."""
TEXT_CHARACTERS_MAX: Final = 50_000
DECODED_BYTES_MAX: Final = 32 << 20
"""The number of decoded bytes of a Parquet file after which no further batch is read."""
FIELD_CHARACTERS_MAX: Final = 131_072
"""The maximum number of characters in a field of delimited text; the csv library's own limit is process-wide."""
_DELIMITERS: Final = ",;\t|"
_BINARY: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters that text files do not contain; escape sequences of terminals are allowed."""
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_INDENTED_MAX: Final = 4_000_000
"""The maximum product of the lines of an indented JSON document and its depth."""
_BATCH_ROWS: Final = 25
_BUFFER_BYTES: Final = 64 << 10
Row = list[object]


class OpenedFile(Protocol):
    """A file opened for reading parts of it."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Set the position of the next read, and return it."""

    def size(self) -> int:
        """Return the length in bytes."""


class HeadLimits(msgspec.Struct, frozen=True):
    """The maximum counts of rows and columns of a preview, and the maximum size of its rows as JSON in bytes."""

    rows_max: int
    columns_max: int
    bytes_max: int


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A preview of a file: `rows` with `columns` (name and type), a `text`, or neither for a binary file.

    `is_complete` is true if the preview contains the whole file.
    """

    size: int
    is_complete: bool
    columns: list[tuple[str, str]] = []
    rows: list[Row] = []
    columns_left_out: int = 0
    text: str | None = None


class _TextRows(NamedTuple):
    """The rows of a text file: the names of all columns, and an iterator of rows with the cells of the first
    `columns_max` columns.

    Rows are split into cells lazily, because even a short text may have many columns and rows.
    """

    names: list[str]
    rows: Iterator[Row]


def file_content(name: str, file: OpenedFile, *, limits: HeadLimits) -> FileContent:
    """Return a preview of a file.

    Raises errors of reading the file, and pyarrow's errors for a damaged Parquet file.
    """
    extension = name.rpartition(".")[2].lower()
    if extension == "parquet":
        return _parquet(file, limits)
    size = file.size()
    data = file.read(min(size, TEXT_BYTES_MAX))
    is_whole = size <= len(data)
    text = _decode_text(data, is_whole=is_whole)
    if text is None:
        return FileContent(size=size, is_complete=False)
    rows = _rows_in(text, extension, is_whole=is_whole, columns_max=limits.columns_max)
    if rows is not None:
        with suppress(RecursionError):  # values nested too deeply for cells: the file is shown as text
            return _table(rows, limits, size=size, is_whole=is_whole)
    if extension == "json" and is_whole:
        text = _indent_json(text)
    cut = text[:TEXT_CHARACTERS_MAX]
    return FileContent(size=size, is_complete=is_whole and len(cut) == len(text), text=cut)


def _decode_text(data: bytes, *, is_whole: bool) -> str | None:
    """Decode bytes as UTF-8 text, with invalid bytes replaced; None for a binary file."""
    text = data.decode("utf-8-sig", "replace")
    if not is_whole:
        text = text.removesuffix("\ufffd")  # a multi-byte character is truncated at the end
    return None if _BINARY.search(text) else text


def _rows_in(text: str, extension: str, *, is_whole: bool, columns_max: int) -> _TextRows | None:
    """Return the rows of a text if its extension and content have a tabular format (CSV, JSON lines); else None."""
    if extension in ("csv", "tsv"):
        delimiter = "\t" if extension == "tsv" else None
        return _read_delimited(text, delimiter, is_whole=is_whole, columns_max=columns_max)
    try:
        if extension in ("jsonl", "ndjson"):
            values = [msgspec.json.decode(line) for line in _whole_lines(text, is_whole=is_whole)]
            return _objects(values, columns_max=columns_max)
        if extension == "json" and is_whole:
            values = msgspec.json.decode(text)
            return _objects(values, columns_max=columns_max) if isinstance(values, list) else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return None


def _whole_lines(text: str, *, is_whole: bool) -> Iterator[str]:
    lines = text.split("\n")
    return (line for line in (lines if is_whole else lines[:-1]) if line.strip())


def _objects(values: Sequence[object], *, columns_max: int) -> _TextRows | None:
    """Return objects as rows, with a column for each key; None if not all values are objects."""
    objects = [value for value in values if isinstance(value, dict)]
    if not objects or len(objects) < len(values):
        return None
    names = list(dict.fromkeys(str(key) for each in objects for key in each))
    return _TextRows(names, ([each.get(name) for name in names[:columns_max]] for each in objects))


def _read_delimited(text: str, delimiter: str | None, *, is_whole: bool, columns_max: int) -> _TextRows | None:
    """Return the rows of a delimited text, whose first row has the names of the columns; None if it is malformed or
    empty.
    """
    first = text.partition("\n")[0]
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=delimiter or max(_DELIMITERS, key=first.count)))
    except csv.Error:
        return None
    if not is_whole:
        lines = lines[:-1]  # its end was not read
    if any(len(cell) > FIELD_CHARACTERS_MAX for line in lines for cell in line):
        return None
    rows = [line for line in lines if line]
    if not rows:
        return None
    width = max(map(len, rows))
    names = [*rows[0], *(f"column {number + 1}" for number in range(len(rows[0]), width))]
    cells_max = min(width, columns_max)
    return _TextRows(names, ([*row[:cells_max], *[None] * (cells_max - len(row))] for row in rows[1:]))


def _indent_json(text: str) -> str:
    """Return a JSON document with indentation; unchanged if the indentation of deep values would need much memory."""
    depths = accumulate(1 if each in "[{" else -1 for each in _BRACKETS.findall(text))
    lines = text.count(",") + text.count("[") + text.count("{")
    if lines * max(depths, default=0) > _INDENTED_MAX:
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text


def _table(table: _TextRows, limits: HeadLimits, *, size: int, is_whole: bool) -> FileContent:
    names = table.names
    visible_names = names[: limits.columns_max]
    cells = ([cell_of(value) for value in row] for row in table.rows)
    rows, is_complete = _limit_rows(cells, limits)
    columns = [(cut_text(name), "") for name in visible_names]
    return FileContent(
        size=size,
        is_complete=is_whole and is_complete,
        columns=columns,
        rows=rows,
        columns_left_out=len(names) - len(visible_names),
    )


def _limit_rows(rows: Iterator[Row], limits: HeadLimits) -> tuple[list[Row], bool]:
    """Return rows up to the limits, and whether these are all rows."""
    results: list[Row] = []
    size = 0
    for row in rows:
        size += len(msgspec.json.encode(row))
        if len(results) >= limits.rows_max or size > limits.bytes_max:
            return results, False
        results.append(row)
    return results, True


def _parquet(file: OpenedFile, limits: HeadLimits) -> FileContent:
    parquet = pq.ParquetFile(pa.PythonFile(file, mode="r"), buffer_size=_BUFFER_BYTES, pre_buffer=False)
    schema = parquet.schema_arrow
    column_names = list(islice(schema, limits.columns_max))
    names = [field.name for field in column_names]
    is_read_whole = [True]

    def rows() -> Iterator[Row]:
        decoded = 0
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
            yield from rows_of(pa.Table.from_batches([batch]).select(names))
            decoded += batch.nbytes
            if decoded >= DECODED_BYTES_MAX:
                is_read_whole[0] = False
                return

    visible_rows, is_complete = _limit_rows(rows(), limits)
    columns = [(cut_text(field.name), str(field.type)) for field in column_names]
    return FileContent(
        size=file.size(),
        is_complete=is_complete and is_read_whole[0],
        columns=columns,
        rows=visible_rows,
        columns_left_out=len(schema) - len(column_names),
    )
