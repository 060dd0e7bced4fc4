# SPDX-License-Identifier: Apache-2.0
"""The display form: parts are backquoted where necessary, and the text parses back to the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import display
from tests.names.strategies import levels, refusal

VECTORS = [
    (["abz"], "abz"),
    (["a$1"], "a$1"),
    (["_x"], "_x"),
    (["select"], "select"),
    (["a-b", "c-d"], "`a-b`.`c-d`"),
    (["1a"], "`1a`"),
    (["$a"], "`$a`"),
    (["é"], "`é`"),
    (["a`b"], "`a\\`b`"),
    (["a\\b"], "`a\\\\b`"),
    (["a b", "c"], "`a b`.c"),
    ([" a"], "` a`"),
    (["a", "1b"], "a.`1b`"),
    (["a", "$b"], "a.`$b`"),
    (["a.b", "c.d"], "`a.b`.`c.d`"),
    (["a", "b", "c", "d"], "a.b.c.d"),
    (["a\nb"], "`a\\nb`"),
    (["a\x02b"], "`a\\u0002b`"),
]


@pytest.mark.parametrize("name,text", VECTORS)
def test_display_forms_match_vectors(name: list[str], text: str) -> None:
    """Each part is quoted separately where necessary, and the text parses back."""
    assert display.render(name) == text
    assert display.parse(text) == tuple(name)


@pytest.mark.parametrize(
    "text,name",
    [
        ("`a``b`", ("a`b",)),
        (r"`a\`b`", ("a`b",)),
        (r"`\\\/\"\b\f\n\r\t`", ('\\/"\b\f\n\r\t',)),
        (r"`\u0041\u00e9`", ("Aé",)),
        (r"`\ud83d\ude00`", ("😀",)),
        ("`sales`.`east`", ("sales", "east")),
        ("1a.é.a-b", ("1a", "é", "a-b")),
        ("lake.main.`a.b`", ("lake", "main", "a.b")),
        ("`\ufeffa`.b", ("\ufeffa", "b")),
    ],
)
def test_alternative_spellings_are_parsed(text: str, name: tuple[str, ...]) -> None:
    """Doubled backquotes, escapes, unnecessary quotes and bare words that would be quoted are accepted when parsing."""
    assert display.parse(text) == name


@pytest.mark.parametrize(
    "text,reason",
    [
        ("", "empty-part"),
        ("a.", "empty-part"),
        (".a", "empty-part"),
        ("a..b", "empty-part"),
        ("``", "empty-part"),
        ("`a", "bad-quotes"),
        ("`a\\`", "bad-quotes"),
        ("`a`b", "bad-quotes"),
        ("a`b`", "bad-quotes"),
        ("a b", "bad-quotes"),
        ("a.'b'", "bad-quotes"),
        (r"a\b", "bad-quotes"),
        (r"`\q`", "bad-escape"),
        (r"`\u12`", "bad-escape"),
        (r"`\u0000`", "forbidden-character"),
        (r"`\ud800`", "bad-utf8"),
        ("`..`", "dot-part"),
        (".".join("a" * 35), "too-many-parts"),
    ],
)
def test_malformed_text_is_refused(text: str, reason: str) -> None:
    """An invalid display form is refused with a reason and a message of one line."""
    error = refusal(display.parse, text)

    assert error.reason == reason
    assert error.message.isprintable()


@given(levels())
def test_round_trip(name: tuple[str, ...]) -> None:
    """Every name parses back from its display form."""
    assert display.parse(display.render(name)) == name


@given(st.text())
def test_any_text_can_be_shown_on_one_line(part: str) -> None:
    """A message can show a part that is not allowed: no part breaks the line or ends the quotes."""
    rendered_part = display.render_part(part)

    assert rendered_part.splitlines() in ([rendered_part], [])
    assert not any("\ud800" <= character <= "\udfff" for character in rendered_part)
