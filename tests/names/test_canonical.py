# SPDX-License-Identifier: Apache-2.0
"""The canonical form of SQL++ metadata: `@` escapes `@` and `.`, and decoding is strict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import InvalidName, canonical
from tests.names.strategies import attempt, levels, refusal

# reference vectors 1 to 34 of the first generation, without 10 and 13, whose parts are not allowed
VECTORS = [
    (["Default"], "Default"),
    (["a", "b", "c"], "a.b.c"),
    (["sales", "east"], "sales.east"),
    (["sales.east"], "sales@.east"),
    (["a.b", "c.d"], "a@.b.c@.d"),
    (["a@.b", "c@d"], "a@@@.b.c@@d"),
    (["a@b"], "a@@b"),
    (["a.b"], "a@.b"),
    (["a@.b"], "a@@@.b"),
    (["@"], "@@"),
    (["@@"], "@@@@"),
    (["@."], "@@@."),
    ([".@"], "@.@@"),
    (["a."], "a@."),
    (["a@"], "a@@"),
    (["a.", "b"], "a@..b"),
    (["a", ".b"], "a.@.b"),
    (["a@", "b"], "a@@.b"),
    (["a", "b@"], "a.b@@"),
    (["a@@", "b"], "a@@@@.b"),
    (["a@a@", "@b@b", "@c@c"], "a@@a@@.@@b@@b.@@c@@c"),
    (["a.a.", ".b.b.", ".c.c"], "a@.a@..@.b@.b@..@.c@.c"),
    (["a@a.", "@b.b@", ".c@c"], "a@@a@..@@b@.b@@.@.c@@c"),
    (["a@@a..", "@@b..b@@", "..c@@c"], "a@@@@a@.@..@@@@b@.@.b@@@@.@.@.c@@@@c"),
    (["x", "y.z@w"], "x.y@.z@@w"),
    (["user@host.com", "inbox"], "user@@host@.com.inbox"),
    (["a b", "c"], "a b.c"),
    (["日本", "東京"], "日本.東京"),
    (["a!b", "c"], "a!b.c"),
    (["a/b"], "a/b"),
    (["a", "b/c"], "a.b/c"),
    (["a^b", "^c"], "a^b.^c"),
    (["C.D.E"], "C@.D@.E"),
    (["a-A", "b_B", "c$C", "z.Z"], "a-A.b_B.c$C.z@.Z"),
    (["a/b/c"], "a/b/c"),
]


@pytest.mark.parametrize("name,text", VECTORS)
def test_canonical_forms_match_vectors(name: list[str], text: str) -> None:
    """Each name has the canonical form of the vector, and the form decodes to the name."""
    assert canonical.encode(tuple(name)) == text
    assert canonical.decode(text) == tuple(name)


@pytest.mark.parametrize("part,text", [(".", "@."), ("..", "@.@."), ("", ""), ("a\x00", "a\x00")])
def test_parts_not_allowed_in_names_can_be_encoded(part: str, text: str) -> None:
    """Encoding also works for parts that are not allowed in names."""
    assert canonical.encode_part(part) == text


@pytest.mark.parametrize(
    "name,printed,means",
    [
        (("a.b", "c.d"), "a@.b.c@d", None),
        (("a@.b", "c@d"), "a@@@.b.c@@@@d", ("a@.b", "c@@d")),
    ],
)
def test_misprinted_seed_examples_are_never_produced(
    name: tuple[str, ...], printed: str, means: tuple[str, ...] | None
) -> None:
    """Two examples printed in seed 4 contradict its own rule: encoding never produces them, and they do not decode to
    their name.
    """
    assert canonical.encode(name) != printed
    if means is None:
        assert refusal(canonical.decode, printed).reason == "bad-escape"
    else:
        assert canonical.decode(printed) == means


@pytest.mark.parametrize(
    "text,reason",
    [
        ("a@x", "bad-escape"),
        ("x@yz.w", "bad-escape"),
        ("a@", "bad-escape"),
        ("@", "bad-escape"),
        ("a.@", "bad-escape"),
        ("a@@@", "bad-escape"),
        ("a@\n", "bad-escape"),
        ("", "empty-part"),
        (".", "empty-part"),
        ("..", "empty-part"),
        (".a", "empty-part"),
        ("a.", "empty-part"),
        ("a..b", "empty-part"),
        ("@.", "dot-part"),
        ("@.@.", "dot-part"),
    ],
)
def test_malformed_forms_are_refused(text: str, reason: str) -> None:
    """A stray escape and an empty part are refused, although AsterixDB once accepted them."""
    assert refusal(canonical.decode, text).reason == reason


@pytest.mark.parametrize("name", [("",), ("", "b"), ("a", "", "c"), ("a", ""), ("", "")])
def test_empty_parts_are_refused(name: tuple[str, ...]) -> None:
    """An empty part is refused, because its canonical form would not decode to it."""
    assert refusal(canonical.encode, name).reason == "empty-part"


def test_name_without_parts_is_refused() -> None:
    """A dataverse name has at least one part."""
    assert refusal(canonical.encode, ()).reason == "empty-name"


@given(levels())
def test_round_trip(name: tuple[str, ...]) -> None:
    """Every name decodes from its canonical form."""
    assert canonical.decode(canonical.encode(name)) == name


@given(st.text(st.sampled_from("ab@.é\n"), max_size=12))
def test_decoding_is_strict(text: str) -> None:
    """Decoding accepts exactly the texts that encoding produces."""
    name = attempt(canonical.decode, text)

    if isinstance(name, InvalidName):
        assert name.message.isprintable()
    else:
        assert canonical.encode(name) == text


@given(levels(), levels())
def test_different_names_have_different_forms(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """No two names share a canonical form."""
    assert (canonical.encode(one) == canonical.encode(other)) == (one == other)
