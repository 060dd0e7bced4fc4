# SPDX-License-Identifier: Apache-2.0
"""Tokens: strings, numbers, comments, braces, positions, and invalid characters."""

from __future__ import annotations

import pytest

from limnos.names.sqlpp import KEYWORDS, SOFT
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.lexer import SIZE_MAX, TokenizedText


def cut(text: str) -> list[tuple[str, str]]:
    """Return the kinds and values of a text's tokens, without the end."""
    return [(token.kind, token.value) for token in TokenizedText(text).tokens[:-1]]


def refusal(text: str) -> SqlppError:
    """Return the error of a text."""
    with pytest.raises(SqlppError) as caught:
        TokenizedText(text)
    return caught.value


@pytest.mark.parametrize(
    "text,kind,value",
    [
        ("a_$1", "IDENTIFIER", "a_$1"),
        ("_", "IDENTIFIER", "_"),
        ("SeLeCt", "SELECT", "SeLeCt"),
        ("pre-Sorted", "PRE-SORTED", "pre-Sorted"),
        ("`a.b`", "QUOTED_STRING", "a.b"),
        ("`select`", "QUOTED_STRING", "select"),
        ("`a``b`", "QUOTED_STRING", "a`b"),
        (r"`a\`b`", "QUOTED_STRING", "a`b"),
        (r"`\u0041\n\\`", "QUOTED_STRING", "A\n\\"),
        ('"a\'b"', "STRING_LITERAL", "a'b"),
        ("'a\"b'", "STRING_LITERAL", 'a"b'),
        ("'it''s'", "STRING_LITERAL", "it's"),
        ('"a""b"', "STRING_LITERAL", 'a"b'),
        ("''", "STRING_LITERAL", ""),
        ("''''", "STRING_LITERAL", "'"),
        (r"'\b\f\n\r\t\/\\\''", "STRING_LITERAL", "\b\f\n\r\t/\\'"),
        (r"'\ud83d\ude00'", "STRING_LITERAL", "\U0001f600"),
        ("E'a\\n'", "STRING_LITERAL", "a\n"),
        ("'a\nb'", "STRING_LITERAL", "a\nb"),
        ("12", "INTEGER_LITERAL", "12"),
        ("1.5", "DOUBLE_LITERAL", "1.5"),
        (".5e-3", "DOUBLE_LITERAL", ".5e-3"),
        ("1e5", "DOUBLE_LITERAL", "1e5"),
        ("1.5F", "FLOAT_LITERAL", "1.5F"),
        (".5f", "FLOAT_LITERAL", ".5f"),
        ("2f", "FLOAT_LITERAL", "2f"),
        ("$a", "DOLLAR_IDENTIFIER", "a"),
        ("$`a b`", "DOLLAR_IDENTIFIER", "a b"),
        ("$12", "DOLLAR_INTEGER_LITERAL", "12"),
        ("?", "?", "?"),
        ("<>", "<>", "<>"),
        ("||", "||", "||"),
        ("~=", "~=", "~="),
    ],
)
def test_each_token_has_its_kind_and_value(text: str, kind: str, value: str) -> None:
    """Each kind of token has the expected kind and value."""
    assert cut(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text,kinds",
    [
        ("1foo", "FLOAT_LITERAL IDENTIFIER"),
        ("a.1", "IDENTIFIER DOUBLE_LITERAL"),
        ("a.b", "IDENTIFIER . IDENTIFIER"),
        ("1.e", "INTEGER_LITERAL . IDENTIFIER"),
        ("1..2", "INTEGER_LITERAL . DOUBLE_LITERAL"),
        ("...", ". . ."),
        ("a- -b", "IDENTIFIER - - IDENTIFIER"),
        ("a--b\nc", "IDENTIFIER IDENTIFIER"),
        ("a//b\rc", "IDENTIFIER IDENTIFIER"),
        ("a /* b /* c */ d */ e", "IDENTIFIER IDENTIFIER"),
        ("a<=b", "IDENTIFIER <= IDENTIFIER"),
        ("'a' 'b'", "STRING_LITERAL STRING_LITERAL"),
        ("E'a''b'", "STRING_LITERAL STRING_LITERAL"),
        ("{'x':{'y':1}}", "{ STRING_LITERAL : { STRING_LITERAL : INTEGER_LITERAL } }"),
        ("{{{'y':1}}}", "{{ { STRING_LITERAL : INTEGER_LITERAL } }}"),
        ("{{ {'y':{}}}}", "{{ { STRING_LITERAL : { } } }}"),
        ("{ {{1}} }", "{ {{ INTEGER_LITERAL }} }"),
    ],
)
def test_longest_token_is_read_and_comments_are_skipped(text: str, kinds: str) -> None:
    """The longest token is read, two braces are one token only if a multiset is open, and comments are skipped."""
    assert " ".join(kind for kind, _ in cut(text)) == kinds


