# SPDX-License-Identifier: Apache-2.0
"""Repeated commits: a commit that was made already succeeds again, any other one is checked as usual."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.repeated_commits import build, check_unless_applied, is_applied
from limnos.model.errors import BadRequest, CommitConflict
from tests.formats.iceberg.samples import FILE, NOW, OTHER_UUID, T0, UUID, add, appended, commit, ref, table

MAIN_AT: Callable[[int | None], Json] = lambda number: {  # noqa: E731
    "type": "assert-ref-snapshot-id",
    "ref": "main",
    "snapshot-id": number,
}
SAME: Json = {"type": "assert-table-uuid", "uuid": UUID}
ASKED: list[object] = [add(2, parent=1), ref(2)]
NEEDS: list[object] = [SAME, MAIN_AT(100)]


def again(base: Json, *changes: object, needs: list[object] | None = None) -> Json:
    """Send a commit a second time."""
    return build(base, NEEDS if needs is None else needs, list(changes) or ASKED, now_ms=NOW, previous_location=FILE)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_repeated_commit_is_no_conflict(version: int) -> None:
    """A commit that is repeated after it was made changes nothing and is not refused, in every format version."""
    changes = (add(2, parent=1, version=version), ref(2))
    committed_metadata = commit(appended(1, version), *changes)

    assert again(committed_metadata, *changes) is committed_metadata
    check_unless_applied(committed_metadata, NEEDS, list(changes))


def test_repeated_commit_is_compared_with_the_stored_form() -> None:
    """A snapshot is stored without the nulls of a client, and with the operation that it lacks."""
    changes = (add(1, summary=None, **{"parent-snapshot-id": None, "key-id": None}), ref(1))
    committed_metadata = commit(table(), *changes)

    assert again(committed_metadata, *changes, needs=[SAME, MAIN_AT(None)]) is committed_metadata


def test_repeated_first_branch_and_tag_commits_succeed() -> None:
    """A repeated first commit of a table, one to a branch or tag, and one of a snapshot without a reference succeed,
    too.
    """
    changes = (add(1), ref(1), ref(1, "dev"), ref(1, "v1", "tag"))
    committed_metadata = commit(table(), *changes)
    staged = commit(appended(1), add(2, parent=1))

    assert again(committed_metadata, *changes, needs=[SAME, MAIN_AT(None)]) is committed_metadata
    assert again(staged, add(2, parent=1)) is staged


def test_repeated_commit_succeeds_after_later_commits() -> None:
    """If the reference has advanced from the commit's snapshot, the repeated commit counts as made."""
    base = commit(commit(appended(2), add(3, parent=2), ref(3)), add(4, parent=3), ref(4))

    assert again(base) is base


def rolled_back() -> Json:
    """Return a table with snapshot 2 whose main was rolled back."""
    return commit(appended(2), ref(1), now_ms=T0 + 2_500)


def replaced() -> Json:
    """Return a table whose main continues from the first snapshot with other ones."""
    return commit(rolled_back(), add(3, parent=1), ref(3))


REFUSED: list[tuple[str, Json, list[object], list[object]]] = [
    ("rolled back", rolled_back(), ASKED, NEEDS),
    ("on another way", replaced(), ASKED, NEEDS),
    ("another manifest list", appended(2), [add(2, parent=1, **{"manifest-list": "s3://x"}), ref(2)], NEEDS),
    ("another summary", appended(2), [add(2, parent=1, summary={"operation": "overwrite"}), ref(2)], NEEDS),
    ("another table", appended(2), ASKED, [{"type": "assert-table-uuid", "uuid": OTHER_UUID}, MAIN_AT(100)]),
    (
        "a schema that has moved",
        appended(2),
        ASKED,
        [*NEEDS, {"type": "assert-current-schema-id", "current-schema-id": 7}],
    ),
    ("a tag for a branch", appended(2), [add(2, parent=1), ref(2, "main", "tag")], NEEDS),
    ("a missing branch", appended(2), [add(2, parent=1), ref(2), ref(2, "dev")], NEEDS),
    ("something else", appended(2), [*ASKED, {"action": "set-properties", "updates": {"a": "b"}}], NEEDS),
    ("no snapshot", appended(2), [ref(2)], NEEDS),
    ("a stranger's snapshot", appended(2), [add(3, parent=1), ref(3)], NEEDS),
]


@pytest.mark.parametrize("what, base, changes, needs", REFUSED, ids=[each[0] for each in REFUSED])
def test_differing_commit_is_refused(what: str, base: Json, changes: list[object], needs: list[object]) -> None:
    """If any part differs from the commit that was made, the usual refusal is returned."""
    before = copy.deepcopy(base)

    with pytest.raises((CommitConflict, BadRequest)):
        again(base, *changes, needs=needs)
    assert base == before


def test_failed_requirement_alone_is_refused() -> None:
    """A check of requirements alone refuses a commit that was not made before."""
    with pytest.raises(CommitConflict):
        check_unless_applied(appended(2), NEEDS, [add(3, parent=1), ref(3)])


@pytest.mark.parametrize(
    "odd",
    [None, 1, "x", [], {}, {"action": "add-snapshot"}, {"action": "add-snapshot", "snapshot": {"snapshot-id": []}}],
)
def test_malformed_updates_do_not_count_as_made(odd: object) -> None:
    """A commit with malformed updates does not count as made."""
    assert not is_applied(appended(2), [], [*ASKED, odd])
