# SPDX-License-Identifier: Apache-2.0
"""Inputs of a step as DataFrames: tables at pinned snapshots or on this run's branches, and sources.

Builds a step's DataFrame, full or incremental, with pins of all inputs. Must not know write modes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from limnos.model.errors import BadRequest, LimnosError
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Load, Pipeline, PythonStep, Sql, StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.definitions import mode_reason
from limnos.pipeline.engine import pinned_reads
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.definitions import definition_of, unpinned_reason, varying_reason
from limnos.pipeline.engine.incremental import (
    ReadChoice,
    choose,
    incremental_rows,
    published_checkpoint,
    read_whole,
)
from limnos.pipeline.engine.new_rows import NewRows
from limnos.pipeline.engine.promotion import promotion_comparison
from limnos.pipeline.engine.relations import QueryNames, query_names
from limnos.pipeline.engine.source_opening import OpenedSource, SourceOpener
from limnos.pipeline.engine.sources import MalformedRows
from limnos.pipeline.engine.sources.fingerprints import EACH_MAX
from limnos.pipeline.engine.spark_failures import failure_of
from limnos.pipeline.engine.user_code import place_in_function
from limnos.pipeline.failures import StepError
from limnos.pipeline.outcomes import BuiltStep, ReadPin
from limnos.pipeline.reads import all_reads, tables
from limnos.pipeline.run.parameters import arguments
from limnos.pipeline.source_declarations import Stream
from limnos.spark.gateway import session_settings

_CATALOG = "spark.sql.catalog."
_RANK, _NEWEST = "_limnos_rank", "_limnos_newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInputs:
    """The rows of a step before they are written, with pins of their inputs. Call `release` after the write."""

    frame: DataFrame
    pins: Mapping[Parts, ReadPin]
    """Pins: of tables by path, of sources by their one-part name."""
    definition: Mapping[str, str]
    """The digests of the step's definition, for its checkpoint."""
    whole_because: str | None = None
    """Of an incremental step, the reason if this is a full read."""
    checkpoint: Mapping[str, str] = field(default_factory=dict)
    """The checkpoint of the published table, if it was read."""
    nothing_new: bool = False
    copied_from: BuiltStep | None = None
    computed_because: str | None = None
    newest_rows: Callable[[], DataFrame] | None = None
    """Of files that a merge or history reads incrementally: for each key the rows of the newest file that has it."""
    malformed: tuple[MalformedRows, ...] = ()
    opened: tuple[OpenedSource, ...] = ()

    def release(self) -> None:
        """Free the staged rows, temporary views and other resources of the sources."""
        for source in self.opened:
            source.release()


def reads_of(
    spark: SparkSession, pipeline: Pipeline, *, lance_catalogs: frozenset[str] = frozenset()
) -> dict[str, frozenset[Parts]]:
    """Return the tables that each step reads, including the tables below views, by the step's name.

    `lance_catalogs` are catalogs of Lance tables, which the session lacks.

    Raises InvalidPipeline for a malformed query, NotFound for a missing table, UnsupportedOperation for a table that
    cannot be pinned.
    """
    catalogs = catalogs_of(spark) | lance_catalogs
    results = tables(all_reads(pipeline, queries=lambda sql: query_names(spark, sql), catalogs=catalogs))
    entries = {step.table for step in pipeline.steps}
    outside = {table for each in results.values() for table in each if table[0] not in lance_catalogs} - entries
    below = {table: frozenset(pinned_reads.pin_tables(spark, [table])) for table in outside}
    return {
        name: frozenset(one for table in each for one in (table, *below.get(table, ())))
        for name, each in results.items()
    }


def catalogs_of(spark: SparkSession) -> frozenset[str]:
    """Return the names of the session's catalogs, from its settings `spark.sql.catalog.<name>`."""
    keys = (key.removeprefix(_CATALOG) for key in session_settings(spark) if key.startswith(_CATALOG))
    return frozenset(key for key in keys if "." not in key)


def inputs_of(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    context: StepContext,
    watched: bool = False,
    whole_because: str | None = None,
) -> StepInputs:
    """Build the step's rows. `watched`: the step writes the rows unchanged in one read, so that sources may count
    malformed rows during the write. `whole_because`: why an incremental step must read all of its inputs.

    Raises BadRequest for a step that cannot be evaluated, NotFound or CommitConflict for a pin that is no longer valid,
    and Spark's errors.
    """
    return _InputReader(spark, step, context=context, watched=watched).inputs(whole_because)


