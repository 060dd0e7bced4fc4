"""Random UUIDs as text, drawn from the operating system many at a time.

May import nothing but the standard library. Tables and their metadata files are named by these; a system call for each
would also hand the interpreter's lock around.
"""

from __future__ import annotations

import os
from typing import Final

_DRAWN_AT_ONCE: Final = 256
_pool: list[str] = []


def new_uuid() -> str:
    """Give a version 4 UUID in its canonical spelling. Safe from any thread."""
    try:
        digits = _pool.pop()
    except IndexError:
        digits = _drawn()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _drawn() -> str:
    text = os.urandom(16 * _DRAWN_AT_ONCE).hex()
    first, *others = (text[at : at + 32] for at in range(0, len(text), 32))
    _pool.extend(others)
    return first


os.register_at_fork(after_in_child=_pool.clear)
