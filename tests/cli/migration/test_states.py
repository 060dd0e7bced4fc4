# SPDX-License-Identifier: Apache-2.0
"""States of tables on both sides: answers that are not those of a table, and needed locations."""

from __future__ import annotations

import pytest

from limnos.cli.migration.moves import Locations
from limnos.cli.migration.states import ObjectError, ViewState, state_of


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
        state_of(answer)


def test_answer_with_odd_optional_parts_is_read() -> None:
    """Parts that decide nothing may be of any type."""
    metadata = {
        "table-uuid": "u",
        "location": "file:/x/",
        "current-snapshot-id": "1",
        "metadata-log": [7, {}],
        "properties": 1,
    }

    read = state_of({"metadata-location": "file:/x/m", "metadata": metadata})

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


def test_needed_locations_are_the_deepest_common_ones() -> None:
    """The command allows one directory for each bucket, and none that is allowed already."""
    locations = Locations()
    for number, place in enumerate(("s3://b/a/x/t1", "s3://b/a/y/t2", "s3://c/d/t3", "file:///w/n/t4")):
        assert locations.add((f"t{number}",), place) is None

    assert locations.needed(["file:///w", "s3://d"]) == ["s3://b/a", "s3://c/d"]
    assert locations.add(("t9",), "s3://c/d/t3") == ("t2",)
