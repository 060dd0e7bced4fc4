# SPDX-License-Identifier: Apache-2.0
"""Differences between the store and storage as a source: executors check the files of tables and views.

Tables are listed at one revision, then checked in tasks, each with some tables. Files that two tables have, and
locations inside others, are found by joins. Must not know how an object is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from limnos.pipeline.engine.connection import access_of
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage, staged_rows
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import StorageSource
from limnos.spark.session import system_home
from limnos.spark.system.source import SOURCE
from limnos.spark.verification.findings import FILE, FINDING, OBJECT, WARNING
from limnos.spark.verification.objects import COLUMNS, VerificationTask

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLES_PER_TASK: Final = 500
"""The number of tables of a task: a lost executor repeats as many."""
TASKS_MAX: Final = 10_000
_ROW_SCHEMA: Final = (
    "row STRING, id BIGINT, path STRING, kind STRING, finding STRING, file STRING, expected STRING, actual STRING,"
    " severity STRING, files BIGINT"
)
_LEVELS_MAX: Final = 100
"""The maximum number of directories of a location that are compared with other locations."""
_WHOLE_BECAUSE: Final = "the files of all tables are checked"


def storage_findings_frame(request: SourceReadRequest, kind: StorageSource) -> SourceRead:
    """Check all tables and views that the run's user may see. Raises SourceFailed if the server is not reachable."""
    footers = False if kind.footers is None else request.parameters.get(kind.footers)
    if not isinstance(footers, bool):
        raise request.failed(f"the parameter {kind.footers} must be true or false.")
    try:
        task = VerificationTask(home=system_home(request.spark) or access_of(request.spark), footers=footers)
        columns = ",".join((*COLUMNS, "location"))
        listed = request.spark.read.format(SOURCE).option("table", "tables").option("columns", columns).load()
        with staged_rows(listed) as tables:
            parallelism = request.spark.sparkContext.defaultParallelism
            tasks = min(TASKS_MAX, max(parallelism, tables.count() // TABLES_PER_TASK))
            checked_tables = tables.select(*COLUMNS).repartitionByRange(tasks, "id").mapInArrow(task, _ROW_SCHEMA)
            with staged_rows(checked_tables) as rows:
                own_rows = rows.where(f.col("row").isin(OBJECT, FINDING)).drop("row")
                staged = stage(own_rows.unionByName(shared_files(rows)).unionByName(nested_tables(tables)))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the tables could not be checked: {first_line(error)}") from error
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged, pin=pin, release=lambda: release(staged))


def shared_files(rows: DataFrame) -> DataFrame:
    """Return findings of files that are current in two tables or more, one for each table."""
    files = rows.where(f.col("row") == FILE).select("id", "path", "kind", "file")
    shared = _with_other_table(files.join(_ends(files, "file").where("first < last"), "file").distinct(), files)
    return _findings(shared, finding="file of another table", file=f.col("file"), actual=f.col("other"))


def _ends(rows: DataFrame, key: str) -> DataFrame:
    """Return the lowest and the highest id with each key. Numbers are aggregated without a sort, unlike texts."""
    return rows.groupBy(key).agg(f.min("id").alias("first"), f.max("id").alias("last"))


def _with_other_table(rows: DataFrame, tables: DataFrame) -> DataFrame:
    """Add the path of another table to rows with the ends of their key: of the first one, or of the last one for it."""
    other_id = f.when(f.col("id") == f.col("first"), f.col("last")).otherwise(f.col("first"))
    rows = rows.withColumn("other_id", other_id)
    paths = tables.join(rows.select(f.col("other_id").alias("id")).distinct(), "id", "left_semi")
    names = paths.select(f.col("id").alias("other_id"), f.col("path").alias("other")).distinct()
    return rows.join(names, "other_id")


def nested_tables(tables: DataFrame) -> DataFrame:
    """Return findings of tables whose location is that of another table, or inside it, at most one for each level.

    Many tables lie in the same directories, so the directories are compared, and not each table's.
    """
    located = tables.where("kind = 'table' AND location IS NOT NULL").select(
        "id", "path", "kind", f.regexp_replace("location", "^file:/+|/+$", "").alias("place"), "location"
    )
    place = f.regexp_replace("place", "^(s3a|s3n)://", "s3://")
    place = f.array_join(f.slice(f.split(place, "/+"), 1, _LEVELS_MAX), "/")
    located = located.withColumn("place", place)
    located = located.withColumn("directory", f.regexp_replace("place", "/?[^/]*$", ""))
    ends = _ends(located, "place")
    steps = f.split("directory", "/")
    above = f.transform(
        f.sequence(f.lit(1), f.size(steps)), lambda count: f.array_join(f.slice(steps, f.lit(1), count), "/")
    )
    directories = located.where("directory <> ''").select("directory").distinct()
    inside = directories.withColumn("place", f.explode(above)).join(ends, "place").drop("place")
    same = located.join(ends.where("first < last"), "place")
    nested = located.join(inside, "directory").unionByName(same)
    nested = _with_other_table(nested.drop("place", "directory"), located)
    actual = f.concat(f.lit("inside the location of "), f.col("other"))
    return _findings(nested, finding="location inside another", file=f.col("location"), actual=actual)


def _findings(frame: DataFrame, *, finding: str, file: Column, actual: Column) -> DataFrame:
    return frame.select(
        "id",
        "path",
        "kind",
        f.lit(finding).alias("finding"),
        file.alias("file"),
        f.lit(None).cast("string").alias("expected"),
        actual.alias("actual"),
        f.lit(WARNING).alias("severity"),
        f.lit(None).cast("bigint").alias("files"),
    )
