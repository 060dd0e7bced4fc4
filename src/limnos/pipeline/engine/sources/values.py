# SPDX-License-Identifier: Apache-2.0
"""Requests and results of reading a source.

The common values of all readers of sources. Must not know the readers of sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from limnos.model.errors import BadRequest
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.outcomes import ExpectationFinding, ReadPin
from limnos.pipeline.source_declarations import DeclaredSource

TEXT_COLUMN, FILE_COLUMN, SOURCE_COLUMN = "_text", "_path", "_source"
"""Columns of a table of malformed rows, in addition to the run's id and time."""
RESERVED_FILE_COLUMN = "_file"
"""The name of the file's column in tables of older releases. Iceberg reserves it, so such tables cannot be read."""


class SourceFailed(BadRequest):
    """Raised if a source cannot be read as declared: it is missing, has another schema, or lacks a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReadRequest:
    """The arguments for opening a source in one step, including the pin of this run and that of the last published
    run.
    """

    spark: SparkSession
    source: DeclaredSource
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    """The pipeline's parameters, with `run_id` and `run_at`."""
    pinned: ReadPin | None = None
    """The state that this run reads, if an earlier step has already read the source."""
    before: ReadPin | None = None
    """The state that the last published run read; None if there is none, or for a full read. An inferred schema is
    compared with the schema recorded there; without it, it is inferred.
    """
    incremental: bool = False
    """Whether to read only new data since `before`."""
    directory: Path | None = None
    """The base directory of relative paths, and of the progress of streams."""
    watched: bool = False
    """Whether the rows are read exactly once, by the step's write, so that malformed rows are counted during it.
    Otherwise a separate query counts them.
    """
    rereads: bool = False
    """Whether an increment has the files that were changed since they were read, beside new ones."""
    only: str | None = None
    """The path of the only file to read."""
    published: Parts | None = None
    """The table that the step writes, whose published rows a harvest carries over; None for a full run."""
    plans: bool = False
    """Whether nothing is registered, as in an environment."""

    def declared(self, schema: str) -> StructType:
        """Parse a declared schema, Spark's column list. Raises SourceFailed if it is malformed or has no column."""
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
        """Build an error that names the source and its position in the declaration."""
        prefix = f"{self.source.at}: " if self.source.at else ""
        return SourceFailed(f"{prefix}source {self.source.name}: {why}", source=self.source.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedRows:
    """Malformed rows of files, with findings that count them."""

    rows: DataFrame
    """Columns `_text`, `_path`, `_source`, and `_run` and `_at` of the run. They are written if `keep` is set."""
    keep: bool
    findings: Callable[[], tuple[ExpectationFinding, ...]] = field(compare=False)
    """A function that returns one finding. If rows are counted during the write, call it after the write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """An opened source: its DataFrame, its pin and its malformed rows.

    The rows of functions and streams are already staged; the DataFrames of other sources are lazy.
    """

    frame: DataFrame
    pin: ReadPin
    malformed: MalformedRows | None = None
    root: str | None = None
    """Of files, the directory in which their pattern begins, or the path if it is not a pattern."""
    files: tuple[str, ...] = ()
    """Of files, the paths that are read, by the time of their last change."""
    missing: str | None = None
    """The data that the last published run read and that is missing now, in words; None if there is none."""
    release: Callable[[], None] = field(default=lambda: None, compare=False)
    """A function to call when the DataFrame is no longer needed."""


def first_line(error: PySparkException | Py4JJavaError) -> str:
    """Return the first line of the innermost error; the other lines are plans and stack traces."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
    else:
        text = str(error.getMessage() or error)
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
