# SPDX-License-Identifier: Apache-2.0
"""Preview of a run's changes to tables' columns, by analysis of the queries without running them.

`preview` returns for each step the statements that its table would need. Spark analyzes the queries over empty
DataFrames; later steps read a step's result in place of its table. It writes nothing. Python steps are called with
empty DataFrames, because only their results have columns.
"""

from __future__ import annotations

import datetime as dt
import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limnos.model.errors import BadRequest
from limnos.names import display, engine
from limnos.pipeline import declaration
from limnos.pipeline.declared_values import Parts, SourcePosition
from limnos.pipeline.engine.connection import lance_access_of
from limnos.pipeline.engine.inputs import require_frame
from limnos.pipeline.engine.relations import query_names, splice_names
from limnos.pipeline.engine.tables import preparation
from limnos.pipeline.problems import step_position
from limnos.pipeline.reads import table_of
from limnos.pipeline.source_declarations import Stream, TableSource
from limnos.spark.lance.server_access import SOURCE
from limnos.spark.session import register_lance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SAMPLES: Mapping[declaration.ParameterType, object] = {
    declaration.ParameterType.STRING: "",
    declaration.ParameterType.INT: 1,
    declaration.ParameterType.DOUBLE: 1.0,
    declaration.ParameterType.BOOLEAN: True,
    declaration.ParameterType.DATE: dt.date(2000, 1, 1),
    declaration.ParameterType.TIMESTAMP: dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
}
"""A value of each type for the analysis. In general the value does not affect the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPreview:
    """Changes of one step's table. If `refused` or `unknown` has a reason, there are no statements."""

    step: str
    statements: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    """Columns that the publishing commit would drop."""
    refused: str | None = None
    unknown: str | None = None
    at: SourcePosition | None = None
    """The position in the file of what is refused; None if it is not known."""

    @property
    def refusal(self) -> str | None:
        """The reason for a refusal of the step, after its position in the file; None without one."""
        return self.refused if self.refused is None or self.at is None else f"{self.at}: {self.refused}"


class _UnknownColumns(Exception):
    """Raised if the columns of a step can only be determined by a run."""


def preview(
    spark: SparkSession,
    pipeline: declaration.Pipeline,
    *,
    levels: Sequence[Sequence[declaration.StepDeclaration]],
    catalogs: frozenset[str],
    lance_catalogs: frozenset[str] = frozenset(),
) -> dict[str, StepPreview]:
    """Preview the changes of each step's table, by the step's name. Tables in `lance_catalogs` need no statements, and
    their columns are asked of the server.

    The steps of `pipeline` must have their Python functions imported. `levels` gives only the order; its steps may have
    function names instead.
    """
    work = _Previewer(spark, pipeline, catalogs=catalogs, lance_catalogs=lance_catalogs)
    bound = {step.table: step for step in pipeline.steps}
    try:
        return {
            step.name: work.preview(bound[step.table], is_lance=step.table[0] in lance_catalogs)
            for level in levels
            for step in level
        }
    finally:
        work.end()


def resolve_columns(
    spark: SparkSession,
    pipeline: declaration.Pipeline,
    *,
    levels: Sequence[Sequence[declaration.StepDeclaration]],
    catalogs: frozenset[str],
) -> dict[Parts, StructType]:
    """Return the columns of sources and of steps' tables that follow from the declaration, without data or a server.

    Sources have one part. Names whose columns are not known are left out. Python steps must be imported.
    """
    work = _Previewer(spark, pipeline, catalogs=catalogs)
    bound = {step.table: step for step in pipeline.steps}
    try:
        known_columns: dict[Parts, StructType | None] = {
            (source.name,): work.source_columns(source.name) for source in pipeline.sources
        }
        for level in levels:
            known_columns |= {step.table: work.step_columns(bound[step.table]) for step in level}
        return {name: columns for name, columns in known_columns.items() if columns is not None}
    finally:
        work.end()


