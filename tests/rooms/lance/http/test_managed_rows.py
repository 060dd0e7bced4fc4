# SPDX-License-Identifier: Apache-2.0
"""Row operations on tables with managed versions: each change is a version in the store."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.arrow_rows import arrow
from tests.http.driver import OWN, DriverNode
from tests.rooms.lance.http.wire import Json, declare, failure_of, rows_of, table

pytestmark = pytest.mark.slow

AT = table("lance", "t")
FIRST = pa.table({"id": [1, 2], "text": ["a", "b"]})
MORE = pa.table({"id": [2, 3], "text": ["z", "c"]})


@pytest.fixture
def managed_table(node: DriverNode) -> Json:
    """A declared table with managed versions."""
    return declare(node, "lance", "t", properties={"managed_versioning": "true"})


def versions(node: DriverNode, branch: str = "") -> list[int]:
    """Return the listed versions."""
    return [each["version"] for each in node.done("POST", f"{AT}/version/list?branch={branch}", {})["versions"]]


def ids(node: DriverNode) -> list[object]:
    """Return the ids of the rows, in order."""
    return sorted(each["id"] for each in rows_of(node.post(f"{AT}/query", {"k": 100, "vector": {}})))


def test_every_change_is_a_version(node: DriverNode, managed_table: Json) -> None:
    """The first insert creates the first version. Further inserts, merges, updates, deletes, and changes of columns and
    indices, and restores create one version each.
    """
    assert node.done("POST", f"{AT}/insert", arrow(FIRST))["version"] == 1
    assert node.done("POST", f"{AT}/insert", arrow(FIRST))["version"] == 2
    node.done("POST", f"{AT}/insert?mode=overwrite", arrow(FIRST))
    node.done(
        "POST", f"{AT}/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true", arrow(MORE)
    )
    assert ids(node) == [1, 2, 3]
    node.done("POST", f"{AT}/update", {"predicate": "id = 1", "updates": [["id", "id + 10"]]})
    node.done("POST", f"{AT}/delete", {"predicate": "id = 2"})
    node.done("POST", f"{AT}/add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2"}]})
    node.done("POST", f"{AT}/create_scalar_index", {"column": "id", "index_type": "BTREE"})
    note = arrow(pa.schema([pa.field("note", pa.utf8())]).empty_table())
    assert node.ask("POST", f"{AT}/add_columns", note, content_type="application/vnd.apache.arrow.stream").status == 200
    assert ids(node) == [3, 11]
    assert versions(node) == list(range(1, 10))

    node.done("POST", f"{AT}/restore", {"version": 1})

    assert ids(node) == [1, 2]
    assert versions(node) == list(range(1, 11))
    assert node.done("POST", f"{AT}/describe", {})["version"] == 10
    assert lance.dataset(str(managed_table["location"])).version == 10


def test_rows_written_by_path_are_not_part_of_any_version(node: DriverNode, managed_table: Json) -> None:
    """Rows that were written by path, past the server, are neither read nor part of later versions."""
    node.done("POST", f"{AT}/insert", arrow(FIRST))
    lance.write_dataset(pa.table({"id": [99], "text": ["x"]}), str(managed_table["location"]), mode="append")
    assert ids(node) == [1, 2]
    lance.write_dataset(pa.table({"id": [99], "text": ["x"]}), str(managed_table["location"]), mode="append")

    node.done("POST", f"{AT}/insert", arrow(FIRST))

    assert ids(node) == [1, 1, 2, 2]
    assert versions(node) == [1, 2]


def test_branch_write_does_not_change_main(node: DriverNode, managed_table: Json) -> None:
    """A write to a branch creates the branch's next version and leaves the main one; a missing branch is reported."""
    node.done("POST", f"{AT}/insert", arrow(FIRST))
    node.done("POST", f"{AT}/branches/create", {"name": "dev"})

    node.done("POST", f"{AT}/insert?branch=dev", arrow(FIRST))

    assert (versions(node), versions(node, "dev")) == ([1], [1, 2])
    assert ids(node) == [1, 2]
    assert node.done("POST", f"{AT}/describe", {"branch": "dev"})["version"] == 2
    assert failure_of(node.ask("POST", f"{AT}/insert?branch=none", arrow(FIRST))) == (404, 22)


def test_refused_write_commits_no_version(node: DriverNode, managed_table: Json) -> None:
    """A body that is no stream or has another schema, and a change of a missing object, commit nothing."""
    assert node.post(f"{AT}/delete", {"predicate": "id = 1"}).status == 404
    node.done("POST", f"{AT}/insert", arrow(FIRST))

    assert failure_of(node.ask("POST", f"{AT}/insert", arrow(pa.table({"other": ["x"]})))) == (400, 20)
    assert failure_of(node.ask("POST", f"{AT}/insert", arrow(FIRST)[:100])) == (400, 13)
    assert failure_of(node.post(f"{AT}/restore", {"version": 9})) == (404, 11)
    assert failure_of(node.post(f"{AT}/delete", {"predicate": "nope ="}))[0] == 400

    assert versions(node) == [1]
    assert not [
        each
        for each in Path(str(managed_table["location"]).removeprefix("file://")).glob("_versions/*.manifest")
        if "1844" not in each.name
    ]


def test_change_of_a_managed_table_has_one_audit_record(node: DriverNode, managed_table: Json) -> None:
    """The record is written with the version, and no second one beside it."""
    node.done("POST", f"{AT}/insert", arrow(FIRST))
    node.done("POST", f"{AT}/delete", {"predicate": "id = 2"})

    node.runner.run(node.built.services.audit.flush())
    lines = node.done("GET", f"{OWN}/metalakes/lake/audit?path=lance.t")["lines"]
    assert [line["operation"] for line in reversed(lines)] == [
        "lance-declare-table",
        "lance-insert-into-table",
        "lance-delete-from-table",
    ]
