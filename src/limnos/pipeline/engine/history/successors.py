# SPDX-License-Identifier: Apache-2.0
"""Changes by events that follow everything the history has of their key.

Such an event needs no timeline: it ends the key's current row, begins a new one, or changes columns that are not
tracked. One join with the rows that do not end before an event shows what it does. Must not know sources or statements.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from limnos.pipeline.engine.changes import ddl, quote_column
from limnos.pipeline.engine.history.columns import (
    ACTION,
    AT,
    ENDS,
    PUT,
    HistoryColumns,
    comparable_text,
    compared_type,
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

    Expressions are texts: each call of a function would cost three calls of the Java machine.
    """
    newest = f.lit(None) if shape.as_of is None else f.expr(shape.as_of)
    rows = rows.withColumn(_NEWEST, newest.cast(ddl(shape.time)))
    at, ends, end, start = f"s.{AT}", f"s.{ENDS}", _of_row(shape.end), _of_row(shape.start)
    keys = [_of_event(each) for each in shape.keys]
    same_key = _all(f"{key} = {_of_row(each)}" for key, each in zip(keys, shape.keys, strict=True))
    pairs = events.alias("s").join(rows.alias("t"), f.expr(f"{same_key} AND ({end} IS NULL OR {end} >= {at})"), "left")
    follows = f"{end} IS NULL AND {start} < {at} AND (t.{_NEWEST} IS NULL OR t.{_NEWEST} < {at})"
    action = (
        f"CASE WHEN {start} IS NULL THEN CASE WHEN {ends} THEN '{_NOTHING}' ELSE '{_BEGIN}' END"
        f" WHEN {end} IS NULL AND NOT {ends} AND {start} <= {at} AND {_are_equal(shape.values, shape)}"
        f" THEN '{_NOTHING}'"
        f" WHEN {follows} AND {ends} THEN '{_END}'"
        f" WHEN {follows} AND {_are_equal(shape.tracked, shape)} THEN '{_UPDATE}'"
        f" WHEN {follows} THEN '{_REPLACE}' END"
    )
    is_alone = _all([f"{each} IS NOT NULL" for each in (*keys, at)])
    is_alone = f"{is_alone} AND count(1) OVER (PARTITION BY {', '.join(keys)}) = 1"
    row = _struct({each: _of_row(each) for each in shape.schema.names})
    met = pairs.selectExpr("s.*", f"{row} AS {_ROW}", f"CASE WHEN {is_alone} THEN {action} END AS {ACTION}")
    return met.where(f"{ACTION} IS NULL OR {ACTION} != '{_NOTHING}'")


def changes_of(events: DataFrame, shape: HistoryColumns) -> DataFrame:
    """Return the rows that the result of `successors` updates and inserts: the history's columns, and `ACTION`."""
    start = f"{_ROW}.{quote_column(shape.start)}"
    no_end = f"CAST(NULL AS {ddl(shape.time)})"
    new_row = _changed_row(shape, of_event=True, start=AT, end=no_end)
    updated_row = _changed_row(shape, of_event=True, start=start, end=no_end)
    closed_row = _changed_row(shape, of_event=False, start=start, end=AT)
    return events.selectExpr(
        f"inline(CASE {ACTION} WHEN '{_BEGIN}' THEN array({new_row}) WHEN '{_UPDATE}' THEN array({updated_row})"
        f" WHEN '{_END}' THEN array({closed_row}) ELSE array({closed_row}, {new_row}) END)"
    )


def _changed_row(shape: HistoryColumns, *, of_event: bool, start: str, end: str) -> str:
    side = "" if of_event else f"{_ROW}."
    values = {each: f"{side}{quote_column(each)}" for each in shape.values}
    values |= {shape.start: start, shape.end: end, shape.current: f"{end} IS NULL"}
    columns = {each: values.get(each, quote_column(each)) for each in shape.schema.names}
    return _struct({**columns, ACTION: f"'{PUT}'"})


def _are_equal(names: tuple[str, ...], shape: HistoryColumns) -> str:
    kinds = {each: shape.schema[each].dataType for each in names}
    return _all(
        f"{comparable_text(_of_event(each), kind)} <=> {comparable_text(_of_row(each), kind)}"
        for each, kind in kinds.items()
    )


def _struct(values: dict[str, str]) -> str:
    return f"struct({', '.join(f'{value} AS {quote_column(name)}' for name, value in values.items())})"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions) or "true"


def _of_event(name: str) -> str:
    return f"s.{quote_column(name)}"


def _of_row(name: str) -> str:
    return f"t.{quote_column(name)}"
