# SPDX-License-Identifier: Apache-2.0
"""Encodes the results of a query as the contents of files: JSON, ADM, delimited text, Parquet.

Must not know the locations of files: the server places and names them. The engine's output has a line for the beginning
of each file (`BEGIN`, with the parts of its directory), lines with its bytes (`BYTES`, in base64), and one for its end
(`END`, with the count of its objects).
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import TYPE_CHECKING, Final, Protocol, cast

from limnos.rooms.sqlpp.engine.export_columns import columns_of, to_arrow_value
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.exports import option_character
from limnos.rooms.sqlpp.language.functions.formats import print_date, print_datetime, print_time
from limnos.rooms.sqlpp.language.functions.types import json_text, text_of
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.result_text import adm_text
from limnos.rooms.sqlpp.language.stored import Scalar, storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import MISSING, Date, DateTime, Time, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from limnos.rooms.sqlpp.language.evaluator import Budget
    from limnos.rooms.sqlpp.language.exports import ExportFormat
    from limnos.rooms.sqlpp.language.stored import RecordType
    from limnos.rooms.sqlpp.language.values.model import Value

BEGIN, BYTES, END = "begin", "bytes", "end"
CHUNK_BYTES: Final = 48 << 10
FILES_MAX: Final = 10_000
"""The maximum number of files of one statement."""
NO_PATH, MISMATCH, PARQUET_ERROR, MIXED_ARRAY = 64, 1216, 1245, 72
_INTEGERS: Final = {"tinyint": 7, "smallint": 15, "integer": 31, "bigint": 63}
_PRINTED: Final[Mapping[object, Callable[[Value, Value], Value]]] = {
    Date: print_date,
    DateTime: print_datetime,
    Time: print_time,
}


class SkippedObject(Exception):
    """Raised for an object that a line format cannot represent; the message is the reason."""


class _FileText(Protocol):
    """The encoder of one file. `size` is the approximate number of bytes that it buffers until the end of the file."""

    size: int

    def head(self) -> bytes: ...
    def add(self, value: Value) -> bytes: ...
    def end(self) -> bytes: ...


def export_lines(values: Iterable[Value], form: ExportFormat, *, budget: Budget) -> Iterator[str]:
    """Yield the engine's output lines for the files of some values.

    An object without a directory, or one that a line format cannot represent, is skipped with a warning; a last
    warning has the number of objects that the line format cannot represent. Raises SqlppError for more than FILES_MAX
    files, and for an object that Parquet cannot represent.
    """
    current: tuple[str, ...] | None = None
    directory: tuple[str, ...]
    file = _ExportFile(form)
    files = objects = mismatches = 0
    for result in values:
        objects += 1
        value, directory = result, ()
        if form.is_partitioned and isinstance(result, dict):
            parts = _directory(result.get("path"), budget=budget)
            if parts is None:
                continue
            value, directory = result.get("of", MISSING), parts
        if current is not None and (directory != current or file.is_full):
            yield from file.end()
            current = None
        try:
            data = file.text(value)
        except SkippedObject as reason:
            budget.warn(SqlppError(MISMATCH, f"Record schema mismatch: {reason}"))
            mismatches += 1
            continue
        if current is None:
            files += 1
            if files > FILES_MAX:
                raise SqlppError(PARQUET_ERROR, f"COPY TO writes at most {FILES_MAX} files: partition by fewer values")
            current = directory
            yield json.dumps({BEGIN: directory})
            yield from file.begin()
        yield from file.add(data)
    if current is not None:
        yield from file.end()
    if mismatches:
        text = f"Record schema mismatch: COPY TO left out {mismatches} of {objects} objects"
        budget.warn(SqlppError(MISMATCH, text))


def _directory(parts: Value, *, budget: Budget) -> tuple[str, ...] | None:
    """Return the path parts of a file's directory; None, with a warning, for an unsupported part.

    Unsupported parts are NULL, MISSING, objects and collections.
    """
    names: list[str] = []
    for part in cast("tuple[Value, ...]", parts):
        if part is None or part is MISSING or isinstance(part, dict) or type_name(part) in ("array", "multiset"):
            kind = type_name(part)
            text = f"Path expression produced a value of type '{kind}'. Path must be of type string"
            budget.warn(SqlppError(NO_PATH, text))
            return None
        names += [name for name in text_of(part).split("/") if name]
    return tuple(names)


class _ExportFile:
    """The file that is being written: compresses its contents, counts its objects and bytes."""

    def __init__(self, form: ExportFormat) -> None:
        self._form = form
        self._make: Callable[[], _FileText] = _WRITERS[form.name](form)
        self._file = self._make()
        self._packer = _packer_of(form)
        self._held = bytearray()
        self._count = self._size = 0

    @property
    def is_full(self) -> bool:
        size = max(self._size, self._file.size)
        return self._count >= self._form.objects_max or 0 < self._form.bytes_max <= size

    def text(self, value: Value) -> bytes:
        """Encode an object as bytes.

        Raises SkippedObject for a value that a line format cannot represent, SqlppError for one that Parquet cannot.
        """
        return self._file.add(value)

    def begin(self) -> Iterator[str]:
        return self._compress(self._file.head())

    def add(self, data: bytes) -> Iterator[str]:
        self._count += 1
        return self._compress(data)

    def end(self) -> Iterator[str]:
        """Yield the remaining contents of the file and its `END` line. The next object begins another file. Raises
        SqlppError for objects that do not fit one Parquet schema.
        """
        yield from self._compress(self._file.end())
        if self._packer is not None:
            self._held += self._packer.flush()
        while self._held:
            yield self._chunk()
        yield json.dumps({END: self._count})
        self._file, self._packer, self._count, self._size = self._make(), _packer_of(self._form), 0, 0

    def _compress(self, data: bytes) -> Iterator[str]:
        packed = data if self._packer is None else self._packer.compress(data)
        self._held += packed
        self._size += len(packed)
        while len(self._held) >= CHUNK_BYTES:
            yield self._chunk()

    def _chunk(self) -> str:
        data = bytes(self._held[:CHUNK_BYTES])
        del self._held[:CHUNK_BYTES]
        return json.dumps({BYTES: base64.b64encode(data).decode()})


def _packer_of(form: ExportFormat) -> zlib._Compress | None:
    return zlib.compressobj(form.level, wbits=31) if form.compression == "gzip" and form.name != "parquet" else None


class _Lines:
    """Encodes objects as JSON lines or lines of ADM."""

    size = 0

    def __init__(self, write: Callable[[Value], str]) -> None:
        self._write = write

    def head(self) -> bytes:
        return b""

    def add(self, value: Value) -> bytes:
        return f"{self._write(value)}\n".encode("utf-8", "replace")

    def end(self) -> bytes:
        return b""


class _DelimitedLines:
    """Encodes objects as lines of delimited text. The columns are the fields of a record type."""

    size = 0

    def __init__(self, form: ExportFormat, columns: RecordType) -> None:
        options = form.options
        self._columns = columns
        self._dates = form.dates
        self._delimiter = option_character(options, "delimiter", otherwise="\t" if form.name == "tsv" else ",")
        self._line_end = option_character(options, "record-delimiter", otherwise="\n")
        self._quote = options.get("quote", '"')
        self._escape = options.get("escape", self._quote)
        self._null = options.get("null", "")
        self._has_header = options.get("header", "").lower() == "true"
        self._quotes_all = options.get("force-quote", "").lower() == "true"
        self._empty_is_null = options.get("empty-string-as-null", "").lower() == "true"

    def head(self) -> bytes:
        return self._line(self._text(field.name) for field in self._columns.fields) if self._has_header else b""

    def add(self, value: Value) -> bytes:
        if not isinstance(value, dict):
            raise SkippedObject(f"an object is needed, and a result is of type {type_name(value)}")
        extra = next((name for name in value if self._columns.field(name) is None), None)
        if extra is not None:
            raise SkippedObject(f"the field {extra} is not declared")
        return self._line(
            self._cell(value.get(field.name, MISSING), field.name, optional=field.optional, kind=field.type)
            for field in self._columns.fields
        )

    def end(self) -> bytes:
        return b""

    def _line(self, cells: Iterable[str]) -> bytes:
        return f"{self._delimiter.join(cells)}{self._line_end}".encode("utf-8", "replace")

    def _cell(self, value: Value, name: str, *, optional: bool, kind: object) -> str:
        if value is None or value is MISSING:
            if not optional:
                raise SkippedObject(f"the field {name} needs a value")
            return self._null
        declared = kind.name if isinstance(kind, Scalar) else ""
        if not _fits(value, declared):
            raise SkippedObject(f"the field {name} is of type {declared}, and a value is of type {type_name(value)}")
        if isinstance(value, str):
            return self._null if not value and self._empty_is_null else self._text(value)
        if isinstance(value, (bool, int, float)):
            return text_of(value)
        pattern, write = self._dates.get(type_name(value)), _PRINTED.get(type(value))
        text = None if pattern is None or write is None else write(value, pattern)
        return self._text(text if isinstance(text, str) else text_of(value))

    def _text(self, text: str) -> str:
        quote, special = self._quote, (self._quote, self._delimiter, "\n", "\r", self._escape)
        if text and text != self._null and not self._quotes_all and not any(each in text for each in special):
            return text
        escaped = text
        if self._escape != quote:
            escaped = escaped.replace(self._escape, self._escape * 2)
        return f"{quote}{escaped.replace(quote, self._escape + quote)}{quote}"


def _fits(value: Value, declared: str) -> bool:
    """Return whether a value has a declared type; an integer fits every integer type whose range contains it, and all
    numbers fit `float` and `double`.
    """
    kind = type_name(value)
    if kind == declared or not declared:
        return True
    if kind in _INTEGERS and isinstance(value, int):
        bits = _INTEGERS.get(declared)
        return declared in ("float", "double") or (bits is not None and -1 <= value >> bits <= 0)
    return kind in ("float", "double") and declared in ("float", "double")


class _Parquet:
    """Encodes objects as one Parquet file, with the columns of a type, or with those that the objects have."""

    def __init__(self, form: ExportFormat, columns: RecordType | None) -> None:
        self._form = form
        self._columns = columns
        self._rows: list[dict[str, object]] = []
        self.size = 0

    def head(self) -> bytes:
        return b""

    def add(self, value: Value) -> bytes:
        if not isinstance(value, dict):
            raise SqlppError(PARQUET_ERROR, f"Parquet writer error: a result is of type {type_name(value)}, no object")
        extra = next((name for name in value if self._columns is not None and not self._columns.field(name)), None)
        if extra is not None:
            raise SqlppError(
                PARQUET_ERROR,
                f"Parquet writer error: Extra field in the result, field '{extra}' does not exist in the schema",
            )
        if self._form.bytes_max:  # without a limit the size is not used
            self.size += len(json_text(value))
        self._rows.append({name: to_arrow_value(item) for name, item in value.items() if item is not MISSING})
        return b""

    def end(self) -> bytes:
        import pyarrow as pa  # noqa: PLC0415 - heavy
        import pyarrow.parquet as pq  # noqa: PLC0415

        rows, self._rows = self._rows, []
        buffer = io.BytesIO()
        try:
            names = dict.fromkeys(name for row in rows for name in row)
            if self._columns is None and not names:
                raise SqlppError(PARQUET_ERROR, "Parquet writer error: Cannot write a schema with an empty group")
            schema = None if self._columns is None else columns_of(self._columns)
            columns = [pa.array([row.get(name) for row in rows]) for name in names] if schema is None else None
            table = (
                pa.Table.from_arrays(columns, names=list(names))
                if columns is not None
                else pa.Table.from_pylist(rows, schema=schema)
            )
            sizes = self._form.sizes
            group = sizes.get("row-group-size")
            pq.write_table(
                table,
                buffer,
                compression=self._form.compression or "snappy",
                data_page_size=sizes.get("page-size"),
                row_group_size=group and max(1, group * table.num_rows // max(1, table.nbytes)),
            )
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as reason:
            text = f"Parquet writer error: the objects do not fit one schema; declare it with TYPE: {str(reason)[:200]}"
            raise SqlppError(PARQUET_ERROR, text) from None
        return buffer.getvalue()


def _json_writer(_form: ExportFormat) -> Callable[[], _FileText]:
    return lambda: _Lines(json_text)


def _adm_writer(_form: ExportFormat) -> Callable[[], _FileText]:
    return lambda: _Lines(adm_text)


def _columns(form: ExportFormat) -> RecordType | None:
    return None if not form.type else storage_form_of_record(type_of(form.type), ()).type


def _delimited_writer(form: ExportFormat) -> Callable[[], _FileText]:
    columns = cast("RecordType", _columns(form))
    return lambda: _DelimitedLines(form, columns)


def _parquet_writer(form: ExportFormat) -> Callable[[], _FileText]:
    columns = _columns(form)
    return lambda: _Parquet(form, columns)


_WRITERS: Final[dict[str, Callable[[ExportFormat], Callable[[], _FileText]]]] = {
    "json": _json_writer,
    "adm": _adm_writer,
    "csv": _delimited_writer,
    "tsv": _delimited_writer,
    "parquet": _parquet_writer,
}
