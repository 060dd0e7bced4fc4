# SPDX-License-Identifier: Apache-2.0
"""How the states of one table in two catalogs relate."""

from __future__ import annotations

import pytest

from limnos.model.table_states import TableState, plain, relation


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


def test_local_paths_have_one_spelling() -> None:
    """Catalogs write local paths in three ways."""
    assert {plain(each) for each in ("/a/b", "file:/a/b", "file:///a/b/")} == {"file:///a/b"}
    assert plain("s3://b/a/") == "s3://b/a"
