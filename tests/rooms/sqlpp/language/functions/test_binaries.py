# SPDX-License-Identifier: Apache-2.0
"""Functions of binary values."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.values.model import MISSING, Value
from tests.rooms.sqlpp.language.evaluation import value


@pytest.mark.parametrize(
    "text,expected",
    [
        (
            (
                "[find_binary(hex('aabbccddaa'), hex('aa')), find_binary(hex('aabb'), hex('aa'), 1),"
                " find_binary(hex('aa'), hex(''))]"
            ),
            (0, -1, 0),
        ),
        ("[find_binary(hex('aabb'), hex('bb'), -1), find_binary(hex('aabb'), 1)]", (1, None)),
        ("sha1_hex('asterix')", "35BC6C28BCA27FBECC144761D32D09986876438F"),
        ("sha1_base64('asterix')", "NbxsKLyif77MFEdh0y0JmGh2Q48="),
        ("[sha1_hex(1), sha1_base64(1)]", (None, None)),
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
        ("binary_concat([parse_binary('AA', 'hex'), null])", None),
        ("binary_concat([null, parse_binary('AA', 'hex'), missing])", MISSING),
        ("binary_concat('x')", None),
    ],
)
def test_binary_functions_return_expected_values(text: str, expected: Value) -> None:
    """Conversions of hex and base64 text, lengths, and substrings."""
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
def test_malformed_binary_text_gives_null(text: str, expected: Value) -> None:
    """Malformed text gives NULL; a binary value is unchanged."""
    assert value(text) == expected
