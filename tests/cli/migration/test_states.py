# SPDX-License-Identifier: Apache-2.0
"""States of tables on both sides: how they relate, and answers that are not those of a table."""

from __future__ import annotations

import pytest

from limnos.cli.migration.moves import Locations
from limnos.cli.migration.states import ObjectError, TableState, ViewState, plain, relation


def state(file: str, *log: str, uuid: str = "u", snapshot: int | None = 1) -> TableState:
    """Return a state."""
    return TableState(metadata_location=file, uuid=uuid, location="s3://b/t", snapshot_id=snapshot, log=frozenset(log))


@pytest.mark.parametrize(
    "source, target, word",
    [
        (state("m1"), state("m1"), "same"),
        (state("m2", "m1"), state("m1"), "behind"),
        (state("m1"), state("m2", "m1"), "ahead"),
        (state("m2", "m1"), state("m3", "m1"), "diverged"),
        (state("m9", "m8"), state("m1"), "diverged"),
        (state("m2", "m1"), state("m1", uuid="v"), "other"),
    ],
)
def test_relation_of_two_states(source: TableState, target: TableState, word: str) -> None:
    """Only a target whose file the source has had is behind, so no commit of the target is ever overwritten."""
    assert relation(source, target) == word


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"metadata-location": "s3://b/m"},
        {"metadata-location": "", "metadata": {"table-uuid": "u", "location": "s3://b"}},
        {"metadata-location": 7, "metadata": {"table-uuid": "u", "location": "s3://b"}},
        {"metadata-location": "s3://b/m", "metadata": []},
        {"metadata-location": "s3://b/m", "metadata": {"table-uuid": None, "location": "s3://b"}},
    ],
)
def test_answer_that_is_no_table_is_an_error(answer: dict[str, object]) -> None:
    """A source that leaves out or mistypes what decides is an error of that one table."""
    with pytest.raises(ObjectError):
        TableState.of(answer)


def test_answer_with_odd_optional_parts_is_read() -> None:
    """Parts that decide nothing may be of any type."""
    metadata = {
        "table-uuid": "u",
        "location": "file:/x/",
        "current-snapshot-id": "1",
        "metadata-log": [7, {}],
        "properties": 1,
    }

    read = TableState.of({"metadata-location": "file:/x/m", "metadata": metadata})

    assert (read.snapshot_id, read.log, read.location, read.metadata_location) == (
        None,
        frozenset(),
        "file:///x",
        "file:///x/m",
    )


def test_view_without_current_version_is_an_error() -> None:
    """A view needs its current version and that version's schema."""
    with pytest.raises(ObjectError):
        ViewState.of({"metadata": {"current-version-id": 2, "versions": [{"version-id": 1}], "schemas": []}})


def test_local_paths_have_one_spelling() -> None:
    """Catalogs write local paths in three ways."""
    assert {plain(each) for each in ("/a/b", "file:/a/b", "file:///a/b/")} == {"file:///a/b"}
    assert plain("s3://b/a/") == "s3://b/a"


def test_needed_locations_are_the_deepest_common_ones() -> None:
    """The command allows one directory for each bucket, and none that is allowed already."""
    locations = Locations()
    for number, place in enumerate(("s3://b/a/x/t1", "s3://b/a/y/t2", "s3://c/d/t3", "file:///w/n/t4")):
        assert locations.add((f"t{number}",), place) is None

    assert locations.needed(["file:///w", "s3://d"]) == ["s3://b/a", "s3://c/d"]
    assert locations.add(("t9",), "s3://c/d/t3") == ("t2",)
