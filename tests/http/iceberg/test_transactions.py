# SPDX-License-Identifier: Apache-2.0
"""POST transactions/commit: several tables in one commit, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    ROOT,
    at_once,
    creation,
    error_of,
    files_of,
    local,
    make_space,
    make_table,
    metadata_of,
    nothing_done,
    placed,
    point,
    set_properties,
    snapshot,
    table_path,
)

PATH = f"{ROOT}/transactions/commit"
Document = dict[str, object]


def change(*levels: str, updates: Sequence[object] = (), requirements: Sequence[object] = ()) -> Document:
    """Return a change of one table."""
    identifier = {"namespace": list(levels[:-1]), "name": levels[-1]}
    return {"identifier": identifier, "requirements": list(requirements), "updates": list(updates)}


def commit_all(node: DriverNode, *changes: Document, user: str = "admin") -> DriverAnswer:
    """Commit changes together."""
    return node.ask("POST", PATH, {"table-changes": list(changes)}, user=user)


def marks(node: DriverNode, *tables: str, key: str = "mark") -> list[object]:
    """Return the value of a property of each table in namespace `a`."""
    return [metadata_of(node, "a", name)["properties"].get(key) for name in tables]  # type: ignore[attr-defined]


@pytest.fixture
def tables(lake: DriverNode) -> DriverNode:
    """Three tables."""
    for name in ("t", "u", "v"):
        make_table(lake, "a", name)
    return lake


def test_two_tables_are_committed_in_one_revision(tables: DriverNode) -> None:
    """Changes of two tables are committed in one revision, with a metadata file each; the answer has no body."""
    answer = commit_all(tables, *(change("a", name, updates=[set_properties(mark=name)]) for name in ("t", "u")))

    assert (answer.status, answer.body) == (204, b"")
    assert marks(tables, "t", "u", "v") == ["t", "u", None]
    for name in ("t", "u"):
        loaded = tables.get(table_path("a", name)).json()
        assert local(loaded["metadata-location"]).read_bytes()
        assert len(loaded["metadata"]["metadata-log"]) == 1


def test_failed_requirement_refuses_the_whole_transaction(tables: DriverNode) -> None:
    """One failing requirement refuses the whole request with its table and requirement, and no file is left."""
    wrong = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}
    with nothing_done(tables):
        answer = commit_all(
            tables,
            change("a", "t", updates=[set_properties(mark="1")]),
            change("a", "u", updates=[set_properties(mark="1")], requirements=[wrong]),
        )

    status, kind, message = error_of(answer)
    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith("Requirement failed: table a.u: branch or tag main is missing")
    assert "assert-ref-snapshot-id" in message


def test_later_requirements_refer_to_earlier_changes(tables: DriverNode) -> None:
    """Changes of one table are applied in order, and requirements of a later one refer to the result of the earlier
    ones.
    """
    after = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 100}
    first = change("a", "t", updates=placed(tables, "a", "t", updates=[snapshot(1), point(1)]))
    updates = placed(tables, "a", "t", updates=[snapshot(2, parent=1), point(2)])
    second = change("a", "t", updates=updates, requirements=[after])
    refused = commit_all(tables, second, change("a", "u", updates=[set_properties(mark="1")]))
    assert refused.status == 409

    answer = commit_all(tables, first, change("a", "u", updates=[set_properties(mark="1")]), second)

    assert answer.status == 204
    metadata = metadata_of(tables, "a", "t")
    assert metadata["current-snapshot-id"] == 200
    assert [each["snapshot-id"] for each in metadata["snapshot-log"]] == [100, 200]  # type: ignore[index,attr-defined]
    assert len(metadata["metadata-log"]) == 1  # type: ignore[arg-type]
    assert marks(tables, "u") == ["1"]


def test_assert_create_creates_a_table_in_a_transaction(tables: DriverNode) -> None:
    """A change with `assert-create` creates its table. Later changes in the request may change the new table."""
    location = f"file://{tables.data}/warehouse/main/made"
    table_creation = change("a", "new", updates=creation(location), requirements=[{"type": "assert-create"}])
    more = change("a", "new", updates=[set_properties(mark="2")])

    assert commit_all(tables, change("a", "t", updates=[set_properties(mark="1")]), table_creation, more).status == 204

    assert marks(tables, "t", "new") == ["1", "2"]
    again = commit_all(tables, change("a", "t", updates=[set_properties(mark="3")]), table_creation)
    status, kind, message = error_of(again)
    assert (status, kind) == (409, "CommitFailedException")
    assert message == "Requirement failed: table a.new: table already exists (assert-create)"
    assert marks(tables, "t") == ["1"]


def test_concurrent_transactions_creating_one_table_conflict(tables: DriverNode) -> None:
    """Of two concurrent requests that create the same table, one succeeds. The other is refused as a whole and leaves
    no file.
    """

    def build_changes(place: str, mark: str) -> Document:
        updates = creation(f"file://{tables.data}/warehouse/main/{place}")
        updates[0] = {"action": "assign-uuid", "uuid": f"9c12d441-03fe-4693-9a96-a0705ddf69c{mark}"}
        return {
            "table-changes": [
                change("a", "t" if mark == "1" else "u", updates=[set_properties(mark=mark)]),
                change("a", "new", updates=updates, requirements=[{"type": "assert-create"}]),
            ]
        }

    answers = at_once(tables, ("POST", PATH, build_changes("one", "1")), ("POST", PATH, build_changes("two", "2")))

    assert sorted(each.status for each in answers) == [204, 409]
    won = "1" if answers[0].status == 204 else "2"
    assert marks(tables, "t", "u") == (["1", None] if won == "1" else [None, "2"])
    lost = "two" if won == "1" else "one"
    assert not [file for file in files_of(tables) if f"/{lost}/" in file]


@pytest.mark.parametrize(
    "body, words",
    [
        ({}, "table-changes"),
        ({"table-changes": []}, "table-changes"),
        ({"table-changes": [{"updates": []}]}, "identifier"),
        ({"table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}, "updates": {}}]}, ""),
        ({"table-changes": [change("a", "t", updates=[{"action": "fly"}])]}, "Table a.t: Unknown update action 'fly'"),
        (
            {"table-changes": [change("a", "t", requirements=[{"type": "assert-luck"}])]},
            "Table a.t: Unknown requirement type 'assert-luck'",
        ),
        (
            {"table-changes": [change("a", "t", requirements=[{"type": "assert-create"}, {"type": "assert-create"}])]},
            "assert-create must be the only one",
        ),
        ({"table-changes": [change("a", "t")] * 1001}, "at most 1000 changes, not 1001"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_malformed_changes_are_refused_with_400(tables: DriverNode, body: object, words: str) -> None:
    """A malformed or unknown change is refused with 400 and its table's name, and nothing is changed."""
    with nothing_done(tables):
        answer = tables.ask("POST", PATH, body)

    assert answer.status == 400
    assert words in error_of(answer)[2]


