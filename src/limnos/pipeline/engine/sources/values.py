"""What reading a source gives, and what it is asked with.

Job: values that the readers of the kinds of sources share. May import this room's values, `model` and PySpark's types; it must not know how
anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declaration import DeclaredSource, Scalar
    from limnos.pipeline.outcomes import ExpectationFinding, ReadPin

TEXT_COLUMN, FILE_COLUMN, SOURCE_COLUMN = "_text", "_file", "_source"
"""Columns of a table of malformed rows, beside the run and its time."""


class SourceFailed(BadRequest):
    """A source that cannot be read as it is declared: it is gone, has another schema, or lacks something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReadRequest:
    """What a reader is asked for."""

    spark: SparkSession
    source: DeclaredSource
    parameters: Mapping[str, Scalar]
    pinned: ReadPin | None
    """What this run reads of the source, when an earlier step has read it already."""
    before: ReadPin | None
    """What the last published run read; None when there was none, or the whole is wanted anew."""
    incremental: bool
    directory: Path | None
    watched: bool
    """The frame is read exactly once, by the step's write, so that rows can be counted in it."""
    checkpoints: str | None
    """URL of a directory in which a stream's progress is kept."""

    def declared(self, schema: str) -> StructType:
        """The columns of a declared schema. Raises SourceFailed."""
        try:
            columns = StructType.fromDDL(schema)
        except PySparkException as error:
            raise self.failed(
                f"its schema is not a list of columns (`id BIGINT, name STRING`): {first_line(error)}"
            ) from error
        if not isinstance(columns, StructType) or not columns.fields:
            raise self.failed(f"its schema {schema!r} is not a list of columns: write `id BIGINT, name STRING`.")
        return columns

    def failed(self, why: str) -> SourceFailed:
        """A refusal that names the source and where it is declared."""
        place = f"{self.source.at}: " if self.source.at else ""
        return SourceFailed(f"{place}source {self.source.name}: {why}", source=self.source.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedRows:
    """Rows that a file's format or schema did not take: where they are, and how many when they were counted."""

    rows: DataFrame
    """`_text`, `_file`, `_source`, and of the run `_run` and `_at`. To be kept where `keep` says so."""
    keep: bool
    findings: Callable[[], tuple[ExpectationFinding, ...]] = field(compare=False)
    """One finding; asked after the write where the rows are counted in it, at any time else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """A source that was opened. Nothing is read yet, but what must be known first (names of files, a schema)."""

    frame: DataFrame
    pin: ReadPin
    malformed: MalformedRows | None = None
    release: Callable[[], None] = field(default=lambda: None, compare=False)
    """To be called when the frame is no longer needed."""


def first_line(error: PySparkException | Py4JJavaError) -> str:
    """What Spark, or the innermost of what it met, says first: the rest is plans and stacks."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
    else:
        text = str(error.getMessage() or error)
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
