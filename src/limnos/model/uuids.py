"""UUIDs as text that grow with time (version 7, RFC 9562), their random bits drawn many at a time.

May import nothing but the standard library. Tables and their metadata files are named by these. What grows with time
lands side by side in the store's indexes, so that a batch of new tables writes few pages; and a system call for each
would also hand the interpreter's lock around.
"""

from __future__ import annotations

import os
from typing import Final

_DRAWN_AT_ONCE: Final = 256
_DIGITS: Final = 20
_pool: list[str] = []


def new_uuid(now_ms: int) -> str:
    """Give a version 7 UUID of a moment (ms since 1970) in its canonical spelling. Safe from any thread."""
    try:
        digits = _pool.pop()
    except IndexError:
        digits = _drawn()
    ms = f"{now_ms:012x}"
    return f"{ms[:8]}-{ms[8:]}-7{digits[:3]}-{'89ab'[int(digits[3], 16) & 3]}{digits[4:7]}-{digits[7:19]}"


def _drawn() -> str:
    text = os.urandom(_DIGITS // 2 * _DRAWN_AT_ONCE).hex()
    first, *others = (text[at : at + _DIGITS] for at in range(0, len(text), _DIGITS))
    _pool.extend(others)
    return first


os.register_at_fork(after_in_child=_pool.clear)
