"""UUIDs as text that grow with time (version 7, RFC 9562), their random bits drawn many at a time.

May import nothing but the standard library. Tables and their metadata files are named by these. What grows with time
lands side by side in the store's indexes, so that a batch of new tables writes few pages; and a system call for each
would also hand the interpreter's lock around.
"""

from __future__ import annotations

import os
from typing import Final

_DRAWN_AT_ONCE: Final = 256
_BYTES: Final = 10
_VARIANT: Final = bytes(0x80 | low & 0x3F for low in range(256))
"""A random byte with its two highest bits as the standard wants them."""
_pool: list[str] = []


def new_uuid(now_ms: int) -> str:
    """Give a version 7 UUID of a moment (ms since 1970) in its canonical spelling. Safe from any thread."""
    try:
        rest = _pool.pop()
    except IndexError:
        rest = _draw_suffixes()
    return f"{now_ms >> 16:08x}-{now_ms & 0xFFFF:04x}-{rest}"


def _draw_suffixes() -> str:
    """Draw what follows the time in many UUIDs; returns one of them, the others are for the next calls."""
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
