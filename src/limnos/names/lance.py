# SPDX-License-Identifier: Apache-2.0
"""Encodings of identifiers in Lance REST: a list of names, or one string joined by a delimiter that each request may
choose.

Must not know the meaning of the first level (on this server, a catalog). The root is the empty list; as a string it is
the delimiter alone.
"""

from __future__ import annotations

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_levels, quote_for_message
from limnos.names.percent import quote, unquote_strict

DELIMITER_DEFAULT = "$"


def check_delimiter(delimiter: str) -> str:
    """Return the delimiter if it is one or more printable characters. Raises InvalidName otherwise."""
    if delimiter and delimiter.isprintable():
        return delimiter
    raise InvalidName(
        "bad-separator",
        f"The delimiter {quote_for_message(delimiter)} cannot be used. Send one or more visible characters, as '$'.",
    )


def join(levels: Levels, *, delimiter: str = DELIMITER_DEFAULT) -> str:
    """Join levels to an identifier string.

    Raises InvalidName for an invalid level or delimiter, or if the string would be parsed as other levels.
    """
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
    """Parse an identifier string to a list identifier; `()` for the root, which is the delimiter alone or "".

    Raises InvalidName for an invalid delimiter, an empty part (`a$`, `$a`, `$$`), and parts that are not allowed as
    names.
    """
    check_delimiter(delimiter)
    if text in ("", delimiter):
        return ()
    parts = text.split(delimiter)
    if "" in parts:
        raise InvalidName(
            "empty-part",
            f"The identifier {quote_for_message(text)} has an empty part after splitting by"
            f" {quote_for_message(delimiter)}. Remove a delimiter.",
        )
    return check_levels(parts)


def decode_path(raw: bytes, *, delimiter: str = DELIMITER_DEFAULT) -> Levels:
    """Decode a raw path segment to a list identifier. A percent-encoded delimiter is equivalent to a literal one.

    Raises InvalidName for a malformed segment or identifier.
    """
    return split(unquote_strict(raw), delimiter=delimiter)


def encode_path(levels: Levels, *, delimiter: str = DELIMITER_DEFAULT) -> str:
    """Encode a list identifier as a path segment. Raises InvalidName like `join`."""
    return quote(join(levels, delimiter=delimiter))


def is_same_path(path: Levels, body: Levels) -> bool:
    """Return whether the identifier in the path equals the one in the body, directly or with `+` replaced by a space.

    The native client form-encodes the path, so that a space arrives as `+`; the body resolves the ambiguity.
    """
    return path == body or tuple(part.replace("+", " ") for part in path) == body


def _holds(text: str, delimiter: str) -> InvalidName:
    return InvalidName(
        "separator-in-part",
        f"{quote_for_message(text)} is ambiguous with the delimiter {quote_for_message(delimiter)}. Use a delimiter"
        " that no part contains, or a list identifier.",
    )