class _Previewer:
    """Registers the DataFrames of steps and sources as temporary views with unique names, and analyzes the steps."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: declaration.Pipeline,
        *,
        catalogs: frozenset[str],
        lance_catalogs: frozenset[str] = frozenset(),
    ) -> None:
        self._spark = spark
        self._lance_catalogs = lance_catalogs
        self._pipeline = pipeline
        self._full: Callable[[Parts], Parts] = lambda parts: pipeline.actual_table(
            table_of(parts, catalog=pipeline.catalog, catalogs=catalogs)
        )
        parameter_samples = {one.name: _SAMPLES[one.type] for one in pipeline.parameters}
        self._values = {**parameter_samples, "run_id": "", "run_at": _SAMPLES[declaration.ParameterType.TIMESTAMP]}
        self._prefix = f"limnos_plan_{uuid.uuid4().hex[:12]}"
        self._views: dict[Parts, str] = {}
        self._why: dict[Parts, str] = {}

    def preview(self, step: declaration.StepDeclaration, *, is_lance: bool) -> StepPreview:
        try:
            frame = self._frame(step)
        except _UnknownColumns as error:
            self._why[step.table] = str(error)
            return StepPreview(step=step.name, unknown=str(error))
        except Exception as error:  # noqa: BLE001  (an error of Spark or of a step's function)
            self._why[step.table] = f"step {step.name} is refused"
            return _refusal(step, _first_line(error), at=step_position(step, str(error)))
        if is_lance:  # its columns are those of the version that replaces it, or are compared by the run
            self._keep(step.table, _with_embedding_columns(frame, step))
            return _refusal(step, _refused_partition(step, frame), at=step.at)
        try:
            needed = preparation(self._spark, step, frame=frame)
        except Exception as error:  # noqa: BLE001  (refused by our rules, or by Spark)
            self._keep(step.table, frame)
            return _refusal(step, _first_line(error), at=step.at)
        self._keep(step.table, frame)
        return StepPreview(step=step.name, statements=needed.statements, drops=needed.columns_to_drop)

    def source_columns(self, name: str) -> StructType | None:
        """Return the columns of a source; None if they are not declared or not valid."""
        try:
            return self._spark.table(self._text((name,))).schema
        except Exception:  # noqa: BLE001  (a table of a catalog, or an invalid schema, which a check reports)
            return None

    def step_columns(self, step: declaration.StepDeclaration) -> StructType | None:
        """Return the columns of a step's table; None if they are not known. Later steps read them."""
        try:
            frame = _with_embedding_columns(_with_history_columns(self._frame(step), step), step)
        except Exception as error:  # noqa: BLE001  (an error of Spark or of a step's function)
            self._why[step.table] = f"{step.name}: {_first_line(error)}"
            return None
        self._keep(step.table, frame)
        return frame.schema

    def end(self) -> None:
        for view in self._views.values():
            self._spark.catalog.dropTempView(view)

    def _keep(self, name: Parts, frame: DataFrame) -> str:
        view = f"{self._prefix}_{len(self._views)}"
        frame.limit(0).createOrReplaceTempView(view)
        self._views[name] = view
        return view

    def _frame(self, step: declaration.StepDeclaration) -> DataFrame:
        body = step.body
        if isinstance(body, declaration.Load):
            return self._spark.table(self._text((body.source,)))
        if isinstance(body, declaration.PythonStep):
            return self._of_function(step, body)
        return self._of_query(body)

    def _of_query(self, body: declaration.Sql) -> DataFrame:
        query = query_names(self._spark, body.text)
        texts = {one.parts: self._text(one.parts) for one in query.relations if not one.travels}
        args = {name: value for name, value in self._values.items() if name in query.parameters}
        renamed = frozenset(parts for parts, text in texts.items() if text in self._views.values())
        spliced = splice_names(body.text, query.relations, texts=texts, renamed=renamed)
        return self._spark.sql(spliced, args=args or None)

    def _of_function(self, step: declaration.StepDeclaration, body: declaration.PythonStep) -> DataFrame:
        if body.callable is None:
            raise _UnknownColumns(f"{body.function} was not imported")
        frames: dict[str, Any] = {
            name: self._spark.table(self._text(argument if isinstance(argument, tuple) else (argument,))).limit(0)
            for name, argument in body.inputs.items()
        }
        parameters = inspect.signature(body.callable).parameters
        frames |= {name: value for name, value in self._values.items() if name in parameters and name not in frames}
        if "spark" in parameters and "spark" not in frames:
            frames["spark"] = self._spark
        return require_frame(body.callable(**frames), step=step, body=body)

    def _text(self, parts: Parts) -> str:
        """Return the text that replaces a name in a query: a view of an empty DataFrame, or the table itself.

        Raises _UnknownColumns.
        """
        name = parts if len(parts) == 1 else self._full(parts)
        if name in self._why:
            raise _UnknownColumns(self._why[name])
        if name in self._views:
            return self._views[name]
        if any(loop.may_make(name) for loop in self._pipeline.loops):
            raise _UnknownColumns(f"{'.'.join(name[1:])} may be made by a loop over a query")
        if len(name) > 1:
            return self._keep(name, self._lance(name)) if name[0] in self._lance_catalogs else engine.render_spark(name)
        return self._of_source(name[0])

    def _lance(self, table: Parts) -> DataFrame:
        access = lance_access_of(self._spark)
        register_lance(self._spark, access, lineage=False)
        return self._spark.read.format(SOURCE).load(display.render(table))

    def _of_source(self, name: str) -> str:
        source = next(one for one in self._pipeline.sources if one.name == name)
        kind = source.kind
        if isinstance(kind, TableSource):
            return self._text(kind.table)
        if isinstance(kind, Stream) and kind.table is not None:
            return self._text(kind.table)
        if source.schema is None:
            self._why[(name,)] = f"source {display.render((name,))} has no 'schema'"
            raise _UnknownColumns(self._why[(name,)])
        return self._keep((name,), self._spark.createDataFrame([], source.schema))


