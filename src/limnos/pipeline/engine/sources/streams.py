# SPDX-License-Identifier: Apache-2.0
"""Streams: new data of files or an Iceberg table since the last published run.

Runs Spark's Structured Streaming with `availableNow`, stages each batch, and returns all batches as one DataFrame. The
progress is stored in a checkpoint directory. Each read copies the checkpoint of the last published run to a new name,
and the pin has that name. So a discarded run consumes nothing, and a restored table continues from its own state. Each
step that reads a stream has its own progress. Must not know publishing.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from limnos.pipeline.engine.naming import BAD, FILE, quote_identifier
from limnos.pipeline.engine.sources.files import permissive, stream_schema, with_file
from limnos.pipeline.engine.sources.listing import locate_path
from limnos.pipeline.engine.sources.malformed import malformed_rows
from limnos.pipeline.engine.sources.values import MalformedRows, SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import Stream

_KEPT_MS = 8 * 86_400_000
"""The retention time of checkpoints of discarded runs, in milliseconds. Branches of runs are retained one day less."""


def stream_frame(request: SourceReadRequest, stream: Stream) -> SourceRead:
    """Read the new data of a stream. Raises SourceFailed, with advice if the stream cannot continue."""
    if getattr(request.spark, "_jsparkSession", None) is None:
        raise request.failed("a stream needs its own Spark (`--master`), and this run uses Spark Connect.")
    if (stream.files is None) == (stream.table is None):
        raise request.failed("write one of `files` or `table`.")
    former_progress = _progress(request)
    schema, frame = _streaming(request, stream, stored_schema=former_progress.get("schema"))
    place = _Checkpoints(request)
    name = place.create_checkpoint(former_progress.get("checkpoint"))
    batches = _drain_stream(request, frame, checkpoint=place.url(name))
    place.sweep(keep=(name, former_progress.get("checkpoint") or name))
    entries = {"checkpoint": name} if schema is None else {"checkpoint": name, "schema": schema}
    pin = ReadPin(
        name=request.source.name,
        table=stream.table,
        fingerprint=json.dumps(entries, separators=(",", ":"), sort_keys=True),
        whole_because=None if former_progress else "nothing was read before",
    )
    return _read(request, stream, frame=frame, batches=batches, pin=pin)


def _progress(request: SourceReadRequest) -> dict[str, Any]:
    """Return the last published run's progress: the name of its checkpoint, and an inferred schema."""
    try:
        result = json.loads((request.before and request.before.fingerprint) or "{}")
    except ValueError:
        result = {}
    return result if isinstance(result, dict) and "checkpoint" in result else {}


def _read(
    request: SourceReadRequest, stream: Stream, *, frame: DataFrame, batches: _StreamBatches, pin: ReadPin
) -> SourceRead:
    whole = batches.read_all(request, frame)
    if stream.files is None or BAD not in whole.columns:
        return SourceRead(frame=whole, pin=pin, release=batches.release)
    good = whole.where(F.col(BAD).isNull()).drop(BAD, FILE)
    malformed: MalformedRows = malformed_rows(request, stream.files.malformed, parsed=whole)
    return SourceRead(frame=good, pin=pin, malformed=malformed, release=batches.release)


# ------------------------------------------------------------------------------------------- reading


def _streaming(request: SourceReadRequest, stream: Stream, *, stored_schema: object) -> tuple[object, DataFrame]:
    """Return the inferred schema to record (None if none was inferred), and the streaming DataFrame."""
    try:
        if stream.files is not None:
            path = locate_path(request, stream.files.path)
            schema, inferred = stream_schema(request, stream.files, path=path, stored_schema=stored_schema)
            reader = request.spark.readStream.format(stream.files.format).options(**stream.files.options)
            frame = permissive(stream.files, reader, schema=schema).load(path)
            if BAD in frame.columns:
                frame = with_file(frame)
            return (schema.jsonValue() if inferred else None), frame
        return None, request.spark.readStream.table(quote_identifier(stream.table or ()))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(_why(error)) from None


