# SPDX-License-Identifier: Apache-2.0
"""Rules for one part of a name, and for a list of parts, that apply in every encoding; the folded form of a name.

Must not know any encoding: codecs check parts after decoding and before encoding.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from limnos.names.errors import InvalidName

Levels = tuple[str, ...]
"""The parts below a catalog, outermost first; empty for the catalog itself."""

PART_BYTES_MAX = 255
"""The maximum length of a part, in bytes of UTF-8."""

PARTS_MAX = 32
"""The maximum number of parts below a catalog, including the object's own name."""

_FORBIDDEN = re.compile("[\x00\x01\x1f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Java's \w is ASCII, so ours must be as well: "é" is not a letter to Gravitino's clients.
_METALAKE = re.compile(r"\w{1,64}", re.ASCII)
_CATALOG = re.compile(r"\w[\w-]{0,63}", re.ASCII)
_GRAVITINO = re.compile(r"\w[\w/=.-]{0,63}", re.ASCII)
_RESERVED = frozenset({"system"})


def quote_for_message(text: str) -> str:
    """Return the string in single quotes for a message. Control characters and surrogates are escaped, and a long
    string is truncated.
    """
    rendered = text if len(text) <= 80 else text[:77] + "..."
    return f"'{rendered}'" if rendered.isprintable() else f"'{rendered.encode('unicode_escape').decode('ascii')}'"


def check_part(part: str) -> str:
    """Return the part if it is allowed as a name. It is neither normalized nor trimmed.

    Raises InvalidName for "", `.`, `..`, U+0000, U+0001, U+001F, a lone surrogate, or more than 255 bytes of UTF-8.
    """
    if len(part) <= PART_BYTES_MAX and part.isascii() and part.isprintable() and part not in ("", ".", ".."):
        return part
    return _check_unusual(part)


def _check_unusual(part: str) -> str:
    if not part:
        raise InvalidName("empty-part", "A name part is empty. Give every part at least one character.")
    if part in (".", ".."):
        raise InvalidName(
            "dot-part", f"The name part '{part}' is not allowed: it is a relative step in paths. Rename it."
        )
    if _SURROGATE.search(part):
        raise InvalidName(
            "bad-utf8", f"The name part {quote_for_message(part)} holds half of a surrogate pair. Send it as UTF-8."
        )
    if match := _FORBIDDEN.search(part):
        raise InvalidName(
            "forbidden-character",
            f"The name part {quote_for_message(part)} holds U+{ord(match[0]):04X}, which is reserved for separating"
            " parts. Remove it.",
        )
    if (size := len(part.encode())) > PART_BYTES_MAX:
        raise InvalidName(
            "part-too-long",
            f"The name part {quote_for_message(part)} has {size} bytes in UTF-8; the limit is {PART_BYTES_MAX}."
            " Shorten it.",
        )
    return part


def check_levels(parts: Iterable[str]) -> Levels:
    """Return the parts as a tuple if each is allowed and there are at most 32.

    An empty tuple stands for the catalog itself. Raises InvalidName otherwise.
    """
    levels = tuple(parts)
    if len(levels) > PARTS_MAX:
        raise InvalidName("too-many-parts", f"The name has {len(levels)} parts; the limit is {PARTS_MAX}.")
    for part in levels:
        check_part(part)
    return levels


def check_some_levels(parts: Iterable[str]) -> Levels:
    """Check parts like `check_levels`, but require at least one, for encodings that cannot express the catalog itself.
    Raises InvalidName otherwise.
    """
    levels = check_levels(parts)
    if not levels:
        raise InvalidName("empty-name", "The name has no part. Give at least one.")
    return levels


def check_metalake_name(name: str) -> str:
    """Return the name if Gravitino allows it for a metalake: 1 to 64 ASCII letters, digits or `_`; `system` is
    reserved.

    Raises InvalidName otherwise.
    """
    _check_reserved(name, kind="METALAKE")
    if not _METALAKE.fullmatch(name):
        raise _pattern_error(name, kind="METALAKE", rule="1 to 64 ASCII letters, digits or '_'")
    return name


def check_catalog_name(name: str) -> str:
    """Return the name if Gravitino allows it for a catalog: the rules for a metalake, and `-` is allowed after the
    first character.

    Raises InvalidName otherwise.
    """
    _check_reserved(name, kind="CATALOG")
    if not _CATALOG.fullmatch(name):
        raise _pattern_error(name, kind="CATALOG", rule="1 to 64 ASCII letters, digits, '_' or (not first) '-'")
    return name


def check_gravitino_name(part: str, *, kind: str = "SCHEMA") -> str:
    """Return the part if Gravitino REST can create an object with it: it must be allowed as a name, and match
    Gravitino's default pattern, with `.` as a further special character.

    `kind` names the kind of object in the message. Check each part of a nested schema separately. Raises InvalidName
    otherwise.
    """
    if not _GRAVITINO.fullmatch(part):
        rule = "1 to 64 ASCII letters, digits, '_' or (not first) one of '.', '-', '/', '='"
        raise _pattern_error(part, kind=kind, rule=rule)
    return check_part(part)


def _check_reserved(name: str, *, kind: str) -> None:
    if name in _RESERVED:
        raise InvalidName("reserved-name", f"The {kind} name '{name}' is reserved. Choose another.")


def _pattern_error(name: str, *, kind: str, rule: str) -> InvalidName:
    return InvalidName("name-pattern", f"The {kind} name {quote_for_message(name)} is illegal: use {rule}.")


def fold(text: str) -> str:
    """Return the string with Unicode's full case folding applied, in normal form C (NFC), for searches.

    Names keep their case: nothing else uses the folded form.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
