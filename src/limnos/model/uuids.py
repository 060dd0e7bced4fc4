# SPDX-License-Identifier: Apache-2.0
"""UUIDs of version 7 (RFC 9562) as strings, with random bits drawn for many at once.

Tables and their metadata files are named by these. Values increase with time and are adjacent in the store's indexes,
so a batch of new tables writes few pages. One system call per UUID would release and reacquire the global interpreter
lock each time.
"""

from __future__ import annotations

import os
from typing import Final

_DRAWN_AT_ONCE: Final = 256
_BYTES: Final = 10
_VARIANT: Final = bytes(0x80 | low & 0x3F for low in range(256))
"""Maps a random byte to the same byte with the variant's two highest bits (10)."""
_pool: list[str] = []


def new_uuid(now_ms: int) -> str:
    """Return a version 7 UUID for a time (ms since 1970) in canonical spelling. Thread-safe."""
    try:
        rest = _pool.pop()
    except IndexError:
        rest = _draw_suffixes()
    return f"{now_ms >> 16:08x}-{now_ms & 0xFFFF:04x}-{rest}"


def _draw_suffixes() -> str:
    """Draw the random parts of many UUIDs with one system call.

    Returns one of them, and adds the others to the pool.
    """
    drawn = bytearray(os.urandom(_BYTES * _DRAWN_AT_ONCE))
    drawn[2::_BYTES] = drawn[2::_BYTES].translate(_VARIANT)
    text = drawn.hex()
    first, *others = (
        f"7{text[at + 1 : at + 4]}-{text[at + 4 : at + 8]}-{text[at + 8 : at + 20]}"
        for at in range(0, len(text), 2 * _BYTES)
    )
    _pool.extend(others)
    return first


os.register_at_fork(after_in_child=_pool.clear)
