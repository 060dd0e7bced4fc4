# SPDX-License-Identifier: Apache-2.0
"""Inserts, upserts and deletes of objects: all objects are checked first, then one commit writes them atomically.

Must not know plans. The committing statement is serializable and checks whether a key exists, so one of two concurrent
statements with the same key fails. After a conflict with another writer an append is retried; other changes raise
SnapshotMoved, and the server repeats the job on the new snapshot, whose files it checks first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from limnos.rooms.sqlpp.engine.arrow import schema_of, table_of
from limnos.rooms.sqlpp.engine.direct_access import ROWS_MAX, DirectTable
from limnos.rooms.sqlpp.engine.failures import DUPLICATE, WriteConflict, duplicate_key_error, is_conflict, is_unknown
from limnos.rooms.sqlpp.engine.names import quote_name
from limnos.rooms.sqlpp.engine.object_checks import Object, key_of, key_text
from limnos.rooms.sqlpp.engine.parquet_lookups import UnsupportedFile
from limnos.rooms.sqlpp.engine.single_values import NoSingleValue
from limnos.rooms.sqlpp.language.errors import OutcomeUnknown, SqlppError, compilation
from limnos.rooms.sqlpp.language.lookups import key_of as looked_up
from limnos.rooms.sqlpp.language.stored import OPEN, columns, has_open, to_object, to_row

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from limnos.rooms.sqlpp.engine.staging import StagedRows
    from limnos.rooms.sqlpp.engine.tables import DatasetTable

TRIES: Final = 8
FewKind: TypeAlias = Literal["add", "insert", "upsert", "update", "delete"]
"""The change of a few objects; `add` inserts objects whose keys are not stored yet, without a check."""
SOURCE: Final = "source"
NUMBER: Final = "number.of.row"
"""A column name that no field of a dataset has, because it has a dot."""


class DatasetWriter:
    """Writes to one dataset in one session.

    Each write raises OutcomeUnknown, a SqlppError, if it is unknown whether its commit was applied.
    """

    def __init__(self, spark: SparkSession, table: DatasetTable, *, stop: Callable[[], None]) -> None:
        self._spark = spark
        self._table = table
        self._stop = stop

    def insert(self, objects: list[Object], *, has_new_keys: bool = False) -> None:
        """Insert objects.

        Args:
            objects: The objects; their keys are unique.
            has_new_keys: Whether this statement generated all keys, so that no stored object has one of them.

        Raises:
            SqlppError: A key exists.
            WriteConflict: Too many conflicts with other writers.
        """
        if self._write_few(objects, kind="add" if has_new_keys else "insert") or self._write_many(
            objects, has_new_keys=has_new_keys
        ):
            return
        if has_new_keys or not self._table.form.keys:
            self._commit(objects, self._append)
        else:
            self._commit(
                objects, lambda: self._merge(f"WHEN MATCHED THEN UPDATE SET {self._refusal()} {self._addition()}")
            )

    def upsert(self, objects: list[Object]) -> None:
        """Insert objects, or replace stored objects with the same key.

        Raises SqlppError if the dataset has no key, WriteConflict after too many conflicts with other writers.
        """
        self._require_key("UPSERT")
        if self._write_few(objects, kind="upsert"):
            return
        self._commit(objects, lambda: self._merge(f"WHEN MATCHED THEN UPDATE SET {self._changes()} {self._addition()}"))

    def load(self, staged: StagedRows, *, replaces: bool) -> None:
        """Insert staged rows, or with `replaces` upsert them.

        Of two staged rows with the same key, the later one is then written. Raises SqlppError without `replaces` if a
        key exists or occurs twice, with it if the dataset has no key; WriteConflict after too many conflicts with other
        writers.
        """
        if not staged.row_count:
            return
        if replaces:
            self._require_key("COPY")
        self._register(self._staged_frame(staged, replaces=replaces))
        if staged.has_new_keys or not self._table.form.keys:
            self._write(self._append)
            return
        matched = self._changes() if replaces else self._refusal()
        self._write(lambda: self._merge(f"WHEN MATCHED THEN UPDATE SET {matched} {self._addition()}"))

    def update(self, objects: list[Object]) -> None:
        """Replace the stored objects that have the keys of `objects`. An object that another writer has deleted stays
        deleted.

        Raises SqlppError if the dataset has no key, WriteConflict after too many conflicts with other writers.
        """
        self._require_key("UPDATE")
        if self._write_few(objects, kind="update"):
            return
        self._commit(objects, lambda: self._merge(f"WHEN MATCHED THEN UPDATE SET {self._changes()}"))

    def delete(self, objects: list[Object]) -> None:
        """Delete the stored objects that have the keys of `objects`.

        Raises SqlppError if the dataset has no key, WriteConflict after too many conflicts with other writers.
        """
        self._require_key("DELETE")
        once = {key_of(self._table.form, one): one for one in objects}
        if self._write_few(list(once.values()), kind="delete"):
            return
        self._commit(list(once.values()), lambda: self._merge("WHEN MATCHED THEN DELETE"), keys_alone=True)

    def _write_few(self, objects: list[Object], *, kind: FewKind) -> bool:
        """Insert, replace or delete a few objects without a Spark job.

        Returns False if the table or the values need a Spark job. Raises SqlppError if an inserted key exists,
        OutcomeUnknown.
        """
        return 0 < len(objects) <= ROWS_MAX and self._without_spark(lambda: self._change_few(objects, kind=kind))

    def _write_many(self, objects: list[Object], *, has_new_keys: bool) -> bool:
        """Insert many objects without a Spark job.

        Returns False if the table or the values need a Spark job, or if a key exists: the MERGE then reports that key.
        Raises OutcomeUnknown.
        """
        form = self._table.form
        if len(objects) <= ROWS_MAX or form.variant:
            return False
        direct = DirectTable(self._spark, self._table)
        keys = () if has_new_keys else form.keys
        return self._without_spark(lambda: direct.append(table_of(form, objects), keys=keys))

    def _without_spark(self, change: Callable[[], bool]) -> bool:
        """Run `change`, which writes without a Spark job. Returns False if Spark must write instead.

        Raises OutcomeUnknown if it is unknown whether the commit was applied, and other errors of `change`.
        """
        try:
            return change()
        except SqlppError:
            raise
        except (NoSingleValue, UnsupportedFile):
            return False
        except Exception as error:
            if is_unknown(error):
                raise OutcomeUnknown from error
            if not is_conflict(error):
                raise
            return False  # another writer committed first: the MERGE checks the keys again

    def _change_few(self, objects: list[Object], *, kind: FewKind) -> bool:
        form, few = self._table.form, DirectTable(self._spark, self._table)
        keys = [looked_up(form, one) for one in objects] if form.keys and kind != "add" else []
        matches = few.find(keys) if keys else []
        if matches is None:
            return False
        if matches and kind == "insert":
            raise duplicate_key_error(key_text(form, to_object(form)(matches[0].row)))
        if matches and kind != "delete" and few.column_names != frozenset(self._columns()):
            return False  # columns of other writers keep their values
        if kind in ("update", "delete"):
            existing_keys = {key_of(form, to_object(form)(one.row)) for one in matches}
            objects = [one for one in objects if kind == "update" and key_of(form, one) in existing_keys]
            if not matches:
                return True
        return few.write(map(to_row(form), objects), keys=keys, deleted=matches)

    def _require_key(self, statement: str) -> None:
        if not self._table.form.keys:
            raise compilation(
                f"{statement} needs a dataset with a primary key, and tables that SQL++ did not create have none"
            )

    def _columns(self) -> list[str]:
        form = self._table.form
        names = [field.name for field in columns(form.type)]
        return [*names, OPEN] if has_open(form.type) else names

    def _changes(self) -> str:
        return ", ".join(f"t.{quote_name(name)} = s.{quote_name(name)}" for name in self._columns())

    def _addition(self) -> str:
        names = self._columns()
        into, values = (", ".join(f"{of}{quote_name(name)}" for name in names) for of in ("", "s."))
        return f"WHEN NOT MATCHED THEN INSERT ({into}) VALUES ({values})"

    def _refusal(self) -> str:
        """Return an assignment that raises an error, because a MERGE in Spark has no other way to reject a row."""
        current = ", ".join(f"s.{quote_name(*path)}" for path in self._table.form.keys)
        first = quote_name(self._table.form.keys[0][0])
        return f"t.{first} = coalesce(raise_error(concat('{DUPLICATE}', to_json(struct({current})))), s.{first})"

    def _merge(self, clauses: str) -> None:
        self._table.require_current()
        on = " AND ".join(f"t.{quote_name(*path)} = s.{quote_name(*path)}" for path in self._table.form.keys)
        self._spark.sql(f"MERGE INTO {self._table.quoted} AS t USING {quote_name(SOURCE)} AS s ON {on} {clauses}")

    def _append(self) -> None:
        self._spark.table(quote_name(SOURCE)).writeTo(self._table.quoted).append()

    def _commit(self, objects: list[Object], write: Callable[[], None], *, keys_alone: bool = False) -> None:
        if not objects:
            return
        rows = table_of(self._table.form, objects)
        self._stage(rows.select(sorted({path[0] for path in self._table.form.keys})) if keys_alone else rows)
        self._write(write)

    def _write(self, write: Callable[[], None]) -> None:
        """Run `write`, which commits; retry after conflicts.

        Raises WriteConflict after too many conflicts, OutcomeUnknown if it is unknown whether the commit was applied.
        """
        for _ in range(TRIES):
            self._stop()
            try:
                write()
            except Exception as error:
                if is_unknown(error):
                    raise OutcomeUnknown from error
                if not is_conflict(error):
                    raise
            else:
                return
        raise WriteConflict

    def _stage(self, rows: pa.Table) -> None:
        """Register the rows, with non-nullable keys, as the temporary view `SOURCE` of this session."""
        form = self._table.form
        schema = schema_of(form.type, keys=frozenset(form.keys))
        typed_rows = rows.cast(_select_fields(schema, rows.schema.names))
        self._register(self._spark.createDataFrame(typed_rows))

    def _register(self, frame: DataFrame) -> None:
        """Register a DataFrame as the temporary view `SOURCE` that the write statement reads."""
        if self._table.form.variant and OPEN in frame.columns:
            from pyspark.sql import functions  # noqa: PLC0415 - heavy

            frame = frame.withColumn(OPEN, functions.parse_json(functions.col(quote_name(OPEN))))
        frame.createOrReplaceTempView(SOURCE)

    def _staged_frame(self, staged: StagedRows, *, replaces: bool) -> DataFrame:
        """Return staged rows with unique keys, in key order unless the dataset generates its keys or has none.

        Of rows with the same key the last one is returned if `replaces`; otherwise SqlppError is raised.
        """
        frame = self._spark.read.parquet(str(staged.directory))
        form = self._table.form
        keys = [quote_name(*path) for path in form.keys]
        if not keys or staged.is_ascending or staged.has_new_keys:
            return frame
        twice = frame.groupBy(*keys).count().where("count > 1").selectExpr(f"to_json(struct({', '.join(keys)})) AS k")
        duplicates = twice.limit(1).collect()
        if duplicates and not replaces:
            raise duplicate_key_error(json.loads(duplicates[0].k))
        if duplicates:
            frame = _last_of_each_key(frame, keys)
        return frame if form.autogenerated else frame.orderBy(*keys)


def _last_of_each_key(frame: DataFrame, keys: list[str]) -> DataFrame:
    """Return the last row of each key, in the order of the files and of the rows in them."""
    from pyspark.sql import Window, functions  # noqa: PLC0415 - heavy

    place = frame.metadataColumn("_metadata")  # a field of the objects may have this name, too
    newest = [place.getField(name).desc() for name in ("file_name", "row_index")]
    order = Window.partitionBy(*(functions.expr(key) for key in keys)).orderBy(*newest)
    columns = [quote_name(name) for name in frame.columns]
    numbered = frame.withColumn(NUMBER, functions.row_number().over(order))
    return numbered.where(f"`{NUMBER}` = 1").select(*columns)


def _select_fields(schema: pa.Schema, names: list[str]) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema([schema.field(name) for name in names])
