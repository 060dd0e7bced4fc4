"""Metadata that this node built lately, decoded: the next commit to the same table need not decode it again.

May import `model` and `formats`. A value is found by the very version it was built for and is never changed, so it
cannot be stale; it is only a decoding saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.model.entities import Document

ENTRIES_MAX = 1_000
BODY_BYTES_MAX = 64 << 10


class RecentMetadata:
    """Decoded metadata by table; one version of each, the newest built here."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[str, Json]] = {}

    def get(self, document: Document) -> Json | None:
        """Return the document decoded, if it is the one that was built here last."""
        found = self._kept.get(document.node_id)
        return found[1] if found is not None and found[0] == document.metadata_location else None

    def put(self, document: Document, metadata: Json) -> None:
        """Keep what a commit built; the oldest goes when there are too many."""
        if len(document.body) > BODY_BYTES_MAX:
            return
        self._kept.pop(document.node_id, None)
        if len(self._kept) >= ENTRIES_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[document.node_id] = (document.metadata_location, metadata)
