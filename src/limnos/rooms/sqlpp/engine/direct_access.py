# SPDX-License-Identifier: Apache-2.0
"""Reads and writes a few objects through Iceberg's Java library, without a Spark job.

Must not know statements. This avoids the latency of a Spark job. Large results and some types and tables are not
supported: the functions then return None or False, or raise `NoSingleValue` or `UnsupportedFile`, and the caller uses
Spark. Both ways give the same result.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from limnos.rooms.sqlpp.engine.failures import is_conflict
from limnos.rooms.sqlpp.engine.iceberg_library import library_of
from limnos.rooms.sqlpp.engine.names import STATEMENT
from limnos.rooms.sqlpp.engine.parquet_lookups import FileWithDeletes, FoundRow, UnsupportedFile, read_rows
from limnos.rooms.sqlpp.engine.parquet_writes import has_key, key_range, with_field_ids, write_rows
from limnos.rooms.sqlpp.engine.single_values import (
    Json,
    NoSingleValue,
    Row,
    check,
    day_text,
    decode_row,
    encode_row,
    moment_text,
)
from limnos.rooms.sqlpp.engine.table_files import DELETES_MAX, FILES_MAX, local_path
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.rooms.sqlpp.engine.tables import DatasetTable
    from limnos.rooms.sqlpp.language.lookups import KeyConditions
    from limnos.rooms.sqlpp.language.stored import Plain

logger = logging.getLogger(__name__)

BYTES_MAX: Final = 4 << 20
"""The maximum size of files that Iceberg's own reader reads."""
ROWS_MAX: Final = 64
"""The maximum number of objects that are looked up or changed without a Spark job."""


