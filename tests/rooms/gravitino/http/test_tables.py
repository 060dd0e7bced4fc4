# SPDX-License-Identifier: Apache-2.0
"""Tables of both formats over Gravitino REST: lists, columns, and tables directly in a Lance catalog."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.rooms.lance.http.wire import declare, fill, make_space, table

LANCE = f"{API}/lake/catalogs/lance/schemas"
MAIN = f"{API}/lake/catalogs/main/schemas"

_IMPL = {"language": "SQL", "runtime": "SPARK", "sql": "1"}
_DEFINITION = {"parameters": [], "returnType": "integer", "impls": [_IMPL]}


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """A node that also has a catalog for Lance tables."""
    new = {"name": "lance", "type": "RELATIONAL", "provider": "lakehouse-generic", "properties": {}}
    answer = node.post(f"{API}/lake/catalogs", new)
    assert answer.status in (200, 409), answer
    return node


def names(answer: DriverAnswer) -> list[str]:
    """Return the names of a list."""
    assert answer.status == 200, answer.body
    return [each["name"] for each in answer.json()["identifiers"]]


@pytest.mark.parametrize("sent, expected", [("a%3Db", "a=b"), ("a%2Fb%3D1", "a/b=1"), ("plain", "plain")])
def test_the_name_of_a_new_table_is_percent_decoded_once(lake: DriverNode, sent: str, expected: str) -> None:
    """The server percent-decodes the name in the body once, because the Java client encodes it."""
    lake.done("POST", MAIN, {"name": "encoded"})
    body = {"name": sent, "columns": [{"name": "id", "type": "long"}]}
    created_name = lake.done("POST", f"{MAIN}/encoded/tables", body)["table"]["name"]

    assert created_name == expected
    assert names(lake.get(f"{MAIN}/encoded/tables")) == [expected]


@pytest.mark.parametrize("path, kind", [("tables", "TABLE"), ("views", "VIEW"), ("functions", "FUNCTION")])
def test_separator_in_a_name_is_refused_with_the_kind(lake: DriverNode, path: str, kind: str) -> None:
    """Vector 21: the names of all kinds except schemas must not contain the separator. The refusal names the kind."""
    lake.done("POST", MAIN, {"name": "kinds"})
    columns = [{"name": "id", "type": "long"}]
    view = {"columns": columns, "representations": [{"type": "sql", "dialect": "spark", "sql": "select 1 id"}]}
    function = {"functionType": "scalar", "deterministic": True, "definitions": [_DEFINITION]}
    bodies = {"tables": {"columns": columns}, "views": view, "functions": function}
    refused = lake.post(f"{MAIN}/kinds/{path}", {"name": "table:name", **bodies[path]})

    assert (refused.status, refused.json()["code"]) == (400, 1001)
    assert f"The {kind} name 'table:name' is illegal" in refused.json()["message"]


def test_lance_table_is_listed_and_loaded_with_columns(lake: DriverNode) -> None:
    """Lance tables in nested schemas are listed and loaded with Gravitino's types, location and current version."""
    make_space(lake, "lance", "ml")
    make_space(lake, "lance", "ml", "text")
    fill(lake, "lance", "ml", "text", "docs")

    loaded_table = lake.done("GET", f"{LANCE}/ml%3Atext/tables/docs")["table"]

    assert names(lake.get(f"{LANCE}/ml%3Atext/tables")) == ["docs"]
    assert names(lake.get(f"{LANCE}/ml/tables")) == []
    assert (
        loaded_table["name"],
        loaded_table["properties"]["format"],
        loaded_table["properties"]["lance.version"],
    ) == (
        "docs",
        "lance",
        "1",
    )
    assert loaded_table["properties"]["location"].startswith("file://")
    assert loaded_table["columns"][0] == {"name": "id", "type": "long", "nullable": True, "autoIncrement": False}
    assert loaded_table["audit"]["creator"] == "admin"
    assert (loaded_table["partitioning"], loaded_table["sortOrders"], loaded_table["indexes"]) == ([], [], [])
    assert loaded_table["distribution"] == {"strategy": "none", "number": 0, "funcArgs": []}


def test_declared_lance_table_has_no_columns(lake: DriverNode) -> None:
    """A declared table has properties and a comment, and no columns."""
    make_space(lake, "lance", "ml")
    declare(lake, "lance", "ml", "later", properties={"k": "v", "comment": "soon"})

    loaded_table = lake.done("GET", f"{LANCE}/ml/tables/later")["table"]

    assert (loaded_table["columns"], loaded_table["comment"], loaded_table["properties"]["k"]) == ([], "soon", "v")
    assert "comment" not in loaded_table["properties"]


