# SPDX-License-Identifier: Apache-2.0
"""Opens a step's sources, each as a temporary view under its own name, at the snapshot that the run has pinned.

Passes this run's pin and the last checkpoint to a source's reader, and registers the rows under the source's name. Must
not know kinds of sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limnos.names import engine
from limnos.pipeline.checkpoints import INPUTS, inputs_of
from limnos.pipeline.declaration import WriteMode
from limnos.pipeline.engine.pinned_reads import branch_pin
from limnos.pipeline.engine.sources import SourceReadRequest, frame_of
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.engine.sources import SourceRead
    from limnos.pipeline.source_declarations import DeclaredSource


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSource:
    """An opened source. Its name is a temporary view of the session."""

    name: str
    read: SourceRead
    nothing_new: bool
    """Whether the last published run read exactly this state."""

    def release(self) -> None:
        """Drop the temporary view and free the reader's resources."""
        self.read.frame.sparkSession.catalog.dropTempView(self.name)
        self.read.release()


class SourceOpener:
    """Opens the sources of one step with the run's pins and the step's last checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        step: StepDeclaration,
        *,
        context: StepContext,
        values: Mapping[str, Any],
        checkpoint: Callable[[], Mapping[str, str]],
        watched: bool,
    ) -> None:
        self._spark = spark
        self._step = step
        self._context = context
        self._values = values
        self._checkpoint = checkpoint
        self._watched = watched
        self._known = {source.name: source for source in context.pipeline.sources}

    def open_sources(
        self, names: Iterable[str], *, new: bool, again: Iterable[OpenedSource] = ()
    ) -> tuple[OpenedSource, ...]:
        """Open the named sources. `new`: read only data that is new since the step was last published. `again`: the
        sources as they were opened before for the same step, whose pins are read.
        """
        pins = {each.name: each.read.pin for each in again if each.read.pin.fingerprint is not None}
        return tuple(
            self._open_source(self._known[name], new=new, pin=pins.get(name)) for name in names if name in self._known
        )

    def file_frame(self, opened: OpenedSource, *, path: str, new: bool) -> DataFrame:
        """Return the rows of one file of an opened source, whose name is then the temporary view of these rows."""
        return self._open_source(self._known[opened.name], new=new, pin=opened.read.pin, only=path).read.frame

    def _open_source(
        self, source: DeclaredSource, *, new: bool, pin: ReadPin | None, only: str | None = None
    ) -> OpenedSource:
        published_pin = self._before(source, new=new)
        read = frame_of(
            SourceReadRequest(
                spark=self._spark,
                source=source,
                parameters=self._values,
                pinned=pin or self._find_pin(source),
                before=published_pin,
                incremental=new,
                directory=self._context.directory,
                watched=self._watched,
                rereads=self._step.write.mode in (WriteMode.MERGE, WriteMode.HISTORY),
                only=only,
                published=None if self._context.full else self._step.table,
                plans=self._context.pipeline.environment is not None,
            )
        )
        read.frame.createOrReplaceTempView(source.name)
        same = (
            published_pin is not None
            and read.pin.fingerprint is not None
            and read.pin.fingerprint == published_pin.fingerprint
        )
        return OpenedSource(name=source.name, read=read, nothing_new=new and same)

    def _find_pin(self, source: DeclaredSource) -> ReadPin | None:
        """Return the pin of the source in this run: the pin that another step took, or for a table source the table's
        pin.
        """
        if isinstance(source.kind, Stream):
            return None  # each step that reads a stream has its own progress
        table = getattr(source.kind, "table", None)
        if isinstance(table, tuple):
            pinned_tables = {*self._context.pins, *self._context.done_branches}
            full = table if table in pinned_tables else (self._context.pipeline.catalog, *table)
            if full in self._context.pins:
                return self._context.pins[full]
            branch = self._context.done_branches.get(full)
            if branch is not None:
                return branch_pin(branch)
        return self._context.sources.get(source.name)

    def _before(self, source: DeclaredSource, *, new: bool) -> ReadPin | None:
        """Return the state of the source in the checkpoint of the step's published table; None for a full run, and for
        a stream that an incremental step reads from its beginning.
        """
        if self._context.full or (isinstance(source.kind, Stream) and self._step.incremental and not new):
            return None
        entries = inputs_of(self._checkpoint().get(INPUTS)) or {}
        state = entries.get(engine.render_spark((source.name,)))
        return ReadPin(name=source.name, fingerprint=state) if isinstance(state, str) else None
