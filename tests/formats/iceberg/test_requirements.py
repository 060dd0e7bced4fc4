# SPDX-License-Identifier: Apache-2.0
"""Requirements of commits."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.requirements import check, is_create
from limnos.model.errors import BadRequest, CommitConflict
from tests.formats.iceberg.samples import OTHER_UUID, UUID, appended, commit, ref, table

BASE = commit(appended(2), ref(1, "old", "tag"))

HOLDS: list[Json] = [
    {"type": "assert-table-uuid", "uuid": UUID.upper()},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 200},
    {"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": 100},
    {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
    {"type": "assert-ref-snapshot-id", "ref": "new"},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]


def test_requirements_that_hold_pass() -> None:
    """Several requirements that hold pass, and so does a commit without requirements."""
    check(BASE, list(HOLDS))
    check(BASE, [])
    check(None, [{"type": "assert-create"}])

    assert not is_create(list(HOLDS))
    assert is_create([{"type": "assert-create"}])


FAILS: list[tuple[Json, str]] = [
    ({"type": "assert-create"}, "table already exists"),
    ({"type": "assert-table-uuid", "uuid": OTHER_UUID}, f"UUID does not match: expected {UUID} != {OTHER_UUID}"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 100},
        "branch main has changed: expected id 100 != 200",
    ),
    ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}, "branch main was created concurrently"),
    ({"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": None}, "tag old was created concurrently"),
    ({"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": 1}, "tag old has changed: expected id 1 != 100"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": 7},
        "branch or tag new is missing, expected 7",
    ),
    (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        "last assigned field id changed: expected id 2 != 3",
    ),
    ({"type": "assert-current-schema-id", "current-schema-id": 1}, "current schema changed: expected id 1 != 0"),
    (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
        "last assigned partition id changed: expected id 1000 != 999",
    ),
    (
        {"type": "assert-default-spec-id", "default-spec-id": 1},
        "default partition spec changed: expected id 1 != 0",
    ),
    (
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
        "default sort order changed: expected id 1 != 0",
    ),
]


@pytest.mark.parametrize("requirement,text", FAILS, ids=lambda value: str(value)[:60])
def test_requirement_that_fails_is_a_conflict(requirement: Json, text: str) -> None:
    """A failing requirement is a conflict with the message that clients look for."""
    with pytest.raises(CommitConflict) as caught:
        check(BASE, [requirement])

    assert caught.value.message == f"Requirement failed: {text}"


def test_later_requirement_is_checked_too() -> None:
    """All requirements are checked, not only the first."""
    with pytest.raises(CommitConflict) as caught:
        check(BASE, [*HOLDS, {"type": "assert-default-spec-id", "default-spec-id": 9}])

    assert "default partition spec changed" in caught.value.message


def test_missing_table_is_a_conflict() -> None:
    """A commit to a missing table fails unless it creates the table."""
    with pytest.raises(CommitConflict) as caught:
        check(None, [HOLDS[0]])

    assert caught.value.message == "Requirement failed: table does not exist"


def test_uuid_requirement_fails_without_table_uuid() -> None:
    """A uuid requirement fails for a table without a uuid."""
    base = {**table(1), "table-uuid": None}

    with pytest.raises(CommitConflict) as caught:
        check(base, [HOLDS[0]])

    assert "UUID does not match" in caught.value.message


def test_legacy_version_1_is_checked_against_implied_ids() -> None:
    """Requirements on version 1 metadata of the first form, without lists, are checked against its implied ids."""
    missing_fields = {
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
    }
    base = {key: value for key, value in table(1).items() if key not in missing_fields | {"default-sort-order-id"}}
    id_requirements = [
        one for one in HOLDS if str(one["type"]).startswith(("assert-current", "assert-default", "assert-last"))
    ]

    check(base, list(id_requirements))

    assert "schemas" not in base
    assert len(id_requirements) == 5


MALFORMED: list[tuple[list[object], str]] = [
    (["x"], "element 0 must be an object"),
    ([{}], "'type' is required"),
    ([{"type": 5}], "'type' must be a string"),
    ([{"type": "assert-nothing"}], "Unknown requirement type 'assert-nothing' for a table; known are assert-create"),
    ([{"type": "assert-view-uuid", "uuid": UUID}], "Unknown requirement type"),
    ([{"type": "assert-table-uuid"}], "'uuid' is required"),
    ([{"type": "assert-table-uuid", "uuid": 5}], "'uuid' must be a string"),
    ([{"type": "assert-ref-snapshot-id", "snapshot-id": 5}], "'ref' is required"),
    ([{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "5"}], "'snapshot-id' must be an integer"),
    ([{"type": "assert-current-schema-id", "current-schema-id": "0"}], "must be an integer, not a string"),
    ([{"type": "assert-current-schema-id"}], "'current-schema-id' is required"),
    ([{"type": "assert-default-spec-id", "default-spec-id": True}], "must be an integer, not a boolean"),
    ([{"type": "assert-create"}, {"type": "assert-create"}], "must be the only one"),
    ([{"type": "assert-create"}, HOLDS[0]], "must be the only one"),
]


@pytest.mark.parametrize("malformed_requirements,text", MALFORMED, ids=lambda value: str(value)[:60])
def test_malformed_requirement_is_a_bad_request(malformed_requirements: list[object], text: str) -> None:
    """Unknown and malformed requirements are BadRequest with the field's name."""
    with pytest.raises(BadRequest) as caught:
        check(BASE, malformed_requirements)

    assert text in caught.value.message


def test_requirements_that_are_no_list_are_refused() -> None:
    """Requirements that are not a list are BadRequest."""
    with pytest.raises(BadRequest) as caught:
        check(BASE, {"type": "assert-create"})  # type: ignore[arg-type]

    assert "'requirements' must be an array" in caught.value.message
