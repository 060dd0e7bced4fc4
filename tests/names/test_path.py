# SPDX-License-Identifier: Apache-2.0
"""`Path`: parts, parent, child, order, display."""

from __future__ import annotations

import pytest
from hypothesis import given

from limnos.names import Path, display
from limnos.names.path import check_part
from tests.names.strategies import levels, refusal


def test_parents_end_at_the_metalake() -> None:
    """Each parent is one part shorter, and a metalake has no parent."""
    path = Path.of("lake", "main", ["a", "b"])

    chain = [path]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)

    assert [step.parts for step in chain] == [
        ("lake", "main", "a", "b"),
        ("lake", "main", "a"),
        ("lake", "main"),
        ("lake",),
    ]
    assert [step.name for step in chain] == ["b", "a", "main", "lake"]


def test_child_name_is_checked_by_its_kind() -> None:
    """A catalog's name is checked by the pattern of catalogs, a level by the rules for parts."""
    metalake = Path.of("lake")

    assert metalake.child("main").child("a.b") == Path("lake", "main", ("a.b",))
    assert refusal(metalake.child, "a.b").reason == "name-pattern"
    assert refusal(metalake.child("main").child, "..").reason == "dot-part"


def test_depth_is_limited() -> None:
    """A path has at most 32 parts below its catalog."""
    deep = Path.of("lake", "main", ["a"] * 32)

    assert refusal(deep.child, "b").reason == "too-many-parts"
    assert refusal(Path.of, "lake", "main", ["a"] * 33).reason == "too-many-parts"


def test_levels_need_a_catalog() -> None:
    """A path cannot have levels without a catalog."""
    assert refusal(Path, "lake", None, ("a",)).reason == "too-few-parts"


def test_path_of_refuses_invalid_parts() -> None:
    """`Path.of` refuses a bad metalake, catalog or level."""
    assert refusal(Path.of, "la.ke").reason == "name-pattern"
    assert refusal(Path.of, "lake", "system").reason == "reserved-name"
    assert refusal(Path.of, "lake", "main", [""]).reason == "empty-part"


def test_paths_sort_by_code_point_part_by_part() -> None:
    """Paths sort part by part by code point: a name is directly followed by its descendants, upper case sorts before
    lower, and U+FFFD before U+1F600.
    """
    names = [("a", "b"), ("a-b",), ("a",), ("B",), ("\U0001f600",), ("\ufffd",)]
    paths = [Path("lake", "main", name) for name in names] + [Path("lake", "main"), Path("lake")]

    ordered = [path.parts[2:] for path in sorted(paths)]

    assert ordered == [(), (), ("B",), ("a",), ("a", "b"), ("a-b",), ("\ufffd",), ("\U0001f600",)]


def test_comparing_path_with_other_type_is_an_error() -> None:
    """Comparing a path with another type is an error."""
    with pytest.raises(TypeError):
        assert Path("lake") < "lake"


def test_equal_paths_are_the_same_dict_key() -> None:
    """Equal paths are the same dictionary key."""
    assert {Path("lake", "main", ("a",)): 1}[Path.of("lake", "main", ["a"])] == 1


@given(levels())
def test_display_parses_back(name: tuple[str, ...]) -> None:
    """The text of a path is its display form, and parses back to its parts."""
    path = Path("lake", "main", name)

    assert display.parse(str(path)) == path.parts


def test_display_of_plain_path_has_no_quotes() -> None:
    """The display of a path of plain words has no quotes."""
    assert str(Path.of("lake", "main", ["raw", "nyc", "flights"])) == "lake.main.raw.nyc.flights"
    assert str(Path.of("lake", "my-cat", ["a.b"])) == "lake.`my-cat`.`a.b`"


def test_part_checks_can_be_imported_from_names_path() -> None:
    """The checks of parts can be imported from `names.path`."""
    assert check_part("a") == "a"
