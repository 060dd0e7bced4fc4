# SPDX-License-Identifier: Apache-2.0
"""`DataverseName`: the interface of the specification, its limits, its order, and its display forms."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from limnos.names import DataverseName, InvalidName, canonical, jsonform
from tests.names.strategies import attempt, levels, refusal

WIDEST = "a" * 251


def name_of(*parts: str) -> DataverseName:
    """Return the dataverse name of these parts."""
    return DataverseName.create(parts)


@pytest.mark.parametrize(
    "parts,form",
    [
        (("Default",), "Default"),
        (("a", "b", "c"), "a.b.c"),
        (("sales", "east"), "sales.east"),
        (("sales.east",), "sales@.east"),
        (("a.b", "c.d"), "a@.b.c@.d"),
        (("a@.b", "c@d"), "a@@@.b.c@@d"),
        (("a^b", "^c"), "a^b.^c"),
        (("a", "b/c"), "a.b/c"),
    ],
)
def test_name_equals_its_parsed_canonical_form(parts: tuple[str, ...], form: str) -> None:
    """A name made of parts equals the name read from the canonical form."""
    created, read = DataverseName.create(list(parts)), DataverseName.from_canonical_form(form)

    assert created == read
    assert hash(created) == hash(read)
    assert (created.canonical_form, read.parts) == (form, parts)
    assert created.is_multi_part == (len(parts) > 1)


@pytest.mark.parametrize("parts,printed", [(("a.b", "c.d"), "a@.b.c@d"), (("a@.b", "c@d"), "a@@@.b.c@@@@d")])
def test_misprinted_seed_examples_are_not_canonical(parts: tuple[str, ...], printed: str) -> None:
    """The forms that seed 4 prints for two names are not the canonical form of either."""
    read = attempt(DataverseName.from_canonical_form, printed)

    assert name_of(*parts).canonical_form != printed
    assert isinstance(read, InvalidName) or read != name_of(*parts)


def test_a_single_part_is_never_split() -> None:
    """A dot in a single part does not split the name."""
    name = DataverseName.create_single_part("sales.east")

    assert name.parts == ("sales.east",)
    assert not name.is_multi_part
    assert name != name_of("sales", "east")


def test_built_in_names_equal_their_canonical_forms() -> None:
    """The four built-in names equal their canonical forms, two of them in lower case."""
    names = [DataverseName.DEFAULT, DataverseName.METADATA, DataverseName.ASTERIX, DataverseName.ALGEBRICKS]

    assert [name.canonical_form for name in names] == ["Default", "Metadata", "asterix", "algebricks"]
    assert [name.parts for name in names] == [("Default",), ("Metadata",), ("asterix",), ("algebricks",)]


@pytest.mark.parametrize("part", ["a.b", "a@b", "."])
def test_a_built_in_name_needs_no_escape(part: str) -> None:
    """A text that needs an escape is not a built-in name."""
    assert isinstance(attempt(DataverseName.create_builtin, part), InvalidName)


@pytest.mark.parametrize(
    "parts",
    [
        (WIDEST,),
        ("ä" * 125,),
        (WIDEST,) * 4,
        ("abc^def",),
        ("abc^def", "^def"),
        ("abc/def",),
        ("a!b",),
        ("a b", "c "),
        ("日本", "東京"),
        ("x" * 31,) * 32,
    ],
)
def test_names_at_the_limit_are_allowed(parts: tuple[str, ...]) -> None:
    """Parts of the maximal length and with unusual characters are allowed."""
    assert name_of(*parts).parts == parts


@pytest.mark.parametrize(
    "parts,reason",
    [
        ((), "empty-name"),
        (("",), "empty-part"),
        (("a", "", "c"), "empty-part"),
        (("A" * 252,), "part-too-long"),
        (("ï" * 126,), "part-too-long"),
        (("A", "B" * 252), "part-too-long"),
        ((WIDEST,) * 5, "part-too-long"),
        (("A",) * 1005, "too-many-parts"),
        (("ï",) * 503, "too-many-parts"),
        (("abc\0def",), "forbidden-character"),
        ((" abcdef",), "forbidden-character"),
        (("a", "\tb"), "forbidden-character"),
        (("\u2003b",), "forbidden-character"),
        (("^abcdef",), "forbidden-character"),
        (("^abcdef", "abcdef"), "forbidden-character"),
        (("a", ".."), "dot-part"),
        (("\ud800",), "bad-utf8"),
    ],
)
def test_names_that_break_a_rule_are_refused(parts: tuple[str, ...], reason: str) -> None:
    """A name or a canonical form that breaks a rule is refused with the rule's reason."""
    assert refusal(DataverseName.create, parts).reason == reason
    if "" not in parts:
        form = ".".join(map(canonical.encode_part, parts))
        assert isinstance(attempt(DataverseName.from_canonical_form, form), InvalidName)


@pytest.mark.parametrize("form", ["a@x", "a@", "@", "a.@", "a@@@", "", ".", "..", ".a", "a.", "a..b", "@."])
def test_malformed_forms_are_refused(form: str) -> None:
    """A malformed canonical form is refused."""
    assert isinstance(attempt(DataverseName.from_canonical_form, form), InvalidName)


def test_names_sort_by_canonical_form() -> None:
    """Names sort by their canonical forms, so a child does not always directly follow its parent."""
    forms = ["A", "a", "a!", "a-b", "a.a", "a0", "a@.", "aa", "b"]
    names = [DataverseName.from_canonical_form(form) for form in forms]
    shuffled = random.Random(7).sample(names, len(names))

    assert [name.canonical_form for name in sorted(shuffled)] == forms
    assert names[0] < names[1] <= names[1]
    assert names[1] > names[0]


def test_names_sort_by_utf16_code_units() -> None:
    """A character beyond U+FFFF sorts before U+FFFD, because its first UTF-16 code unit does."""
    assert name_of("\U0001f600") < name_of("\ufffd")


def test_comparing_name_with_string_is_an_error() -> None:
    """Comparing a dataverse name with a string is an error."""
    assert name_of("a") != "a"
    with pytest.raises(TypeError):
        _ = name_of("a") < "b"


@pytest.mark.parametrize(
    "parts,expected",
    [
        (("sales", "east"), "sales.east"),
        (("a.b", "c.d"), "`a.b`.`c.d`"),
        (("select",), "select"),
        (("a-b", "c-d"), "`a-b`.`c-d`"),
        (("a", "1b"), "a.`1b`"),
        (("a", "$b"), "a.`$b`"),
        (("a`b",), r"`a\`b`"),
    ],
)
def test_display_backquotes_parts_where_needed(parts: tuple[str, ...], expected: str) -> None:
    """Messages show the parts, with backquotes where necessary."""
    assert str(name_of(*parts)) == expected


def test_names_are_case_sensitive() -> None:
    """Names are case-sensitive."""
    assert name_of("Sales") != name_of("sales")


@given(levels())
def test_round_trip(parts: tuple[str, ...]) -> None:
    """Every allowed name is restored from its canonical form and from JSON."""
    name = attempt(DataverseName.create, parts)

    if not isinstance(name, InvalidName):
        assert DataverseName.from_canonical_form(name.canonical_form) == name
        assert jsonform.decode(jsonform.encode(name.parts)) == parts
