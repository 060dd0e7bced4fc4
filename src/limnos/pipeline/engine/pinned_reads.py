# SPDX-License-Identifier: Apache-2.0
"""Pinned reads: each table in its state at the start of the run, or on this run's branch.

Pins tables and views, and replaces their names in a query. Must not know increments, or sources that are not tables. A
view is read by its definition, and its tables are pinned as if the query had named them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from limnos.formats.iceberg.view_fingerprints import view_fingerprint
from limnos.model.errors import CommitConflict, NotFound, UnsupportedOperation
from limnos.names import display, engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.changes import fitted_columns, quote_column
from limnos.pipeline.engine.metadata import TableMetadata, TableSchema, metadata_of
from limnos.pipeline.engine.relations import NamedRelation, relations, splice_names
from limnos.pipeline.engine.views import ViewDefinition, view_of
from limnos.pipeline.outcomes import LanceState, ReadPin, StepBranch
from limnos.pipeline.problems import AbsentTable

_DEPTH_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A read of a table at a pinned snapshot: the text that replaces its name in a query."""

    pin: ReadPin
    text: str
    is_stand_in: bool = False
    """Whether the text is the name of a temporary view of the session, not the table's name."""


def pin_tables(spark: SparkSession, tables: Iterable[Parts]) -> dict[Parts, ReadPin]:
    """Pin each table at the head of its `main`, and the tables below each view. Call it once, when a run begins.

    Raises NotFound if a table does not exist or is not visible, and UnsupportedOperation if it is not an Iceberg table,
    or is a view that cannot be pinned.
    """
    pins: dict[Parts, ReadPin] = {}
    for table in tables:
        _pin(spark, table, pins=pins, depth=0)
    return pins


def branch_pin(branch: StepBranch) -> ReadPin:
    """Return the pin of a table on the branch of an earlier step of this run, or at the version that it has staged."""
    lance = None
    if branch.staged is not None:
        lance = LanceState(staged=branch.staged[-1] if branch.staged else None)
    return ReadPin(
        name=".".join(branch.table), table=branch.table, snapshot=branch.head, branch=branch.name, lance=lance
    )


def reads(
    spark: SparkSession, pins: Mapping[Parts, ReadPin], *, overrides: Mapping[Parts, PinnedRead] | None = None
) -> dict[Parts, PinnedRead]:
    """Return the session's reads of all pinned tables. Tables in `overrides` have the reads given there, also in views.

    Raises NotFound and CommitConflict if a pin is no longer valid.
    """
    results = dict(overrides or {})
    for table in pins:
        _read(spark, table, pins=pins, pinned_reads=results)
    return results


def with_reads(
    spark: SparkSession,
    sql: str,
    *,
    pinned_reads: Mapping[Parts, PinnedRead],
    named: Iterable[NamedRelation],
    catalog: str,
    lance_catalogs: frozenset[str] = frozenset(),
    actual_table: Callable[[Parts], Parts] = lambda table: table,
) -> str:
    """Replace the tables in a query by their reads, and those with their own AS OF by their full names.

    `catalog` is the default catalog of names, and `actual_table` returns the table for which a full name stands.

    Raises UnsupportedOperation for a Lance table with its own AS OF.
    """
    named = [each for each in named if len(each.parts) > 1]
    full_names = {each.parts: full_name(spark, each.parts, catalog=catalog, further=lance_catalogs) for each in named}
    for each in named:
        if each.travels and full_names[each.parts][0] in lance_catalogs:
            raise UnsupportedOperation(
                f"{display.render(full_names[each.parts])} is a Lance table, which steps read at its newest version:"
                " leave out AS OF"
            )
    pins_by_parts = {parts: pinned_reads.get(actual_table(full)) for parts, full in full_names.items()}
    past = {parts: engine.render_spark(full) for parts, full in full_names.items()}
    texts = {parts: read.text for parts, read in pins_by_parts.items() if read is not None}
    renamed = frozenset(parts for parts, read in pins_by_parts.items() if read is not None and read.is_stand_in)
    return splice_names(sql, named, texts=texts, renamed=renamed, past=past)


def frame_of(spark: SparkSession, read: PinnedRead) -> DataFrame:
    """Return a pinned read as a DataFrame, for Python steps."""
    return spark.sql(f"SELECT * FROM {read.text}")


def stand_in(frame: DataFrame, *, pin: ReadPin) -> PinnedRead:
    """Register `frame` as a temporary view that replaces the pin's table. The view lasts as long as the session."""
    name = f"limnos_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return PinnedRead(pin=pin, text=name, is_stand_in=True)


def full_name(spark: SparkSession, parts: Parts, *, catalog: str, further: frozenset[str] = frozenset()) -> Parts:
    """Return a table's full name. Its catalog is the first part if the session has a catalog of that name, or it is one
    of the catalogs `further`, which the session lacks; else `catalog`.
    """
    has_catalog = (
        parts[0] == catalog or parts[0] in further or spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is not None
    )
    return parts if has_catalog else (catalog, *parts)


def _pin(spark: SparkSession, table: Parts, *, pins: dict[Parts, ReadPin], depth: int) -> None:
    if table in pins:
        return
    name = ".".join(table)
    metadata = _metadata(spark, table)
    if metadata is not None:
        pins[table] = ReadPin(name=name, table=table, snapshot=metadata.head())
        return
    view = view_of(spark, table)
    if view is None:
        raise AbsentTable(table)
    if depth >= _DEPTH_MAX:
        raise UnsupportedOperation(f"{name}: views of views more than {_DEPTH_MAX} deep can't be pinned.")
    pins[table] = ReadPin(name=name, table=table, fingerprint=_fingerprint(view))
    for below in _tables_of(spark, view):
        _pin(spark, below, pins=pins, depth=depth + 1)


