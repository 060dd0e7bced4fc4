# SPDX-License-Identifier: Apache-2.0
"""Names of spans: digests of all that decides what the files of a span contain.

Pure. Plans with the same specification get the same names, on any node and in any process.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from limnos.formats.iceberg.json_types import Json
from limnos.formats.restricting.spans import FileSpan, file_spans


class SpanTask(NamedTuple):
    """A span of the data file of a scan task, with the task's delete files and the span's name."""

    task: Json
    deletes: list[Json]
    span: FileSpan
    name: str


class SpanNamer:
    """Divides the data files of scan tasks into named spans. `specification` says how they are rewritten."""

    def __init__(self, specification: Json) -> None:
        self._digest = hashlib.sha256(msgspec.json.encode(specification))

    def spans(self, task: Json, *, deletes: list[Json], size: int) -> list[SpanTask]:
        """Return the spans of a task's data file of `size` bytes; `deletes` are the delete files of all tasks."""
        own_deletes = _deletes_of(task, deletes)
        file = self._digest.copy()
        file.update(msgspec.json.encode([task["data-file"], own_deletes]))
        results = []
        for span in file_spans(size):
            part = file.copy()
            part.update(msgspec.json.encode(span))
            results.append(SpanTask(task, own_deletes, span, part.hexdigest()[:32]))
        return results


def _deletes_of(task: Json, deletes: list[Json]) -> list[Json]:
    """Return the delete files of a scan task."""
    numbers = task.get("delete-file-references", [])
    return [deletes[each] for each in numbers] if isinstance(numbers, list) else []
