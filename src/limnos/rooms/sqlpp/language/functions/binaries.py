# SPDX-License-Identifier: Apache-2.0
"""Functions on binary values, such as `parse_binary` and `sub_binary`.

Must not know plans. The result is NULL for a value that is not binary. In strings, binaries are encoded in base 16 or
64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import character_cost, product_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import MISSING, Value


@scalar("parse_binary", least=2, cost=character_cost)
def parse_binary(text: Value, form: Value) -> Value:
    """Decode a string to a binary; `form` is the encoding, `hex` or `base64`. NULL if the string is malformed."""
    if not isinstance(text, str) or not isinstance(form, str):
        return None
    try:
        if form.lower() == "hex":
            return binascii.unhexlify(text)
        return base64.b64decode(text, validate=True) if form.lower() == "base64" else None
    except (binascii.Error, ValueError):
        return None


@scalar("print_binary", least=2, cost=character_cost)
def print_binary(value: Value, form: Value) -> Value:
    """Encode a binary as a string; `form` is the encoding, `hex` or `base64`."""
    if not isinstance(value, bytes) or not isinstance(form, str):
        return None
    if form.lower() == "hex":
        return value.hex().upper()
    return base64.b64encode(value).decode() if form.lower() == "base64" else None


@scalar("binary_length", least=1, cost=character_cost)
def binary_length(value: Value) -> Value:
    """Return the length of a binary in bytes."""
    return len(value) if isinstance(value, bytes) else None


@scalar("sub_binary", least=2, most=3, cost=character_cost)
def sub_binary(value: Value, first: Value, *length: Value) -> Value:
    """Return a part of a binary from a 0-based offset, up to the end or of a given length.

    A range beyond the binary is cut to it.
    """
    start, count = to_integer(first), to_integer(length[0]) if length else None
    if not isinstance(value, bytes) or start is None or (length and count is None):
        return None
    stop = len(value) if count is None else start + max(count, 0)
    return value[max(start, 0) : max(stop, 0)]


@scalar("binary_concat", least=1, cost=character_cost)
def binary_concat(values: Value) -> Value:
    """Return the concatenation of an array of binaries.

    It is MISSING if an item is MISSING, else NULL if an item is not binary.
    """
    result = items(values)
    if result is None:
        return None
    if any(value is MISSING for value in result):
        return MISSING
    parts = [each for each in result if isinstance(each, bytes)]
    return b"".join(parts) if len(parts) == len(result) else None


def _register_reader(name: str) -> None:
    """Register the function that decodes a binary from a string in a format; it returns a binary argument unchanged."""

    def run(value: Value) -> Value:
        return value if isinstance(value, bytes) else parse_binary(value, name)

    scalar(name, least=1, cost=character_cost)(run)


_register_reader("hex")
_register_reader("base64")


def _digest(value: Value) -> bytes | None:
    return hashlib.sha1(value.encode(), usedforsecurity=False).digest() if isinstance(value, str) else None


@scalar("sha1_hex", least=1, cost=character_cost)
def sha1_hex(value: Value) -> Value:
    """Return the SHA-1 digest of a string's UTF-8 bytes, in base 16."""
    digest = _digest(value)
    return None if digest is None else digest.hex().upper()


@scalar("sha1_base64", least=1, cost=character_cost)
def sha1_base64(value: Value) -> Value:
    """Return the SHA-1 digest of a string's UTF-8 bytes, in base 64."""
    digest = _digest(value)
    return None if digest is None else base64.b64encode(digest).decode()


@scalar("find_binary", least=2, most=3, cost=product_cost)
def find_binary(value: Value, part: Value, *first: Value) -> Value:
    """Return the 0-based offset of the first occurrence of a binary in another, from a start offset; -1 if there is
    none.
    """
    start = to_integer(first[0]) if first else 0
    if not isinstance(value, bytes) or not isinstance(part, bytes) or start is None:
        return None
    return value.find(part, max(start, 0))
