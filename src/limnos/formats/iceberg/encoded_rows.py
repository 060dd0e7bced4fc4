# SPDX-License-Identifier: Apache-2.0
"""Long lists of a document with their JSON: a commit adds one row to hundreds that do not change.

Source: Iceberg specification, "Table Metadata Fields": `snapshots`, `snapshot-log`, `metadata-log`.
"""

from __future__ import annotations

from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json

GROWING: Final = ("snapshots", "snapshot-log", "metadata-log")
"""The lists of a document to which commits append. The oldest rows of a log are removed when it is full."""
_ROWS_MIN: Final = 8
"""Shorter lists are encoded again."""
_DROPPED_MAX: Final = 1
"""A commit to a full log removes one row. After a change of the maximum all rows are encoded again."""


class EncodedRows(list["Json"]):
    """A list of a document and its JSON. It is never changed."""

    __slots__ = ("encoded",)

    def __init__(self, rows: list[Json], encoded: bytes) -> None:
        super().__init__(rows)
        self.encoded = encoded


def keep_encoded(document: Json, before: Json) -> None:
    """Put the growing lists of a document with their JSON into it.

    Rows of the former document `before` are not encoded again.
    """
    for key in GROWING:
        rows = document.get(key)
        if type(rows) is list and len(rows) >= _ROWS_MIN:
            document[key] = EncodedRows(rows, _encoded(rows, before.get(key)))


def _encoded(rows: list[Json], before: object) -> bytes:
    if isinstance(before, EncodedRows):
        for dropped in range(min(_DROPPED_MAX + 1, len(before))):
            shared = len(before) - dropped
            if (
                before[dropped] is rows[0]
                and shared <= len(rows)
                and all(map(is_, islice(before, dropped, None), rows))
            ):
                start = 1 + sum(len(msgspec.json.encode(each)) + 1 for each in before[:dropped])
                added = [b"," + msgspec.json.encode(each) for each in rows[shared:]]
                return b"".join((b"[", memoryview(before.encoded)[start:-1], *added, b"]"))
    return msgspec.json.encode(rows)


def with_encoded_rows(document: Json) -> Json:
    """Return the document for the encoder, with JSON in place of the lists whose JSON is known."""
    known = {key: msgspec.Raw(rows.encoded) for key in GROWING if isinstance(rows := document.get(key), EncodedRows)}
    return {**document, **known} if known else document