def values_of(context: StepContext) -> dict[str, Any]:
    """Return the run's parameters in Spark's types."""
    return arguments(context.pipeline, context.parameters, run=context.run, at=context.at)


def table_texts(spark: SparkSession, context: StepContext) -> Callable[[Parts], str]:
    """Return a function from a table's name to the SQL text that reads it at its pin or on this run's branch."""

    def text(parts: Parts) -> str:
        table = actual_table(spark, parts, context=context)
        return pinned_reads.reads(spark, _pins([table], context))[table].text

    return text


def actual_table(spark: SparkSession, parts: Parts, *, context: StepContext) -> Parts:
    """Return the table for which a name in a step stands, in production or in the run's environment."""
    full = pinned_reads.full_name(spark, parts, catalog=context.pipeline.catalog, further=context.lance_catalogs)
    return context.pipeline.actual_table(full)


class _InputReader:
    """Builds the inputs of one step."""

    def __init__(self, spark: SparkSession, step: StepDeclaration, *, context: StepContext, watched: bool) -> None:
        self.spark = spark
        self.step = step
        self.context = context
        self.values = values_of(context)
        self._read_checkpoint: Mapping[str, str] | None = None
        self.opening = SourceOpener(
            spark, step, context=context, values=self.values, checkpoint=self._checkpoint, watched=watched
        )
        text = step.body.text if isinstance(step.body, Sql) else None
        self.query = QueryNames(relations=(), parameters=frozenset()) if text is None else query_names(spark, text)
        self.names = self._names()
        self.pins = _pins(self._tables(), context)
        self.definition = definition_of(
            spark, step, pipeline=context.pipeline, sources=self.names, query=self.query, values=self.values
        )

    def inputs(self, reason: str | None) -> StepInputs:
        """Return the rows of an environment's table in a promotion, if they would be the same; else compute them."""
        built_step = self.context.built.get(self.step.name)
        if built_step is None:
            return self._compute_inputs(reason)
        comparison = promotion_comparison(
            self.spark,
            built_step,
            step=self.step,
            context=self.context,
            pins=self.pins,
            sources=self.names,
            definition=self.definition,
        )
        difference = comparison.difference or unpinned_reason(self.spark, self.step, query=self.query)
        if difference is not None:
            return replace(self._compute_inputs(reason), computed_because=difference)
        return StepInputs(
            frame=comparison.frame(self.spark),
            pins={**self.pins, **comparison.pins},
            definition=self.definition,
            copied_from=built_step,
        )

    def _compute_inputs(self, reason: str | None) -> StepInputs:
        """Return all rows; for an incremental step only new rows, if they can be determined and without a `reason`."""
        if not self.step.incremental:
            reason = "a full run was requested" if self.context.full and self._reads_stream() else None
            sources = self.opening.open_sources(self.names, new=False)
            return self._build_inputs(pinned_reads.reads(self.spark, self.pins), sources, whole_because=reason)
        sources = ()
        full = self.context.full
        chosen_pins = choose(
            self.spark,
            self.step,
            pins=self.pins,
            definition=self.definition,
            checkpoint={} if full else self._checkpoint(),
            full=full,
        )
        reason = reason or chosen_pins.whole_because or unpinned_reason(self.spark, self.step, query=self.query)
        if reason is None:
            sources = self.opening.open_sources(self.names, new=True)
            reason = next((each.read.pin.whole_because for each in sources if each.read.pin.whole_because), None)
            if reason is None:
                inputs = self._build_inputs(chosen_pins.pinned_reads, sources, chosen=chosen_pins)
                reason = varying_reason(self.step, inputs.frame, values=self.values)
                if reason is None and inputs.nothing_new:
                    return inputs
                reason = reason or mode_reason(self.step)
                if reason is None:
                    new = self._new_rows(inputs.frame, sources, chosen=chosen_pins)
                    if new.whole_because is None:
                        return replace(inputs, frame=new.frame)
                    reason = new.whole_because
            for each in sources:
                each.release()
        whole = read_whole(self.spark, pins=self.pins, reason=reason)
        sources = self.opening.open_sources(self.names, new=False, again=sources)
        self._require_all(sources, reason=reason)
        return self._build_inputs(whole.pinned_reads, sources, whole_because=reason)

    def _checkpoint(self) -> Mapping[str, str]:
        """Return the checkpoint of the step's published table, which is read once."""
        if self._read_checkpoint is None:
            is_lance = self.step.table[0] in self.context.lance_catalogs
            self._read_checkpoint = published_checkpoint(self.spark, self.step.table, is_lance=is_lance)
        return self._read_checkpoint

    def _new_rows(self, frame: DataFrame, sources: tuple[OpenedSource, ...], *, chosen: ReadChoice) -> NewRows:
        names = frozenset(each.name for each in sources)
        aliases = frozenset(map(_source_alias, names))
        by_code = isinstance(self.step.body, PythonStep)
        return incremental_rows(frame, chosen, also=names, aliases=aliases, by_code=by_code)

    def _reads_stream(self) -> bool:
        streams = {each.name for each in self.context.pipeline.sources if isinstance(each.kind, Stream)}
        return not streams.isdisjoint(self.names)

    def _require_all(self, sources: tuple[OpenedSource, ...], *, reason: str) -> None:
        """Raise BadRequest if a full read in mode `append`, which replaces all rows, lacks what was read before."""
        for each in sources:
            if each.read.missing is not None and self.step.write.mode is WriteMode.APPEND and not self.context.full:
                raise BadRequest(
                    f"Step {self.step.name} must read all of its inputs ({reason}), and {each.read.missing}: their rows"
                    " would be lost. Put back what is gone, or run with --full, which makes the table from what is"
                    " there."
                )

    def _build_inputs(
        self,
        results: Mapping[Parts, pinned_reads.PinnedRead],
        sources: tuple[OpenedSource, ...],
        *,
        chosen: ReadChoice | None = None,
        whole_because: str | None = None,
    ) -> StepInputs:
        tables = {table: read.pin for table, read in results.items() if table in self.pins}
        nothing_new = chosen is not None and chosen.nothing_new and all(each.nothing_new for each in sources)
        return StepInputs(
            frame=self._frame(results, sources),
            pins={**tables, **{(each.name,): _with_reason(each.read.pin, whole_because) for each in sources}},
            definition=self.definition,
            whole_because=whole_because,
            checkpoint=self._read_checkpoint or {},
            nothing_new=nothing_new,
            newest_rows=self._newest_rows(results, sources, chosen=chosen),
            malformed=tuple(each.read.malformed for each in sources if each.read.malformed is not None),
            opened=sources,
        )

    def _newest_rows(
        self,
        results: Mapping[Parts, pinned_reads.PinnedRead],
        sources: tuple[OpenedSource, ...],
        *,
        chosen: ReadChoice | None,
    ) -> Callable[[], DataFrame] | None:
        """Return a function that reads the files one by one; None if the step's rows do not belong to single files."""
        keyed = self.step.write.mode in (WriteMode.MERGE, WriteMode.HISTORY)
        of_files = [each for each in sources if len(each.read.files) > 1]
        if not (self.step.incremental and keyed and len(of_files) == 1 and not isinstance(self.step.body, PythonStep)):
            return None
        source = of_files[0]
        if len(source.read.files) > EACH_MAX:
            return None

        def newest_rows() -> DataFrame:
            frames = []
            for rank, path in enumerate(source.read.files):
                self.opening.file_frame(source, path=path, new=chosen is not None)
                frame = self._frame(results, sources)
                if chosen is not None:
                    frame = self._new_rows(frame, sources, chosen=chosen).frame
                frames.append(frame.withColumn(_RANK, f.lit(rank)))
            return _rows_of_newest_files(self.step, reduce(lambda one, other: one.unionAll(other), frames))

        return newest_rows

    def _frame(self, results: Mapping[Parts, pinned_reads.PinnedRead], sources: tuple[OpenedSource, ...]) -> DataFrame:
        body = self.step.body
        if isinstance(body, Load):
            return self.spark.table(quote_column(sources[0].name))
        if isinstance(body, Sql):
            used = {name: value for name, value in self.values.items() if name in self.query.parameters}
            text = pinned_reads.with_reads(
                self.spark,
                body.text,
                pinned_reads=results,
                named=self.query.relations,
                catalog=self.context.pipeline.catalog,
                lance_catalogs=self.context.lance_catalogs,
                actual_table=self.context.pipeline.actual_table,
            )
            return self.spark.sql(text, args=used) if used else self.spark.sql(text)
        opened = {each.name: each.read.frame.alias(_source_alias(each.name)) for each in sources}
        frames: dict[str, object] = {
            name: (
                pinned_reads.frame_of(self.spark, results[self._full(argument)])
                if isinstance(argument, tuple)
                else opened[argument]
            )
            for name, argument in body.inputs.items()
        }
        return call_function(self.spark, body, step=self.step, frames=frames, values=self.values)

    def _mentioned_names(self) -> list[Parts]:
        """Return the names of tables and sources in the step's body, as written there."""
        body = self.step.body
        if isinstance(body, Sql):
            return [one.parts for one in self.query.relations if not one.travels]
        if isinstance(body, Load):
            return [(body.source,)]
        return [argument if isinstance(argument, tuple) else (argument,) for argument in body.inputs.values()]

    def _names(self) -> tuple[str, ...]:
        """Return the names of the sources in the step's body: names of one part, unlike names of tables."""
        return tuple(dict.fromkeys(parts[0] for parts in self._mentioned_names() if len(parts) == 1))

    def _tables(self) -> list[Parts]:
        return [self._full(parts) for parts in self._mentioned_names() if len(parts) > 1]

    def _full(self, parts: Parts) -> Parts:
        return actual_table(self.spark, parts, context=self.context)