def _metadata(spark: SparkSession, table: Parts) -> TableMetadata | None:
    try:
        return metadata_of(spark, table)
    except AnalysisException:
        raise
    except Exception as error:
        if "is not an Iceberg table" not in str(error):
            raise
        raise UnsupportedOperation(
            f"{display.render(table)} is not an Iceberg table, and so has no snapshots to pin: declare a source that"
            " reads it."
        ) from error


def _fingerprint(view: ViewDefinition) -> str:
    return view_fingerprint(view.sql, view.columns)


def _tables_of(spark: SparkSession, view: ViewDefinition) -> dict[Parts, Parts]:
    """Return the tables that a view reads: full names, mapped to the names in its text."""
    return {
        _within(spark, view, parts=each.parts): each.parts for each in relations(spark, view.sql) if not each.travels
    }


def _within(spark: SparkSession, view: ViewDefinition, *, parts: Parts) -> Parts:
    if view.catalog is not None:
        if len(parts) == 1:
            return (view.catalog, *view.namespace, *parts)
        return full_name(spark, parts, catalog=view.catalog)
    if len(parts) > 2 and full_name(spark, parts, catalog="") == parts:
        return parts
    raise UnsupportedOperation(
        f"Over Spark Connect a view's tables are found by their full names only: write {'.'.join(parts)} with its"
        " catalog in the view, or name the tables in the step."
    )


def _read(
    spark: SparkSession, table: Parts, *, pins: Mapping[Parts, ReadPin], pinned_reads: dict[Parts, PinnedRead]
) -> None:
    if table in pinned_reads:
        return
    pin = pins.get(table)
    if pin is None:
        raise NotFound(
            f"{display.render(table)} was not pinned when the run began: run the pipeline again.", kind="table"
        )
    if pin.lance is not None:
        from limnos.pipeline.engine.lance.reading import lance_read  # noqa: PLC0415 - loads Lance's library

        frame, pin = lance_read(spark, pin)
        pinned_reads[table] = stand_in(frame, pin=pin)
    elif pin.fingerprint is not None:
        pinned_reads[table] = _read_view(spark, pin, pins=pins, pinned_reads=pinned_reads)
    else:
        pinned_reads[table] = _read_table(spark, pin, table=table)


def _read_table(spark: SparkSession, pin: ReadPin, *, table: Parts) -> PinnedRead:
    name = engine.render_spark(table)
    metadata = metadata_of(spark, table)
    if metadata is None:
        raise NotFound(f"{display.render(table)} was dropped or renamed since the run began.", kind="table")
    if pin.snapshot is None:
        return stand_in(spark.table(name).where(f.lit(False)), pin=pin)
    snapshot = metadata.snapshot(pin.snapshot)
    if snapshot is None:
        raise NotFound(
            f"Snapshot {pin.snapshot} of {display.render(table)}, which the run reads, has expired: run the pipeline"
            " again.",
            kind="snapshot",
        )
    text = f"{name} VERSION AS OF {pin.snapshot}"
    if snapshot.schema_id in {None, metadata.current_schema_id}:
        return PinnedRead(pin=pin, text=text)
    then = next((each for each in metadata.schemas if each.schema_id == snapshot.schema_id), metadata.schema)
    return stand_in(
        _with_current_columns(spark, spark.sql(f"SELECT * FROM {text}"), name=name, then=then, now=metadata.schema),
        pin=pin,
    )


def _with_current_columns(
    spark: SparkSession, frame: DataFrame, *, name: str, then: TableSchema, now: TableSchema
) -> DataFrame:
    """Return a snapshot's rows with the table's current columns. Iceberg itself returns the columns of the snapshot's
    schema.
    """
    former_names = {each.id: each.name for each in then.fields}
    columns = [
        f.col(quote_column(former_names[each.id])).alias(each.name) for each in now.fields if each.id in former_names
    ]
    schema = spark.table(name).schema
    renamed = frame.select(*columns)
    return renamed.select(*fitted_columns(renamed, schema))


def _read_view(
    spark: SparkSession, pin: ReadPin, *, pins: Mapping[Parts, ReadPin], pinned_reads: dict[Parts, PinnedRead]
) -> PinnedRead:
    table = pin.table or ()
    view = view_of(spark, table)
    if view is None or _fingerprint(view) != pin.fingerprint:
        raise CommitConflict(f"View {pin.name} was changed or dropped since the run began: run the pipeline again.")
    named_relations = relations(spark, view.sql)
    below = _tables_of(spark, view)
    for each in below:
        _read(spark, each, pins=pins, pinned_reads=pinned_reads)
    texts = {parts: pinned_reads[full].text for full, parts in below.items()}
    renamed = frozenset(parts for full, parts in below.items() if pinned_reads[full].is_stand_in)
    frame = spark.sql(splice_names(view.sql, named_relations, texts=texts, renamed=renamed))
    if view.selected_columns:
        frame = frame.select(*[f.col(quote_column(each)) for each in view.selected_columns])
    return stand_in(frame.toDF(*view.columns), pin=pin)
