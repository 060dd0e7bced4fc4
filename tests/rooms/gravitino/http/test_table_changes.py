# SPDX-License-Identifier: Apache-2.0
"""Tables created and altered over Gravitino REST: Iceberg REST returns each change immediately."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import make_space, make_table, set_properties, table_path

TABLES = f"{API}/lake/catalogs/main/schemas/a%3Ab/tables"
COLUMNS = [
    {"name": "id", "type": "long", "nullable": False, "autoIncrement": False},
    {"name": "name", "type": "varchar(20)", "nullable": True, "comment": "short", "autoIncrement": False},
    {"name": "at", "type": "timestamp(3)", "nullable": True, "autoIncrement": False},
]
NEW = {
    "name": "t",
    "comment": "of the day",
    "columns": COLUMNS,
    "properties": {"k": "v"},
    "partitioning": [{"strategy": "day", "fieldName": ["at"]}],
    "sortOrders": [],
    "distribution": {"strategy": "none", "number": 0, "funcArgs": []},
    "indexes": [],
}


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """A node with a nested schema and a table in it."""
    make_space(node, "a", "b")
    node.done("POST", TABLES, NEW)
    return node


def metadata(node: DriverNode, *levels: str) -> dict:
    """Return the table's metadata from Iceberg REST."""
    return node.done("GET", table_path(*levels))["metadata"]


def alter(node: DriverNode, *changes: dict, name: str = "t") -> dict:
    """Alter a table."""
    return node.done("PUT", f"{TABLES}/{name}", {"updates": list(changes)})["table"]


def test_created_table_is_an_iceberg_table(lake: DriverNode) -> None:
    """A created table is returned as sent, by the create and by a load; Iceberg REST has its schema, spec and
    properties.
    """
    table = lake.done("POST", TABLES, {**NEW, "name": "u"})["table"]
    loaded = lake.done("GET", f"{TABLES}/u")["table"]
    iceberg = metadata(lake, "a", "b", "u")

    assert table["audit"]["creator"] == loaded["audit"]["creator"] == "admin"
    assert {**table, "audit": None} == {**loaded, "audit": None}
    for key in ("comment", "columns", "partitioning", "sortOrders", "distribution", "indexes"):
        assert loaded[key] == NEW[key], key
    assert loaded["properties"]["k"] == "v"
    assert [each["type"] for each in iceberg["schemas"][0]["fields"]] == ["long", "string", "timestamp"]
    assert iceberg["partition-specs"][0]["fields"][0]["name"] == "at_day"
    assert iceberg["properties"]["comment"] == "of the day"


def test_changes_are_visible_over_both_protocols(lake: DriverNode) -> None:
    """Changes over one protocol are visible over the other. Parts that one protocol cannot express are preserved."""
    before = metadata(lake, "a", "b", "t")
    schema = {**before["schemas"][0], "schema-id": 1}
    schema["fields"] = [{**schema["fields"][1], "name": "label"}, schema["fields"][0], schema["fields"][2]]
    updates = [
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        set_properties(seen="yes"),
    ]
    lake.done("POST", table_path("a", "b", "t"), {"updates": updates})

    after = alter(lake, {"@type": "addColumn", "fieldName": ["n"], "type": "short", "position": "first"})

    assert [(each["name"], each["type"]) for each in after["columns"]] == [
        ("n", "short"),
        ("label", "varchar(20)"),
        ("id", "long"),
        ("at", "timestamp(3)"),
    ]
    assert after["properties"]["seen"] == "yes"
    now = metadata(lake, "a", "b", "t")
    fields = next(each for each in now["schemas"] if each["schema-id"] == now["current-schema-id"])["fields"]
    assert [(each["name"], each["id"]) for each in fields] == [("n", 4), ("label", 2), ("id", 1), ("at", 3)]


def test_iceberg_rest_table_can_be_altered_atomically(node: DriverNode) -> None:
    """A table created over Iceberg REST can be altered in every way. If one change of a request fails, none is made."""
    make_table(node, "a", "b", "x")
    changes = [
        {"@type": "deleteColumn", "fieldName": ["city"]},
        {"@type": "setProperty", "property": "p", "value": "1"},
    ]

    refused = node.put(f"{TABLES}/x", {"updates": [*changes, {"@type": "deleteColumn", "fieldName": ["none"]}]})
    before = node.done("GET", f"{TABLES}/x")["table"]
    after = alter(node, *changes, name="x")

    assert (refused.status, refused["code"]) == (400, 1001)
    assert [each["name"] for each in before["columns"]] == ["id", "city"]
    assert ([each["name"] for each in after["columns"]], after["properties"]["p"]) == (["id"], "1")


