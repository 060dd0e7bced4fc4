# SPDX-License-Identifier: Apache-2.0
"""The tables in a directory or a metastore as a source: executors list it level by level, and read metadata that is
new.

Rows of the step's published table are carried over for directories that have not changed. A table whose directory is
gone keeps a row with the state `vanished`. Must not know how a directory is listed or metadata is read.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as f

from limnos.model.errors import LimnosError, UnsupportedOperation
from limnos.pipeline.engine.metadata import metadata_of
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage, staged_rows
from limnos.pipeline.outcomes import ReadPin
from limnos.spark.harvest.listing import LEVELS_MAX, HarvestRoot, ListingTask, visit_table
from limnos.spark.harvest.metadata import INPUT, MetadataTask
from limnos.spark.harvest.metastores import is_metastore, lister_of
from limnos.spark.harvest.stores import root_location

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from limnos.pipeline.source_declarations import HarvestSource

DIRECTORIES_PER_TASK: Final = 200
TASKS_MAX: Final = 10_000
_LISTED: Final = (
    "levels ARRAY<STRING>, is_directory BOOLEAN, directory STRING, format STRING, namespace ARRAY<STRING>, name STRING,"
    " metadata_location STRING, version BIGINT, modified_at TIMESTAMP, size BIGINT, listed_bytes BIGINT, problem STRING"
)
_READ: Final = (
    "directory STRING, format_version INT, uuid STRING, location STRING, snapshot_id BIGINT, columns STRING,"
    " row_count BIGINT, byte_count BIGINT, read_problem STRING"
)
_OF_METADATA: Final = (
    *("format_version", "uuid", "location", "snapshot_id", "columns", "row_count", "byte_count"),
    "read_at",
)
"""The columns that are carried over from the published row of a directory that has not changed."""
_COMPARED: Final = ("format", "metadata_location", "version", "modified_at", "size")
"""The columns that are equal if a directory has not changed."""
_WHOLE_BECAUSE: Final = "a harvest has a row for each table, and reads only what has changed"


def harvest_frame(request: SourceReadRequest, kind: HarvestSource) -> SourceRead:
    """List a directory or metastore, and read the tables that are new or have changed.

    Raises SourceFailed if it cannot be listed.
    """
    try:
        is_catalog = is_metastore(kind.root)
        location = kind.root.rstrip("/") if is_catalog else root_location(_path(request, kind.root))
        root = HarvestRoot(location=location, formats=kind.formats)
    except UnsupportedOperation as error:
        raise request.failed(f"{kind.root}: {error.message}.") from error
    try:
        with ExitStack() as stack:
            listed = stage(_listed_tables(request, root, stack=stack))
            stack.callback(release, listed)
            rows = _compared_rows(request, listed, root=root, stack=stack)
            staged_rows_frame = stage(_with_conflicts(rows).select(*kind.columns))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the tables in {kind.root} could not be read: {first_line(error)}") from error
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged_rows_frame, pin=pin, release=lambda: release(staged_rows_frame))


def _path(request: SourceReadRequest, path: str) -> str:
    """Return the path of a root; a relative one is below the pipeline's directory."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) or path.startswith("/") or request.directory is None:
        return path
    return f"{request.directory.absolute()}/{path}"


def _listed_tables(request: SourceReadRequest, root: HarvestRoot, *, stack: ExitStack) -> DataFrame:
    """Return the tables and problems below the root. Each round of tasks lists the directories of one level."""
    try:
        with closing(lister_of(root)) as lister:
            visit = lister.visit(())
    except LimnosError as error:
        raise request.failed(f"{root.location}: {error.message}.") from error
    if any(not each.levels and each.format is None for each in visit.candidates):
        raise request.failed(f"{root.location}: {visit.candidates[0].problem}.")
    rows = request.spark.createDataFrame(visit_table(root, visit), _LISTED)
    tables: list[DataFrame] = []
    for _ in range(LEVELS_MAX + 2):
        tables.append(rows.where("NOT is_directory").drop("levels", "is_directory"))
        pending = rows.where("is_directory").select("levels")
        count = pending.count()
        if not count:
            break
        rows = stage(pending.repartition(_tasks(request, count)).mapInArrow(ListingTask(root, lister_of), _LISTED))
        stack.callback(release, rows)
    return reduce(lambda one, other: one.unionByName(other), tables)