def test_tables_directly_in_a_catalog_are_in_the_configured_schema(lake: DriverNode) -> None:
    """Tables directly in a catalog are listed and loaded in the schema of the setting; a namespace of that name takes
    precedence.
    """
    declare(lake, "lance", "top")

    assert names(lake.get(LANCE)) == ["default"]
    assert lake.done("GET", f"{LANCE}/default")["schema"]["comment"] == "What lies directly in the catalog"
    assert names(lake.get(f"{LANCE}/default/tables")) == ["top"]
    assert lake.done("GET", f"{LANCE}/default/tables/top")["table"]["name"] == "top"
    assert names(lake.get(f"{MAIN}")) == []
    assert lake.get(f"{MAIN}/default").status == 404
    make_space(lake, "lance", "default")
    assert names(lake.get(LANCE)) == ["default"]
    assert names(lake.get(f"{LANCE}/default/tables")) == []
    assert lake.get(f"{LANCE}/default/tables/top").status == 404


def test_schema_that_represents_a_catalog_cannot_be_changed(lake: DriverNode) -> None:
    """Grants, owners, tags and changes of the schema that represents the catalog are refused with advice. With the full
    name of a table in it, they succeed.
    """
    declare(lake, "lance", "top")
    lake.done("POST", f"{API}/lake/roles", {"name": "r", "securableObjects": []})
    lake.done("POST", f"{API}/lake/tags", {"name": "red"})
    rights = [{"name": "select_table", "condition": "allow"}]
    requests: list[tuple[str, str, object]] = [
        ("PUT", "/permissions/roles/r/schema/lance.default/grant", {"privileges": rights}),
        (
            "POST",
            "/roles",
            {"name": "q", "securableObjects": [{"fullName": "lance.default", "type": "schema", "privileges": rights}]},
        ),
        ("PUT", "/owners/schema/lance.default", {"name": "admin", "type": "USER"}),
        ("GET", "/owners/schema/lance.default", None),
        ("GET", "/objects/schema/lance.default/tags", None),
        ("POST", "/objects/schema/lance.default/tags", {"tagsToAdd": ["red"], "tagsToRemove": []}),
        (
            "PUT",
            "/catalogs/lance/schemas/default",
            {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]},
        ),
        ("DELETE", "/catalogs/lance/schemas/default", None),
    ]

    for method, path, body in requests:
        answer = lake.ask(method, f"{API}/lake{path}", body)
        assert (answer.status, answer.json()["code"]) == (405, 1006), path
        assert "name the catalog lance, or a table as lance.default.TABLE" in answer.json()["message"], path
        if method != "POST" or "roles" not in path:
            assert lake.ask(method, f"{API}/lake{path}", body, user="eve").status == 403, path
    lake.done("POST", f"{API}/lake/objects/table/lance.default.top/tags", {"tagsToAdd": ["red"], "tagsToRemove": []})
    assert lake.done("GET", f"{API}/lake/owners/table/lance.default.top")["owner"]["name"] == "admin"
    make_space(lake, "lance", "default")
    lake.done("PUT", f"{API}/lake/permissions/roles/r/schema/lance.default/grant", {"privileges": rights})


def test_iceberg_table_is_listed_and_loaded(lake: DriverNode) -> None:
    """Iceberg tables are listed and loaded over the same routes, with partitioning and sort order."""
    spaces = "/iceberg/v1/lake.main/namespaces"
    lake.done("POST", spaces, {"namespace": ["raw"]})
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "type": "long", "required": True},
            {"id": 2, "name": "at", "type": "timestamptz", "required": False, "doc": "when"},
        ],
    }
    spec = {"fields": [{"name": "at_day", "source-id": 2, "field-id": 1000, "transform": "day"}]}
    order = {
        "order-id": 1,
        "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}],
    }
    body = {"name": "t", "schema": schema, "partition-spec": spec, "write-order": order, "properties": {"k": "v"}}
    lake.done("POST", f"{spaces}/raw/tables", body)

    loaded_table = lake.done("GET", f"{MAIN}/raw/tables/t")["table"]

    assert names(lake.get(f"{MAIN}/raw/tables")) == ["t"]
    assert [(each["name"], each["type"], each["nullable"]) for each in loaded_table["columns"]] == [
        ("id", "long", False),
        ("at", "timestamp_tz", True),
    ]
    assert loaded_table["partitioning"] == [{"strategy": "day", "fieldName": ["at"]}]
    assert loaded_table["sortOrders"][0]["direction"] == "asc"
    assert (loaded_table["properties"]["k"], loaded_table["properties"]["format"]) == ("v", "iceberg v2")


