# SPDX-License-Identifier: Apache-2.0
"""Gravitino's `fullName`: every split is tried, a single existing object is chosen, and backquotes are always
accepted.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import FullName, LogicalCodec, fullname
from limnos.names.fullname import CATALOG, COLUMN, OBJECT, SCHEMA, candidates, catalog_of, choose, resolve
from tests.names.strategies import levels, parts, refusal

CODEC = LogicalCodec()


def readings(text: str, kind_levels: int, codec: LogicalCodec = CODEC) -> list[FullName]:
    """Return all candidates of a full name."""
    return list(candidates(text, kind_levels, codec=codec))


@pytest.mark.parametrize(
    "text,kind_levels,name",
    [
        ("main", CATALOG, FullName("main")),
        ("`main`", CATALOG, FullName("main")),
        ("main.sales", SCHEMA, FullName("main", ("sales",))),
        ("main.A:B:C", SCHEMA, FullName("main", ("A", "B", "C"))),
        ("main.a.b:c", SCHEMA, FullName("main", ("a.b", "c"))),
        ("main.a..b", SCHEMA, FullName("main", ("a..b",))),
        ("main.`a.b:c`", SCHEMA, FullName("main", ("a.b", "c"))),
        ("main.team:sales.table2", OBJECT, FullName("main", ("team", "sales"), "table2")),
        ("main.`a.b`.t", OBJECT, FullName("main", ("a.b",), "t")),
        ("main.a.b.`t.x`", OBJECT, FullName("main", ("a.b",), "t.x")),
        ("`main`.`a`.`t``x`", OBJECT, FullName("main", ("a",), "t`x")),
        ("main.a:b.table.col", COLUMN, FullName("main", ("a", "b"), "table", "col")),
        ("main.a`b.t", OBJECT, FullName("main", ("a`b",), "t")),
    ],
)
def test_unambiguous_text_has_one_candidate(text: str, kind_levels: int, name: FullName) -> None:
    """A text with only one possible split has one candidate."""
    assert readings(text, kind_levels) == [name]


def test_every_split_of_an_object_is_a_candidate() -> None:
    """Dots below the catalog may belong to the schema's name or to the object's."""
    assert readings("main.a.b.t", OBJECT) == [FullName("main", ("a",), "b.t"), FullName("main", ("a.b",), "t")]


def test_every_split_of_a_column_is_a_candidate() -> None:
    """A column's full name has two boundaries, each at any dot."""
    splits = {(name.levels, name.name, name.column) for name in readings("main.a.b.c.d", COLUMN)}

    assert splits == {(("a",), "b", "c.d"), (("a",), "b.c", "d"), (("a.b",), "c", "d")}


@pytest.mark.parametrize(
    "text, names",
    [
        ("lance.docs", [FullName("lance", (), "docs")]),
        ("lance.a.t", [FullName("lance", ("a",), "t"), FullName("lance", (), "a.t")]),
        ("lance.`a.t`", [FullName("lance", (), "a.t")]),
    ],
)
def test_object_at_the_root_of_its_catalog_is_the_last_candidate(text: str, names: list[FullName]) -> None:
    """Where objects may lie directly in a catalog, such an object is the last candidate; elsewhere it is none."""
    assert list(candidates(text, OBJECT, codec=LogicalCodec(":"), at_root=True)) == names
    if len(names) == 1:
        assert refusal(lambda: list(candidates(text, OBJECT, codec=LogicalCodec(":")))).reason == "too-few-parts"


def test_quoted_components_are_never_joined() -> None:
    """A backquoted component is never joined with its neighbors. Other components may be."""
    assert readings("main.a.b.`t`.c", COLUMN) == [FullName("main", ("a.b",), "t", "c")]
    assert readings("main.`a`.b.c.d", COLUMN) == [
        FullName("main", ("a",), "b", "c.d"),
        FullName("main", ("a",), "b.c", "d"),
    ]


def test_invalid_splits_are_not_candidates() -> None:
    """A split with an empty or invalid name is not a candidate if another split is valid."""
    assert readings("main.a..t", OBJECT) == [FullName("main", ("a",), ".t"), FullName("main", ("a.",), "t")]
    assert readings("main.a.:b.t", OBJECT) == [FullName("main", ("a",), ":b.t"), FullName("main", ("a.", "b"), "t")]