def _tasks(request: SourceReadRequest, count: int) -> int:
    parallelism = request.spark.sparkContext.defaultParallelism
    return max(1, min(TASKS_MAX, count, max(parallelism, count // DIRECTORIES_PER_TASK)))


def _compared_rows(request: SourceReadRequest, listed: DataFrame, *, root: HarvestRoot, stack: ExitStack) -> DataFrame:
    """Return a row for each table: carried over, read again, or gone."""
    run_at = _run_at(request)
    known_tables = stack.enter_context(staged_rows(_known_tables(request, root)))
    former = known_tables.select("directory", f.col("state").alias("former_state"))
    is_same = [listed[name].eqNullSafe(known_tables[name]) for name in _COMPARED]
    is_carried = (
        reduce(lambda one, other: one & other, is_same) & listed.problem.isNull() & known_tables.problem.isNull()
    )
    is_carried = is_carried & (known_tables.state != "vanished") & known_tables.read_at.isNotNull()
    carried = listed.join(known_tables, (listed.directory == known_tables.directory) & is_carried).select(
        *(listed[name] for name in listed.columns),
        *(known_tables[name] for name in _OF_METADATA),
        f.lit("unchanged").alias("state"),
    )
    rest = listed.join(carried.select("directory"), "directory", "left_anti")
    to_read = rest.where("problem IS NULL")
    with_problem = rest.where("problem IS NOT NULL").withColumn("state", f.lit("unreadable"))
    tasks = _tasks(request, to_read.count())
    read = stage(to_read.select(*INPUT).repartition(tasks).mapInArrow(MetadataTask(), _READ))
    stack.callback(release, read)
    is_new = f.col("former_state").isNull() | (f.col("former_state") == "vanished")
    state = f.when(f.col("read_problem").isNotNull(), "unreadable").when(is_new, "new").otherwise("changed")
    fresh = (
        to_read.drop("problem")
        .join(read, "directory")
        .join(former, "directory", "left")
        .withColumn("byte_count", f.coalesce("byte_count", "listed_bytes"))
        .withColumn("state", state)
        .withColumnRenamed("read_problem", "problem")
        .withColumn("read_at", run_at)
        .drop("former_state")
    )
    present = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True), (carried, fresh, with_problem)
    ).drop("listed_bytes")
    present = present.withColumn("seen_at", run_at).withColumn("root", f.lit(root.location))
    return present.unionByName(_absent_tables(known_tables, listed), allowMissingColumns=True)


def _absent_tables(known: DataFrame, listed: DataFrame) -> DataFrame:
    """Return the published tables that were not listed: vanished, or below a directory that could not be listed."""
    absent_rows = known.join(listed, "directory", "left_anti").drop("conflict", "case_twin")
    closed = listed.where("format IS NULL").select(f.col("directory").alias("above"))
    levels = f.split("directory", "/")
    counts = f.sequence(f.lit(1), f.size(levels))
    above = f.transform(counts, lambda count: f.array_join(f.slice(levels, f.lit(1), count), "/"))
    below = absent_rows.select("directory", f.explode(above).alias("above")).join(closed, "above").select("directory")
    state = f.when(f.col("state") == "vanished", "vanished").otherwise("unlisted")
    unlisted = absent_rows.join(below, "directory", "left_semi").withColumn("state", state)
    removed_rows = absent_rows.join(below, "directory", "left_anti").withColumn("state", f.lit("vanished"))
    return unlisted.unionByName(removed_rows.withColumn("problem", f.lit(None).cast("string")))


def _known_tables(request: SourceReadRequest, root: HarvestRoot) -> DataFrame:
    """Return the tables of the root in the step's published table; none if it has other columns. Problems of
    directories that are no tables are found anew.
    """
    kind = request.source.schema or ""
    empty = request.spark.createDataFrame([], kind)
    metadata = None if request.published is None else metadata_of(request.spark, request.published)
    head = None if metadata is None else metadata.head()
    if request.published is None or head is None:
        return empty
    table = request.spark.sql(f"SELECT * FROM {quote_identifier(request.published)} VERSION AS OF {head}")
    if not set(empty.columns) <= set(table.columns):
        return empty
    known = table.select(*(f.col(field.name).cast(field.dataType) for field in empty.schema))
    return known.where((f.col("root") == root.location) & f.col("format").isin(*root.formats))


def _with_conflicts(rows: DataFrame) -> DataFrame:
    """Add why a table cannot have its name, and another table whose name differs by case alone."""
    is_named = "problem IS NULL AND format IS NOT NULL AND state <> 'vanished'"
    named_rows = rows.where(is_named)
    first = f.min("directory").over(Window.partitionBy("namespace", "name"))
    path = f.concat(f.col("namespace"), f.array("name"))
    folded = Window.partitionBy(f.transform(path, f.lower))
    low, high = f.min(path).over(folded), f.max(path).over(folded)
    twin = f.when(low == high, None).when(path == low, high).otherwise(low)
    named_rows = named_rows.withColumn(
        "conflict", f.when(f.col("directory") != first, f.concat(f.lit("has the name of the table at "), first))
    ).withColumn("case_twin", f.array_join(twin, "."))
    return named_rows.unionByName(rows.where(f"NOT ({is_named})"), allowMissingColumns=True)


def _run_at(request: SourceReadRequest) -> Column:
    """Return the run's time as a column."""
    moment = datetime.fromisoformat(str(request.parameters["run_at"]))
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return f.timestamp_micros(f.lit(int(utc.timestamp() * 1_000_000)))
