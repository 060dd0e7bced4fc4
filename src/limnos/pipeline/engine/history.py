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
from pyspark.sql.types import DataType, MapType, StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.engine.branches import MERGES, WriteKind, branch_identifier, run_on_branch
from limnos.pipeline.engine.changes import ddl, fitted_columns, quote_column
from limnos.pipeline.engine.definitions import varies
from limnos.pipeline.engine.distinct import key_counts
from limnos.pipeline.engine.inserting import insert
from limnos.pipeline.engine.keys import require_keys
from limnos.pipeline.engine.merging import comparable
from limnos.pipeline.engine.session import temporary_view
from limnos.pipeline.engine.staging import staged_rows
from limnos.pipeline.failures import WholeReadNeeded
from limnos.pipeline.outcomes import StepBranch

_AT = "_limnos_at"
_END = "_limnos_end"
_RANK = "_limnos_rank"
_GROUP = "_limnos_group"
_STATE = "_limnos_state"
_OLD = "_limnos_old"
_DO = "_limnos_do"
_DELETE, _PUT = "delete", "put"


@dataclass(frozen=True, slots=True, kw_only=True)
class _HistoryColumns:
    """Columns of a history: keys, values, tracked values, and the columns `valid_from` (`start`), `valid_to` (`end`)
    and `current`, under their declared names.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    tracked: tuple[str, ...]
    start: str
    end: str
    current: str
    time: DataType
    schema: StructType
    as_of: str | None
    """The expression for the time of a source's row, if the time of a table's newest event can be computed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """The rows for a history. `increment`: they are only new rows. `excluded` are rows that rules took out: their keys
    are not missing. `run_at` is the run's time.
    """

    frame: DataFrame
    run_at: dt.datetime | None
    increment: bool = False
    excluded: DataFrame | None = None


def keep_history(step: StepDeclaration, source: HistorySource, *, branch: StepBranch, schema: StructType) -> None:
    """Apply the source's states to `branch`. States without a time are valid from the run's time.

    Raises KeyViolation (a key or its time is NULL, or a key occurs twice at the same time), BadRequest, and
    WholeReadNeeded (an increment has a late event that the table's rows cannot place) before anything is written.
    """
    shape = _shape(step, schema)
    if source.run_at is None and (step.write.as_of is None or step.write.delete_missing):
        raise BadRequest(f"Step {step.name}: a history without `as_of` needs the run's time.")
    with staged_rows(_source(step, source.frame, shape=shape)) as events:
        _bring_source(step, events, source=source, shape=shape, branch=branch)


def _bring_source(
    step: StepDeclaration, events: DataFrame, *, source: HistorySource, shape: _HistoryColumns, branch: StepBranch
) -> None:
    timed = step.write.as_of is not None
    counts = key_counts(events, shape.keys, also=(_AT,) if timed else ())
    if not counts.are_keys:
        names = (*step.write.keys, _AT) if timed else step.write.keys
        require_keys(events, names, step=step.name, labels={_AT: f"as_of {step.write.as_of}"})
    if not counts.rows and not step.write.delete_missing:
        return
    now = f.lit(source.run_at).cast(ddl(shape.time))
    if branch.base is None:  # the table has no rows yet
        events = events if timed else events.withColumn(_AT, now)
        frame = (
            _key_timelines(events, shape) if counts.are_keys else _intervals(events.withColumn(_RANK, f.lit(2)), shape)
        )
        insert(frame.select(*_columns(tuple(shape.schema.names))), branch=branch, kind=WriteKind.APPEND)
        return
    have = events.sparkSession.table(branch_identifier(branch)).where(_column(shape.start).isNotNull())
    new = _changed_events(events, have, shape=shape) if timed else _from_now_on(events, have, shape=shape, now=now)
    if step.write.delete_missing:
        present = events if source.excluded is None else _with_keys(events, source.excluded, shape=shape)
        new = new.unionByName(_missing(present, have, shape=shape, now=now))
        new = new.unionByName(_returned_states(events, have, shape=shape, now=now)) if timed else new
    with staged_rows(new) as staged:
        if staged.isEmpty():
            return
        touched = _affected_rows(have, staged, shape=shape)
        if source.increment and timed:
            _require_placed(staged, touched, shape=shape)
        _merge(touched, staged, shape=shape, branch=branch)