@pytest.mark.parametrize(
    "text,kind_levels,reason",
    [
        ("main", SCHEMA, "too-few-parts"),
        ("main.a", OBJECT, "too-few-parts"),
        ("main.a.t", COLUMN, "too-few-parts"),
        ("main.`a.t`", OBJECT, "too-few-parts"),
        ("main.a", CATALOG, "too-many-parts"),
        ("main.`a`.b", SCHEMA, "too-few-parts"),
        ("main.A::B", SCHEMA, "empty-part"),
        ("main.", SCHEMA, "empty-part"),
        (".a", SCHEMA, "name-pattern"),
        ("", CATALOG, "name-pattern"),
        ("my cat.a", SCHEMA, "name-pattern"),
        ("main.`a", SCHEMA, "bad-quotes"),
        ("main.`a`b.t", OBJECT, "bad-quotes"),
        ("`main.a", SCHEMA, "bad-quotes"),
        ("main." + ".".join("a" * 34), OBJECT, "too-many-parts"),
    ],
)
def test_malformed_texts_are_refused(text: str, kind_levels: int, reason: str) -> None:
    """A text without any valid reading is refused with the first reason."""
    assert refusal(readings, text, kind_levels).reason == reason


def test_empty_segment_is_refused_as_in_logical_names() -> None:
    """The refusal of an empty segment in a schema's name is that of the logical spelling."""
    error = refusal(readings, "main.A::B", SCHEMA)

    assert error.message == "The SCHEMA name 'A::B' contains an empty segment after splitting by ':'."


def test_unrestricted_flat_catalog_allows_colon_in_schema() -> None:
    """In a flat catalog under `unrestricted`, a colon is part of the schema's name."""
    flat = LogicalCodec(policy="unrestricted", nested=False)

    assert readings("hive.a:b.t", OBJECT, flat) == [FullName("hive", ("a:b",), "t")]


def test_only_existing_candidate_is_chosen() -> None:
    """If exactly one reading exists, it is the result, wherever its dots are."""
    live = {FullName("main", ("a.b",), "t")}

    assert resolve("main.a.b.t", live.__contains__, kind_levels=OBJECT, codec=CODEC) == FullName("main", ("a.b",), "t")


def test_no_existing_candidate_returns_none() -> None:
    """If no reading exists, the result is None and the caller raises the error."""
    assert resolve("main.a.b.t", lambda _: False, kind_levels=OBJECT, codec=CODEC) is None


def test_several_existing_candidates_are_ambiguous() -> None:
    """If more than one reading exists, the name is refused, and the message has an unambiguous spelling of each."""
    error = refusal(resolve, "main.a.b.t", lambda _: True, kind_levels=OBJECT, codec=CODEC)

    assert error.reason == "ambiguous"
    assert error.message == ("The full name 'main.a.b.t' fits 2 objects. Write one of: main.a.`b.t` or main.`a.b`.t.")


def test_choose_decides_among_looked_up_candidates() -> None:
    """`choose` decides among existing readings that the caller has looked up."""
    hit = FullName("main", ("a",))

    assert choose("main.a", [hit], codec=CODEC) == hit
    assert choose("main.a", [], codec=CODEC) is None


def test_catalog_name_ends_at_first_dot() -> None:
    """The catalog's name can be read before the rules of its names are known."""
    assert catalog_of("main.a.b:c") == "main"
    assert catalog_of("`main`.a") == "main"
    assert catalog_of("main") == "main"


@pytest.mark.parametrize(
    "text,kind_levels,above",
    [
        ("catalog.a:b:c", SCHEMA, ["catalog.a:b", "catalog.a", "catalog"]),
        ("catalog.a:b:c.table", OBJECT, ["catalog.a:b:c", "catalog.a:b", "catalog.a", "catalog"]),
        ("catalog.a:b.table.col", COLUMN, ["catalog.a:b.table", "catalog.a:b", "catalog.a", "catalog"]),
        ("catalog.schema", SCHEMA, ["catalog"]),
        ("catalog", CATALOG, []),
    ],
)
def test_parents_are_listed_innermost_first(text: str, kind_levels: int, above: list[str]) -> None:
    """Parents are listed from the innermost to the outermost, including those of a nested schema (reference vectors 11
    and 12).
    """
    (name,) = readings(text, kind_levels)

    assert [fullname.render(parent, codec=CODEC) for parent in name.parents] == above


names = st.builds(
    FullName,
    catalog=st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True).filter(lambda name: name != "system"),
    levels=levels(without=":", size_max=3),
    name=parts(),
    column=st.none() | parts(),
)


@given(names)
def test_quoted_spelling_has_exactly_one_reading(name: FullName) -> None:
    """A full name with the necessary backquotes has exactly one reading, the name itself."""
    text = fullname.render_quoted(name, codec=CODEC)

    assert readings(text, OBJECT if name.column is None else COLUMN) == [name]


@given(names)
def test_plain_spelling_has_the_name_among_its_readings(name: FullName) -> None:
    """The readings of the spelling that clients expect include the name."""
    text = fullname.render(name, codec=CODEC)

    assert name in readings(text, OBJECT if name.column is None else COLUMN)
