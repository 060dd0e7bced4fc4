"""Metadata that this node built lately, decoded: the next commit to the same table need not decode it again.

May import `model` and `formats`. A value is found by the very version it was built for and is never changed, so it
cannot be stale; it is only a decoding saved.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from limnos.services.request.node_services import ComponentKey

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.model.entities import MetadataDocument

BYTES_MAX = 16 << 20
"""Of documents as JSON; decoded they take some six times as much."""
BODY_BYTES_MAX = 64 << 10


class _CachedMetadata(NamedTuple):
    metadata_location: str
    metadata: Json
    size: int


class RecentMetadata:
    """Decoded metadata by table; one version of each, the newest built here."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _CachedMetadata] = OrderedDict()
        self._size = 0

    def get(self, document: MetadataDocument) -> Json | None:
        """Return the document decoded, if it is the one that was built here last."""
        found = self._kept.get(document.node_id)
        return found.metadata if found is not None and found.metadata_location == document.metadata_location else None

    def put(self, document: MetadataDocument, metadata: Json) -> None:
        """Keep what a commit built; the oldest go when there is too much."""
        size = len(document.body)
        if size > BODY_BYTES_MAX:
            return
        before = self._kept.pop(document.node_id, None)
        self._size += size - (0 if before is None else before.size)
        self._kept[document.node_id] = _CachedMetadata(document.metadata_location, metadata, size)
        while self._size > BYTES_MAX:
            self._size -= self._kept.popitem(last=False)[1].size


RECENT_METADATA: ComponentKey[RecentMetadata] = ComponentKey("recent", lambda _: RecentMetadata())
