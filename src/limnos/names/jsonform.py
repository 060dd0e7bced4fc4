# SPDX-License-Identifier: Apache-2.0
"""The JSON encoding of names in SQL++ REST: one part is a string, several parts are an array; an HTTP parameter is
repeated for each part.

Must not split strings: a string is always one part, even with dots (design document "seed 4").
"""

from __future__ import annotations

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_some_levels

_WORDS = {
    "NoneType": "null",
    "bool": "a boolean",
    "int": "a number",
    "float": "a number",
    "str": "text",
    "list": "an array",
    "dict": "an object",
}


def encode(levels: Levels) -> str | list[str]:
    """Return the JSON value of a name: a string for one part, else a list.

    Raises InvalidName for an empty name or an invalid part.
    """
    levels_checked = check_some_levels(levels)
    return levels_checked[0] if len(levels_checked) == 1 else list(levels_checked)


def decode(value: object) -> Levels:
    """Return the levels of a decoded JSON value.

    Raises InvalidName for a value other than a string or a list of strings, an empty list, or an invalid part.
    """
    if isinstance(value, str):
        return check_some_levels((value,))
    return decode_array(value)


def decode_array(value: object) -> Levels:
    """Return the levels of a JSON array of strings. Raises InvalidName for any other value, an empty array, or an
    invalid part.
    """
    if not isinstance(value, list):
        raise InvalidName("bad-type", f"A name must be a string or an array of strings, not {_json_word(value)}.")
    texts: list[str] = []
    for item in value:
        if not isinstance(item, str):
            raise InvalidName("bad-type", f"Each part of a name must be a string, not {_json_word(item)}.")
        texts.append(item)
    return check_some_levels(texts)


def _json_word(value: object) -> str:
    return _WORDS.get(type(value).__name__, type(value).__name__)
