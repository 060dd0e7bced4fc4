# SPDX-License-Identifier: Apache-2.0
"""Stages the objects of large files as Parquet files in the engine's scratch directory, for one write by Spark.

Must not know Spark. The objects are converted and checked in blocks, so the memory does not depend on the count of
objects. Nothing is written to the dataset before all are checked.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limnos.rooms.sqlpp.engine.arrow import schema_of, table_of
from limnos.rooms.sqlpp.engine.delimited_columns import IrregularText, read_columns
from limnos.rooms.sqlpp.engine.delimited_text import text_options
from limnos.rooms.sqlpp.engine.loading import SourceFiles, files_of, read_file
from limnos.rooms.sqlpp.engine.object_checks import ObjectChecker
from limnos.rooms.sqlpp.language.jobs import ExternalSource, type_of
from limnos.rooms.sqlpp.language.stored import StorageForm, object_shaper, storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import Value

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.language.stored import Plain

STAGED_FROM_BYTES: Final = 4 << 20
"""The size of files from which their objects are staged; those of smaller files are kept in memory."""
FILE_ROWS: Final = 1 << 19
OBJECTS_AT_ONCE: Final = 8192
_Key = tuple["Plain", ...]


class StagedRows(NamedTuple):
    """Staged rows: Parquet files whose names sort in the order of the rows."""

    directory: Path
    row_count: int
    is_ascending: bool
    """Whether each row's key is greater than the one before it. Then no key occurs twice."""
    has_new_keys: bool
    """Whether all keys were generated for these rows. Then none occurs twice, and no stored object has one of them."""


def is_large(source: ExternalSource | None) -> bool:
    """Return whether the files of a source are so large that their objects are staged. Raises SqlppError if one is
    missing.
    """
    return files_of(source).bytes_total >= STAGED_FROM_BYTES


@contextmanager
def staged_rows(source: ExternalSource | None, form: StorageForm, *, stop: Callable[[], None]) -> Iterator[StagedRows]:
    """Stage the objects of a source; the files exist during the body of the `with`.

    Raises SqlppError if an object or a file is malformed.
    """
    with TemporaryDirectory(prefix="staged-") as directory:
        checker = ObjectChecker(form, from_file=True)
        yield stage(read_tables(source, checker), checker, directory=Path(directory), stop=stop)


def read_tables(source: ExternalSource | None, checker: ObjectChecker) -> Iterator[pa.Table]:
    """Yield the objects of a source as tables with the columns of a dataset.

    Raises SqlppError if an object or a file is malformed.
    """
    files, form = files_of(source), checker.form
    own_form = None if source is None or not source.type else storage_form_of_record(type_of(source.type))
    for path in files.paths:
        count = 0
        if own_form is None and files.delimiter is not None:
            options = text_options(files.text_options, delimiter=files.delimiter)
            try:
                with _open(path) as opened:
                    for table in read_columns(opened, form, options=options):
                        count += table.num_rows
                        yield table
                continue
            except IrregularText:
                pass
        yield from _tables_of_objects(
            islice(_objects(path, files, form=own_form or form, own=own_form is not None), count, None), checker
        )


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _objects(path: Path, files: SourceFiles, *, form: StorageForm, own: bool) -> Iterator[Value]:
    """Read the objects of a file. `own`: `form` is the type that the source declares, to which each object is
    converted.
    """
    values = read_file(path, files, form=form)
    return map(object_shaper(form, lenient=True), values) if own else values


def _tables_of_objects(objects: Iterable[Value], checker: ObjectChecker) -> Iterator[pa.Table]:
    rest = iter(objects)
    while part := [checker.check(value) for value in islice(rest, OBJECTS_AT_ONCE)]:
        yield table_of(checker.form, part)


def stage(
    tables: Iterable[pa.Table], checker: ObjectChecker, *, directory: Path, stop: Callable[[], None]
) -> StagedRows:
    """Write tables, whose objects `checker` has checked, to Parquet files in a directory. Raises the errors of
    `stop`.
    """
    schema, count, in_file, number = schema_of(checker.form.type), 0, 0, 0
    order = _KeyOrder(checker.form)
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            stop()
            if writer is None or in_file >= FILE_ROWS:
                if writer is not None:
                    writer.close()
                writer = pq.ParquetWriter(directory / f"{number:08}.parquet", schema, compression="snappy")
                number, in_file = number + 1, 0
            writer.write_table(table)
            order.add(table)
            count, in_file = count + table.num_rows, in_file + table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return StagedRows(directory, count, order.is_ascending, checker.has_new_keys)


class _KeyOrder:
    """Checks whether rows are in ascending order of their keys."""

    def __init__(self, form: StorageForm) -> None:
        self._paths = form.keys
        self._last: _Key | None = None
        self.is_ascending = bool(form.keys) and not form.autogenerated

    def add(self, table: pa.Table) -> None:
        """Compare the keys of the next rows, with each other and with the last row before them."""
        if not self.is_ascending or not table.num_rows:
            return
        columns = [_column(table, path) for path in self._paths]
        first, last = (tuple(column[at].as_py() for column in columns) for at in (0, table.num_rows - 1))
        self.is_ascending = (self._last is None or self._last < first) and _is_ascending(columns)
        self._last = last


def _column(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column.combine_chunks()


def _is_ascending(columns: list[pa.Array]) -> bool:
    """Return whether the keys of the rows are strictly ascending."""
    greater = None
    for column in reversed(columns):
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        here = pc.greater(after, before)
        greater = here if greater is None else pc.or_(here, pc.and_(pc.equal(after, before), greater))
    return greater is None or pc.all(greater).as_py() is not False
