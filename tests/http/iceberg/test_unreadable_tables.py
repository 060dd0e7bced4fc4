# SPDX-License-Identifier: Apache-2.0
"""Tables that an older release stored and that some readers refuse: reported by the check, and mended by
one commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadataUtil

from tests.backends import Database
from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg.wire import commit, error_of, make_table, metadata_of, node_over, snapshot, table_path
from tests.http.iceberg.wire import point as set_main

MEND = [{"action": "limnos-mend-metadata"}]
CHECK = f"{OWN}/metalakes/lake/catalogs/main/tables/check?table=a.t"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def planted(database: Database, tmp_path: Path) -> Iterator[Callable[[Change], DriverNode]]:
    """A function that changes the stored document of table `a.t`, as an older release might have stored it, and
    returns a node over the store. Over SQLite and PostgreSQL.
    """
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as node:
        make_table(node, "a", "t", properties={"format-version": "3"})
        store = Database(database.kind, url or str(node.data / "limnos.db"))

        def plant(change: Change) -> DriverNode:
            metadata = metadata_of(node, "a", "t")
            change(metadata)
            store.sql("UPDATE document SET body = ?, version = version + 1", json.dumps(metadata).encode())
            store.sql("UPDATE store SET epoch = epoch + 1")  # makes all views start empty
            return node

        yield plant


def add_field(metadata: dict[str, Any], type_name: str, **attributes: object) -> None:
    """Add a column to the current schema of a document."""
    column = {"id": 50, "name": "extra", "required": False, "type": type_name, **attributes}
    metadata["schemas"][0]["fields"].append(column)
    metadata["last-column-id"] = 50


def refusals(node: DriverNode) -> list[str]:
    """Return the problems of the metadata that the check reports."""
    answer = node.get(CHECK)
    assert answer.status == 200, answer.body
    return [each["told"] for each in answer.json()["findings"] if each["problem"] == "refused"]


def test_mend_makes_a_table_readable_again(planted: Callable[[Change], DriverNode]) -> None:
    """PyIceberg refuses what is served before the commit and reads what is served afterwards; the check agrees."""
    node = planted(lambda metadata: add_field(metadata, "decimal( 9 , 2 )", **{"write-default": "1.5"}))
    with pytest.raises(ValidationError, match="Could not parse"):
        TableMetadataUtil.parse_raw(json.dumps(metadata_of(node, "a", "t")))
    (problem,) = refusals(node)
    assert "limnos table mend" in problem

    answer = commit(node, "a", "t", updates=MEND)

    assert answer.status == 200, answer.body
    after = metadata_of(node, "a", "t")
    assert after["schemas"][0]["fields"][-1]["write-default"] == "1.50"
    assert TableMetadataUtil.parse_raw(json.dumps(after)).schemas[0].fields[-1].name == "extra"
    assert refusals(node) == []
    same = commit(node, "a", "t", updates=MEND)
    assert same.json()["metadata-location"] == answer.json()["metadata-location"]


def test_mend_needs_the_right_to_commit_and_is_recorded(planted: Callable[[Change], DriverNode]) -> None:
    """A reader of the table cannot mend it; the audit has the commit of who can."""
    node = planted(lambda metadata: add_field(metadata, "int", **{"initial-default": None}))
    grant(node, "rita", "USE_CATALOG USE_SCHEMA SELECT_TABLE", kind="CATALOG", on="main")
    grant(node, "wim", "USE_CATALOG USE_SCHEMA SELECT_TABLE MODIFY_TABLE", kind="CATALOG", on="main")

    refused = commit(node, "a", "t", updates=MEND, user="rita")
    mended = commit(node, "a", "t", updates=MEND, user="wim")

    assert (refused.status, mended.status) == (403, 200)
    changes = node.get(f"{OWN}/metalakes/lake/audit?user=wim").json()
    assert "commit" in json.dumps(changes)


def test_refusal_names_the_healing_commit(planted: Callable[[Change], DriverNode]) -> None:
    """A default that no reader reads stays until the owner's commit replaces the schema; rows do not prevent it."""
    node = planted(lambda metadata: add_field(metadata, "date", **{"initial-default": "2024-02-30"}))
    update = snapshot(1)
    update["snapshot"] |= {"first-row-id": 0, "added-rows": 3}
    assert commit(node, "a", "t", updates=[update, set_main(1)]).status == 200
    before = metadata_of(node, "a", "t")

    refused = commit(node, "a", "t", updates=MEND)
    fields = [{k: v for k, v in one.items() if k != "initial-default"} for one in before["schemas"][0]["fields"]]
    healing = [
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "remove-schemas", "schema-ids": [0]},
    ]

    assert error_of(refused)[0] == 400
    assert all(word in error_of(refused)[2] for word in ("2024-02-30", "add-schema", "remove schema 0"))
    assert metadata_of(node, "a", "t") == before
    assert refusals(node) == [error_of(refused)[2].partition("something: ")[2]]
    healed = commit(node, "a", "t", updates=healing)
    assert healed.status == 200, healed.body
    assert refusals(node) == []


def test_table_is_mended_among_other_updates(planted: Callable[[Change], DriverNode]) -> None:
    """The updates before and after it apply to the same document, also in a transaction of several tables."""
    node = planted(lambda metadata: add_field(metadata, "double", **{"write-default": 5}))
    change = [{"action": "set-properties", "updates": {"k": "v"}}, *MEND]
    change.append({"action": "set-properties", "updates": {"l": "w"}})
    table = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": change}

    answer = node.post("/iceberg/v1/lake.main/transactions/commit", {"table-changes": [table]})

    assert answer.status == 204, answer.body
    assert b'"write-default":5.0' in node.get(table_path("a", "t")).body
    assert {"k": "v", "l": "w"}.items() <= metadata_of(node, "a", "t")["properties"].items()
