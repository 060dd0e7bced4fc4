# SPDX-License-Identifier: Apache-2.0
"""Statistics of columns as a source: executors add up the manifests of all tables that the run's user may see.

Tables are listed at one revision, then read in tasks, each with some tables. Must not know how a table is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from limnos.pipeline.engine.connection import access_of
from limnos.pipeline.engine.sources.storage_findings import TABLES_PER_TASK, TASKS_MAX
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage, staged_rows
from limnos.pipeline.outcomes import ReadPin
from limnos.spark.session import system_home
from limnos.spark.statistics.columns import COLUMNS, StatisticsTask
from limnos.spark.system.source import SOURCE

if TYPE_CHECKING:
    from limnos.pipeline.source_declarations import StorageSource

_WHOLE_BECAUSE: Final = "the manifests of all tables are read"


def column_statistics_frame(request: SourceReadRequest, kind: StorageSource) -> SourceRead:
    """Measure the columns of all tables. Raises SourceFailed if the server is not reachable."""
    try:
        task = StatisticsTask(home=system_home(request.spark) or access_of(request.spark))
        columns = ",".join((*COLUMNS, "kind"))
        listed = request.spark.read.format(SOURCE).option("table", "tables").option("columns", columns).load()
        with staged_rows(listed.where("kind = 'table'").select(*COLUMNS)) as tables:
            parallelism = request.spark.sparkContext.defaultParallelism
            tasks = min(TASKS_MAX, max(parallelism, tables.count() // TABLES_PER_TASK))
            staged = stage(tables.repartitionByRange(tasks, "id").mapInArrow(task, kind.schema))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the tables could not be read: {first_line(error)}") from error
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged, pin=pin, release=lambda: release(staged))