def _rows_of_newest_files(step: StepDeclaration, frame: DataFrame) -> DataFrame:
    """Return the rows whose file is the newest, by the column `_RANK`, that has their key (and time of validity)."""
    keys = [f.col(quote_column(each)) for each in step.write.keys]
    moment = [] if step.write.as_of is None else [f.expr(step.write.as_of)]
    newest = f.max(_RANK).over(Window.partitionBy(*keys, *moment))
    return frame.withColumn(_NEWEST, newest).where(f.col(_RANK) == f.col(_NEWEST)).drop(_RANK, _NEWEST)


def _source_alias(name: str) -> str:
    """Return the alias by which a source is found in the plan of a Python step. A view would hide `_metadata`."""
    return f"limnos_source_{name}"


def _with_reason(pin: ReadPin, whole_because: str | None) -> ReadPin:
    return pin if whole_because is None else replace(pin, whole_because=whole_because)


def _pins(named: Iterable[Parts], context: StepContext) -> dict[Parts, ReadPin]:
    """Return the pins of the named tables.

    If one of them is a view, return all pins, because the view reads further tables.
    """
    pins = {table: pinned_reads.branch_pin(branch) for table, branch in context.done_branches.items()}
    all_pins = {**context.pins, **pins}
    results = {table: all_pins[table] for table in named if table in all_pins}
    return all_pins if any(pin.fingerprint is not None for pin in results.values()) else results


