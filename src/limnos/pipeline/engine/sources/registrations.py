# SPDX-License-Identifier: Apache-2.0
"""The outcomes of registering harvested tables as a source: executors send bulk jobs to the server.

Reading it has effects, so the rows are staged, and a step reads it once. Runs register alone: checks, plans, previews
and tests do not read sources, and in an environment the outcome of a table that would be sent is `planned`. Must not
know items of bulk jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from limnos.pipeline.engine.connection import access_of
from limnos.pipeline.engine.metadata import metadata_of
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import HarvestSource
from limnos.spark.harvest.registering import INPUT, RegistrationTask
from limnos.spark.session import system_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.source_declarations import RegistrationSource

TABLES_PER_TASK: Final = 2_000
TASKS_MAX: Final = 8
"""The number of tasks that send items at once; the server shares its time among all callers."""
_FORMER: Final = ("path", "outcome", "metadata_location")
_WHOLE_BECAUSE: Final = "each table has an outcome in each run"


def registration_frame(request: SourceReadRequest, kind: RegistrationSource) -> SourceRead:
    """Register the tables that are new or have changed. Raises SourceFailed if the table is not one of harvested
    tables, or the server is not reachable.
    """
    pin = request.pinned or ReadPin(name=request.source.name, table=kind.table)
    try:
        tables = _rows(request, pin.table or kind.table, snapshot=pin.snapshot)
        missing_columns = [name for name in HarvestSource(root="").columns if name not in tables.columns]
        if missing_columns:
            raise request.failed(f"{'.'.join(kind.table)} has no column {missing_columns[0]}: load it from a harvest.")
        task = RegistrationTask(
            home=system_home(request.spark) or access_of(request.spark),
            into=kind.into,
            formats=kind.formats,
            run=str(request.parameters["run_id"]),
            plans=request.plans,
        )
        joined = tables.where("format IS NOT NULL").join(_former_outcomes(request), "directory", "left")
        # The same rows make the same tasks and jobs in each attempt, so what an attempt has sent is not done twice.
        count = min(TASKS_MAX, 1 + tables.count() // TABLES_PER_TASK)
        ordered = joined.select(*INPUT).repartition(count, "directory").sortWithinPartitions("directory")
        staged_rows = stage(ordered.mapInArrow(task, kind.schema))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the tables could not be registered: {first_line(error)}") from error
    pin = replace(pin, name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged_rows, pin=pin, release=lambda: release(staged_rows))


def _former_outcomes(request: SourceReadRequest) -> DataFrame:
    """Return the outcomes in the step's published table, by directory; none if it has other columns."""
    names = ("directory", *_FORMER)
    empty = request.spark.createDataFrame([], ", ".join(f"{name} STRING" for name in names))
    metadata = None if request.published is None else metadata_of(request.spark, request.published)
    head = None if metadata is None else metadata.head()
    rows = empty
    if request.published is not None and head is not None:
        published = _rows(request, request.published, snapshot=head)
        rows = published if set(names) <= set(published.columns) else empty
    former = [f.first(name).alias(_former(name)) for name in _FORMER]
    return rows.select(*(f.col(name).cast("string") for name in names)).groupBy("directory").agg(*former)


def _former(name: str) -> str:
    return {"metadata_location": "former_location"}.get(name, f"former_{name}")


def _rows(request: SourceReadRequest, table: Parts, *, snapshot: int | None) -> DataFrame:
    at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
    return request.spark.sql(f"SELECT * FROM {quote_identifier(table)}{at}")
