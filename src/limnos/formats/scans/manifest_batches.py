"""The manifests of a scan in portions, each of which is read and told at once.

May import msgspec and this package, but not pyiceberg, so that a server may use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limnos.formats.scans.request import ManifestSummary

BYTES_MAX: Final = 16 << 20
"""Of manifests in one portion, as far as their list says how long they are."""
TOLD_BYTES_MAX: Final = 128 << 20
"""Of what one answer tells: each file comes with what is left of the filter."""
TOLD_TOO_MUCH: Final = f"One answer of this plan comes to over {TOLD_BYTES_MAX} bytes: shorten the filter, ask for statistics of fewer fields, or have the table's manifests rewritten"
_FILTERS_BYTES: Final = 16 << 20
"""Of filters in the answer for one portion, about: a long filter makes for portions of fewer files."""
UNTOLD_FILES: Final = 1_000
"""Taken for a manifest whose list does not say how many files it names."""


def manifest_batches(
    manifests: Sequence[ManifestSummary], *, files_max: int, filter_bytes: int = 0
) -> Iterator[tuple[int, int]]:
    """Give the manifests in portions, as the first and the one after the last; one that is too large is a portion of its own."""
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
