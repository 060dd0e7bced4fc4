# SPDX-License-Identifier: Apache-2.0
"""The cache of decoded metadata: lookups are by exact version, and the size is limited."""

from __future__ import annotations

import pytest

from limnos.model.entities import MetadataDocument
from limnos.services.request import recent_metadata
from limnos.services.request.recent_metadata import RecentMetadata


def document(node_id: int, version: int = 1, *, size: int = 100) -> MetadataDocument:
    """Return a version of a table."""
    return MetadataDocument(
        node_id=node_id,
        version=version,
        uuid="uuid",
        location="file:///t",
        metadata_location=f"file:///t/metadata/{version}.json",
        body=b"x" * size,
    )


def test_other_version_or_table_is_a_cache_miss() -> None:
    """Another version or another table is a cache miss."""
    cache = RecentMetadata()

    cache.put(document(1), {"version": 1})
    cache.put(document(1, 2), {"version": 2})

    assert cache.get(document(1, 2)) == {"version": 2}
    assert cache.get(document(1)) is None
    assert cache.get(document(2)) is None


def test_oldest_entries_are_evicted_beyond_the_byte_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is limited in bytes and evicts the oldest entries. A new commit renews a table's entry."""
    monkeypatch.setattr(recent_metadata, "BYTES_MAX", 350)
    cache = RecentMetadata()
    for node_id in (1, 2, 3):
        cache.put(document(node_id), {"id": node_id})
    cache.put(document(1, 2), {"id": 1})

    cache.put(document(4), {"id": 4})

    assert cache.get(document(2)) is None
    assert [cache.get(each) for each in (document(3), document(1, 2), document(4))] == [{"id": 3}, {"id": 1}, {"id": 4}]


def test_long_documents_are_not_cached() -> None:
    """Long documents are not cached."""
    cache = RecentMetadata()

    cache.put(document(1, size=recent_metadata.BODY_BYTES_MAX + 1), {})

    assert cache.get(document(1, size=recent_metadata.BODY_BYTES_MAX + 1)) is None
