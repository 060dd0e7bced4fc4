# SPDX-License-Identifier: Apache-2.0
"""System tables of the metalake as sources: the tree, access, lineage, runs.

Must not know columns. The rows are staged, because a second read may be at another revision.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, lit

from limnos.formats.system_tables import OCCURRED_AT
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import SystemTableSource
from limnos.spark.system.source import SOURCE

DAYS_MAX: Final = 36_500
_WHOLE_BECAUSE = "a system table is read as it is"


def system_table_frame(request: SourceReadRequest, kind: SystemTableSource) -> SourceRead:
    """Read a system table at one revision. Raises SourceFailed if the server refuses, or the revision ends."""
    try:
        reader = request.spark.read.format(SOURCE).option("table", kind.table)
        if kind.columns:
            conditions = [*kind.where, *([] if kind.last_days is None else [OCCURRED_AT])]
            reader = reader.option("columns", ",".join(dict.fromkeys((*kind.columns, *conditions))))
        frame = reader.load()
        for column, value in kind.where.items():
            frame = frame.where(col(column) == value)
        if kind.last_days is not None:
            frame = frame.where(col(OCCURRED_AT) >= lit(_first_moment(request, kind.last_days)))
        staged_rows = stage(frame.select(*kind.columns) if kind.columns else frame)
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the system table {kind.table} could not be read: {first_line(error)}") from error
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged_rows, pin=pin, release=lambda: release(staged_rows))


def _first_moment(request: SourceReadRequest, parameter: str) -> datetime:
    """Return the beginning of the day that is a number of days before the run's day, in UTC.

    Raises SourceFailed if the parameter has no such number.
    """
    days, run_at = request.parameters.get(parameter), request.parameters["run_at"]
    if not isinstance(days, int) or isinstance(days, bool) or not 0 <= days <= DAYS_MAX:
        raise request.failed(f"the parameter {parameter} must be a number of days from 0 to {DAYS_MAX}.")
    moment = datetime.fromisoformat(str(run_at))
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)
