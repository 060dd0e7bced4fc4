# SPDX-License-Identifier: Apache-2.0
"""Reads objects of datasets with Spark, with projection and predicate pushdown.

Must not know statements. A condition is pushed down only if it has the same meaning in Spark and SQL++, and only if
every object of the result meets it. The evaluator applies all other conditions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

from limnos.rooms.sqlpp.engine.arrow import objects_of
from limnos.rooms.sqlpp.engine.direct_access import ROWS_MAX, DirectTable
from limnos.rooms.sqlpp.engine.names import quote_name
from limnos.rooms.sqlpp.engine.single_values import NoSingleValue
from limnos.rooms.sqlpp.engine.tables import DatasetTable
from limnos.rooms.sqlpp.language.engine_semantics import column_type, is_exact, literal
from limnos.rooms.sqlpp.language.stored import (
    OPEN,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    columns,
    has_open,
    to_object,
)
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from limnos.rooms.sqlpp.language.conditions import Condition
    from limnos.rooms.sqlpp.language.groups import EngineGrouping, GroupMeasure
    from limnos.rooms.sqlpp.language.lookups import Lookup
    from limnos.rooms.sqlpp.language.scans import ScanRequirement


logger = logging.getLogger(__name__)


def objects(spark: SparkSession, table: DatasetTable, *, requirement: ScanRequirement, parts: int) -> Iterator[Value]:
    """Read the objects of a scan, with the fields that it needs. Yields groups if the scan is grouped.

    Args:
        spark: The session of the statement.
        table: The dataset.
        requirement: The columns, conditions, limit and groups of the scan.
        parts: The number of tasks that read concurrently.
    """
    if requirement.grouped is not None:
        yield from _groups(spark, table, requirement=requirement, grouped=requirement.grouped)
        return
    frame = frame_of(spark, table, requirement=requirement, parts=parts)
    if frame is None:
        return
    if not frame.columns:
        yield from ({} for _ in range(frame.count()))
        return
    yield from objects_of(table.form, frame.toArrow().to_batches())


def look_up_objects(spark: SparkSession, table: DatasetTable, *, lookup: Lookup) -> list[Value] | None:
    """Read the objects of a key or index lookup without a Spark job; None if too many files could contain them.

    Also None if an index lookup finds too many objects, and if a type or value cannot be read without Spark.
    """
    try:
        rows = DirectTable(spark, table).rows([lookup.conditions], most=None if lookup.by is None else ROWS_MAX)
    except NoSingleValue as reason:
        logger.debug("Not looked up: %s", reason)
        return None
    make = to_object(table.form)
    return None if rows is None else [make(row) for row in rows]


def frame_of(spark: SparkSession, table: DatasetTable, *, requirement: ScanRequirement, parts: int) -> DataFrame | None:
    """Return a DataFrame of the rows that a scan needs; None if the dataset has no snapshot."""
    frame = table.frame(spark)
    if frame is None:
        return None
    frame = _filter_frame(frame, table, requirement=requirement)
    frame = frame.select(*map(quote_name, needed_columns(table.form.type, requirement.fields)))
    if requirement.limit is not None:
        frame = frame.limit(requirement.limit)
    return frame.coalesce(parts)


def _filter_frame(frame: DataFrame, table: DatasetTable, *, requirement: ScanRequirement) -> DataFrame:
    conditions = [
        column for each in requirement.conditions if (column := condition_of(table.form.type, each)) is not None
    ]
    return frame.where(reduce(lambda left, right: left & right, conditions)) if conditions else frame


def _groups(
    spark: SparkSession, table: DatasetTable, *, requirement: ScanRequirement, grouped: EngineGrouping
) -> Iterator[Value]:
    """Yield an object for each group: its keys and aggregates."""
    frame = table.frame(spark)
    if frame is None:
        counts: dict[str, Value] = {one.name: 0 for one in grouped.measures if one.function == "count"}
        yield from () if grouped.keys else (counts,)
        return
    from pyspark.sql import functions  # noqa: PLC0415

    keys = [functions.col(quote_name(*path)).alias(name) for name, path, _ in grouped.keys]
    measures = [_measure(one) for one in grouped.measures] or [functions.count(functions.lit(1)).alias("rows")]
    data_frame = _filter_frame(frame, table, requirement=requirement).groupBy(*keys).agg(*measures)
    types = [*((name, type_) for name, _, type_ in grouped.keys), *((one.name, one.type) for one in grouped.measures)]
    record = RecordType(tuple(FieldType(name, Scalar(type_)) for name, type_ in types), open=False, foreign=True)  # type: ignore[arg-type]
    yield from objects_of(StorageForm(record), data_frame.select(*(name for name, _ in types)).toArrow().to_batches())


def _measure(measure: GroupMeasure) -> Column:
    from pyspark.sql import functions  # noqa: PLC0415

    column = functions.lit(1) if measure.path is None else functions.col(quote_name(*measure.path))
    work = functions.count_distinct if measure.distinct else getattr(functions, measure.function)
    result: Column = work(column)
    return result.alias(measure.name)


def needed_columns(record: RecordType, fields: frozenset[str] | None) -> list[str]:
    """Return the columns that store some fields (None: all), with the column of open fields if it may contain one of
    them.
    """
    types = [field for field in columns(record) if fields is None or field.name in fields]
    names = [field.name for field in types]
    certain = {field.name for field in types if not field.optional}
    lies_there = has_open(record) and (fields is None or not fields <= certain)
    return [*names, OPEN] if lies_there else names


def condition_of(record: RecordType, condition: Condition) -> Column | None:
    """Return a condition as a Spark column; None if Spark evaluates it differently."""
    scalar = column_type(record, condition.path)
    if scalar is None or not is_exact(record, condition):
        return None
    from pyspark.sql import functions  # noqa: PLC0415 - heavy

    column = functions.col(quote_name(*condition.path))
    if condition.operator == "in":
        values = condition.value if isinstance(condition.value, tuple) else ()
        return column.isin([_literal(literal(scalar, each)) for each in values])
    compared = _OPERATORS[condition.operator](column, _literal(literal(scalar, condition.value)))
    if scalar.name in ("float", "double") and condition.operator in (">", ">=") and condition.value == condition.value:
        return compared | functions.isnan(column)  # Iceberg's bounds of files leave out NaN, which is greater
    return compared


def _literal(value: Value) -> Column:
    """Return a value as a Spark literal."""
    from pyspark.sql import functions  # noqa: PLC0415

    if isinstance(value, Date):
        return functions.date_from_unix_date(functions.lit(value.days))
    if isinstance(value, DateTime):
        return functions.timestamp_millis(functions.lit(value.ms))
    column = functions.lit(value)
    return column.cast("bigint") if isinstance(value, int) and not isinstance(value, bool) else column


_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
