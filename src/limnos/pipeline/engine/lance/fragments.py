# SPDX-License-Identifier: Apache-2.0
"""Fragments of a Lance table, written by Spark's tasks.

Each task writes its rows as files that no version of the table names yet, and returns their description. Only the
fragments of tasks whose result the driver has received become part of a version, so the attempts of a task count once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from limnos.spark.lance.types import as_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from limnos.pipeline.engine.lance.tables import LanceTarget

_RESULT: Final = "fragment string, rows long, bytes long"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFragments:
    """The fragments of a DataFrame's rows, with the numbers of rows and bytes."""

    fragments: list[FragmentMetadata]
    rows: int
    bytes: int


def write_rows(frame: DataFrame, target: LanceTarget) -> WrittenFragments:
    """Write the rows of `frame` as fragments of a step's table, with the table's columns and in its mode."""
    table = target.table
    task = _task(target.schema, location=table.location, mode=target.mode, options=table.options)
    written_rows = frame.mapInArrow(task, _RESULT).collect()
    return WrittenFragments(
        fragments=[FragmentMetadata.from_json(row["fragment"]) for row in written_rows],
        rows=sum(int(row["rows"]) for row in written_rows),
        bytes=sum(int(row["bytes"]) for row in written_rows),
    )


def _task(
    schema: pa.Schema, *, location: str, mode: str, options: dict[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (as_schema(batch, schema) for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return

        def every() -> Iterator[pa.RecordBatch]:
            yield first
            yield from rows

        reader = pa.RecordBatchReader.from_batches(schema, every())
        fragments = write_fragments(reader, location, schema=schema, mode=mode, storage_options=options or None)
        described = [each.to_json() for each in fragments]
        yield pa.RecordBatch.from_pydict(
            {
                "fragment": pa.array([json.dumps(each) for each in described], pa.string()),
                "rows": pa.array([int(each["physical_rows"]) for each in described], pa.int64()),
                "bytes": pa.array([_size(each) for each in described], pa.int64()),
            }
        )

    return write


def _size(fragment: dict[str, object]) -> int:
    files = fragment.get("files")
    return sum(int(each.get("file_size_bytes") or 0) for each in files) if isinstance(files, list) else 0
