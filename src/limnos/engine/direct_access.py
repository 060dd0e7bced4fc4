"""Reads and inserts of a few objects through Iceberg's Java library, without a Spark job.

May import the sibling modules, conditions of `sqlpp` and PySpark's gateway. Must not know statements. A Spark job alone
takes longer than all of this. Large results and some types and tables are not supported: the functions then return None
or False, or raise `NoSingleValue`, and the caller uses Spark. Both ways give the same result.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from limnos.engine.failures import is_conflict
from limnos.engine.iceberg_library import library_of
from limnos.engine.names import STATEMENT
from limnos.engine.single_values import Json, NoSingleValue, Row, check, day_text, decoded, encoded, moment_text
from limnos.sqlpp.conditions import Condition
from limnos.sqlpp.values.model import Date, DateTime, Value

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from limnos.engine.tables import DatasetTable
    from limnos.sqlpp.lookups import KeyConditions
    from limnos.sqlpp.stored import Plain

logger = logging.getLogger(__name__)

FILES_MAX: Final = 16
BYTES_MAX: Final = 4 << 20
"""The maximum numbers of files and bytes that are read without Spark."""
ROWS_MAX: Final = 64
"""The maximum number of objects that are looked up or inserted without Spark."""


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
            most: The largest number of rows to return; None for any.

        Returns:
            The rows; None if too many files could contain one, or if there are more than `most`.

        Raises:
            NoSingleValue: A type of a column or a value is not supported here.
        """
        if self._snapshot is None:
            return []
        expression = self._expression(keys)
        scan = self._table.newScan().useSnapshot(self._snapshot).filter(expression)
        form = self._schema(scan.schema())
        files = self._near(scan)
        if not files:
            return None if files is None else []
        read = self._iceberg.read(self._table).useSnapshot(self._snapshot).where(expression)
        records = read.build()
        try:
            result = islice(_each(records.iterator()), None if most is None else most + 1)
            texts = [self._text(record) for record in result]
        finally:
            records.close()
        return None if most is not None and len(texts) > most else [decoded(text, form) for text in texts]

    def _text(self, record: JavaObject) -> str:
        """Return a row as JSON by field ids.

        It may have more fields than the scan's columns, because delete files need some of their own.
        """
        struct = record.struct()
        return str(self._iceberg.value_text(struct, self._iceberg.wrapper(struct).wrap(record)))

    def add(self, rows: Iterable[Row], *, keys: Sequence[KeyConditions]) -> bool:
        """Insert rows with one commit, unless a row with one of the keys was committed after the statement's snapshot.

        Args:
            rows: The rows.
            keys: Conditions of their keys; empty for a dataset without a primary key.

        Returns:
            False if the table is not supported here: it is partitioned, sorted or not Parquet. Nothing is written then.

        Raises:
            NoSingleValue: A type of a column or a value is not supported here.
            Py4JJavaError: The commit failed; see `failures.is_conflict` and `failures.is_unknown`.
        """
        if not self._is_plain:
            return False
        schema = self._table.schema()
        form, struct = self._schema(schema), schema.asStruct()
        texts = [encoded(row, form) for row in rows]
        out = self._table.io().newOutputFile(
            self._table.locationProvider().newDataLocation(f"few-{uuid.uuid4()}.parquet")
        )
        writing = self._iceberg.write(self._iceberg.parquet, out)
        appender = writing.schema(schema).set(self._table.properties()).build()
        for text in texts:
            appender.add(self._iceberg.value(struct, text))
        appender.close()
        try:
            self._commit(out, appender, rows=len(texts), keys=keys)
        except Exception as error:
            if is_conflict(error):  # only then is it certain that no snapshot references the file
                with suppress(Exception):  # compaction removes it as an orphan file
                    self._table.io().deleteFile(out.location())
            raise
        return True

    def _commit(self, out: JavaObject, appender: JavaObject, *, rows: int, keys: Sequence[KeyConditions]) -> None:
        """Commit one snapshot with the file, unless a row with one of the keys was committed in between."""
        builder = self._iceberg.data_file(self._table.spec()).withPath(out.location()).withFormat("parquet")
        sized = builder.withFileSizeInBytes(appender.length()).withMetrics(appender.metrics())
        file = sized.withRecordCount(rows).withSplitOffsets(appender.splitOffsets()).build()
        change = self._table.newRowDelta().addRows(file)
        if keys:
            if self._snapshot is not None:
                change = change.validateFromSnapshot(self._snapshot)
            change = change.conflictDetectionFilter(self._expression(keys)).validateNoConflictingDataFiles()
        change.set("sqlpp.statement", self._spark.conf.get(STATEMENT, "") or "").commit()

    @cached_property
    def _is_plain(self) -> bool:
        """Return whether new rows are stored as one Parquet file: the table is unpartitioned and unsorted."""
        kind = self._table.properties().getOrDefault("write.format.default", "parquet")
        return str(kind).lower() == "parquet" and self._table.spec().isUnpartitioned() and self._table.sortOrder().isUnsorted()  # fmt: skip

    def _schema(self, schema: JavaObject) -> Mapping[str, Json]:
        results: Mapping[str, Json] = json.loads(str(self._iceberg.schema_text(schema)))
        check(results)
        return results

    def _near(self, scan: JavaObject) -> int | None:
        """Return the number of files that may have matching rows, by their statistics; None if there are too many."""
        tasks = scan.planFiles()
        files = size = 0
        try:
            for task in _each(tasks.iterator()):
                files, size = files + 1 + task.deletes().size(), size + task.length()
                if files > FILES_MAX or size > BYTES_MAX:
                    return None
        finally:
            tasks.close()
        return files

    def _expression(self, keys: Sequence[KeyConditions]) -> JavaObject:
        """Return the conditions as an Iceberg expression.

        It is built from one JSON text, because each part would be a call to the JVM.
        """
        return self._iceberg.expression(json.dumps(expression_of(keys)), self._table.schema())