def test_tables_can_be_renamed_dropped_and_purged(lake: DriverNode) -> None:
    """A rename must be the only change of a request, keeps grants, and can move the table to another schema. Dropping a
    missing table returns `dropped: false`.
    """
    make_space(lake, "c")
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.a:b.t")
    rename = {"@type": "rename", "newName": "u"}

    both = lake.put(f"{TABLES}/t", {"updates": [rename, {"@type": "updateComment", "newComment": "x"}]})
    renamed = alter(lake, rename)
    moved = alter(lake, {"@type": "rename", "newName": "u", "newSchemaName": "c"}, name="u")
    moved_table = lake.get(f"{API}/lake/catalogs/main/schemas/c/tables/u", user="ana")
    path = f"{API}/lake/catalogs/main/schemas/c/tables/u"
    dropped = [lake.done("DELETE", f"{path}?purge=True")["dropped"] for _ in range(2)]

    assert both.status == 400
    assert (renamed["name"], moved["name"], moved_table.status) == ("u", "u", 200)
    assert dropped == [True, False]
    assert lake.get(path)["type"] == "NoSuchTableException"


def test_used_name_or_missing_schema_is_refused(lake: DriverNode) -> None:
    """Names in use and missing schemas are refused with the codes and exceptions that clients expect."""
    conflict = lake.post(TABLES, NEW)
    missing = lake.post(f"{API}/lake/catalogs/main/schemas/none/tables", NEW)
    illegal = lake.post(TABLES, {**NEW, "name": "a:b"})
    outside = lake.post(TABLES, {**NEW, "name": "o", "properties": {"location": "file:///etc/x"}})

    assert (conflict.status, conflict["type"]) == (409, "TableAlreadyExistsException")
    assert (missing.status, missing["type"]) == (404, "NoSuchSchemaException")
    assert (illegal.status, illegal["code"]) == (400, 1001)
    assert (outside.status, outside["code"]) == (400, 1001)


@pytest.mark.room("lance")
def test_unknown_change_and_lance_alter_are_refused(lake: DriverNode) -> None:
    """An unknown change is refused with 400. Altering a Lance table is refused with a reference to Lance REST."""
    unknown = lake.put(f"{TABLES}/t", {"updates": [{"@type": "explode"}]})
    lake.post(f"{API}/lake/catalogs", {"name": "lance", "type": "relational", "provider": "lakehouse-generic"})
    lake.done("POST", f"{API}/lake/catalogs/lance/schemas", {"name": "s"})
    lance = f"{API}/lake/catalogs/lance/schemas/s/tables"
    lake.done("POST", "/lance/v1/table/lance$s$t/declare", {})

    answers = [lake.post(lance, NEW), lake.put(f"{lance}/t", {"updates": []}), lake.delete(f"{lance}/t")]

    assert (unknown.status, unknown["code"]) == (400, 1001)
    assert [answer.status for answer in answers] == [400, 405, 405]


def test_load_with_modify_privilege_is_refused_to_readers(lake: DriverNode) -> None:
    """A load can request the privilege to modify; it is then refused to readers."""
    grant(lake, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    plain, more = (lake.get(f"{TABLES}/t{query}", user="ana") for query in ("", "?privileges=MODIFY_TABLE"))
    wrong = lake.get(f"{TABLES}/t?privileges=fly")

    assert (plain.status, more.status, wrong.status) == (200, 403, 400)


def test_partitions_cannot_be_listed_or_added(lake: DriverNode) -> None:
    """Partitions can be neither listed nor added over Gravitino REST. The answer says where they are visible."""
    answers = [lake.get(f"{TABLES}/t/partitions"), lake.post(f"{TABLES}/t/partitions", {"partitions": []})]

    assert [(answer.status, answer["code"]) for answer in answers] == [(405, 1006)] * 2
    assert "metadata table" in str(answers[0]["message"])
    assert lake.get(f"{TABLES}/none/partitions").status == 404
