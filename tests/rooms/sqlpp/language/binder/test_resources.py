# SPDX-License-Identifier: Apache-2.0
"""The resources of a dataset as a source: its name cannot be a dataset's name, and arguments are kept separate."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.binder import bind
from limnos.rooms.sqlpp.language.binder.resources import RESOURCES
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.parser import parse_body
from tests.rooms.sqlpp.language.evaluation import NameWorld

WORLD = NameWorld({("a",): {"b.c": []}, ("a", "b"): {"c": [], "s": "synonym a.b.c", "v": "view SELECT VALUE 1"}})


@pytest.mark.parametrize(
    "call, source",
    [
        ("dataset_resources('a', 'b.c')", ((RESOURCES, "dataset_resources", "a"), "b.c")),
        ("dataset_resources(['a', 'b'], 'c')", ((RESOURCES, "dataset_resources", "a", "b"), "c")),
        ("`storage-components`(['a', 'b'], 's')", ((RESOURCES, "storage_components", "a", "b"), "c")),
    ],
)
def test_dataset_resources_call_is_a_separate_source(call: str, source: tuple[tuple[str, ...], str]) -> None:
    """A call of `dataset_resources` is a source of its own, whose parts are kept separate from names of datasets."""
    assert bind(parse_body(f"select value x from {call} x"), WORLD).reads == (source,)


@pytest.mark.parametrize(
    "call, number", [("dataset_resources(['a', 'b'], 'v')", 1050), ("dataset_resources('b', 'c')", 1063)]
)
def test_view_has_no_resources_and_missing_dataverse_is_an_error(call: str, number: int) -> None:
    """A view has no resources, and a missing dataverse is an error."""
    with pytest.raises(SqlppError) as error:
        bind(parse_body(f"select value x from {call} x"), WORLD)

    assert error.value.number == number