def expression_of(keys: Sequence[KeyConditions]) -> Json:
    """Return the JSON form of an Iceberg expression that is true for rows that meet all conditions of at least one key.

    Raises NoSingleValue for a value that is not a number, text or time.
    """
    if len(keys) > 1 and all(len(key) == 1 for key in keys):
        ((first, *_), *_) = keys
        return _sql_of(Condition(first.path, "in", tuple(key[0].value for key in keys)))
    return _balanced_tree("or", [_balanced_tree("and", [_sql_of(condition) for condition in key]) for key in keys])


def _balanced_tree(word: str, parts: Sequence[Json]) -> Json:
    """Join parts by a binary operator (`and`, `or`) into a balanced tree, which is not deeper than it must be."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {"type": word, "left": _balanced_tree(word, parts[:half]), "right": _balanced_tree(word, parts[half:])}


def _sql_of(condition: Condition) -> Json:
    value, term = condition.value, ".".join(condition.path)
    if condition.operator == "in":
        return {
            "type": "in",
            "term": term,
            "values": [_literal(each) for each in (value if isinstance(value, tuple) else ())],
        }
    return {"type": _WORDS[condition.operator], "term": term, "value": _literal(value)}


def _literal(value: Value) -> Json:
    """Return a value in Iceberg's JSON form. Raises NoSingleValue if it is not a number, text or time."""
    if isinstance(value, Date):
        return day_text(value.days)
    if isinstance(value, DateTime):
        return moment_text(value.ms * 1000)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise NoSingleValue("a key that is no number, text or time")
    return int(value) if isinstance(value, int) else value


_WORDS: Mapping[str, str] = {"=": "eq", "<": "lt", "<=": "lt-eq", ">": "gt", ">=": "gt-eq"}


def _each(iterator: JavaObject) -> Iterator[JavaObject]:
    while iterator.hasNext():
        yield iterator.next()
