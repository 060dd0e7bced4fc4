"""Functions of binary values."""

from __future__ import annotations

import pytest

from limnos.sqlpp.values.model import Value
from tests.sqlpp.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        ("parse_binary('ABCDEF0123456789', 'hex')", bytes.fromhex("ABCDEF0123456789")),
        ("parse_binary('qw==', 'base64')", b"\xab"),
        ("parse_binary('xyz', 'hex')", None),
        ("parse_binary('a', 'base64')", None),
        ("parse_binary('00', 'octal')", None),
        ("print_binary(parse_binary('abcd', 'hex'), 'hex')", "ABCD"),
        ("print_binary(parse_binary('abcd', 'hex'), 'base64')", "q80="),
        ("print_binary('x', 'hex')", None),
        ("binary_length(parse_binary('00AA', 'hex'))", 2),
        ("binary_length('x')", None),
        ("sub_binary(parse_binary('AABBCCDD', 'hex'), 2)", b"\xcc\xdd"),
        ("sub_binary(parse_binary('AABBCCDD', 'hex'), 1, 2)", b"\xbb\xcc"),
        ("sub_binary(parse_binary('AABB', 'hex'), -1, 2)", b"\xaa"),
        ("sub_binary(parse_binary('AABB', 'hex'), 9)", b""),
        ("sub_binary(parse_binary('AABB', 'hex'), 0, 'x')", None),
        ("binary_concat([parse_binary('AA', 'hex'), parse_binary('BB', 'hex')])", b"\xaa\xbb"),
        ("binary_concat([parse_binary('AA', 'hex'), 'x'])", None),
        ("binary_concat('x')", None),
    ],
)
def test_value(text: str, expected: Value) -> None:
    """Text in two bases, lengths, parts."""
    assert value(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("hex('aaBB')", b"\xaa\xbb"),
        ("base64('q7s=')", b"\xab\xbb"),
        ("hex('a')", None),
        ("hex(hex('00'))", b"\x00"),
        ("hex(1)", None),
    ],
)
def test_binaries_from_text(text: str, expected: Value) -> None:
    """NULL for malformed text; a binary stays as it is."""
    assert value(text) == expected
