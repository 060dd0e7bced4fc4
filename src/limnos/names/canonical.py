# SPDX-License-Identifier: Apache-2.0
"""The canonical form of SQL++ metadata: `@` before `@` and `.` in each part, parts joined by `.` (design document "seed
4").

Messages must not contain this form; they use the display form. Decoding is strict, so that names and canonical forms
are a bijection (decision record 0003).
"""

from __future__ import annotations

import re

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_some_levels, quote_for_message

_SPECIAL = re.compile(r"[@.]")
_PIECE = re.compile(r"@.?|\.|[^@.]+", re.DOTALL)


def encode_part(part: str) -> str:
    """Escape a part with `@` before each `@` and `.`. Accepts any string, even if it is not allowed as a name."""
    return _SPECIAL.sub(r"@\g<0>", part)


def encode(levels: Levels) -> str:
    """Return the canonical form: `("a.b", "c")` is `a@.b.c`.

    Raises InvalidName if `levels` is empty or a level is not allowed as a name.
    """
    return ".".join(map(encode_part, check_some_levels(levels)))


def decode(text: str) -> Levels:
    """Return the levels of a canonical form. Accepts exactly the strings that `encode` makes.

    Raises InvalidName for `@` at the end or before anything but `@` and `.`, an empty part, or a part that is not
    allowed as a name.
    """
    parts: list[str] = []
    part = ""
    for piece in _PIECE.findall(text):
        if piece == ".":
            parts.append(part)
            part = ""
        else:
            part += piece if piece[0] != "@" else _unescape(piece)
    return check_some_levels([*parts, part])


def _unescape(pair: str) -> str:
    if pair in ("@@", "@."):
        return pair[1]
    where = f"before {quote_for_message(pair[1])}" if len(pair) == 2 else "at the end"
    raise InvalidName(
        "bad-escape", f"The canonical name has '@' {where}: it is only allowed before '@' or '.'. Write '@@' for '@'."
    )
