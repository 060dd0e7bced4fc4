# SPDX-License-Identifier: Apache-2.0
"""Broken statements: any text is parsed or refused with a position, in time proportional to its length."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import pytest

from limnos.names.sqlpp import KEYWORDS, SOFT
from limnos.rooms.sqlpp.language import SqlppError, outline, parse, render
from limnos.rooms.sqlpp.language.lexer import TokenizedText
from tests.rooms.sqlpp.language.random_statements import Statements

STATEMENTS = int(os.environ.get("LIMNOS_TEST_STATEMENTS", "300"))

_WORDS = [
    *sorted(KEYWORDS | SOFT),
    *"(){}[],.;:?@#*/+-=<>%^",
    "{{",
    "}}",
    "||",
    "~=",
    "1",
    "'s'",
    "`q`",
    "$p",
    "x",
    "1.5",
    "pre-sorted",
]
_CHARACTERS = "abcEef019_$`'\"\\{}[]().,;:?@#*/+-=<>!%^|~& \t\r\n\u00a0é日😀\x00\ufeff\ud800"


def refusal(text: str) -> SqlppError | None:
    """Return the error of a text; a text without an error is printed and parsed again."""
    try:
        parsed = parse(text)
    except SqlppError as error:
        return error
    for one in parsed:
        assert outline(parse(render(one.statement))[0].statement) == outline(one.statement), text
    return None


def read_or_refuse(text: str) -> None:
    """Parse a text; an error must be one of the language, with a position in the text and a printable message."""
    error = refusal(text)
    if error is None:
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert error.code in ("ASX1001", "ASX1079"), text
    assert error.place is not None, text
    assert 1 <= error.place.line <= len(lines), text
    assert 1 <= error.place.column <= len(lines[error.place.line - 1]) + 2, text
    assert error.text.encode(), text


def images(text: str) -> list[str]:
    """The tokens of a text, as written."""
    return [token.image for token in TokenizedText(text).tokens[:-1]]


def test_statements_with_broken_tokens_are_parsed_or_refused() -> None:
    """Statements with tokens removed, doubled, swapped and inserted are parsed or refused."""
    for seed in range(STATEMENTS):
        chance = random.Random(seed)
        words = images(Statements(seed).statement())
        for _ in range(chance.randint(1, 3)):
            index = chance.randrange(len(words) + 1)
            words[index : index + chance.randint(0, 2)] = chance.choices(_WORDS, k=chance.randint(0, 2))
        read_or_refuse(" ".join(words))


def test_statements_with_broken_characters_are_parsed_or_refused() -> None:
    """Statements with changed characters, and truncated ones, are parsed or refused."""
    for seed in range(STATEMENTS):
        chance = random.Random(seed)
        text = list(Statements(seed).statement())
        for _ in range(chance.randint(1, 4)):
            index = chance.randrange(len(text) + 1)
            text[index : index + chance.randint(0, 1)] = chance.choice(_CHARACTERS)
        read_or_refuse("".join(text[: chance.choice((None, chance.randrange(len(text) + 1)))]))


def test_random_words_are_parsed_or_refused() -> None:
    """Words in random order are parsed or refused."""
    for seed in range(STATEMENTS):
        chance = random.Random(seed)
        read_or_refuse(" ".join(chance.choices(_WORDS, k=chance.randint(1, 30))))


def test_random_bytes_are_parsed_or_refused() -> None:
    """Random bytes, decoded as text, are parsed or refused."""
    for seed in range(STATEMENTS):
        chance = random.Random(seed)
        text = chance.randbytes(chance.randint(0, 60)).decode(chance.choice(("latin-1", "utf-8")), "replace")
        read_or_refuse(text)


REPEATED = {
    "sum": ("1", "+1", ""),
    "and": ("a", " and b", ""),
    "path": ("a", ".b", ""),
    "index": ("a", "[0]", ""),
    "array": ("[1", ",1", "]"),
    "object": ("{'a':1", ",'a':1", "}"),
    "case": ("case", " when a then b", " end"),
    "union": ("select 1", " union all select 1", ""),
    "join": ("select 1 from a", " join b on c", ""),
    "projections": ("select a", ",a", ""),
    "groups": ("select 1 from a group by b", ",(b)", ""),
    "calls": ("f(1", ",g.h()", ")"),
    "statements": ("use a", ";use b", ""),
    "semicolons": ("", ";", ""),
    "string": ("'", "a", "'"),
    "escapes": ("'", "\\n", "'"),
    "quotes": ("'", "''", "'"),
    "open string": ("'", "\\n", ""),
    "identifier": ("a", "b", ""),
    "digits": ("1", "1", ""),
    "comments": ("", "/*", ""),
    "closed comments": ("", "/**/", ""),
    "lines": ("", "\n", "a b"),
    "dots": ("", ".", ""),
    "braces": ("", "{", ""),
    "minus": ("1", "- ", ""),
    "between": ("a", " between 1 and", ""),
}


def calls_of(work: Callable[[], object]) -> int:
    """Return the number of calls of Python and C functions during some work."""
    count = 0

    def seen(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def attempt(text: str) -> str:
    """Parse a text and print it, or return the error."""
    try:
        return ";".join(render(one.statement) for one in parse(text))
    except SqlppError as error:
        return error.text


@pytest.mark.parametrize("kind", REPEATED)
def test_parsing_work_is_linear_in_text_length(kind: str) -> None:
    """Four times the text takes at most four times the calls, to parse and print it or to refuse it."""
    before, again, after = REPEATED[kind]
    short, long = (before + again * times + after for times in (1000, 4000))

    once, more = calls_of(lambda: attempt(short)), calls_of(lambda: attempt(long))

    assert more <= 4.2 * once + 200
