# SPDX-License-Identifier: Apache-2.0
"""Long lists of a document with their JSON, and the ids in them: a commit adds one row to hundreds that do not change.

Source: Iceberg specification, "Table Metadata Fields": `snapshots`, `snapshot-log`, `metadata-log`.
"""

from __future__ import annotations

from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Final

import msgspec

from limnos.formats.iceberg.json_types import hashable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from limnos.formats.iceberg.json_types import Json

GROWING: Final = ("snapshots", "snapshot-log", "metadata-log")
"""The lists of a document to which commits append. The oldest rows of a log are removed when it is full."""
_ROWS_MIN: Final = 8
"""Shorter lists are encoded again."""
_DROPPED_MAX: Final = 1
"""A commit to a full log removes one row. After a change of the maximum all rows are encoded again."""
_NONE: Final[Mapping[str, list[Json]]] = {}
_WITH_IDS: Final = "snapshots"
_FOREIGN_MAX: Final = 2
"""The ids are collected again once there are more of them than this number times the snapshots."""


class KnownIds:
    """The ids of a document's snapshots, and those of their parents: a new snapshot is compared with them, and not with
    all snapshots.

    Documents that grow out of one another share them, so they may have ids of other documents, too: of commits that
    failed, and of snapshots that were removed. An id that is not in them is in none of these documents.
    """

    __slots__ = ("ids", "parents")

    def __init__(self) -> None:
        self.ids: set[object] = set()
        self.parents: set[object] = set()

    def add(self, rows: Iterable[Json]) -> None:
        """Add snapshots."""
        for row in rows:
            self.ids.add(hashable(row.get("snapshot-id")))
            self.parents.add(hashable(row.get("parent-snapshot-id")))


class EncodedRows(list["Json"]):
    """A list of a document and its JSON; for snapshots with their ids. It is never changed."""

    __slots__ = ("encoded", "known")

    def __init__(self, rows: list[Json], encoded: bytes, *, known: KnownIds | None = None) -> None:
        super().__init__(rows)
        self.encoded = encoded
        self.known = known


def put_encoded_lists(document: Json, before: Json, *, grown: Mapping[str, list[Json]] = _NONE) -> None:
    """Put the growing lists of a document with their JSON into it.

    Rows of the former document `before` are not encoded again. `grown` are lists of it to which rows were only
    appended: they are not compared row by row.
    """
    for key in GROWING:
        rows = document.get(key)
        if type(rows) is list and len(rows) >= _ROWS_MIN:
            former = before.get(key)
            encoded, shared = _encode_list(rows, former, is_grown=former is not None and grown.get(key) is former)
            row_ids = _known_ids(rows, former if shared else None, shared=shared) if key == _WITH_IDS else None
            document[key] = EncodedRows(rows, encoded, known=row_ids)


def _known_ids(rows: list[Json], before: object, *, shared: int) -> KnownIds:
    """Return the ids of snapshots, of which the first `shared` ones belong to the former ones, too."""
    if not isinstance(before, EncodedRows):
        ids, shared = KnownIds(), 0
    elif before.known is None or len(before.known.ids) > _FOREIGN_MAX * len(rows):
        ids = before.known = KnownIds()  # also of the former document: other commits may begin with it
        ids.add(before)
    else:
        ids = before.known
    ids.add(rows[shared:])
    return ids


def _encode_list(rows: list[Json], before: object, *, is_grown: bool) -> tuple[bytes, int]:
    """Return the JSON of a list, and the number of its rows that are those of the former one."""
    if isinstance(before, EncodedRows):
        for dropped in range(min(_DROPPED_MAX + 1, len(before))):
            shared = len(before) - dropped
            if is_grown or (
                before[dropped] is rows[0]
                and shared <= len(rows)
                and all(map(is_, islice(before, dropped, None), rows))
            ):
                start = 1 + sum(len(msgspec.json.encode(each)) + 1 for each in before[:dropped])
                added_rows = [b"," + msgspec.json.encode(each) for each in rows[shared:]]
                return b"".join((b"[", memoryview(before.encoded)[start:-1], *added_rows, b"]")), shared
    return msgspec.json.encode(rows), 0


def with_encoded_rows(document: Json) -> Json:
    """Return the document for the encoder, with JSON in place of the lists whose JSON is known."""
    encoded_lists = {
        key: msgspec.Raw(rows.encoded) for key in GROWING if isinstance(rows := document.get(key), EncodedRows)
    }
    return {**document, **encoded_lists} if encoded_lists else document
