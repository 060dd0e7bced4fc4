# SPDX-License-Identifier: Apache-2.0
"""Encodings of names in Iceberg REST: namespace levels joined by `%1F` in paths and queries, arrays in bodies, and the
prefix `<metalake>.<catalog>`.

Must not know routes. A path is split before it is decoded, because a level may contain any escaped character. `+` is a
space, because Java clients form-encode levels; in a segment with `%20`, which no form-encoder writes, `+` is a plus.
Each function has a fast path for names without escapes, since it runs for every read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from limnos.names import parts
from limnos.names.display import render_part
from limnos.names.errors import InvalidName
from limnos.names.jsonform import decode_array
from limnos.names.percent import quote, unquote_form, unquote_strict

SEPARATOR = "\x1f"
SEPARATOR_ADVERTISED = "%1F"
"""Value of `namespace-separator` in /v1/config: URL-encoded, as clients expect it."""

_PLAIN = re.compile(r"[^.`'\"\\\s]+")
_PREFIX = re.compile(rb"(\w{1,64})\.(\w[\w-]{0,63})")


def decode_path(raw: bytes) -> parts.Levels:
    """Decode a raw path segment to the levels of a namespace.

    Raises InvalidName for an empty level, a bad escape, bytes that are not UTF-8, a level that is not allowed as a
    name, or too many levels.
    """
    if b"%" in raw:  # escapes contain one %, so `%1F` cannot begin inside another escape
        raw = raw.replace(b"%1F", b"\x1f").replace(b"%1f", b"\x1f")
        raw = _keep_plus(raw)
    if b"%" not in raw and b"+" not in raw and raw.isascii():
        return parts.check_levels(raw.decode("ascii").split(SEPARATOR))
    return parts.check_levels(map(_decode_level, raw.split(b"\x1f")))


def decode_name(raw: bytes) -> str:
    """Decode a raw path segment to one part, such as a table name.

    Raises InvalidName for a bad escape, bytes that are not UTF-8, or a part that is not allowed, such as one with
    U+001F.
    """
    return parts.check_part(_decode_level(_keep_plus(raw)))


def keep_plus(raw: bytes) -> bytes:
    """Escape each `+` of a raw path segment of a client that does not form-encode, so that `decode_path` decodes it to
    a plus.
    """
    return raw.replace(b"+", b"%2B")


def _keep_plus(raw: bytes) -> bytes:
    return keep_plus(raw) if b"+" in raw and b"%20" in raw else raw


def encode_path(levels: parts.Levels) -> str:
    """Encode levels as a path segment, joined by `%1F`.

    Everything but ASCII letters, digits, `-`, `.`, `_` and `~` is escaped. Raises InvalidName for an empty or invalid
    namespace.
    """
    return SEPARATOR_ADVERTISED.join(map(quote, parts.check_some_levels(levels)))


def encode_name(part: str) -> str:
    """Percent-encode one part, such as a table name, as a path segment. Raises InvalidName for a part not allowed."""
    return quote(parts.check_part(part))


def decode_parent(value: bytes) -> tuple[parts.Levels, parts.Levels | None]:
    """Decode a raw `parent` query value to levels, and to an alternative in which each level is decoded twice.

    PyIceberg percent-encodes levels before it encodes the query, so a caller tries the alternative if no namespace has
    the first name. The alternative is None if it equals the first name or is invalid. An empty value stands for the
    catalog itself, `()`. Raises InvalidName like `decode_path`.
    """
    if not value:
        return (), None
    first = decode_path(value)
    return first, _decode_again(first)


def decode_body(value: object) -> parts.Levels:
    """Return the levels of a JSON array of strings. Raises InvalidName for any other value, and for an empty array."""
    return decode_array(value)


def render(levels: Iterable[str]) -> str:
    """Return levels for an error message, joined by `.` as Iceberg's clients print them.

    Some clients search messages for this form. A part is back-quoted if it contains a dot, a quote, white space or
    unprintable characters. Never raises: a message may have to show a part that is not allowed.
    """
    return ".".join(part if _PLAIN.fullmatch(part) and part.isprintable() else render_part(part) for part in levels)


def encode_prefix(metalake: str, catalog: str) -> str:
    """Return the prefix of a catalog, `<metalake>.<catalog>`: one segment that needs no escaping.

    Neither name has a dot. Raises InvalidName for an invalid name.
    """
    return f"{parts.check_metalake_name(metalake)}.{parts.check_catalog_name(catalog)}"


def decode_prefix(raw: bytes) -> tuple[str, str]:
    """Return metalake and catalog of a raw prefix segment.

    Raises InvalidName unless the segment is two names separated by a dot that match the patterns of their kinds.
    """
    match = _PREFIX.fullmatch(raw)
    if match is None and b"%" in raw:
        match = _PREFIX.fullmatch(unquote_strict(raw).encode())
    if match is None:
        raise InvalidName(
            "name-pattern",
            f"The prefix {parts.quote_for_message(raw.decode('ascii', 'backslashreplace'))} is not"
            " '<metalake>.<catalog>'. Use the prefix that /v1/config returns.",
        )
    return match[1].decode("ascii"), match[2].decode("ascii")


def decode_warehouse(text: str) -> tuple[str | None, str]:
    """Return metalake and catalog of a `warehouse` parameter: `<catalog>`, `<metalake>/<catalog>`, or
    `<metalake>.<catalog>` as in the prefix of paths.

    The metalake is None, which stands for the default metalake, if the parameter has only a catalog. Raises InvalidName
    for an invalid name.
    """
    metalake, separator, catalog = text.rpartition("/" if "/" in text else ".")
    if not separator:
        return None, parts.check_catalog_name(text)
    return parts.check_metalake_name(metalake), parts.check_catalog_name(catalog)


def _decode_level(raw: bytes) -> str:
    return unquote_form(raw) if b"%" in raw or b"+" in raw else unquote_strict(raw)


def _decode_again(levels: parts.Levels) -> parts.Levels | None:
    if not any("%" in level for level in levels):
        return None
    try:
        second = parts.check_levels([unquote_strict(level) for level in levels])
    except InvalidName:
        return None
    return None if second == levels else second
