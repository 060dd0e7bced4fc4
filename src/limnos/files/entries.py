"""What a store tells of a file in a list.

May import the standard library alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A file in a directory: its name there, its size in bytes, and when it was written, 0 when the store does not say."""

    name: str
    size: int
    modified_ms: int