def test_lance_table_load_needs_a_table_privilege(lake: DriverNode) -> None:
    """A user without rights is refused a Lance table, and a privilege on the table is enough to load it. A damaged
    table is reported without a server error.
    """
    make_space(lake, "lance", "ml")
    fill(lake, "lance", "ml", "docs")
    declare(lake, "lance", "top")
    lake.done("POST", f"{API}/lake/users", {"name": "eve"})

    assert lake.get(f"{LANCE}/ml/tables/docs", user="eve").status == 403
    assert lake.get(f"{LANCE}/default", user="eve").status == 403
    grant(lake, "eve", "use_catalog", kind="CATALOG", on="lance")
    assert names(lake.get(LANCE, user="eve")) == []
    grant(lake, "eve", "use_schema", kind="SCHEMA", on="lance.ml")
    grant(lake, "eve", "select_table", kind="TABLE", on="lance.ml.docs")
    assert names(lake.get(LANCE, user="eve")) == ["ml"]
    assert names(lake.get(f"{LANCE}/ml/tables", user="eve")) == ["docs"]
    assert lake.get(f"{LANCE}/ml/tables/docs", user="eve").status == 200
    assert lake.get(f"{LANCE}/default/tables/top", user="eve").status == 403

    description = lake.done("POST", f"{table('lance', 'ml', 'docs')}/describe", {"load_detailed_metadata": False})
    versions = lake.data / description["location"].removeprefix("file://") / "_versions"
    for each in versions.iterdir():
        each.write_bytes(b"broken")
    response = lake.get(f"{LANCE}/ml/tables/docs")
    assert (response.status, response["code"]) == (409, 1002)


def test_catalog_refuses_tables_of_another_format(lake: DriverNode) -> None:
    """A catalog refuses tables of another format and names its own."""
    make_space(lake, "lance", "a")
    lake.done("POST", MAIN, {"name": "a"})
    body = {"name": "t", "columns": [{"name": "id", "type": "long"}], "properties": {"format": "lance"}}

    of_lance, of_iceberg = lake.post(f"{LANCE}/a/tables", body), lake.post(f"{MAIN}/a/tables", body)

    assert (of_lance.status, of_iceberg.status) == (400, 400)
    assert "Catalog lance contains Lance tables, which are created over Lance REST" in str(of_lance["message"])
    assert "This catalog holds Iceberg tables: leave format lance out" in str(of_iceberg["message"])


def test_lance_table_change_returns_403_to_readers_before_405(lake: DriverNode) -> None:
    """A user who may not change a Lance table is refused with 403, before others are refused with 405 because the
    operation is not served.
    """
    make_space(lake, "lance", "kept")
    declare(lake, "lance", "kept", "t")
    grant(lake, "reader", "use_catalog use_schema select_table", kind="METALAKE", on="lake")
    at = f"{LANCE}/kept/tables/t"
    rename = {"updates": [{"@type": "rename", "newName": "other"}]}
    alter = {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]}
    requests = (("PUT", rename), ("PUT", alter), ("DELETE", None))

    assert [lake.ask(method, at, body, user="reader").status for method, body in requests] == [403] * 3
    assert [lake.ask(method, at, body).status for method, body in requests] == [405] * 3


def test_move_to_another_schema_needs_ownership(lake: DriverNode) -> None:
    """Moving a table to another schema needs ownership of it. The privileges to change it and to create tables in the
    target are not enough.
    """
    for schema in ("from", "to"):
        lake.done("POST", MAIN, {"name": schema})
    lake.done("POST", f"{MAIN}/from/tables", {"name": "t", "columns": [{"name": "id", "type": "long"}]})
    grant(lake, "ana", "use_catalog use_schema modify_table create_table", kind="CATALOG", on="main")
    move = {"updates": [{"@type": "rename", "newName": "t", "newSchemaName": "to"}]}

    assert lake.ask("PUT", f"{MAIN}/from/tables/t", move, user="ana").status == 403
    assert names(lake.get(f"{MAIN}/from/tables")) == ["t"]
