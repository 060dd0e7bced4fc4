# SPDX-License-Identifier: Apache-2.0
"""`delete -r`: what goes is listed first, the deepest goes first, and the way back is printed."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

OWN = "/api/limnos/v1/metalakes/lake/catalogs/main/children"
I = "/iceberg/v1/lake.main/namespaces"  # noqa: E741 - the Iceberg prefix


def with_children(fake: FakeServer) -> None:
    """Add a namespace with a table and a namespace with a view."""
    top = [
        {"kind": "table", "name": "t", "path": ["main", "raw", "t"], "format": "iceberg"},
        {"kind": "namespace", "name": "nyc", "path": ["main", "raw", "nyc"]},
    ]
    inner = [{"kind": "view", "name": "v", "path": ["main", "raw", "nyc", "v"]}]
    fake.on("GET", f"{OWN}?path=raw&limit=500", {"children": top})
    fake.on("GET", f"{OWN}?path=raw.nyc&limit=500", {"children": inner})


def test_recursive_delete_previews_and_deletes_the_deepest_first(fake: FakeServer, limnos: Run) -> None:
    """The preview counts and names the objects; children go before their parents; the message has the way back."""
    with_children(fake)
    for target in (f"{I}/raw%1Fnyc/views/v", f"{I}/raw%1Fnyc", f"{I}/raw/tables/t", f"{I}/raw"):
        fake.on("DELETE", target, status=204)

    done = limnos("delete", "namespace", "main.raw", "-r", "--output", "table")

    assert done.code == 0
    assert "1 namespace, 1 table, 1 view below it" in done.err
    assert "namespace main.raw.nyc" in done.err
    assert "'limnos undrop main.raw --contents' restores it" in done.out
    deleted = [call.split()[1].removeprefix(I) for call in fake.calls if call.startswith("DELETE")]
    assert deleted == ["/raw/tables/t", "/raw%1Fnyc/views/v", "/raw%1Fnyc", "/raw"]


def test_dry_run_deletes_nothing(fake: FakeServer, limnos: Run) -> None:
    """`--dry-run` lists what would go, and sends no deletion."""
    with_children(fake)

    done = limnos("delete", "namespace", "main.raw", "-r", "--dry-run")
    preview = limnos("delete", "namespace", "main.raw", "-r", "--dry-run", "--output", "table").err

    assert done.code == 0
    assert done.result == [
        {"kind": "namespace", "name": "main.raw.nyc"},
        {"kind": "view", "name": "main.raw.nyc.v"},
        {"kind": "table", "name": "main.raw.t"},
    ]
    assert "the command deletes namespace main.raw and" in preview
    plain = limnos("delete", "namespace", "main.raw", "--dry-run", "--output", "table").err
    assert "namespace main.raw is not empty: the deletion is refused without --recursive" in plain
    assert [call for call in fake.calls if call.startswith("DELETE")] == []


def test_dry_run_names_the_protection_that_refuses_it(fake: FakeServer, limnos: Run) -> None:
    """The preview of a protected namespace says that the deletion is refused, and by which protection."""
    with_children(fake)
    where = "/api/limnos/v1/metalakes/lake/objects/schema/main.raw/protection"
    fake.on("GET", where, {"protected": True, "by": {"kind": "catalog", "name": "main"}, "below": True})

    preview = limnos("delete", "namespace", "main.raw", "-r", "--dry-run", "--output", "table").err

    assert "it is refused: catalog main is protected" in preview


def with_external_catalog(fake: FakeServer) -> None:
    """Answer that the catalog `main` shows another system, with one table."""
    catalog = {"name": "main", "type": "relational", "provider": "jdbc-mysql", "properties": {}, "audit": {}}
    fake.on("GET", "/api/metalakes/lake/catalogs/main", {"catalog": catalog})
    fake.on(
        "GET", f"{OWN}?path=raw&limit=500", {"children": [{"kind": "table", "name": "t", "path": ["main", "raw", "t"]}]}
    )


def test_objects_of_external_systems_are_deleted_there(fake: FakeServer, limnos: Run) -> None:
    """A schema with its tables is dropped through the connector; nothing says that it could be restored."""
    schema = "/api/metalakes/lake/catalogs/main/schemas/raw"
    with_external_catalog(fake)
    for target in (f"{schema}/tables/t", schema):
        fake.on("DELETE", target, {"dropped": True})

    done = limnos("delete", "namespace", "main.raw", "-r", "--output", "table")

    assert done.code == 0, done.err
    assert "undrop" not in done.out
    assert [call for call in fake.calls if call.startswith("DELETE")] == [
        f"DELETE {schema}/tables/t",
        f"DELETE {schema}",
    ]


def test_a_missing_table_of_an_external_system_is_not_deleted(fake: FakeServer, limnos: Run) -> None:
    """If the external system has no such table, the command fails."""
    with_external_catalog(fake)
    fake.on("DELETE", "/api/metalakes/lake/catalogs/main/schemas/raw/tables/t?purge=true", {"dropped": False})

    done = limnos("delete", "table", "main.raw.t", "--purge")

    assert done.code == 3
    assert "main.raw.t" in str(done.error["message"])


def test_preview_of_an_external_catalog_deletes_none_of_its_objects(fake: FakeServer, limnos: Run) -> None:
    """A recursive deletion of a catalog of an external system takes the catalog alone, and its preview says so."""
    with_external_catalog(fake)

    preview = limnos("delete", "catalog", "main", "-r", "--dry-run", "--output", "table").err

    assert "the command deletes catalog main; its objects stay in the external system" in preview


def test_failed_deletion_names_the_object_and_the_count(fake: FakeServer, limnos: Run) -> None:
    """If an object cannot be deleted, the message names it and the number of objects that were deleted before."""
    with_children(fake)
    fake.on("DELETE", f"{I}/raw/tables/t", status=204)
    body = {"error": {"message": "View is protected", "type": "ForbiddenException", "code": 403}}
    fake.on("DELETE", f"{I}/raw%1Fnyc/views/v", body, status=403)

    done = limnos("delete", "namespace", "main.raw", "-r")

    assert done.code == 4
    assert "main.raw.nyc.v; 1 of 3 objects were deleted before it" in str(done.error["message"])


def test_tree_and_recursive_list_show_everything_below(fake: FakeServer, limnos: Run) -> None:
    """`tree` draws the objects below a path, and `list -r` has a row for each."""
    with_children(fake)

    drawn = limnos("tree", "main.raw", "--output", "table").out
    rows = limnos("list", "-r", "main.raw", "--columns", "name", "--output", "csv").out

    assert drawn == "main.raw\n├── nyc\n│   └── v  (view)\n└── t  (iceberg)\n"
    assert rows == "name\nmain.raw.nyc\nmain.raw.nyc.v\nmain.raw.t\n"


def test_preview_of_a_metalake_lists_its_catalogs(fake: FakeServer, limnos: Run) -> None:
    """The preview of a metalake has its catalogs and what is below them."""
    fake.on(
        "GET",
        "/api/metalakes/lake/catalogs?details=true",
        {
            "catalogs": [
                {"name": "main", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}, "audit": {}}
            ]
        },
    )
    fake.on("GET", "/api/metalakes/lake/catalogs", {"identifiers": [{"namespace": ["lake"], "name": "main"}]})

    with_children(fake)
    fake.on("GET", "/api/limnos/v1/metalakes/lake/catalogs/main/children?limit=500", {"children": [], "more": False})

    done = limnos("delete", "metalake", "lake", "-r", "--dry-run")

    assert done.code == 0, done.err
    assert done.result[0] == {"kind": "catalog", "name": "main"}
