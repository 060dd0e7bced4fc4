# SPDX-License-Identifier: Apache-2.0
"""Timelines of keys: rows of a history as events, and events as rows. Must not know sources or statements."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from limnos.pipeline.engine.changes import ddl, quote_column
from limnos.pipeline.engine.history.columns import (
    ACTION,
    AT,
    DELETE,
    ENDS,
    PUT,
    RANK,
    HistoryColumns,
    column,
    comparable_value,
    compared_type,
    select_columns,
    tracked_column,
)
from limnos.pipeline.engine.merging import comparable
from limnos.pipeline.failures import WholeReadNeeded

_GROUP = "_limnos_group"
_STATE = "_limnos_state"
_NEWEST = "_limnos_old"


def key_timelines(events: DataFrame, shape: HistoryColumns) -> DataFrame:
    """Return the timelines of keys that have a single event. Its state is valid from that time on; a single end event
    creates no row.
    """
    own = {shape.start: f.col(AT), shape.end: f.lit(None).cast(ddl(shape.time)), shape.current: f.lit(True)}
    return events.where(~f.col(ENDS)).withColumns(own)


def require_placed(events: DataFrame, touched: DataFrame, *, shape: HistoryColumns) -> None:
    """Raise WholeReadNeeded if an event falls among states of which the table has one row."""
    if shape.as_of is None:
        return
    merged = (
        confirmed_rows(touched, shape)
        .select(*select_columns((*shape.keys, *shape.tracked, shape.start)), _NEWEST)
        .alias("t")
    )
    late = f.lit(True)
    for key in shape.keys:
        late = late & f.col(f"s.{quote_column(key)}").eqNullSafe(f.col(f"t.{quote_column(key)}"))
    late = (
        late
        & (f.col(f"s.{AT}") >= f.col(f"t.{quote_column(shape.start)}"))
        & (f.col(f"s.{AT}") <= f.col(f"t.{_NEWEST}"))
    )
    same = ~f.col(f"s.{ENDS}")
    for each in shape.tracked:
        kind = shape.schema[each].dataType
        own, other = (comparable_value(f.col(f"{side}.{quote_column(each)}"), kind) for side in ("s", "t"))
        same = same & own.eqNullSafe(other)
    if not events.alias("s").join(merged, late & ~same, "left_semi").isEmpty():
        raise WholeReadNeeded("a late row falls among equal states of its key, of which the history has one row")


def confirmed_rows(rows: DataFrame, shape: HistoryColumns) -> DataFrame:
    """Return the table's rows that have several events, with the time of the newest one."""
    at = f.expr(shape.as_of or "NULL").cast(ddl(shape.time))
    known = rows.withColumn(_NEWEST, at).where(f.col(_NEWEST) > column(shape.start))
    return known.where(column(shape.end).isNull() | (f.col(_NEWEST) < column(shape.end)))


def affected_rows(have: DataFrame, events: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return all rows in the table whose keys have events."""
    return have.join(events.select(*select_columns(shape.keys)).distinct(), list(shape.keys), "left_semi")


def timeline_events(touched: DataFrame, events: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return all events of keys with new events: the table's rows as events, and the new ones, which win."""
    columns = select_columns((*shape.keys, *shape.values))
    states = touched.select(*columns, column(shape.start).alias(AT), f.lit(False).alias(ENDS), f.lit(1).alias(RANK))
    ends = touched.where(column(shape.end).isNotNull()).select(
        *columns, column(shape.end).alias(AT), f.lit(True).alias(ENDS), f.lit(0).alias(RANK)
    )
    new = events.select(*columns, AT, ENDS, f.lit(2).alias(RANK))
    every = states.unionByName(ends).unionByName(new)
    if shape.as_of is None:
        return every
    again = confirmed_rows(touched, shape).select(
        *columns, f.col(_NEWEST).alias(AT), f.lit(False).alias(ENDS), f.lit(1).alias(RANK)
    )
    return every.unionByName(again)


def intervals(events: DataFrame, shape: HistoryColumns) -> DataFrame:
    """Return the rows of the timelines that events give. Adjacent equal states are one row."""
    moment = Window.partitionBy(*select_columns(shape.keys), AT).orderBy(f.col(RANK).desc())
    events = events.withColumn(_NEWEST, f.row_number().over(moment)).where(f.col(_NEWEST) == 1)
    line = Window.partitionBy(*select_columns(shape.keys)).orderBy(AT)
    state = f.struct(f.col(ENDS), *[tracked_column(each, shape) for each in shape.tracked])
    # An end of validity has a null state, so two successive ends are equal whatever their rows contain.
    state = f.when(~f.col(ENDS), state)
    before = f.lag(_STATE).over(line)
    starts = f.row_number().over(line) == 1
    events = events.withColumn(_STATE, state).withColumn(_NEWEST, starts | ~f.col(_STATE).eqNullSafe(before))
    events = events.withColumn(_GROUP, f.sum(f.col(_NEWEST).cast("int")).over(line))
    newest_values = f.struct(*select_columns(shape.values)) if shape.values else f.struct(f.lit(1))
    groups = events.groupBy(*select_columns(shape.keys), _GROUP, ENDS).agg(
        f.min(AT).alias(shape.start), f.max_by(newest_values, f.col(AT)).alias(_STATE)
    )
    order = Window.partitionBy(*select_columns(shape.keys)).orderBy(_GROUP)
    groups = groups.withColumn(shape.end, f.lead(column(shape.start)).over(order)).where(~f.col(ENDS))
    values = [f.col(_STATE).getField(each).alias(each) for each in shape.values]
    ends = column(shape.end)
    return groups.select(
        *select_columns(shape.keys), *values, column(shape.start), ends, ends.isNull().alias(shape.current)
    )


def differences(touched: DataFrame, frame: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return how the rows `touched` become those of `frame`: columns of the history, and `ACTION`."""
    names = tuple(shape.schema.names)
    old = touched.select(f.struct(*select_columns(names)).alias("o"), *select_columns((*shape.keys, shape.start)))
    new = frame.select(f.struct(*select_columns(names)).alias("n"), *select_columns((*shape.keys, shape.start)))
    both = old.join(new, [*shape.keys, shape.start], "full_outer")
    others = [each for each in names if each not in {*shape.keys, shape.start}]
    changed = f.lit(False)
    for each in others:
        kind = shape.schema[each].dataType
        changed = changed | (
            ~comparable_value(f.col("o").getField(each), kind).eqNullSafe(
                comparable_value(f.col("n").getField(each), kind)
            )
            if comparable(compared_type(kind))
            else f.lit(True)
        )
    removed, added = f.col("n").isNull(), f.col("o").isNull()
    both = both.where(removed | added | changed)
    columns = [f.col("n").getField(each).alias(each) for each in others]
    do = f.when(removed, DELETE).otherwise(PUT)
    return both.select(*select_columns((*shape.keys, shape.start)), *columns, do.alias(ACTION))
