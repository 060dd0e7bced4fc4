# SPDX-License-Identifier: Apache-2.0
"""Reads objects from files on this machine: JSON, ADM, delimited text, Parquet.

Must not decide which locations may be read: the server has checked them, and the process can open nothing else. Only
the targets of symbolic links are checked here. Files are read as streams, never into memory as a whole. Strings in a
file are converted to the declared type of their field.
"""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TextIO, cast
from urllib.parse import unquote, urlsplit

from limnos.rooms.sqlpp.engine.adm_text import DUPLICATE_FIELD, UnfinishedText, read_adm, read_json
from limnos.rooms.sqlpp.engine.delimited_text import MalformedLine, read_lines
from limnos.rooms.sqlpp.engine.json_objects import json_converter
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.functions.times import DAY_MS
from limnos.rooms.sqlpp.language.jobs import ExternalSource, type_of
from limnos.rooms.sqlpp.language.stored import StorageForm, object_shaper, storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Time, Value

NOT_FOUND, MALFORMED, UNKNOWN_FORMAT = 3077, 3021, 3026
DOCUMENT_BYTES_MAX: Final = 16 << 20
"""The maximum length of a document, in characters."""
PACKED_RATIO: Final = 8
"""The assumed compression ratio of a compressed file."""
UNFINISHED: Final[list[Value]] = []
"""Marks the values of an incomplete text."""
_DELIMITERS: Final[Mapping[str, str]] = {"csv": ",", "delimited-text": ",", "tsv": "\t"}
_WIDE: Final = 1 << 63
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class _ReadOptions(NamedTuple):
    """The options of parsing a file: the type of its objects, and the options of the source."""

    form: StorageForm
    options: Mapping[str, str]


class SourceFiles(NamedTuple):
    """The files of a source, their format and their options."""

    paths: list[Path]
    format: str
    options: Mapping[str, str]

    @property
    def bytes_total(self) -> int:
        """The estimated uncompressed size of the files in bytes; the size of a compressed file is multiplied by a
        ratio.
        """
        return sum(path.stat().st_size * (PACKED_RATIO if path.suffix == ".gz" else 1) for path in self.paths)

    @property
    def delimiter(self) -> str | None:
        """The default delimiter of the format; None if the format is not delimited text."""
        return _DELIMITERS.get(self.format)

    @property
    def text_options(self) -> Mapping[str, str]:
        """The options of delimited text. TSV has no quote character unless the options name one."""
        return {"quote": "none", **self.options} if self.format == "tsv" else self.options


def files_of(source: ExternalSource | None) -> SourceFiles:
    """Resolve the files of a source. Raises SqlppError without a source, if a file is missing, if a link leads outside
    of the permitted directories, and for an unknown format.
    """
    if source is None:
        raise compilation("LOAD needs a source")
    options = {name.lower(): value for name, value in source.options}
    paths = [file for part in options.get("path", "").split(",") if part.strip() for file in _files(part.strip())]
    files = [_resolve_links(file, source) for file in paths]
    name = options.get("format", "json").lower()
    if name not in _FORMATS:
        raise SqlppError(UNKNOWN_FORMAT, f"Unknown format: {name}. There are {', '.join(_FORMATS)}")
    return SourceFiles(files, name, options)


def read_files(source: ExternalSource | None, form: StorageForm) -> Iterator[Value]:
    """Read the objects in the files of a source.

    Raises SqlppError if a file is missing or malformed, or if its format is unknown.
    """
    files = files_of(source)
    for path in files.paths:
        yield from read_file(path, files, form=form)


def read_file(path: Path, files: SourceFiles, *, form: StorageForm) -> Iterator[Value]:
    """Read the objects in one file of a source. Raises SqlppError if it is malformed."""
    yield from _FORMATS[files.format](path, _ReadOptions(form, files.options))


def read_objects(source: ExternalSource | None, form: StorageForm) -> Iterator[Value]:
    """Read the objects in the files of a source, with the source's declared type if it has one.

    Raises SqlppError as `read_files`, and if an object does not have that type.
    """
    if source is None or not source.type:
        return read_files(source, form)
    own_form = storage_form_of_record(type_of(source.type))
    return map(object_shaper(own_form, lenient=True), read_files(source, own_form))


def _resolve_links(file: Path, source: ExternalSource) -> Path:
    """Return the path of a file with symbolic links resolved.

    Raises SqlppError if the path is outside the directories that statements may read.
    """
    real = file.resolve()
    if not source.within:
        return real
    inside = any(real.is_relative_to(_path(root).resolve()) for root in source.within)
    if not inside or any(real.is_relative_to(_path(root).resolve()) for root in source.outside):
        raise SqlppError(
            NOT_FOUND, f"{file}: it is a link to a file outside of the directories that statements may read"
        )
    return real


def _path(location: str) -> Path:
    return Path(unquote(urlsplit(location).path) if location.startswith("file:") else location)


def _files(location: str) -> list[Path]:
    """Return the file, or all files below the directory. Files and directories in it whose names begin with `.` or `_`
    are skipped: marks and temporary files of the programs that write it.

    Raises SqlppError if there is none.
    """
    path = _path(location)
    if path.is_file():
        return [path]
    paths = sorted(each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path)))
    if not paths:
        raise SqlppError(NOT_FOUND, f"{path}: path not found")
    return paths


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _malformed_error(file: Path, why: str) -> SqlppError:
    return SqlppError(MALFORMED, f"Malformed input stream: {file.name}: {why}")