def _why(error: PySparkException | Py4JJavaError) -> str:
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    if "Cannot process overwrite snapshot" in text or "Cannot process delete snapshot" in text:
        return (
            "its table was rewritten (an overwrite, a merge or a delete), which a stream cannot follow: read the table"
            " itself in an `incremental` step."
        )
    return f"the stream cannot be read: {first_line(error)}"


# ----------------------------------------------------------------------------------------------- batches


@dataclass(slots=True)
class _StreamBatches:
    """Staged batches of a stream, which the executors store."""

    frames: list[DataFrame] = field(default_factory=list)

    def read_all(self, request: SourceReadRequest, frame: DataFrame) -> DataFrame:
        """Return all batches as one DataFrame; without batches, an empty one with the stream's columns."""
        whole: DataFrame | None = None
        for one in self.frames:
            whole = one if whole is None else whole.unionAll(one)
        return request.spark.createDataFrame([], frame.schema) if whole is None else whole

    def release(self) -> None:
        """Free the staged batches."""
        for one in self.frames:
            release(one)


def _drain_stream(request: SourceReadRequest, frame: DataFrame, *, checkpoint: str) -> _StreamBatches:
    """Read all data that is available now, and stage its batches. Raises SourceFailed if the stream fails."""
    batches = _StreamBatches()
    names: list[str] = []

    def each(batch: DataFrame, _: int) -> None:
        # Batches belong to the stream's own session; a global view makes them visible in the caller's session.
        names.append(f"limnos_{uuid.uuid4().hex}")
        stage(batch).createOrReplaceGlobalTempView(names[-1])

    try:
        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
        shared = request.spark.conf.get("spark.sql.globalTempDatabase", "global_temp")
        batches.frames.extend(request.spark.table(f"{shared}.{name}") for name in names)
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(_why(error)) from None
    finally:
        for name in names:
            request.spark.catalog.dropGlobalTempView(name)
    return batches


# ------------------------------------------------------------------------------------------- checkpoints


class _Checkpoints:
    """The directory of a source's checkpoints, on any file system of Hadoop."""

    def __init__(self, request: SourceReadRequest) -> None:
        self._asked = request
        self._root = f"{_root(request)}/{request.source.name}"
        context = request.spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no other way to a file system
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def url(self, name: str) -> str:
        return f"{self._root}/{name}"

    def create_checkpoint(self, before: str | None) -> str:
        """Create a checkpoint that continues from `before`. Returns its name. Raises SourceFailed if `before` is
        missing.
        """
        name = uuid.uuid4().hex
        if before is None:
            return name
        old, new = self._path(before), self._path(name)
        system = old.getFileSystem(self._configuration)
        if not system.exists(old):
            raise self._asked.failed(
                f"its progress {self.url(before)}, the position of the published table, is missing: run with --full to"
                " read everything again."
            )
        files = self._jvm.org.apache.hadoop.fs.FileUtil
        files.copy(system, old, system, new, False, True, self._configuration)
        return name

    def sweep(self, *, keep: tuple[str, ...]) -> None:
        """Remove the checkpoints that are much older than the newest checkpoint, for example of discarded runs, except
        those named in `keep`.
        """
        root = self._jvm.org.apache.hadoop.fs.Path(self._root)
        system = root.getFileSystem(self._configuration)
        if not system.exists(root):
            return
        results = list(system.listStatus(root))
        newest = max((each.getModificationTime() for each in results), default=0)
        for each in results:
            if each.getPath().getName() not in keep and newest - each.getModificationTime() > _KEPT_MS:
                system.delete(each.getPath(), True)

    def _path(self, name: str) -> Any:  # noqa: ANN401 - a Java object
        return self._jvm.org.apache.hadoop.fs.Path(self.url(name))


def _root(request: SourceReadRequest) -> str:
    if request.directory is None:
        raise request.failed("it has no checkpoint location: give a directory for checkpoints.")
    return (request.directory.absolute() / ".limnos" / "streams").as_uri()
