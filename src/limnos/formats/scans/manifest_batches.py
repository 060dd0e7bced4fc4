# SPDX-License-Identifier: Apache-2.0
"""Splits the manifests of a scan into batches, each of which is one plan task, read and returned by one request.

Must not know the content of manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from limnos.formats.scans.request import ManifestSummary

BYTES_MAX: Final = 16 << 20
"""The maximum total size of manifests in one batch, in bytes, by the lengths in the manifest list."""
RESPONSE_BYTES_MAX: Final = 128 << 20
"""The maximum size of one response, in bytes: each file comes with its residual filter."""
RESPONSE_TOO_LARGE: Final = (
    f"One response of this plan exceeds {RESPONSE_BYTES_MAX} bytes: shorten the filter, ask for statistics of fewer"
    " fields, or have the table's manifests rewritten"
)
_FILTERS_BYTES: Final = 16 << 20
"""The approximate limit in bytes of the filters in one batch's response: with a long filter, batches have fewer
files.
"""
UNTOLD_FILES: Final = 1_000
"""The assumed number of files of a manifest if its list does not state it."""


def manifest_batches(
    manifests: Sequence[ManifestSummary], *, files_max: int, filter_bytes: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield the batches as index ranges (first, exclusive end). A manifest that is too large is a batch of its own."""
    first, files, size = 0, 0, 0
    files_max = min(files_max, max(1, _FILTERS_BYTES // max(1, filter_bytes)))
    for at, each in enumerate(manifests):
        count = UNTOLD_FILES if each.files < 0 else each.files
        if at > first and (files + count > files_max or size + each.length > BYTES_MAX):
            yield first, at
            first, files, size = at, 0, 0
        files += count
        size += each.length
    if first < len(manifests):
        yield first, len(manifests)