def _open_text(file: Path) -> TextIO:
    return (
        cast("TextIO", gzip.open(file, "rt", encoding="utf-8-sig", newline=""))
        if file.suffix == ".gz"
        else file.open(encoding="utf-8-sig", newline="")
    )


def _lines(file: Path) -> Iterator[str]:
    try:
        with _open_text(file) as text:
            yield from text
    except UnicodeDecodeError:
        raise _malformed_error(file, "it is not UTF-8") from None


# JSON and ADM: objects one after the other, each on one or more lines. An array stands for its items.


def _documents(file: Path, read: Callable[[str], list[Value]]) -> Iterator[Value]:
    """Read the objects of a file of JSON or ADM, whose documents are parsed by `read`. Raises SqlppError if one is
    malformed.
    """
    for number, document, text in _texts(file, read):
        if document is None:
            raise _malformed_error(
                file, f"the record that begins in line {number} does not have the file's format: {text.strip()[:80]}"
            )
        for value in document:
            yield from value if type(value) is tuple else (value,)


def _texts(file: Path, read: Callable[[str], list[Value]]) -> Iterator[tuple[int, list[Value] | None, str]]:
    """Yield each document's first line number, its values (None if it is malformed) and its text.

    A document is one line, or several lines up to the end of its brackets. Raises SqlppError for a document that is too
    long.
    """
    names: list[str] = []
    first_line, depth, quote, size = 1, 0, "", 0
    for number, line in enumerate(_lines(file), start=1):
        if not names:
            attempt = _attempt(read, line)
            if attempt is not UNFINISHED:
                yield number, attempt, line
                continue
            first_line = number
        names.append(line)
        size += len(line)
        depth, quote = _depth(line, depth, quote=quote)
        if depth <= 0 and not quote:
            text = "".join(names)
            attempt = _attempt(read, text)
            yield first_line, None if attempt is UNFINISHED else attempt, text
            names, size = [], 0
        elif size > DOCUMENT_BYTES_MAX:
            raise _malformed_error(
                file, f"the record that begins in line {first_line} is longer than {DOCUMENT_BYTES_MAX} characters"
            )
    if names:
        yield first_line, None, names[0]


def _attempt(read: Callable[[str], list[Value]], text: str) -> list[Value] | None:
    """Parse a text; None if it is malformed, `UNFINISHED` if it ends within a value.

    Raises SqlppError for a duplicate field in JSON.
    """
    try:
        return read(text)
    except UnfinishedText:
        return UNFINISHED
    except SqlppError as error:
        if error.number == DUPLICATE_FIELD:
            raise
        return None
    except (ValueError, RecursionError):
        return None


def _depth(line: str, depth: int, *, quote: str) -> tuple[int, str]:
    """Return the count of unclosed brackets after a line, and the quote character of an unclosed string or "".

    `depth` and `quote` are the values before the line.
    """
    escaped = False
    for character in line:
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
    return depth, quote


def _read_json(file: Path, read_options: _ReadOptions) -> Iterator[Value]:
    convert = json_converter(read_options.form.type)
    return (convert(value) for value in _documents(file, lambda text: list(map(_to_value, read_json(text)))))


def _to_value(value: object) -> Value:
    """Convert a value from a file to a SQL++ value.

    Lists become arrays. Decimals and integers beyond 64 bits become doubles. Times without a zone are read as UTC.
    Values of unknown types become strings.
    """
    if isinstance(value, dict):
        return {str(name): _to_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(map(_to_value, value))
    if isinstance(value, decimal.Decimal) or (type(value) is int and not -_WIDE <= value < _WIDE):
        return float(value)
    if isinstance(value, dt.datetime):
        return DateTime((value.replace(tzinfo=value.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1))
    if isinstance(value, dt.date):
        return Date(value.toordinal() - _EPOCH.toordinal())
    if isinstance(value, dt.time):
        return Time(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000)
    if isinstance(value, dt.timedelta):
        return Time(int(value.total_seconds() * 1000) % DAY_MS)
    if value is None or isinstance(value, (bool, int, float, str, bytes, uuid.UUID)):
        return value
    return str(value)


def _read_adm(file: Path, _: _ReadOptions) -> Iterator[Value]:
    return _documents(file, read_adm)


# Delimited text.


def _read_delimited(file: Path, read_options: _ReadOptions, *, delimiter: str = ",") -> Iterator[Value]:
    try:
        yield from read_lines(_lines(file), read_options.form, options=read_options.options, delimiter=delimiter)
    except MalformedLine as reason:
        raise _malformed_error(file, str(reason)) from None


def _read_tabs(file: Path, read_options: _ReadOptions) -> Iterator[Value]:
    without_quotes = _ReadOptions(read_options.form, {"quote": "none", **read_options.options})
    return _read_delimited(file, without_quotes, delimiter=_DELIMITERS["tsv"])


# Parquet.


def _read_parquet(file: Path, _: _ReadOptions) -> Iterator[Value]:
    """Read the rows of a Parquet file. A null column becomes MISSING. Raises SqlppError for a malformed file."""
    import pyarrow as pa  # noqa: PLC0415 - heavy
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=8192):
                for row in batch.to_pylist():
                    yield {name: _to_value(value) for name, value in row.items() if value is not None}
    except (pa.ArrowException, OSError) as reason:
        raise _malformed_error(file, f"it is not Parquet: {str(reason)[:200]}") from None


_FORMATS: Final[Mapping[str, Callable[[Path, _ReadOptions], Iterable[Value]]]] = {
    "json": _read_json,
    "adm": _read_adm,
    "csv": _read_delimited,
    "delimited-text": _read_delimited,
    "tsv": _read_tabs,
    "parquet": _read_parquet,
}
