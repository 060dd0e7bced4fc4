# SPDX-License-Identifier: Apache-2.0
"""The common entry point to sources of all kinds.

Selects the reader by the declared kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from limnos.model.errors import LimnosError
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources.column_statistics import column_statistics_frame
from limnos.pipeline.engine.sources.databases import database_frame, pin_database
from limnos.pipeline.engine.sources.files import files_frame, have_files_changed
from limnos.pipeline.engine.sources.functions import function_frame
from limnos.pipeline.engine.sources.harvests import harvest_frame
from limnos.pipeline.engine.sources.registrations import registration_frame
from limnos.pipeline.engine.sources.storage_findings import storage_findings_frame
from limnos.pipeline.engine.sources.streams import stream_frame
from limnos.pipeline.engine.sources.system_tables import system_table_frame
from limnos.pipeline.engine.sources.topics import look_up_topic, pin_topic, topic_frame
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import (
    STORAGE_COLUMNS,
    Files,
    HarvestSource,
    Jdbc,
    Kafka,
    PythonSource,
    RegistrationSource,
    StorageSource,
    SystemTableSource,
    TableSource,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from limnos.pipeline.source_declarations import DeclaredSource
    from limnos.pipeline.topic_offsets import TopicLookup

_UNCOMPARED = (Jdbc, PythonSource, SystemTableSource, StorageSource, HarvestSource, RegistrationSource)
"""The kinds of sources whose content is not compared with that of an earlier read."""


def frame_of(request: SourceReadRequest) -> SourceRead:
    """Open a source. Raises SourceFailed, with the source's position and advice."""
    kind = request.source.kind
    if isinstance(kind, Files):
        return files_frame(request, kind)
    if isinstance(kind, TableSource):
        return _table_frame(request, kind)
    if isinstance(kind, Jdbc):
        return database_frame(request, kind)
    if isinstance(kind, Kafka):
        return topic_frame(request, kind)
    if isinstance(kind, PythonSource):
        return function_frame(request, kind)
    if isinstance(kind, SystemTableSource):
        return system_table_frame(request, kind)
    if isinstance(kind, StorageSource):
        read = column_statistics_frame if kind.content == STORAGE_COLUMNS else storage_findings_frame
        return read(request, kind)
    if isinstance(kind, HarvestSource):
        return harvest_frame(request, kind)
    if isinstance(kind, RegistrationSource):
        return registration_frame(request, kind)
    return stream_frame(request, kind)


def has_changed(spark: SparkSession, source: DeclaredSource, *, pinned: ReadPin, directory: Path | None) -> bool | None:
    """Return whether a source's content has changed since a run read it; None for databases, functions, system tables
    and harvests.

    A table is pinned by its snapshot, a topic by its offsets, and a stream has its own progress, so none of them can
    change during a run.
    """
    if isinstance(source.kind, _UNCOMPARED):
        return None
    if not isinstance(source.kind, Files):
        return False
    return have_files_changed(
        SourceReadRequest(spark=spark, source=source, pinned=pinned, directory=directory), source.kind
    )


def pin_of(spark: SparkSession, source: DeclaredSource, *, directory: Path | None) -> ReadPin | None:
    """Return the pin of a source for a run that starts now; None for a source that is pinned when it is first read.

    Raises SourceFailed if the source cannot be reached.
    """
    if isinstance(source.kind, Jdbc):
        return pin_database(SourceReadRequest(spark=spark, source=source, directory=directory), source.kind)
    if not isinstance(source.kind, Kafka):
        return None
    return pin_topic(SourceReadRequest(spark=spark, source=source, directory=directory), source.kind)


def look_up_topics(
    spark: SparkSession, sources: Iterable[DeclaredSource], *, directory: Path | None
) -> dict[str, TopicLookup | str]:
    """Return the present offsets of the sources that are topics, by name; the message where a topic cannot be read."""
    results: dict[str, TopicLookup | str] = {}
    for source in sources:
        if isinstance(source.kind, Kafka):
            try:
                results[source.name] = look_up_topic(
                    SourceReadRequest(spark=spark, source=source, directory=directory), source.kind
                )
            except LimnosError as error:
                results[source.name] = error.message
    return results


def _table_frame(request: SourceReadRequest, kind: TableSource) -> SourceRead:
    """Read a table at the run's pinned snapshot. Views and unpinned tables are read in their current state."""
    pin = request.pinned or ReadPin(name=request.source.name, table=kind.table)
    if request.incremental:
        table = ".".join(kind.table)
        pin = replace(pin, whole_because=f"source {request.source.name} has no increments: name {table} in the query")
    if pin.lance is not None:
        from limnos.pipeline.engine.lance.reading import lance_read  # noqa: PLC0415 - loads Lance's library

        frame, pin = lance_read(request.spark, pin)
        return SourceRead(frame=frame, pin=pin)
    name = quote_identifier(pin.table or kind.table)
    at = "" if pin.snapshot is None else f" VERSION AS OF {pin.snapshot}"
    return SourceRead(frame=request.spark.sql(f"SELECT * FROM {name}{at}"), pin=pin)
