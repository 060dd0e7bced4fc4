# SPDX-License-Identifier: Apache-2.0
"""Statistics of tables and partitions over Gravitino REST: written, read by range, dropped, and deleted only with their
table.
"""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict
from tests.http.iceberg.wire import make_table

LAKE = f"{API}/lake"
TABLE = f"{LAKE}/objects/table/main.a.t/statistics"
PARTS = f"{TABLE}/partitions"
VALUES = {
    "custom-n": 3,
    "custom-f": 0.5,
    "custom-s": "x",
    "custom-b": True,
    "custom-l": [1, 2],
    "custom-o": {"a": None},
}


@pytest.fixture
def statistics_node(node: DriverNode) -> DriverNode:
    """A node with a table that has statistics, of three partitions too."""
    make_table(node, "a", "t")
    node.done("PUT", TABLE, {"updates": VALUES})
    updates = [
        {"partitionName": name, "statistics": {"custom-n": at, "custom-m": 0}}
        for at, name in enumerate(("p=1", "p=2", "p=3"))
    ]
    node.done("PUT", PARTS, {"updates": updates})
    return node


def statistics_by_name(node: DriverNode) -> dict[str, object]:
    """Return the values of a table's own statistics, by name."""
    return {each["name"]: each["value"] for each in node.done("GET", TABLE)["statistics"]}


def partitions(node: DriverNode, query: str) -> list[str]:
    """Return the names of the partitions in a range."""
    return [each["partitionName"] for each in node.done("GET", f"{PARTS}?{query}")["partitionStatistics"]]


def test_table_statistics_can_be_written_read_and_dropped(statistics_node: DriverNode) -> None:
    """Values of every type are returned unchanged; a write changes only the named ones; a drop says whether any
    existed.
    """
    first = statistics_by_name(statistics_node)
    statistics_node.done("PUT", TABLE, {"updates": {"custom-n": 4}})
    one = next(each for each in statistics_node.done("GET", TABLE)["statistics"] if each["name"] == "custom-n")
    dropped = [statistics_node.done("POST", TABLE, {"names": ["custom-n", "custom-gone"]})["dropped"] for _ in range(2)]

    assert first == VALUES
    assert (one["value"], one["reserved"], one["modifiable"]) == (4, False, True)
    assert (one["audit"]["creator"], one["audit"]["lastModifier"]) == ("admin", "admin")
    assert dropped == [True, False]
    assert statistics_by_name(statistics_node) == {name: value for name, value in VALUES.items() if name != "custom-n"}


def test_partition_ranges_include_lower_and_exclude_upper_bound(statistics_node: DriverNode) -> None:
    """A range includes its lower bound and excludes its upper one by default; each bound may be open."""
    assert partitions(statistics_node, "from=p%3D1&to=p%3D3") == ["p=1", "p=2"]
    assert partitions(statistics_node, "from=p%3D1&to=p%3D3&fromInclusive=False&toInclusive=true") == ["p=2", "p=3"]
    assert partitions(statistics_node, "from=p%3D2") == ["p=2", "p=3"]
    assert partitions(statistics_node, "to=p%3D2") == ["p=1"]
    drop = {"drops": [{"partitionName": "p=1", "statisticNames": ["custom-n", "custom-m"]}]}
    assert [statistics_node.done("POST", PARTS, drop)["dropped"] for _ in range(2)] == [True, False]
    assert partitions(statistics_node, "to=p%3D9") == ["p=2", "p=3"]


def test_statistics_are_read_by_the_right_to_read_rows(statistics_node: DriverNode) -> None:
    """Statistics may have values of rows: they need SELECT_TABLE and no restriction, those of columns and partitions
    too. MODIFY_TABLE alone writes them.
    """
    column = f"{LAKE}/objects/column/main.a.t.id/statistics"
    statistics_node.done("PUT", column, {"updates": {"custom-max": 9}})
    for user, rights in (
        ("writer", "modify_table"),
        ("reader", "select_table"),
        ("bound", "select_table modify_table"),
    ):
        grant(statistics_node, user, f"use_catalog use_schema {rights}", kind="CATALOG", on="main")
    terms = {"masks": {"id": "replace-with-null"}, "to": {"users": ["bound"]}}
    assert restrict(statistics_node, kind="SCHEMA", on="main.a", **terms).status == 200
    paths = (TABLE, f"{PARTS}?from=p%3D1", column)

    statuses = {
        user: [statistics_node.get(path, user=user).status for path in paths] for user in ("writer", "reader", "bound")
    }

    assert statuses == {"writer": [403] * 3, "reader": [200] * 3, "bound": [403] * 3}
    assert statistics_node.put(TABLE, {"updates": {"custom-n": 5}}, user="writer").status == 200


def test_statistics_follow_renamed_and_restored_tables(statistics_node: DriverNode) -> None:
    """Statistics stay with a renamed or restored table; a new table of its name has none."""
    statistics_node.done(
        "PUT", f"{LAKE}/catalogs/main/schemas/a/tables/t", {"updates": [{"@type": "rename", "newName": "u"}]}
    )
    renamed = statistics_node.done("GET", TABLE.replace("main.a.t", "main.a.u"))["statistics"]
    statistics_node.done("DELETE", f"{LAKE}/catalogs/main/schemas/a/tables/u")
    make_table(statistics_node, "a", "t")
    successor = statistics_by_name(statistics_node)
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    (trash_entry,) = statistics_node.get(trash).json()["trash"]
    statistics_node.done("POST", f"{trash}/{trash_entry['id']}/undrop", {})

    assert len(renamed) == len(VALUES)
    assert successor == {}
    assert len(statistics_node.done("GET", TABLE.replace("main.a.t", "main.a.u"))["statistics"]) == len(VALUES)


@pytest.mark.parametrize(
    "request_of, code, says",
    [
        (("PUT", TABLE, {"updates": {"rows": 1}}), 1001, "must begin with custom-"),
        (("PUT", TABLE, {"updates": {"custom-": 1}}), 1001, "characters after custom-"),
        (("PUT", TABLE, {"updates": {"custom-n": None}}), 1001, "has no value"),
        (("PUT", TABLE, {"updates": {"custom-n": "x" * 20_000}}), 1001, "at most 16384 are allowed"),
        (("PUT", TABLE, {"updates": {}}), 1001, "1 to 10000"),
        (("POST", TABLE, {"names": ["rows"]}), 1001, "must begin with custom-"),
        (("GET", PARTS, None), 1001, "give from, to or both"),
        (("PUT", PARTS, {"updates": [{"partitionName": "", "statistics": {"custom-n": 1}}]}), 1001, "name is empty"),
        (("GET", f"{LAKE}/objects/schema/main.a/statistics", None), 1006, "for tables and columns"),
        (("GET", f"{LAKE}/objects/table/main.a.gone/statistics", None), 1003, "does not exist"),
    ],
)
def test_invalid_statistics_are_refused(
    statistics_node: DriverNode, request_of: tuple[str, str, object], code: int, says: str
) -> None:
    """Reserved names, invalid values and unsupported objects are refused, each with its own error."""
    answer = statistics_node.ask(*request_of)

    assert answer.json()["code"] == code
    assert says in answer.json()["message"]
    assert statistics_by_name(statistics_node) == VALUES
