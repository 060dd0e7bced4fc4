# SPDX-License-Identifier: Apache-2.0
"""Spans of data files: the parts in which files are rewritten for restricted users.

Pure, without libraries of file formats, so that a server process can import it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SPAN_BYTES: Final = 64 << 20
"""The size of the spans in which a data file is rewritten, in bytes."""
_ENDLESS: Final = 1 << 62


class FileSpan(NamedTuple):
    """A part of a data file: the row groups whose middle is in the bytes from `start` to before `end`."""

    start: int
    end: int


def span_count(size: int) -> int:
    """Return the number of spans of a file of `size` bytes."""
    return max(1, -(-size // SPAN_BYTES))


def file_spans(size: int) -> list[FileSpan]:
    """Return the spans of a file of `size` bytes. Each row group is in exactly one of them, even if `size` is wrong."""
    starts = range(0, max(size, 1), SPAN_BYTES)
    return [FileSpan(start, _ENDLESS if start == starts[-1] else start + SPAN_BYTES) for start in starts]
