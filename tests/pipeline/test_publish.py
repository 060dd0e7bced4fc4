# SPDX-License-Identifier: Apache-2.0
"""The operations that publish a run, without any server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from limnos.pipeline.outcomes import StagedVersion, StepBranch
from limnos.pipeline.publish import publish_operations

BRANCH = StepBranch(
    table=("main", "a", "t"), name="run_0_1", uuid="u", schema_id=3, base=7, head=9, is_new=False, columns_to_drop=()
)


def test_each_table_update_asserts_state_at_run_start() -> None:
    """For each table, identity, schema, and the heads of `main` and the branch are asserted; then `main` moves and the
    branch is deleted.
    """
    (operation,) = publish_operations([BRANCH])

    assert operation["path"] == ["a", "t"]
    assert operation["requirements"] == [
        {"type": "assert-table-uuid", "uuid": "u"},
        {"type": "assert-current-schema-id", "current-schema-id": 3},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
        {"type": "assert-ref-snapshot-id", "ref": "run_0_1", "snapshot-id": 9},
    ]
    assert operation["updates"] == [
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 9},
        {"action": "remove-snapshot-ref", "ref-name": "run_0_1"},
    ]


def test_new_table_asserts_that_it_has_no_main() -> None:
    """For a new table the operations assert that `main` does not exist."""
    (operation,) = publish_operations([replace(BRANCH, base=None)])

    assert {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None} in operation["requirements"]


def test_branch_without_new_snapshot_is_only_deleted() -> None:
    """If the branch has no new snapshot, it is deleted, and `main` is only asserted."""
    (operation,) = publish_operations([replace(BRANCH, head=7)])

    assert operation["updates"] == [{"action": "remove-snapshot-ref", "ref-name": "run_0_1"}]
    assert len(operation["requirements"]) == 4


def test_staged_versions_of_a_lance_table_are_committed_in_order() -> None:
    """Each staged version is an operation of its own, without a branch; a table without staged versions has none."""
    versions = (StagedVersion(version=8, manifest_path="a/8"), StagedVersion(version=9, manifest_path="a/9", e_tag="e"))

    operations = publish_operations([replace(BRANCH, staged=versions), replace(BRANCH, staged=())])

    assert [(each["do"], each["version"], each["manifest_path"]) for each in operations] == [
        ("commit-lance-version", 8, "a/8"),
        ("commit-lance-version", 9, "a/9"),
    ]


FIELDS = [
    {"id": 1, "name": "id", "type": "int", "required": False},
    {"id": 2, "name": "a.b", "type": "int", "required": False},
    {
        "id": 3,
        "name": "a",
        "type": {
            "type": "struct",
            "fields": [{"id": 4, "name": "c", "type": "int"}, {"id": 5, "name": "d", "type": "int"}],
        },
    },
    {
        "id": 6,
        "name": "l",
        "type": {
            "type": "list",
            "element-id": 7,
            "element": {"type": "struct", "fields": [{"id": 8, "name": "x", "type": "int"}]},
        },
    },
]
METADATA = {
    "current-schema-id": 3,
    "schemas": [{"schema-id": 3, "type": "struct", "fields": FIELDS}, {"schema-id": 5, "fields": []}],
}


@pytest.mark.parametrize(
    "column, left",
    [
        ("ID", ["a.b", "a", "l"]),
        ("a.b", ["id", "a", "l"]),
        ("a.c", ["id", "a.b", "a", "l"]),
        ("l.element.x", ["id", "a.b", "a", "l"]),
    ],
)
def test_columns_are_dropped_in_the_same_commit(column: str, left: list[str]) -> None:
    """A new schema without the column, with an unused id, precedes the move of `main` in the same commit."""
    branch = replace(BRANCH, columns_to_drop=(column,))

    (operation,) = publish_operations([branch], metadata={branch.table: METADATA})

    schema = operation["updates"][0]["schema"]
    assert [each["name"] for each in schema["fields"]] == left
    assert schema["schema-id"] == 6
    assert operation["updates"][1] == {"action": "set-current-schema", "schema-id": -1}
    assert operation["updates"][2]["action"] == "set-snapshot-ref"
    nested = {"a.c": [{"id": 5, "name": "d", "type": "int"}]}
    if column in nested:
        assert schema["fields"][2]["type"]["fields"] == nested[column]
    if column == "l.element.x":
        assert schema["fields"][3]["type"]["element"]["fields"] == []


def test_column_drop_with_wrong_metadata_is_refused() -> None:
    """A drop with missing metadata, another schema or a missing column is refused."""
    branch = replace(BRANCH, columns_to_drop=("nope",))

    with pytest.raises(ValueError, match="its metadata is needed"):
        publish_operations([branch])
    with pytest.raises(ValueError, match="has changed since"):
        publish_operations([branch], metadata={branch.table: METADATA | {"current-schema-id": 4}})
    with pytest.raises(ValueError, match="is not in the table"):
        publish_operations([branch], metadata={branch.table: METADATA})
