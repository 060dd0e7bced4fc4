"""The manifests of a scan in portions, each of which is read and told at once.

May import msgspec and this package, but not pyiceberg, so that a server may use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limnos.formats.scans.request import Listed

BYTES_MAX: Final = 16 << 20
"""Of manifests in one portion, as far as their list says how long they are."""
UNTOLD_FILES: Final = 1_000
"""Taken for a manifest whose list does not say how many files it names."""


def portions_of(manifests: Sequence[Listed], *, files_max: int) -> Iterator[tuple[int, int]]:
    """Give the manifests in portions, as the first and the one after the last; one that is too large is a portion of its own."""
    first, files, size = 0, 0, 0
    for at, each in enumerate(manifests):
        count = UNTOLD_FILES if each.files < 0 else each.files
        if at > first and (files + count > files_max or size + each.length > BYTES_MAX):
            yield first, at
            first, files, size = at, 0, 0
        files += count
        size += each.length
    if first < len(manifests):
        yield first, len(manifests)