def call_function(
    spark: SparkSession,
    body: PythonStep,
    *,
    step: StepDeclaration,
    frames: Mapping[str, object],
    values: Mapping[str, object],
) -> DataFrame:
    """Call the step's function with its DataFrames, and with parameters and the session if it has such arguments.

    Raises BadRequest if it was not loaded or does not return a DataFrame.
    """
    function = body.callable
    if function is None:
        raise BadRequest(f"Step {step.name}: {body.function} was not loaded.")
    parameters = inspect.signature(function).parameters
    further = {
        name: value for name, value in {**values, "spark": spark}.items() if name in parameters and name not in frames
    }
    try:
        frame = function(**frames, **further)
    except LimnosError:
        raise
    except Exception as error:
        failure = failure_of(error)
        kind = type(error).__name__
        if not isinstance(error, StepError) and not failure.message.startswith(("[", kind)):
            failure.message = f"{kind}: {failure.message}"
        if (place := place_in_function(error, function)) is not None:
            failure.message = f"{place}\n{failure.message}"
        raise failure from error
    return require_frame(frame, step=step, body=body)


def require_frame(result: object, *, step: StepDeclaration, body: PythonStep) -> DataFrame:
    """Return the DataFrame of a step's function. Raises BadRequest if it returned anything else."""
    if not isinstance(result, DataFrame):
        raise BadRequest(f"Step {step.name}: {body.function} returned {_describe_value(result)}")
    return result


def _describe_value(value: object) -> str:
    """Return what a function returned in place of a DataFrame of Spark, and what it must return."""
    if value is None:
        return "nothing, and a step must return a Spark DataFrame: is a `return` missing?"
    module, name = type(value).__module__.partition(".")[0], type(value).__name__
    whole = name if module == "builtins" else f"{module}.{name}"
    return f"{whole}, and a step must return a Spark DataFrame, as of spark.createDataFrame(…)"
