# SPDX-License-Identifier: Apache-2.0
"""History tables, which store every state of a key with its validity (slowly changing dimension of type 2).

Computes the new timelines of the source's keys, and applies them to the branch by one MERGE. Must not know other write
modes.

A timeline is a set of events: at a time, a key gets a state, or its validity ends. The table's rows are converted back
to events and the source's events are added; for the same moment the source has precedence. Adjacent equal states are
merged, and the intervals between events are the new rows. So late changes, several changes of a key at once, ends and
restarts need no special cases. The whole model is in docs/explain/increments.md.

A merged state leaves no row. With `as_of`, a row's own columns have the time of its newest event, and a late event
between the start of a row and that time needs a whole read.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.engine.branches import MERGES, WriteKind, branch_identifier, run_on_branch
from limnos.pipeline.engine.changes import ddl, fitted_columns, quote_column
from limnos.pipeline.engine.distinct import KeyCounts, key_counts
from limnos.pipeline.engine.history.columns import (
    ACTION,
    AT,
    DELETE,
    ENDS,
    PUT,
    RANK,
    HistoryColumns,
    column,
    columns_of,
    select_columns,
)
from limnos.pipeline.engine.history.successors import are_comparable, changes_of, successors
from limnos.pipeline.engine.history.timelines import (
    affected_rows,
    differences,
    intervals,
    key_timelines,
    require_placed,
    timeline_events,
)
from limnos.pipeline.engine.inserting import insert
from limnos.pipeline.engine.keys import require_keys
from limnos.pipeline.engine.merging import comparable
from limnos.pipeline.engine.metadata import LoadedTable
from limnos.pipeline.engine.session import temporary_view
from limnos.pipeline.engine.staging import staged_rows
from limnos.pipeline.outcomes import StepBranch

_NEWEST = "_limnos_newest"
_GROUP = "_limnos_group"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """The rows for a history. `increment`: they are only new rows. `excluded` are rows that rules took out: their keys
    are not missing. `run_at` is the run's time.
    """

    frame: DataFrame
    run_at: dt.datetime | None
    increment: bool = False
    excluded: DataFrame | None = None


def keep_history(
    step: StepDeclaration, source: HistorySource, *, branch: StepBranch, schema: StructType
) -> LoadedTable | None:
    """Apply the source's states to `branch`. States without a time are valid from the run's time.

    Returns the table as the commit left it; None over Spark Connect, and if nothing was written.

    Raises KeyViolation (a key or its time is NULL, or a key occurs twice at the same time), BadRequest, and
    WholeReadNeeded (an increment has a late event that the table's rows cannot place) before anything is written.
    """
    shape = columns_of(step, schema)
    if source.run_at is None and (step.write.as_of is None or step.write.delete_missing):
        raise BadRequest(f"Step {step.name}: a history without `as_of` needs the run's time.")
    with staged_rows(_source(step, source.frame, shape=shape)) as events:
        return _bring_source(step, events, source=source, shape=shape, branch=branch)


def _bring_source(
    step: StepDeclaration, events: DataFrame, *, source: HistorySource, shape: HistoryColumns, branch: StepBranch
) -> LoadedTable | None:
    now = f.lit(source.run_at).cast(ddl(shape.time))
    if branch.base is None:  # the table has no rows yet
        return _fill(step, events, now=now, shape=shape, branch=branch)
    rows = events.sparkSession.table(branch_identifier(branch)).where(column(shape.start).isNotNull())
    if not step.write.delete_missing and are_comparable(shape):
        timed_events = events if step.write.as_of is not None else events.withColumn(AT, now)
        with staged_rows(successors(timed_events, rows, shape=shape)) as pairs:
            count, decided = pairs.agg(f.count(f.lit(1)), f.count(ACTION)).collect()[0]
            if count == decided:
                return _merge(changes_of(pairs, shape), shape=shape, branch=branch) if count else None
    _require_event_keys(step, events, shape=shape)
    new = _new_events(step, events, rows=rows, source=source, shape=shape, now=now)
    with staged_rows(new) as staged:
        if staged.isEmpty():
            return None
        touched = affected_rows(rows, staged, shape=shape)
        if source.increment and step.write.as_of is not None:
            require_placed(staged, touched, shape=shape)
        return _merge_timelines(touched, staged, shape=shape, branch=branch)


def _require_event_keys(step: StepDeclaration, events: DataFrame, *, shape: HistoryColumns) -> KeyCounts:
    """Count the events' keys. Raises KeyViolation if two events have the same key and time, or one lacks either."""
    timed = step.write.as_of is not None
    counts = key_counts(events, shape.keys, also=(AT,) if timed else ())
    if not counts.are_keys:
        names = (*step.write.keys, AT) if timed else step.write.keys
        require_keys(events, names, step=step.name, labels={AT: f"as_of {step.write.as_of}"})
    return counts


def _new_events(
    step: StepDeclaration,
    events: DataFrame,
    *,
    rows: DataFrame,
    source: HistorySource,
    shape: HistoryColumns,
    now: Column,
) -> DataFrame:
    """Return the events that change the table's rows, each with its time; among them ends of keys that are missing."""
    timed = step.write.as_of is not None
    new = _changed_events(events, rows, shape=shape) if timed else _from_now_on(events, rows, shape=shape, now=now)
    if not step.write.delete_missing:
        return new
    present = events if source.excluded is None else _with_keys(events, source.excluded, shape=shape)
    new = new.unionByName(_missing(present, rows, shape=shape, now=now))
    return new.unionByName(_returned_states(events, rows, shape=shape, now=now)) if timed else new


def _fill(
    step: StepDeclaration, events: DataFrame, *, now: Column, shape: HistoryColumns, branch: StepBranch
) -> LoadedTable | None:
    """Write the first rows of a history."""
    counts = _require_event_keys(step, events, shape=shape)
    if not counts.rows:
        return None
    events = events if step.write.as_of is not None else events.withColumn(AT, now)
    frame = key_timelines(events, shape) if counts.are_keys else intervals(events.withColumn(RANK, f.lit(2)), shape)
    rows = frame.select(*select_columns(tuple(shape.schema.names)))
    return insert(rows, branch=branch, kind=WriteKind.APPEND)


def _merge_timelines(
    frame: DataFrame, events: DataFrame, *, shape: HistoryColumns, branch: StepBranch
) -> LoadedTable | None:
    with staged_rows(frame) as touched:
        timelines = intervals(timeline_events(touched, events, shape=shape), shape)
        with staged_rows(differences(touched, timelines, shape=shape)) as changes:
            return None if changes.isEmpty() else _merge(changes, shape=shape, branch=branch)


def _merge(changes: DataFrame, *, shape: HistoryColumns, branch: StepBranch) -> LoadedTable | None:
    with temporary_view(changes) as view:
        statement = _statement(shape, branch=branch, view=view)
        return run_on_branch(changes.sparkSession, statement, branch=branch, kinds=MERGES)


def _source(step: StepDeclaration, frame: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return the source's events: keys, values, time (NULL: the run's time), and whether the event ends the key's
    validity.
    """
    write = step.write
    struct_type = StructType([shape.schema[each] for each in (*shape.keys, *shape.values)])
    at = f.lit(None) if write.as_of is None else f.expr(write.as_of)
    ends = f.lit(False) if write.delete_when is None else f.coalesce(f.expr(write.delete_when), f.lit(False))
    return frame.select(*fitted_columns(frame, struct_type), at.cast(ddl(shape.time)).alias(AT), ends.alias(ENDS))


def _from_now_on(source: DataFrame, have: DataFrame, *, shape: HistoryColumns, now: Column) -> DataFrame:
    """Set the time of the events that have none: `now`, or the time of the key's newest event in the table if that is
    later.

    Unchanged keys are omitted.
    """
    newest = f.greatest(f.max(column(shape.start)), f.max(column(shape.end)))
    last = have.groupBy(*select_columns(shape.keys)).agg(newest.alias(_NEWEST))
    timed = (
        source.drop(AT)
        .join(last, list(shape.keys), "left")
        .withColumn(AT, f.greatest(now, f.col(_NEWEST)))
        .drop(_NEWEST)
    )
    current = have.where(column(shape.end).isNull())
    return _without(timed, current, by=(*shape.keys, *shape.values), shape=shape)


def _changed_events(source: DataFrame, have: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    """Return the events that change the table: an event whose state already begins at that time is omitted."""
    began = have.withColumn(AT, column(shape.start))
    return _without(source, began, by=(*shape.keys, *shape.values, AT), shape=shape)


def _without(events: DataFrame, rows: DataFrame, *, by: tuple[str, ...], shape: HistoryColumns) -> DataFrame:
    """Remove the events that equal a row of `rows` in the columns `by`; events that end a validity stay. Does nothing
    if the state has columns that Spark cannot compare.
    """
    if not all(comparable(shape.schema[each].dataType) for each in shape.values):
        return events
    condition = ~f.col(f"s.{ENDS}")
    for each in by:
        condition = condition & f.col(f"s.{quote_column(each)}").eqNullSafe(f.col(f"t.{quote_column(each)}"))
    return events.alias("s").join(rows.select(*select_columns(by)).alias("t"), condition, "left_anti")


def _with_keys(source: DataFrame, excluded: DataFrame, *, shape: HistoryColumns) -> DataFrame:
    keys = StructType([shape.schema[each] for each in shape.keys])
    return source.select(*select_columns(shape.keys)).unionByName(excluded.select(*fitted_columns(excluded, keys)))


def _returned_states(source: DataFrame, have: DataFrame, *, shape: HistoryColumns, now: Column) -> DataFrame:
    """Return states from `now` on for keys whose validity ended in the table after their newest state in the source.

    The key was missing before, and the source has it again, although with an old time.
    """
    newest = Window.partitionBy(*select_columns(shape.keys)).orderBy(f.col(AT).desc())
    states = (
        source.withColumn(_NEWEST, f.row_number().over(newest))
        .where((f.col(_NEWEST) == 1) & ~f.col(ENDS))
        .drop(_NEWEST)
    )
    ends = have.groupBy(*select_columns(shape.keys)).agg(
        f.max(column(shape.end)).alias(_NEWEST), f.bool_or(column(shape.end).isNull()).alias(_GROUP)
    )
    closed = states.join(ends.where(~f.col(_GROUP)).drop(_GROUP), list(shape.keys)).where(f.col(AT) < f.col(_NEWEST))
    return closed.withColumn(AT, f.greatest(now, f.col(_NEWEST))).drop(_NEWEST)


def _missing(source: DataFrame, have: DataFrame, *, shape: HistoryColumns, now: Column) -> DataFrame:
    """Return end events for current keys that the source lacks."""
    current = have.where(column(shape.end).isNull())
    lost = current.join(source.select(*select_columns(shape.keys)).distinct(), list(shape.keys), "left_anti")
    return lost.select(
        *select_columns((*shape.keys, *shape.values)),
        f.greatest(now, column(shape.start)).alias(AT),
        f.lit(True).alias(ENDS),
    )


def _statement(shape: HistoryColumns, *, branch: StepBranch, view: str) -> str:
    names = tuple(shape.schema.names)
    match = " AND ".join(f"t.{quote_column(each)} = s.{quote_column(each)}" for each in (*shape.keys, shape.start))
    put = ", ".join(
        f"{quote_column(each)} = s.{quote_column(each)}" for each in names if each not in {*shape.keys, shape.start}
    )
    return (
        f"MERGE INTO {branch_identifier(branch)} AS t USING {view} AS s ON {match} "
        f"WHEN MATCHED AND s.{ACTION} = '{DELETE}' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {put} "
        f"WHEN NOT MATCHED AND s.{ACTION} = '{PUT}' THEN INSERT ({', '.join(map(quote_column, names))}) "
        f"VALUES ({', '.join(f's.{quote_column(each)}' for each in names)})"
    )
