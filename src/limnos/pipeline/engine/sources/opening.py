"""The one door to a source, whatever its kind.

Job: choose the reader by the declared kind. May import this room's values and readers, and PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.pipeline.declaration import Files, Jdbc, PythonSource, TableSource
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources.databases import database_frame
from limnos.pipeline.engine.sources.files import files_frame, have_files_changed
from limnos.pipeline.engine.sources.functions import function_frame
from limnos.pipeline.engine.sources.streams import stream_frame
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest
from limnos.pipeline.outcomes import ReadPin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from limnos.pipeline.declaration import DeclaredSource, Scalar


def frame_of(
    spark: SparkSession,
    source: DeclaredSource,
    *,
    parameters: Mapping[str, Scalar] | None = None,
    pinned: ReadPin | None = None,
    before: ReadPin | None = None,
    incremental: bool = False,
    directory: Path | None = None,
    watched: bool = False,
    checkpoints: str | None = None,
) -> SourceRead:
    """Open a source.

    `parameters`: the pipeline's, with `run_id` and `run_at`. `pinned`: what this run has read of the source already, to be read
    again just so. `before`: what the last published run read: with `incremental` only what is new since is read, and an inferred schema is
    compared with the one kept there; None infers it anew. `directory`: where relative paths begin. `watched`: the step writes the
    frame as it is, once, so that malformed rows can be counted in the write; else they are counted by a look at the files of its own.
    `checkpoints`: URL of a directory for the progress of streams.

    Raises SourceFailed with the source's place and what to do.
    """
    asked = SourceReadRequest(
        spark=spark, source=source, parameters=dict(parameters or {}), pinned=pinned, before=before,
        incremental=incremental, directory=directory, watched=watched, checkpoints=checkpoints,
    )  # fmt: skip
    kind = source.kind
    if isinstance(kind, Files):
        return files_frame(asked, kind)
    if isinstance(kind, TableSource):
        return _table_frame(asked, kind)
    if isinstance(kind, Jdbc):
        return database_frame(asked, kind)
    if isinstance(kind, PythonSource):
        return function_frame(asked, kind)
    return stream_frame(asked, kind)


def has_changed(spark: SparkSession, source: DeclaredSource, *, pinned: ReadPin, directory: Path | None) -> bool | None:
    """Whether a source has other content than a run has read. None: only reading it again tells (a database, a function).

    A table is pinned by its snapshot and a stream has a progress of its own: neither changes for a run that has read it.
    """
    if isinstance(source.kind, (Jdbc, PythonSource)):
        return None
    if not isinstance(source.kind, Files):
        return False
    asked = SourceReadRequest(
        spark=spark, source=source, parameters={}, pinned=pinned, before=None,
        incremental=False, directory=directory, watched=False, checkpoints=None,
    )  # fmt: skip
    return have_files_changed(asked, source.kind)


def _table_frame(asked: SourceReadRequest, kind: TableSource) -> SourceRead:
    """A table at the snapshot that the run pinned; a view, and a table that was not pinned, as they are now."""
    name = quote_identifier(kind.table)
    pin = asked.pinned or ReadPin(name=asked.source.name, table=kind.table)
    at = "" if pin.snapshot is None else f" VERSION AS OF {pin.snapshot}"
    return SourceRead(frame=asked.spark.sql(f"SELECT * FROM {name}{at}"), pin=pin)
