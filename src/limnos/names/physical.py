"""The physical spelling: levels flattened to one string for the change feed, exports and one-level connectors.

May import `errors` and `parts`. Must not be used as a key inside: the tree has parent ids (decision record 0001).
Each part is encoded (`%`, `.` and U+0001 become `%25`, `%2E`, `%01`), then the parts are joined by U+0001.
"""

from __future__ import annotations

import re

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_some_levels, quoted

SEPARATOR = "\x01"

_CODES = {"%": "%25", ".": "%2E", SEPARATOR: "%01"}
_ENCODE = str.maketrans(_CODES)
_PLAIN = {code: character for character, code in _CODES.items()}
_TOKEN = re.compile(r"%.{0,2}|[.\x01]", re.DOTALL)


def encode_part(part: str) -> str:
    """One part, encoded. Any text, allowed in the tree or not."""
    return part.translate(_ENCODE)


def decode_part(key: str) -> str:
    """The part that encode_part made the key from. Raises InvalidName for text that encode_part cannot make."""
    return _TOKEN.sub(_decode_token, key)


def encode(levels: Levels) -> str:
    """The physical name. Raises InvalidName for levels that the tree refuses, and for none."""
    return SEPARATOR.join(map(encode_part, check_some_levels(levels)))


def decode(key: str) -> Levels:
    """The levels of a physical name. Strict: exactly the strings that encode makes are accepted."""
    return check_some_levels(map(decode_part, key.split(SEPARATOR)))


def _decode_token(found: re.Match[str]) -> str:
    try:
        return _PLAIN[found[0]]
    except KeyError:
        raise InvalidName(
            "bad-escape",
            f"The physical name holds {quoted(found[0])}: write '%', '.' and U+0001 as '%25', '%2E' and '%01', nothing else.",
        ) from None