class DirectTable:
    """A dataset's table, read and written without a Spark job."""

    def __init__(self, spark: SparkSession, table: DatasetTable) -> None:
        self._spark = spark
        self._iceberg = library_of(spark)
        self._table = table.loaded
        self._snapshot = table.snapshot

    def rows(self, keys: Sequence[KeyConditions], *, most: int | None = None) -> list[dict[str, Plain]] | None:
        """Read the rows that meet the conditions of at least one key, at the statement's snapshot.

        Args:
            keys: The conditions of each key.
            most: The largest number of rows to return; None for no limit.

        Returns:
            The rows; None if the files that could contain one are too many, too large or not supported here, or if
            there are more than `most` rows.

        Raises:
            NoSingleValue: A type of a column or a value is not supported here.
        """
        matches = self.find(keys, most=most)
        return None if matches is None else [one.row for one in matches]

    def find(self, keys: Sequence[KeyConditions], *, most: int | None = None) -> list[FoundRow] | None:
        """Read rows as `rows` does, with the file location and position of each; an unknown location is empty."""
        if self._snapshot is None:
            return []
        scan = self._table.newScan().useSnapshot(self._snapshot).filter(self._expression(keys))
        form = self._schema(scan.schema())
        tasks = self._tasks(scan)
        if not tasks:
            return None if tasks is None else []
        try:
            return read_rows([_local_file(task) for task in tasks], form, keys=keys, most=most)
        except UnsupportedFile as reason:
            logger.debug("Not read without Java: %s", reason)
        if any(_has_uuid(condition) for key in keys for condition in key):
            return None  # Iceberg's own reader skips row groups by the same wrong order as files
        if _files_of(tasks) > FILES_MAX or _size_of(tasks) > BYTES_MAX:
            return None
        rows = self._rows_by_java(keys, form, most=most)
        return None if rows is None else [FoundRow(row, "", 0) for row in rows]

    def _rows_by_java(
        self, keys: Sequence[KeyConditions], form: Mapping[str, Json], *, most: int | None
    ) -> list[dict[str, Plain]] | None:
        """Read rows with Iceberg's Java reader, which reads whole row groups.

        Returns None if there are more than `most`. Raises NoSingleValue.
        """
        read = self._iceberg.read(self._table).useSnapshot(self._snapshot).where(self._expression(keys))
        records = read.build()
        try:
            result = islice(_each(records.iterator()), None if most is None else most + 1)
            texts = [self._text(record) for record in result]
        finally:
            records.close()
        return None if most is not None and len(texts) > most else [decode_row(text, form) for text in texts]

    def _text(self, record: JavaObject) -> str:
        """Return a row as JSON, keyed by field id.

        It may have more fields than the scan's columns, because applying delete files needs further columns.
        """
        struct = record.struct()
        return str(self._iceberg.value_text(struct, self._iceberg.wrapper(struct).wrap(record)))

    def write(self, rows: Iterable[Row], *, keys: Sequence[KeyConditions], deleted: Sequence[FoundRow] = ()) -> bool:
        """Insert rows and delete others with one commit.

        The commit fails if rows with one of the keys were committed after the statement's snapshot.

        Args:
            rows: The new rows.
            keys: Conditions of the keys of all rows; empty for a dataset without a primary key.
            deleted: Existing rows.

        Returns:
            False if nothing is written because the table is not supported here: it is partitioned, sorted or not
            Parquet, or has deletion vectors, or the file location of a deleted row is unknown.

        Raises:
            NoSingleValue: A type of a column or a value is not supported here.
            Py4JJavaError: The commit failed; see `failures.is_conflict` and `failures.is_unknown`.
        """
        if not self._is_plain or (deleted and not (self._takes_positions and all(one.location for one in deleted))):
            return False
        schema = self._table.schema()
        form, struct = self._schema(schema), schema.asStruct()
        texts = [encode_row(row, form) for row in rows]
        files: list[JavaObject] = []
        change = self._table.newRowDelta()
        if texts:
            files.append(self._new_file())
            change = change.addRows(self._data_file(files[-1], texts, schema=schema, struct=struct))
        if deleted:
            files.append(self._new_file())
            change = change.addDeletes(self._delete_file(files[-1], deleted))
        try:
            self._commit(change, keys=keys, deleted=deleted)
        except Exception as error:
            if is_conflict(error):  # only then is it certain that no snapshot references the files
                for file in files:
                    with suppress(Exception):  # compaction removes it as an orphan file
                        self._table.io().deleteFile(file.location())
            raise
        return True

    def append(self, rows: pa.Table, *, keys: Sequence[tuple[str, ...]]) -> bool:
        """Insert many rows as one file, unless a row with one of their keys exists.

        Returns False, and writes nothing, if a key may exist or the table is not supported here. Raises UnsupportedFile
        or NoSingleValue for a file or type that is not supported, and Py4JJavaError as `write`.
        """
        if not self._is_plain or not self._takes_positions:
            return False
        fields: Any = self._schema(self._table.schema())["fields"]
        schema = with_field_ids(rows.schema, fields)
        near: KeyConditions = key_range(rows, keys) if keys else ()
        if near and self._snapshot is not None:
            scan = self._table.newScan().useSnapshot(self._snapshot).filter(self._expression([near]))
            tasks = self._tasks(scan)
            if tasks is None or has_key([_local_file(task) for task in tasks], fields, rows=rows, keys=keys):
                return False
        location = str(self._table.locationProvider().newDataLocation(f"many-{uuid.uuid4()}.parquet"))
        path = Path(local_path(location))
        write_rows(rows.cast(schema), path)
        try:
            input_file = self._table.io().newInputFile(location)
            metrics = self._iceberg.file_metrics(input_file, self._iceberg.metrics_of(self._table))
            builder = self._iceberg.data_file(self._table.spec()).withInputFile(input_file).withFormat("parquet")
            change = self._table.newRowDelta().addRows(builder.withMetrics(metrics).build())
            self._commit(change, keys=[near] if near else (), deleted=())
        except Exception as error:
            if is_conflict(error):  # only then is it certain that no snapshot references the file
                path.unlink(missing_ok=True)
            raise
        return True

    def _new_file(self) -> JavaObject:
        name = f"few-{uuid.uuid4()}.parquet"
        return self._table.io().newOutputFile(self._table.locationProvider().newDataLocation(name))

    def _data_file(
        self, out: JavaObject, texts: Sequence[str], *, schema: JavaObject, struct: JavaObject
    ) -> JavaObject:
        """Write rows, each as JSON text, to a new Parquet file. Returns Iceberg's `DataFile` for it."""
        writing = self._iceberg.write(self._iceberg.parquet, out)
        appender = writing.schema(schema).set(self._table.properties()).build()
        for text in texts:
            appender.add(self._iceberg.value(struct, text))
        appender.close()
        builder = self._iceberg.data_file(self._table.spec()).withPath(out.location()).withFormat("parquet")
        sized = builder.withFileSizeInBytes(appender.length()).withMetrics(appender.metrics())
        return sized.withRecordCount(len(texts)).withSplitOffsets(appender.splitOffsets()).build()

    def _delete_file(self, out: JavaObject, deleted: Sequence[FoundRow]) -> JavaObject:
        """Write a position delete file for rows. Returns Iceberg's `DeleteFile` for it."""
        factory = self._iceberg.writer_factory(self._table).build()
        writer = factory.newPositionDeleteWriter(self._iceberg.as_encrypted(out), self._table.spec(), None)
        for location, position in sorted((one.location, one.position) for one in deleted):
            writer.write(self._iceberg.position_delete().set(location, position))
        writer.close()
        return writer.toDeleteFile()

    def _commit(self, change: JavaObject, *, keys: Sequence[KeyConditions], deleted: Sequence[FoundRow]) -> None:
        """Commit one snapshot. Raises Py4JJavaError if the commit fails, such as for a row with one of the keys that
        another writer committed.
        """
        if keys:
            if self._snapshot is not None:
                change = change.validateFromSnapshot(self._snapshot)
            change = change.conflictDetectionFilter(self._expression(keys)).validateNoConflictingDataFiles()
        if deleted:
            paths = self._iceberg.strings()
            for location in {one.location for one in deleted}:
                paths.add(location)
            change = change.validateNoConflictingDeleteFiles().validateDeletedFiles().validateDataFilesExist(paths)
        change.set("sqlpp.statement", self._spark.conf.get(STATEMENT, "") or "").commit()

    @cached_property
    def _takes_positions(self) -> bool:
        """Return whether rows are deleted by position delete files (format version 2), not by deletion vectors (version
        3).
        """
        return int(self._iceberg.format_version(self._table)) == 2

    @property
    def column_names(self) -> frozenset[str]:
        """The names of the table's columns."""
        fields: Any = self._schema(self._table.schema())["fields"]
        return frozenset(str(field["name"]) for field in fields)

    @cached_property
    def _is_plain(self) -> bool:
        """Return whether the table stores new rows as one Parquet file: it is unpartitioned and unsorted, and its write
        format is Parquet.
        """
        kind = self._table.properties().getOrDefault("write.format.default", "parquet")
        return (
            str(kind).lower() == "parquet"
            and self._table.spec().isUnpartitioned()
            and self._table.sortOrder().isUnsorted()
        )

    def _schema(self, schema: JavaObject) -> Mapping[str, Json]:
        results: Mapping[str, Json] = json.loads(str(self._iceberg.schema_text(schema)))
        check(results)
        return results

    def _tasks(self, scan: JavaObject) -> list[Mapping[str, Any]] | None:
        """Plan a scan: return its tasks in Iceberg's JSON; None if there are too many."""
        planned = scan.planFiles()
        tasks: list[Mapping[str, Any]] = []
        try:
            for task in _each(planned.iterator()):
                tasks.append(json.loads(str(self._iceberg.task_text(task))))
                if len(tasks) > FILES_MAX or _files_of(tasks) - len(tasks) > DELETES_MAX:
                    return None
        finally:
            planned.close()
        return tasks

    def _expression(self, keys: Sequence[KeyConditions]) -> JavaObject:
        """Return the conditions as an Iceberg expression.

        It is built from one JSON document, because each part would be a call to the JVM. Raises NoSingleValue as
        `expression_of`.
        """
        return self._iceberg.expression(json.dumps(expression_of(keys)), self._table.schema())


