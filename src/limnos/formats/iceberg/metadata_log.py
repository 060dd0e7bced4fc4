# SPDX-License-Identifier: Apache-2.0
"""The metadata log of a document, with its JSON: a commit adds one entry to up to a hundred that do not change.

May import msgspec and this package's JSON types. Source: Iceberg specification, "Table Metadata Fields", metadata-log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json


class MetadataLog(list["Json"]):
    """A metadata log and its JSON. It is never changed: each commit builds the next one by `followed_by`.

    Encoding the entries again was a tenth of the instructions of a commit to a table with a full log.
    """

    __slots__ = ("encoded",)

    def __init__(self, entries: list[Json], *, encoded: bytes | None = None) -> None:
        super().__init__(entries)
        self.encoded = msgspec.json.encode(entries) if encoded is None else encoded

    def followed_by(self, entry: Json, *, length_max: int) -> MetadataLog:
        """Return the log after another commit: the newest entries, at most `length_max` (1 or more), and `entry` as the
        last one.
        """
        dropped = max(0, len(self) + 1 - length_max)
        if dropped >= len(self):
            return MetadataLog([entry])
        start = 1 + sum(len(msgspec.json.encode(each)) + 1 for each in self[:dropped])
        encoded = b"".join((b"[", memoryview(self.encoded)[start:-1], b",", msgspec.json.encode(entry), b"]"))
        return MetadataLog([*self[dropped:], entry], encoded=encoded)


def metadata_log_of(entries: list[Json]) -> MetadataLog:
    """Return the log of a document that was decoded, or the log itself if this node built it."""
    return entries if isinstance(entries, MetadataLog) else MetadataLog(entries)


def with_encoded_log(metadata: Json) -> Json:
    """Return the document for the encoder, with the log's JSON in place of the log where it is known."""
    log = metadata.get("metadata-log")
    return {**metadata, "metadata-log": msgspec.Raw(log.encoded)} if isinstance(log, MetadataLog) else metadata