def test_missing_privilege_on_one_table_refuses_the_transaction(tables: DriverNode) -> None:
    """A user who may change two of three tables is refused with the third table's name, before requirements are
    checked.
    """
    for name in ("t", "u"):
        grant(tables, "bob", "modify_table", kind="TABLE", on=f"main.a.{name}")
    grant(tables, "bob", "use_catalog use_schema", kind="CATALOG", on="main")
    wrong = {"type": "assert-table-uuid", "uuid": "0b7a7a0e-6f0a-4d3b-9c76-2f4b8f9d3a11"}

    def ask(*names: str) -> DriverAnswer:
        changes = [change("a", name, updates=[set_properties(mark="b")], requirements=[]) for name in names]
        changes[0]["requirements"] = [] if len(names) == 2 else [wrong]
        return commit_all(tables, *changes, user="bob")

    with nothing_done(tables):
        refused = ask("t", "u", "v")

    assert refused.status == 403
    assert "a.v" in error_of(refused)[2]
    assert ask("t", "u").status == 204
    assert marks(tables, "t", "u", "v") == ["b", "b", None]


def test_missing_table_returns_404_and_changes_nothing(tables: DriverNode) -> None:
    """A missing table is 404 with its name, and nothing is changed."""
    with nothing_done(tables):
        answer = commit_all(tables, change("a", "t", updates=[set_properties(mark="1")]), change("a", "none"))

    assert error_of(answer) == (404, "NoSuchTableException", "Table does not exist: a.none")


def test_five_hundred_tables_are_committed_in_one_request(tables: DriverNode) -> None:
    """Five hundred tables, half of them new, are committed in one request."""
    make_space(tables, "many")
    names = [f"t{number}" for number in range(250)]
    for name in names:
        make_table(tables, "many", name)
    changes = [change("many", name, updates=[set_properties(mark="1")]) for name in names]
    for number in range(250):
        updates = creation(f"file://{tables.data}/warehouse/main/new{number}")
        updates[0] = {"action": "assign-uuid", "uuid": f"9c12d441-03fe-4693-9a96-a0705d{number:06d}"}
        changes.append(change("many", f"n{number}", updates=updates, requirements=[{"type": "assert-create"}]))

    assert commit_all(tables, *changes).status == 204

    listed = tables.get(f"{ROOT}/namespaces/many/tables").json()["identifiers"]
    assert len(listed) == 500
    assert {metadata_of(tables, "many", name)["properties"].get("mark") for name in names} == {"1"}  # type: ignore[attr-defined]


def test_change_without_updates_writes_no_metadata_file(tables: DriverNode) -> None:
    """A change without updates writes no metadata file. If its requirement fails, the whole request is refused."""
    files = files_of(tables)
    required, other = (
        change("a", "u", requirements=[{"type": "assert-table-uuid", "uuid": uuid}])
        for uuid in (metadata_of(tables, "a", "u")["table-uuid"], metadata_of(tables, "a", "t")["table-uuid"])
    )

    assert commit_all(tables, change("a", "t", updates=[set_properties(mark="1")]), other).status == 409
    assert files_of(tables) == files
    assert commit_all(tables, change("a", "t", updates=[set_properties(mark="1")]), required).status == 204
    assert len(files_of(tables)) == len(files) + 1