def _refusal(step: declaration.StepDeclaration, reason: str | None, *, at: SourcePosition | None) -> StepPreview:
    return StepPreview(step=step.name, refused=reason, at=None if reason is None else at)


def _refused_partition(step: declaration.StepDeclaration, frame: DataFrame) -> str | None:
    """Return why the partitions of a Lance table cannot be replaced; None if they can, or for another write mode."""
    if step.write.mode is not declaration.WriteMode.PARTITIONS:
        return None
    from limnos.pipeline.engine.lance.partition_terms import require_partition  # noqa: PLC0415 - loads Lance's library

    try:
        require_partition(step, frame.schema)
    except BadRequest as error:
        return error.message
    return None


def _with_history_columns(frame: DataFrame, step: declaration.StepDeclaration) -> DataFrame:
    """Return the frame with the columns that a history adds."""
    write = step.write
    if write.mode is not declaration.WriteMode.HISTORY:
        return frame
    quoted = {name: f"`{name.replace('`', '``')}`" for name in (write.valid_from, write.valid_to, write.current)}
    return frame.selectExpr(
        "*",
        f"CAST(NULL AS TIMESTAMP) AS {quoted[write.valid_from]}",
        f"CAST(NULL AS TIMESTAMP) AS {quoted[write.valid_to]}",
        f"CAST(NULL AS BOOLEAN) AS {quoted[write.current]}",
    )


def _with_embedding_columns(frame: DataFrame, step: declaration.StepDeclaration) -> DataFrame:
    """Return the frame with the columns that an embedding adds."""
    if step.embed is None:
        return frame
    into, hash_column = (engine.render_spark((name,)) for name in step.embed.added)
    return frame.selectExpr("*", f"CAST(NULL AS ARRAY<FLOAT>) AS {into}", f"CAST(NULL AS STRING) AS {hash_column}")


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
