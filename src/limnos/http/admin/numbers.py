# SPDX-License-Identifier: Apache-2.0
"""Non-negative integers in URL paths and query parameters: ids, limits, seconds.

An invalid number is None, and the route builds the error.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

ID_MAX: Final = 2**53
"""The maximum id: no store assigns a larger one, and every client can represent it."""
Attempt = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
"""The number of a run's attempt."""
_DIGITS_MAX: Final = len(str(ID_MAX))


def number_of(text: str, most: int = ID_MAX) -> int | None:
    """Parse an integer from 0 to `most`. Returns None for anything else, and for too many leading zeros."""
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        return None
    number = int(text)
    return number if number <= most else None