def _key_timelines(events: DataFrame, shape: _HistoryColumns) -> DataFrame:
    """Return the timelines of keys that have a single event. Its state is valid from that time on; a single end event
    creates no row.
    """
    own = {shape.start: f.col(_AT), shape.end: f.lit(None).cast(ddl(shape.time)), shape.current: f.lit(True)}
    return events.where(~f.col(_END)).withColumns(own)


def _merge(frame: DataFrame, events: DataFrame, *, shape: _HistoryColumns, branch: StepBranch) -> None:
    with staged_rows(frame) as touched:
        intervals = _intervals(_timeline_events(touched, events, shape=shape), shape)
        with staged_rows(_differences(touched, intervals, shape=shape)) as changes:
            if changes.isEmpty():
                return
            with temporary_view(changes) as view:
                statement = _statement(shape, branch=branch, view=view)
                run_on_branch(changes.sparkSession, statement, branch=branch, kinds=MERGES)


def _require_placed(events: DataFrame, touched: DataFrame, *, shape: _HistoryColumns) -> None:
    """Raise WholeReadNeeded if an event falls among states of which the table has one row."""
    if shape.as_of is None:
        return
    merged = (
        _confirmed_rows(touched, shape).select(*_columns((*shape.keys, *shape.tracked, shape.start)), _OLD).alias("t")
    )
    late = f.lit(True)
    for key in shape.keys:
        late = late & f.col(f"s.{quote_column(key)}").eqNullSafe(f.col(f"t.{quote_column(key)}"))
    late = (
        late
        & (f.col(f"s.{_AT}") >= f.col(f"t.{quote_column(shape.start)}"))
        & (f.col(f"s.{_AT}") <= f.col(f"t.{_OLD}"))
    )
    same = ~f.col(f"s.{_END}")
    for each in shape.tracked:
        kind = shape.schema[each].dataType
        own, other = (_comparable(f.col(f"{side}.{quote_column(each)}"), kind) for side in ("s", "t"))
        same = same & own.eqNullSafe(other)
    if not events.alias("s").join(merged, late & ~same, "left_semi").isEmpty():
        raise WholeReadNeeded("a late row falls among equal states of its key, of which the history has one row")


def _confirmed_rows(rows: DataFrame, shape: _HistoryColumns) -> DataFrame:
    """Return the table's rows that have several events, with the time of the newest one."""
    at = f.expr(shape.as_of or "NULL").cast(ddl(shape.time))
    known = rows.withColumn(_OLD, at).where(f.col(_OLD) > _column(shape.start))
    return known.where(_column(shape.end).isNull() | (f.col(_OLD) < _column(shape.end)))


def _shape(step: StepDeclaration, schema: StructType) -> _HistoryColumns:
    write = step.write
    own = {each.lower() for each in (write.valid_from, write.valid_to, write.current)}
    keys = {each.lower() for each in write.keys}
    values = tuple(each for each in schema.names if each.lower() not in own | keys)
    chosen = {each.lower() for each in write.tracked} or {each.lower() for each in values}
    tracked = tuple(each for each in values if each.lower() in chosen)
    for name in tracked:
        if not comparable(_key_of(schema[name].dataType)):
            raise BadRequest(
                f"Step {step.name}: changes of {name!r} can't be detected, because {ddl(schema[name].dataType)} has no"
                " order. Name the columns to follow with `tracked`."
            )
    time = schema[write.valid_from].dataType
    return _HistoryColumns(
        keys=tuple(each for each in schema.names if each.lower() in keys),
        values=values,
        tracked=tracked,
        start=write.valid_from,
        end=write.valid_to,
        current=write.current,
        time=time,
        schema=schema,
        as_of=None if write.as_of is None or varies(write.as_of) else write.as_of,
    )


def _column(name: str) -> Column:
    return f.col(quote_column(name))


def _columns(names: tuple[str, ...]) -> list[Column]:
    return [_column(each) for each in names]


