# SPDX-License-Identifier: Apache-2.0
"""Digests of stored metadata documents, which show whether a document is still what was written.

Must not know statements. A digest is a CRC-32C, which detects each change of up to 32 bits in a row, and the document's
version beside it. A digest of another version was left by a release without digests, which writes documents but not
their digests: it says nothing, like NULL.
"""

from __future__ import annotations

from typing import Final

import google_crc32c

from limnos.model.entities import MetadataDocument
from limnos.model.errors import StoreDamaged

_VERSION_BITS: Final = 31
_CRC_BITS: Final = 32
_KIND: Final = -1 << (_VERSION_BITS + _CRC_BITS)
"""The sign of digests by CRC-32C. Digests without it are by another function, and say nothing."""

WITHOUT_DIGEST: Final = "digest IS NULL OR digest >> 32 <> version % 2147483648 - 2147483648"
"""The condition of documents that have no digest of their version, because an older release wrote them."""


def digest_of(document: MetadataDocument, *, version: int) -> int:
    """Return the digest of a document that is stored as `version`, as a negative integer of 64 bits."""
    head = f"{document.uuid}\n{document.location}\n{document.metadata_location}".encode()
    crc: int = google_crc32c.extend(google_crc32c.value(head), document.body)
    return _stamp(version) | crc


def is_intact(document: MetadataDocument, digest: int | None) -> bool:
    """Return whether a document is what was written, or its digest is unknown."""
    if digest is None or digest >> _CRC_BITS != _stamp(document.version) >> _CRC_BITS:
        return True
    return digest == digest_of(document, version=document.version)


def require_intact(document: MetadataDocument, digest: int | None) -> MetadataDocument:
    """Return the document. Raises StoreDamaged if it is not what was written."""
    if is_intact(document, digest):
        return document
    raise StoreDamaged(
        "The stored metadata of this table or view is damaged: an operator runs 'limnos server check', and restores a"
        " backup",
        node_id=document.node_id,
        version=document.version,
    )


def _stamp(version: int) -> int:
    return _KIND | (version & ((1 << _VERSION_BITS) - 1)) << _CRC_BITS
