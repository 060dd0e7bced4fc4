# SPDX-License-Identifier: Apache-2.0
"""Findings of a verification, the objects that it checks, and their rows in Arrow.

Must not read files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

T = TypeVar("T")
ERROR, WARNING, NOTE = "error", "warning", "note"
"""Severities: rows cannot be read, or may be wrong; nothing is lost yet; the object was not checked."""
NOT_CHECKED: Final = "not checked"
"""The finding of an object that could not be checked."""
OBJECT, FINDING, FILE = "object", "finding", "file"
"""What a row is about: an object that was listed, a finding, or a current file, which is compared with those of other
tables."""
TEXT_MAX: Final = 1_000
"""The maximum length of a text in a finding: names in metadata may have megabytes."""
SCHEMA: Final = pa.schema(
    [
        pa.field("row", pa.string()),
        pa.field("id", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("finding", pa.string()),
        pa.field("file", pa.string()),
        pa.field("expected", pa.string()),
        pa.field("actual", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("files", pa.int64()),
    ]
)
"""The columns of rows. `files` is the number of files that were checked; None if the object was not checked."""


class VerifiedObject(NamedTuple):
    """A table or view to check."""

    id: int
    path: str
    kind: str
    """`table` or `view`."""
    format: str | None
    restricted: bool
    metadata_location: str
    """The location of its metadata file; empty for a Lance table, and for a restricted one."""


class StorageFinding(NamedTuple):
    """A difference between the store and storage."""

    finding: str
    file: str = ""
    expected: str | None = None
    actual: str | None = None
    severity: str = ERROR


class ResultRow(NamedTuple):
    """A row of `SCHEMA`."""

    row: str
    id: int
    path: str
    kind: str
    finding: str | None = None
    file: str | None = None
    expected: str | None = None
    actual: str | None = None
    severity: str | None = None
    files: int | None = None


def object_row(target: VerifiedObject, files: int | None) -> ResultRow:
    """Return the row of an object with the number of its checked files; None if it was not checked."""
    return ResultRow(row=OBJECT, id=target.id, path=target.path, kind=target.kind, files=files)


def finding_row(target: VerifiedObject, finding: StorageFinding) -> ResultRow:
    """Return the row of a finding about an object."""
    return ResultRow(
        row=FINDING,
        id=target.id,
        path=target.path,
        kind=target.kind,
        finding=finding.finding,
        file=finding.file[:TEXT_MAX],
        expected=_short(finding.expected),
        actual=_short(finding.actual),
        severity=finding.severity,
    )


def file_row(target: VerifiedObject, key: str) -> ResultRow:
    """Return the row of a current file of a table. `key` is the same for all spellings of its location."""
    return ResultRow(row=FILE, id=target.id, path=target.path, kind=target.kind, file=key)


def in_parts(values: Iterable[T], count: int) -> Iterator[list[T]]:
    """Yield the values in lists of at most `count`."""
    rest = iter(values)
    while some := list(islice(rest, count)):
        yield some


def batch_of(rows: Iterable[ResultRow]) -> pa.RecordBatch:
    """Convert rows to an Arrow batch."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(cells, type=field.type) for cells, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def _short(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_MAX]