def _files_of(tasks: Sequence[Mapping[str, Any]]) -> int:
    """Return the total count of data files and delete files in scan tasks."""
    return len(tasks) + len({str(one["file-path"]) for task in tasks for one in task.get("delete-files", ())})


def _size_of(tasks: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(task["data-file"]["file-size-in-bytes"]) for task in tasks)


def _local_file(task: Mapping[str, Any]) -> FileWithDeletes:
    """Return the data file of a scan task with its delete files. Raises UnsupportedFile for delete files other than
    position deletes, and for files that are remote or not Parquet.
    """
    deletes = task.get("delete-files", ())
    if any(str(one["content"]).upper().replace("-", "_") != "POSITION_DELETES" for one in deletes):
        raise UnsupportedFile("delete files other than position deletes")
    data = task["data-file"]
    location = str(data["file-path"])
    return FileWithDeletes(_local_path(data), location, tuple(map(_local_path, deletes)))


def _local_path(file: Mapping[str, Any]) -> str:
    """Return the local path of a Parquet file. Raises UnsupportedFile for another format or a remote file."""
    if str(file["file-format"]).lower() != "parquet":
        raise UnsupportedFile("a file that is not Parquet")
    return local_path(str(file["file-path"]))


def expression_of(keys: Sequence[KeyConditions]) -> Json:
    """Return the JSON form of an Iceberg expression that is true for rows that meet all conditions of at least one key.

    A condition on a UUID becomes the constant true. Parquet stores the bounds of UUIDs in the order of unsigned bytes,
    and Iceberg's Java library compares them as signed numbers. With an exact condition it would skip files that contain
    the key.

    Raises NoSingleValue for a value that is not an integer, string, date, datetime or UUID.
    """
    if len(keys) > 1 and all(len(key) == 1 for key in keys) and not _has_uuid(keys[0][0]):
        ((first, *_), *_) = keys
        return _sql_of(Condition(first.path, "in", tuple(key[0].value for key in keys)))
    return _balanced_tree("or", [_balanced_tree("and", [_sql_of(condition) for condition in key]) for key in keys])


