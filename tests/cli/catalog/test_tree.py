# SPDX-License-Identifier: Apache-2.0
"""Commands on views: detecting the kind, `describe`, `mv` and `drop`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

I = "/iceberg/v1/lake.main"  # noqa: E741 - the Iceberg prefix


def test_views_are_described_moved_and_dropped(fake: FakeServer, limnos: Run) -> None:
    """The kind of a path is detected: a view is described with its SQL text, moved and dropped."""
    texts = [{"type": "sql", "dialect": "spark", "sql": "select 1"}]
    version = {"version-id": 2, "schema-id": 0, "representations": texts, "default-namespace": ["raw"]}
    columns = [{"id": 1, "name": "id", "type": "int", "required": True}]
    metadata = {
        "view-uuid": "u",
        "format-version": 1,
        "schemas": [{"schema-id": 0, "fields": columns}],
        "current-version-id": 2,
        "versions": [{"version-id": 1}, version],
    }
    fake.on("GET", f"{I}/namespaces/raw/views/v", {"metadata-location": "file:///m", "metadata": metadata})
    fake.on("DELETE", f"{I}/namespaces/raw/views/v", status=204)
    fake.on("POST", "/api/limnos/v1/metalakes/lake/catalogs/main/move", {"kind": "view", "path": ["main", "raw", "w"]})

    view = limnos("describe", "main.raw.v").result
    moved = limnos("mv", "main.raw.v", "main.raw.w")
    dropped = limnos("drop", "main.raw.v")
    purged = limnos("drop", "main.raw.v", "--kind", "view", "--purge")

    assert isinstance(view, dict)
    assert (view["sql"], view["columns"]) == ({"spark": "select 1"}, {"id": "int required"})
    assert (view["version"], view["versions"]) == (2, 2)
    assert (moved.code, dropped.code) == (0, 0)
    assert purged.code != 0
    assert "--purge is only for tables" in purged.err


SHOP = "/api/metalakes/lake/catalogs/shop"
SHOWN = "/iceberg/v1/lake.shop/namespaces"


def test_objects_of_external_database_are_listed_and_described(fake: FakeServer, limnos: Run) -> None:
    """Objects of an external database have no nodes in the tree: `ls` and `describe` read them over Gravitino REST."""
    page = "pageToken=&pageSize=1000"
    fake.on(
        "GET",
        SHOP,
        {
            "catalog": {
                "name": "shop",
                "type": "relational",
                "provider": "jdbc-postgresql",
                "properties": {},
                "audit": {},
            }
        },
    )
    fake.on("GET", f"{SHOWN}?{page}", {"namespaces": []})
    fake.on("GET", f"{SHOWN}?parent=sales&{page}", {"namespaces": []})
    fake.on("GET", f"{SHOP}/schemas", {"identifiers": [{"namespace": ["lake", "shop"], "name": "sales"}]})
    fake.on("GET", f"{SHOP}/schemas/sales", {"schema": {"name": "sales", "comment": "c"}})
    fake.on(
        "GET", f"{SHOP}/schemas/sales/tables", {"identifiers": [{"namespace": ["lake", "shop", "sales"], "name": "t"}]}
    )
    columns = [
        {"name": "id", "type": "long", "nullable": False, "comment": "of a shop"},
        {"name": "x", "type": {"type": "external", "catalogString": "jsonb"}},
    ]
    indexes = [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}]
    table_fields = {
        "name": "t",
        "columns": columns,
        "indexes": indexes,
        "partitioning": [
            {"strategy": "identity", "fieldName": ["day"]},
            {"strategy": "bucket", "numBuckets": 8, "fieldNames": [["id"], ["at", "x"]]},
            {"strategy": "truncate", "width": 4, "fieldName": ["name"]},
        ],
        "properties": {"format": "delta"},
    }
    fake.on("GET", f"{SHOP}/schemas/sales/tables/t", {"table": table_fields})

    schemas, tables = limnos("ls", "shop").result, limnos("ls", "shop.sales").result
    schema, table = limnos("describe", "shop.sales").result, limnos("describe", "shop.sales.t").result

    assert schemas == [{"name": "shop.sales", "kind": "namespace", "path": ["shop", "sales"]}]
    assert tables == [{"name": "shop.sales.t", "kind": "table", "path": ["shop", "sales", "t"]}]
    assert isinstance(schema, dict)
    assert isinstance(table, dict)
    assert (schema["kind"], schema["comment"]) == ("namespace", "c")
    assert (table["columns"], table["keys"]) == ({"id": "long required", "x": "jsonb"}, ["pk (PRIMARY_KEY)"])
    assert table["column_comments"] == {"id": "of a shop"}
    assert table["partition_by"] == ["day (identity)", "id, at.x (bucket 8)", "name (truncate 4)"]
    assert table["properties"] == {"format": "delta"}


BUS = "/api/metalakes/lake/catalogs/bus"


@pytest.mark.parametrize("provider", ["kafka", "x-topics"])
def test_topics_are_listed_described_and_shown_with_owners(fake: FakeServer, limnos: Run, provider: str) -> None:
    """Objects in the schemas of a messaging catalog are listed, described and shown with owners as topics, also those
    of another package's connector.
    """
    page = "pageToken=&pageSize=1000"
    catalog = {"name": "bus", "type": "messaging", "provider": provider, "properties": {}, "audit": {}}
    topics = f"{BUS}/schemas/default/topics"
    topic = {"name": "orders", "comment": "c", "properties": {"partition-count": "3"}}
    fake.on("GET", BUS, {"catalog": catalog})
    fake.on("GET", f"/iceberg/v1/lake.bus/namespaces?parent=default&{page}", {"namespaces": []})
    fake.on("GET", topics, {"identifiers": [{"namespace": ["lake", "bus", "default"], "name": "orders"}]})
    fake.on("GET", f"{topics}/orders", {"topic": topic})
    fake.on("GET", "/api/metalakes/lake/owners/topic/bus.default.orders", {"owner": {"name": "ana", "type": "user"}})

    listed, one = limnos("ls", "bus.default").result, limnos("describe", "bus.default.orders").result
    owner = limnos("owner", "show", "bus.default.orders").result

    assert listed == [{"name": "bus.default.orders", "kind": "topic", "path": ["bus", "default", "orders"]}]
    assert isinstance(one, dict)
    assert (one["kind"], one["comment"], one["properties"]) == ("topic", "c", {"partition-count": "3"})
    assert isinstance(owner, dict)
    assert (owner["kind"], owner["owner"]) == ("topic", "ana")


def test_drop_refuses_unsupported_kinds(fake: FakeServer, limnos: Run) -> None:
    """`drop` refuses kinds that it does not support before it sends a request, so it drops no other object of the
    path.
    """
    for words in (("bus.default.orders", "--kind", "topic"), ("bus", "--kind", "job_template")):
        done = limnos("drop", *words)

        assert done.code != 0
        assert "does not delete a" in done.err
    assert [each for each in fake.asked if each.method != "GET"] == []


def test_describe_refuses_unsupported_kinds(fake: FakeServer, limnos: Run) -> None:
    """`describe` refuses a kind that it does not support before it sends a request."""
    done = limnos("describe", "nightly", "--kind", "job_template")

    assert done.code != 0
    assert "does not describe a job_template" in done.err
    assert fake.asked == []


CHILDREN = "/api/limnos/v1/metalakes/lake/catalogs/main/children"


@pytest.mark.parametrize("command", [("list", "tables"), ("list", "-r"), ("tree",)])
@pytest.mark.parametrize("output", ["json", "table"])
def test_walk_over_all_catalogs_goes_on_after_one_that_does_not_answer(
    fake: FakeServer, limnos: Run, command: tuple[str, ...], output: str
) -> None:
    """The other catalogs are listed; the error names the catalog that did not answer, and the exit code says that the
    list is not whole. A walk of that catalog alone only fails.
    """
    names = ["a", "broken", "main"]
    catalogs = [
        {"name": name, "type": "relational", "provider": "x-own", "properties": {}, "audit": {}} for name in names
    ]
    fake.on("GET", "/api/metalakes/lake/catalogs?details=true", {"catalogs": catalogs})
    fake.on("GET", "/api/metalakes/lake/catalogs", {"identifiers": [{"namespace": ["lake"], "name": n} for n in names]})
    for name in ("a", "main"):
        children = [{"kind": "table", "name": "t", "path": [name, "raw", "t"]}]
        fake.on("GET", CHILDREN.replace("main", name) + "?limit=500", {"children": children, "after": None})
    failure = {"error": {"code": "source-failed", "message": "Catalog broken: The directory cannot be listed"}}
    fake.on("GET", CHILDREN.replace("main", "broken") + "?limit=500", failure, status=502)

    done = limnos(*command, "--output", output)
    alone = limnos(*command, "broken", "--output", output)

    assert (done.code, alone.code) == (6, 6)
    assert done.out.count("raw") + done.out.count("t  (table)") >= 2
    assert "catalog broken (The directory cannot be listed)" in done.err
    assert alone.out == ""


@pytest.mark.parametrize("flag", ["--kind", "--only"])
def test_kind_without_content_selects_what_is_listed(fake: FakeServer, limnos: Run, flag: str) -> None:
    """A table has no content, so that `--kind table` of a list, as `--only table`, lists the tables below the path."""
    children = [{"kind": kind, "name": kind[0], "path": ["main", "raw", kind[0]]} for kind in ("table", "view")]
    fake.on("GET", f"{CHILDREN}?path=raw&limit=500", {"children": children, "after": None})

    done = limnos("list", "main.raw", flag, "table")

    assert done.code == 0
    assert [row["name"] for row in done.rows] == ["main.raw.t"]


def test_ls_long_shows_every_kind_with_details(fake: FakeServer, limnos: Run) -> None:
    """With `--long` one request per page returns format, owner, last change and comment. For an object that the caller
    may not load, only the name is shown.
    """
    table = {
        "kind": "table",
        "name": "t",
        "path": ["main", "raw", "t"],
        "id": 7,
        "format": "iceberg",
        "owner": {"kind": "user", "name": "etl"},
        "comment": "flights",
        "created_by": "etl",
        "created_at": "x",
        "changed_at": "2026-01-31T00:00:00.000Z",
    }
    space = {"kind": "namespace", "name": "new york", "path": ["main", "raw", "new york"]}
    fake.on("GET", f"{CHILDREN}?path=raw&limit=500", {"children": [space], "after": "table:"})
    fake.on("GET", f"{CHILDREN}?path=raw&after=table%3A&limit=500", {"children": [table], "after": None})

    done, table_output = limnos("ls", "main.raw", "-l"), limnos("ls", "main.raw", "--long", "--output", "table").out

    assert done.code == 0
    assert done.result == [
        {
            **dict.fromkeys(("id", "format", "owner", "comment", "created_by", "created_at", "changed_at")),
            **space,
            "name": "main.raw.`new york`",
        },
        {**table, "name": "main.raw.t", "owner": "etl"},
    ]
    assert "flights" in table_output
    assert "iceberg" in table_output


def test_catalog_is_renamed_where_it_is(fake: FakeServer, limnos: Run) -> None:
    """`rename` of a catalog sends Gravitino's update."""
    fake.on("PUT", "/api/metalakes/lake/catalogs/main", {"catalog": {"name": "other"}})

    done = limnos("rename", "catalog", "main", "other")

    assert done.code == 0
    assert fake.asked[-1].body == {"updates": [{"@type": "rename", "newName": "other"}]}
