# SPDX-License-Identifier: Apache-2.0
"""Recent metadata: decoded table metadata that this node built, so that the next commit need not decode it again.

An entry belongs to one exact version and is never changed, so it cannot be stale; it only saves decoding.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from limnos.formats.iceberg.json_types import Json
from limnos.model.entities import MetadataDocument
from limnos.services.request.node_services import ComponentKey

BYTES_MAX = 16 << 20
"""The cache's limit, in bytes of documents as JSON; decoded they take about seven times as much memory."""
BODY_BYTES_MAX = 256 << 10


class _CachedMetadata(NamedTuple):
    metadata_location: str
    metadata: Json
    size: int


class RecentMetadata:
    """Decoded metadata by table: for each table only the newest version that this node built."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _CachedMetadata] = OrderedDict()
        self._size = 0

    def get(self, document: MetadataDocument) -> Json | None:
        """Return the decoded document if this version is cached; else None."""
        metadata = self._kept.get(document.node_id)
        return (
            metadata.metadata
            if metadata is not None and metadata.metadata_location == document.metadata_location
            else None
        )

    def put(self, document: MetadataDocument, metadata: Json) -> None:
        """Cache a commit's metadata unless it is too large; the oldest entries are removed when the cache is full."""
        size = len(document.body)
        if size > BODY_BYTES_MAX:
            return
        before = self._kept.pop(document.node_id, None)
        self._size += size - (0 if before is None else before.size)
        self._kept[document.node_id] = _CachedMetadata(document.metadata_location, metadata, size)
        while self._size > BYTES_MAX:
            self._size -= self._kept.popitem(last=False)[1].size


RECENT_METADATA: ComponentKey[RecentMetadata] = ComponentKey("recent", lambda _: RecentMetadata())
