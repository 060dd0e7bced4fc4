# SPDX-License-Identifier: Apache-2.0
"""System tables of the metalake as sources: the tree, access, lineage, runs.

Must not know columns. The rows are staged, because a second read may be at another revision.
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import col

from limnos.pipeline.declaration import SystemTableSource
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.outcomes import ReadPin
from limnos.spark.system.source import SOURCE

_WHOLE_BECAUSE = "a system table is read as it is"


def system_table_frame(request: SourceReadRequest, kind: SystemTableSource) -> SourceRead:
    """Read a system table at one revision. Raises SourceFailed if the server refuses, or the revision ends."""
    try:
        frame = request.spark.read.format(SOURCE).option("table", kind.table).load()
        for column, value in kind.where.items():
            frame = frame.where(col(column) == value)
        staged = stage(frame)
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the system table {kind.table} could not be read: {first_line(error)}") from error
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    return SourceRead(frame=staged, pin=pin, release=lambda: release(staged))