def _balanced_tree(word: str, parts: Sequence[Json]) -> Json:
    """Join conditions by a binary operator (`and`, `or`) into a balanced tree, to keep its depth logarithmic."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {"type": word, "left": _balanced_tree(word, parts[:half]), "right": _balanced_tree(word, parts[half:])}


def _sql_of(condition: Condition) -> Json:
    value, term = condition.value, ".".join(condition.path)
    if _has_uuid(condition):
        return True
    if condition.operator == "in":
        return {
            "type": "in",
            "term": term,
            "values": [_literal(each) for each in (value if isinstance(value, tuple) else ())],
        }
    return {"type": _WORDS[condition.operator], "term": term, "value": _literal(value)}


def _has_uuid(condition: Condition) -> bool:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    return any(isinstance(value, uuid.UUID) for value in values)


def _literal(value: Value) -> Json:
    """Return a value in Iceberg's JSON form. Raises NoSingleValue unless it is an integer, string, date or datetime."""
    if isinstance(value, Date):
        return day_text(value.days)
    if isinstance(value, DateTime):
        return moment_text(value.ms * 1000)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise NoSingleValue("a key that is not an integer, string, date or datetime")
    return int(value) if isinstance(value, int) else value


_WORDS: Mapping[str, str] = {"=": "eq", "<": "lt", "<=": "lt-eq", ">": "gt", ">=": "gt-eq"}


def _each(iterator: JavaObject) -> Iterator[JavaObject]:
    while iterator.hasNext():
        yield iterator.next()
