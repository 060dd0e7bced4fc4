"""Numbers in addresses and queries: ids, limits, seconds.

May import msgspec and the standard library only. Knows no refusal: what is no number here is None, and the route says what it wanted.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

ID_MAX: Final = 2**53
"""No store draws a larger id, and every client can hold it."""
Attempt = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
"""The number of a run's attempt."""
_DIGITS_MAX: Final = len(str(ID_MAX))


def number_of(text: str, most: int = ID_MAX) -> int | None:
    """Read a whole number from 0 to `most`; None for anything else, however many zeros it begins with."""
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        return None
    number = int(text)
    return number if number <= most else None
