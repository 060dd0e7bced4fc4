"""Lance's spelling of an identifier: a list of names, or one string joined by a delimiter that each request chooses.

May import `errors`, `parts` and `percent`. Must not know what the first level means (a catalog, to our server). The
root is the empty list, and the delimiter by itself as a string.
"""

from __future__ import annotations

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_levels, quote_for_message
from limnos.names.percent import quote, unquote_strict

DELIMITER_DEFAULT = "$"


def check_delimiter(delimiter: str) -> str:
    """The delimiter if it can be used: one or more characters, none of them a control character or lone surrogate."""
    if delimiter and delimiter.isprintable():
        return delimiter
    raise InvalidName(
        "bad-separator",
        f"The delimiter {quote_for_message(delimiter)} cannot be used. Send one or more visible characters, as '$'.",
    )


def join(levels: Levels, *, delimiter: str = DELIMITER_DEFAULT) -> str:
    """The string identifier. Raises InvalidName when it could be read as other levels."""
    check_delimiter(delimiter)
    if not check_levels(levels):
        return delimiter
    for part in levels:
        if delimiter in part:
            raise _holds(part, delimiter)
    text = delimiter.join(levels)
    if tuple(text.split(delimiter)) != levels:  # ("a:", "b") with "::" would read as ("a", ":b")
        raise _holds(text, delimiter)
    return text


def split(text: str, *, delimiter: str = DELIMITER_DEFAULT) -> Levels:
    """The list identifier; `()` for the root, which is the delimiter itself or nothing.

    Raises InvalidName for an empty part (`a$`, `$a`, `$$`) and for parts that the tree refuses.
    """
    check_delimiter(delimiter)
    if text in ("", delimiter):
        return ()
    parts = text.split(delimiter)
    if "" in parts:
        raise InvalidName(
            "empty-part",
            f"The identifier {quote_for_message(text)} has an empty part after splitting by {quote_for_message(delimiter)}. Remove a delimiter.",
        )
    return check_levels(parts)


def decode_path(raw: bytes, *, delimiter: str = DELIMITER_DEFAULT) -> Levels:
    """The list identifier of a raw path segment; an escaped delimiter and a bare one mean the same."""
    return split(unquote_strict(raw), delimiter=delimiter)


def encode_path(levels: Levels, *, delimiter: str = DELIMITER_DEFAULT) -> str:
    """The path segment of a list identifier."""
    return quote(join(levels, delimiter=delimiter))


def same(path: Levels, body: Levels) -> bool:
    """Whether a path's identifier is the body's: equal, or equal once `+` is read as a space.

    The native client form-encodes the path, so that a space arrives as `+`; the body tells which was meant.
    """
    return path == body or tuple(part.replace("+", " ") for part in path) == body


def _holds(text: str, delimiter: str) -> InvalidName:
    return InvalidName(
        "separator-in-part",
        f"{quote_for_message(text)} cannot be told apart with the delimiter {quote_for_message(delimiter)}. Use a delimiter that no part holds, "
        "or a list identifier.",
    )
