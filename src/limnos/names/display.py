# SPDX-License-Identifier: Apache-2.0
r"""The display form of names for messages: parts are back-quoted where needed, so that the form can be parsed.

Must not know callers. A part is unquoted if it is an ASCII letter or `_` followed by letters, digits, `_` or `$`; else
it is in back-quotes with back-quote and `\` escaped by `\` (AsterixDB's rule since 2020, applied to each part
separately). Control characters are escaped too, so that a name cannot forge a line of a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from limnos.names.errors import InvalidName
from limnos.names.parts import PARTS_MAX, check_part, quote_for_message

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_ESCAPED = re.compile("[`\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "`": "\\`", "\\": "\\\\"}
_LONG = {short[1]: character for character, short in _SHORT.items()} | {"/": "/", '"': '"'}

# One part: quoted, or bare. Unusual bare parts are accepted ("1a", "é", "a-b"); likely mistakes are refused.
_PART = re.compile(r"`(?P<quoted>(?:[^`\\]|``|\\.)*)`|(?P<bare>[^`\\.\s\"']+)", re.DOTALL)
_UNIT = re.compile(r"``|\\u[0-9A-Fa-f]{4}|\\.", re.DOTALL)


def render_part(part: str) -> str:
    """Return a part in display form, back-quoted if needed.

    Never raises: a message may have to show a part that is not allowed.
    """
    return part if _BARE.fullmatch(part) else quote_part(part)


def quote_part(part: str) -> str:
    """Return a part in back-quotes, even if it needs none."""
    return f"`{_ESCAPED.sub(_escape, part)}`"


def render(parts: Iterable[str]) -> str:
    """Return the parts joined by `.`, each back-quoted where needed."""
    return ".".join(map(render_part, parts))


def parse(text: str) -> tuple[str, ...]:
    r"""Return the parts of a display form.

    Inside back-quotes a doubled back-quote, backslash with one of `` ` `` `\` `/` `"` `b` `f` `n` `r` `t`, and `\uXXXX`
    are escapes. Raises InvalidName for an unclosed quote, an unknown escape, an empty part, a part that is not allowed
    as a name, or too many parts.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise _no_part(text, position)
        parts.append(check_part(_unquote(match["quoted"]) if match["bare"] is None else match["bare"]))
        position = match.end()
        if position == len(text):
            return _check_count(parts)
        if text[position] != ".":
            raise InvalidName(
                "bad-quotes",
                f"The name {quote_for_message(text)} has {quote_for_message(text[position])} at character"
                f" {position + 1} where '.' or the end belongs. Put a part with special characters in back-quotes.",
            )
        position += 1


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _unquote(body: str) -> str:
    part = _UNIT.sub(_unescape, body)
    # A surrogate pair \uXXXX\uXXXX becomes one character. `check_part` refuses a lone surrogate.
    return part if part.isascii() else part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescape(match: re.Match[str]) -> str:
    unit = match[0]
    if unit == "``":
        return "`"
    if len(unit) == 6:
        return chr(int(unit.removeprefix("\\u"), base=16))
    try:
        return _LONG[unit[1]]
    except KeyError:
        raise InvalidName(
            "bad-escape", f"Unknown escape {quote_for_message(unit)} in a quoted name. Write '\\\\' for a backslash."
        ) from None


def _no_part(text: str, position: int) -> InvalidName:
    if text.startswith("`", position):
        return InvalidName(
            "bad-quotes", f"The name {quote_for_message(text)} has a back-quote that is never closed. Close it."
        )
    if position == len(text) or text[position] == ".":
        return InvalidName(
            "empty-part",
            f"The name {quote_for_message(text)} has an empty part at character {position + 1}. Remove a dot.",
        )
    return InvalidName(
        "bad-quotes",
        f"The name {quote_for_message(text)} holds {quote_for_message(text[position])} outside back-quotes. Put that"
        " part in back-quotes.",
    )


def _check_count(parts: list[str]) -> tuple[str, ...]:
    if len(parts) > PARTS_MAX + 2:  # a metalake and a catalog in front
        raise InvalidName(
            "too-many-parts", f"The name has {len(parts)} parts; the limit is {PARTS_MAX} below a catalog."
        )
    return tuple(parts)