def _source(step: StepDeclaration, frame: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    """Return the source's events: keys, values, time (NULL: the run's time), and whether the event ends the key's
    validity.
    """
    write = step.write
    struct_type = StructType([shape.schema[each] for each in (*shape.keys, *shape.values)])
    at = f.lit(None) if write.as_of is None else f.expr(write.as_of)
    ends = f.lit(False) if write.delete_when is None else f.coalesce(f.expr(write.delete_when), f.lit(False))
    return frame.select(*fitted_columns(frame, struct_type), at.cast(ddl(shape.time)).alias(_AT), ends.alias(_END))


def _from_now_on(source: DataFrame, have: DataFrame, *, shape: _HistoryColumns, now: Column) -> DataFrame:
    """Set the time of the events that have none: `now`, or the time of the key's newest event in the table if that is
    later.

    Unchanged keys are omitted.
    """
    newest = f.greatest(f.max(_column(shape.start)), f.max(_column(shape.end)))
    last = have.groupBy(*_columns(shape.keys)).agg(newest.alias(_OLD))
    timed = (
        source.drop(_AT).join(last, list(shape.keys), "left").withColumn(_AT, f.greatest(now, f.col(_OLD))).drop(_OLD)
    )
    current = have.where(_column(shape.end).isNull())
    return _without(timed, current, by=(*shape.keys, *shape.values), shape=shape)


def _changed_events(source: DataFrame, have: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    """Return the events that change the table: an event whose state already begins at that time is omitted."""
    began = have.withColumn(_AT, _column(shape.start))
    return _without(source, began, by=(*shape.keys, *shape.values, _AT), shape=shape)


def _without(events: DataFrame, rows: DataFrame, *, by: tuple[str, ...], shape: _HistoryColumns) -> DataFrame:
    """Remove the events that equal a row of `rows` in the columns `by`; events that end a validity stay. Does nothing
    if the state has columns that Spark cannot compare.
    """
    if not all(comparable(shape.schema[each].dataType) for each in shape.values):
        return events
    condition = ~f.col(f"s.{_END}")
    for each in by:
        condition = condition & f.col(f"s.{quote_column(each)}").eqNullSafe(f.col(f"t.{quote_column(each)}"))
    return events.alias("s").join(rows.select(*_columns(by)).alias("t"), condition, "left_anti")


def _with_keys(source: DataFrame, excluded: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    keys = StructType([shape.schema[each] for each in shape.keys])
    return source.select(*_columns(shape.keys)).unionByName(excluded.select(*fitted_columns(excluded, keys)))


def _returned_states(source: DataFrame, have: DataFrame, *, shape: _HistoryColumns, now: Column) -> DataFrame:
    """Return states from `now` on for keys whose validity ended in the table after their newest state in the source.

    The key was missing before, and the source has it again, although with an old time.
    """
    newest = Window.partitionBy(*_columns(shape.keys)).orderBy(f.col(_AT).desc())
    states = source.withColumn(_OLD, f.row_number().over(newest)).where((f.col(_OLD) == 1) & ~f.col(_END)).drop(_OLD)
    ends = have.groupBy(*_columns(shape.keys)).agg(
        f.max(_column(shape.end)).alias(_OLD), f.bool_or(_column(shape.end).isNull()).alias(_GROUP)
    )
    closed = states.join(ends.where(~f.col(_GROUP)).drop(_GROUP), list(shape.keys)).where(f.col(_AT) < f.col(_OLD))
    return closed.withColumn(_AT, f.greatest(now, f.col(_OLD))).drop(_OLD)


def _missing(source: DataFrame, have: DataFrame, *, shape: _HistoryColumns, now: Column) -> DataFrame:
    """Return end events for current keys that the source lacks."""
    current = have.where(_column(shape.end).isNull())
    lost = current.join(source.select(*_columns(shape.keys)).distinct(), list(shape.keys), "left_anti")
    return lost.select(
        *_columns((*shape.keys, *shape.values)),
        f.greatest(now, _column(shape.start)).alias(_AT),
        f.lit(True).alias(_END),
    )


def _affected_rows(have: DataFrame, events: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    """Return all rows in the table whose keys have events."""
    return have.join(events.select(*_columns(shape.keys)).distinct(), list(shape.keys), "left_semi")


def _timeline_events(touched: DataFrame, events: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    """Return all events of keys with new events: the table's rows as events, and the new ones, which win."""
    columns = _columns((*shape.keys, *shape.values))
    states = touched.select(*columns, _column(shape.start).alias(_AT), f.lit(False).alias(_END), f.lit(1).alias(_RANK))
    ends = touched.where(_column(shape.end).isNotNull()).select(
        *columns, _column(shape.end).alias(_AT), f.lit(True).alias(_END), f.lit(0).alias(_RANK)
    )
    new = events.select(*columns, _AT, _END, f.lit(2).alias(_RANK))
    every = states.unionByName(ends).unionByName(new)
    if shape.as_of is None:
        return every
    again = _confirmed_rows(touched, shape).select(
        *columns, f.col(_OLD).alias(_AT), f.lit(False).alias(_END), f.lit(1).alias(_RANK)
    )
    return every.unionByName(again)


def _intervals(events: DataFrame, shape: _HistoryColumns) -> DataFrame:
    moment = Window.partitionBy(*_columns(shape.keys), _AT).orderBy(f.col(_RANK).desc())
    events = events.withColumn(_OLD, f.row_number().over(moment)).where(f.col(_OLD) == 1)
    line = Window.partitionBy(*_columns(shape.keys)).orderBy(_AT)
    state = f.struct(f.col(_END), *[_tracked_column(each, shape) for each in shape.tracked])
    # An end of validity has a null state, so two successive ends are equal whatever their rows contain.
    state = f.when(~f.col(_END), state)
    before = f.lag(_STATE).over(line)
    starts = f.row_number().over(line) == 1
    events = events.withColumn(_STATE, state).withColumn(_OLD, starts | ~f.col(_STATE).eqNullSafe(before))
    events = events.withColumn(_GROUP, f.sum(f.col(_OLD).cast("int")).over(line))
    column = f.struct(*_columns(shape.values)) if shape.values else f.struct(f.lit(1))
    groups = events.groupBy(*_columns(shape.keys), _GROUP, _END).agg(
        f.min(_AT).alias(shape.start), f.max_by(column, f.col(_AT)).alias(_STATE)
    )
    order = Window.partitionBy(*_columns(shape.keys)).orderBy(_GROUP)
    groups = groups.withColumn(shape.end, f.lead(_column(shape.start)).over(order)).where(~f.col(_END))
    values = [f.col(_STATE).getField(each).alias(each) for each in shape.values]
    ends = _column(shape.end)
    return groups.select(*_columns(shape.keys), *values, _column(shape.start), ends, ends.isNull().alias(shape.current))


def _differences(touched: DataFrame, frame: DataFrame, *, shape: _HistoryColumns) -> DataFrame:
    names = tuple(shape.schema.names)
    old = touched.select(f.struct(*_columns(names)).alias("o"), *_columns((*shape.keys, shape.start)))
    new = frame.select(f.struct(*_columns(names)).alias("n"), *_columns((*shape.keys, shape.start)))
    both = old.join(new, [*shape.keys, shape.start], "full_outer")
    others = [each for each in names if each not in {*shape.keys, shape.start}]
    changed = f.lit(False)
    for each in others:
        kind = shape.schema[each].dataType
        changed = changed | (
            ~_comparable(f.col("o").getField(each), kind).eqNullSafe(_comparable(f.col("n").getField(each), kind))
            if comparable(_key_of(kind))
            else f.lit(True)
        )
    column, fresh = f.col("n").isNull(), f.col("o").isNull()
    both = both.where(column | fresh | changed)
    columns = [f.col("n").getField(each).alias(each) for each in others]
    do = f.when(column, _DELETE).otherwise(_PUT)
    return both.select(*_columns((*shape.keys, shape.start)), *columns, do.alias(_DO))


def _tracked_column(name: str, shape: _HistoryColumns) -> Column:
    return _comparable(_column(name), shape.schema[name].dataType).alias(name)


def _key_of(kind: DataType) -> DataType:
    """Return the type by which values of `kind` are compared: a map is compared as its entries, structs of key and
    value.
    """
    return StructType().add("key", kind.keyType).add("value", kind.valueType) if isinstance(kind, MapType) else kind


def _comparable(value: Column, kind: DataType) -> Column:
    return f.array_sort(f.map_entries(value)) if isinstance(kind, MapType) else value


def _statement(shape: _HistoryColumns, *, branch: StepBranch, view: str) -> str:
    names = tuple(shape.schema.names)
    match = " AND ".join(f"t.{quote_column(each)} = s.{quote_column(each)}" for each in (*shape.keys, shape.start))
    put = ", ".join(
        f"{quote_column(each)} = s.{quote_column(each)}" for each in names if each not in {*shape.keys, shape.start}
    )
    return (
        f"MERGE INTO {branch_identifier(branch)} AS t USING {view} AS s ON {match} "
        f"WHEN MATCHED AND s.{_DO} = '{_DELETE}' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {put} "
        f"WHEN NOT MATCHED AND s.{_DO} = '{_PUT}' THEN INSERT ({', '.join(map(quote_column, names))}) "
        f"VALUES ({', '.join(f's.{quote_column(each)}' for each in names)})"
    )