def test_token_positions_count_lines_and_characters() -> None:
    """All line ends count, columns count characters, and the end is at the last character."""
    lexed = TokenizedText("a\r\n\t'日' 'x\ny' c\rd\n  ")

    assert [tuple(token.place) for token in lexed.tokens] == [(1, 1), (2, 2), (2, 6), (3, 4), (4, 1), (5, 2)]
    assert [lexed.line(number) for number in range(1, 6)] == ["a", "\t'日' 'x", "y' c", "d", "  "]


def test_hints_are_retained_with_their_position() -> None:
    """A comment that begins with a plus is a hint and kept with its position; other comments are dropped."""
    hints = TokenizedText("a /*+ indexnl */ = /* + no */\n /*+b*/ c").hints

    assert [(hint.text, tuple(hint.place)) for hint in hints] == [("indexnl", (1, 3)), ("b", (2, 2))]


@pytest.mark.parametrize(
    "text,message",
    [
        ("select ! x", 'Lexical error at line 1, column 8.  Encountered: "!" (33), after : ""'),
        ("\n é", 'Lexical error at line 2, column 2.  Encountered: "é" (233), after : ""'),
        ("a \x00", 'Lexical error at line 1, column 3.  Encountered: "\\u0000" (0), after : ""'),
        ("'ab", 'Lexical error at line 1, column 4.  Encountered: <EOF>, after : "\\\'ab"'),
        ("'a\\q'", 'Lexical error at line 1, column 4.  Encountered: "q" (113), after : "\\\'a\\\\"'),
        ("'\\u12x4'", 'Lexical error at line 1, column 3.  Encountered: "u" (117), after : "\\\'\\\\"'),
        ("`a", 'Lexical error at line 1, column 3.  Encountered: <EOF>, after : "`a"'),
        ("/* a", 'Lexical error at line 1, column 5.  Encountered: <EOF>, after : "/* a"'),
        ("$", 'Lexical error at line 1, column 1.  Encountered: "$" (36), after : ""'),
        ("a }", 'Lexical error at line 1, column 3. Encountered "}" but state stack is empty.'),
        ("{{ } }}", 'Lexical error at line 1, column 5.  Encountered: " " (32), after : "}"'),
    ],
)
def test_invalid_character_error_has_position_and_text(text: str, message: str) -> None:
    """The error for a character that begins no token has its position and the text before it."""
    error = refusal(text)

    assert str(error) == f"ASX1001: Syntax error: {message}"
    assert error.place is not None
    assert f"line {error.place.line}, column {error.place.column}." in message


@pytest.mark.parametrize("text", [r"'\ud800'", r"'a\udc00'", "'\ud800'", r"`\ud800`"])
def test_unpaired_surrogate_in_a_string_is_refused(text: str) -> None:
    """A string with an unpaired surrogate, which UTF-8 cannot encode, is refused."""
    assert str(refusal(text)) == "ASX1001: Syntax error: Invalid string literal (in line 1, at column 1)"


@pytest.mark.parametrize("text", [" " * SIZE_MAX + "a", "'" + "é" * (SIZE_MAX // 2) + "'", "a" * (SIZE_MAX + 1)])
def test_text_beyond_the_byte_limit_is_refused(text: str) -> None:
    """The limit is in bytes and is checked before the text is read."""
    error = refusal(text)

    assert (error.code, error.place) == ("ASX1079", None)
    assert str(SIZE_MAX) in error.message


def test_text_of_the_maximum_length_is_read() -> None:
    """A text of exactly the maximum length is read."""
    assert cut("a" * SIZE_MAX) == [("IDENTIFIER", "a" * SIZE_MAX)]


def test_words_are_reserved_soft_or_ordinary() -> None:
    """A word is reserved, soft, or neither; the kind of a reserved word is the word itself."""
    assert not KEYWORDS & SOFT
    assert {cut(word)[0][0] for word in KEYWORDS} == KEYWORDS
    assert {cut(word.lower())[0][0] for word in SOFT} == {"IDENTIFIER"}
