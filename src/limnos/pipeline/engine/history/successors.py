# SPDX-License-Identifier: Apache-2.0
"""Changes by events that follow everything the history has of their key.

Such an event needs no timeline: it ends the key's current row, begins a new one, or changes columns that are not
tracked. One join with the rows that do not end before an event shows what it does. Must not know sources or statements.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from limnos.pipeline.engine.changes import ddl, quote_column
from limnos.pipeline.engine.history.columns import (
    ACTION,
    AT,
    ENDS,
    PUT,
    HistoryColumns,
    column,
    comparable_value,
    compared_type,
    select_columns,
)
from limnos.pipeline.engine.merging import comparable

_ROW = "_limnos_row"
_NEWEST = "_limnos_newest"
_NOTHING, _BEGIN, _END, _UPDATE, _REPLACE = "nothing", "begin", "end", "update", "replace"


def are_comparable(shape: HistoryColumns) -> bool:
    """Return whether all values of a row can be compared, which `successors` needs."""
    return all(comparable(compared_type(shape.schema[each].dataType)) for each in shape.values)


def successors(events: DataFrame, rows: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return the events that change the history, with the row of their key that they meet.

    The column `ACTION` is NULL where the key's timeline must be computed: for an event that does not follow the rows of
    its key, for a key with several events or with rows whose validities overlap, and for an event without key or time.
    Events that change nothing are left out.
    """
    newest = f.lit(None) if shape.as_of is None else f.expr(shape.as_of)
    rows = rows.withColumn(_NEWEST, newest.cast(ddl(shape.time)))
    end, start = _row_column(shape.end), _row_column(shape.start)
    same_key = reduce(and_, [_event_column(each) == _row_column(each) for each in shape.keys])
    at, ends = f.col(f"s.{AT}"), f.col(f"s.{ENDS}")
    pairs = events.alias("s").join(rows.alias("t"), same_key & (end.isNull() | (end >= at)), "left")
    is_current = end.isNull()
    follows = is_current & (start < at) & (f.col(f"t.{_NEWEST}").isNull() | (f.col(f"t.{_NEWEST}") < at))
    action = (
        f.when(start.isNull(), f.when(ends, _NOTHING).otherwise(_BEGIN))
        .when(is_current & ~ends & (start <= at) & _are_equal(shape.values, shape), _NOTHING)
        .when(follows & ends, _END)
        .when(follows & _are_equal(shape.tracked, shape), _UPDATE)
        .when(follows, _REPLACE)
    )
    keys = [_event_column(each) for each in shape.keys]
    is_alone = reduce(and_, [each.isNotNull() for each in (*keys, at)])
    is_alone = is_alone & (f.count(f.lit(1)).over(Window.partitionBy(*keys)) == 1)
    row = f.struct(*[_row_column(each).alias(each) for each in shape.schema.names])
    met = pairs.select("s.*", row.alias(_ROW), f.when(is_alone, action).alias(ACTION))
    return met.where(f.col(ACTION).isNull() | (f.col(ACTION) != _NOTHING))


def changes_of(events: DataFrame, shape: HistoryColumns) -> DataFrame:
    """Return the rows that the result of `successors` updates and inserts: the history's columns, and `ACTION`."""
    action, start = f.col(ACTION), f.col(_ROW).getField(shape.start)
    no_end = f.lit(None).cast(ddl(shape.time))
    new_row = _changed_row(shape, of_event=True, start=f.col(AT), end=no_end)
    updated_row = _changed_row(shape, of_event=True, start=start, end=no_end)
    closed_row = _changed_row(shape, of_event=False, start=start, end=f.col(AT))
    rows = (
        f.when(action == _BEGIN, f.array(new_row))
        .when(action == _UPDATE, f.array(updated_row))
        .when(action == _END, f.array(closed_row))
        .otherwise(f.array(closed_row, new_row))
    )
    return events.select(f.inline(rows))


def _changed_row(shape: HistoryColumns, *, of_event: bool, start: Column, end: Column) -> Column:
    values = select_columns(shape.values) if of_event else [f.col(_ROW).getField(each) for each in shape.values]
    named = dict(zip(shape.values, values, strict=True)) | {shape.start: start, shape.end: end}
    named[shape.current] = end.isNull()
    columns = [named.get(each, column(each)).alias(each) for each in shape.schema.names]
    return f.struct(*columns, f.lit(PUT).alias(ACTION))


def _are_equal(names: tuple[str, ...], shape: HistoryColumns) -> Column:
    pairs = [
        [comparable_value(of_side(each), shape.schema[each].dataType) for of_side in (_event_column, _row_column)]
        for each in names
    ]
    return reduce(and_, [event.eqNullSafe(row) for event, row in pairs], f.lit(True))


def _event_column(name: str) -> Column:
    return f.col(f"s.{quote_column(name)}")


def _row_column(name: str) -> Column:
    return f.col(f"t.{quote_column(name)}")
