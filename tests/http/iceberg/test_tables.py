# SPDX-License-Identifier: Apache-2.0
"""Table routes: create, staged create, load with ETag, list, rename, drop, metrics, locations."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.config.storage import StorageSection
from tests.http.driver import API, DriverNode, grant, node_at
from tests.http.iceberg.wire import (
    ROOT,
    SCHEMA,
    SPACES,
    commit,
    creation,
    error_of,
    files_of,
    local,
    make_space,
    make_table,
    metadata_of,
    nothing_done,
    point,
    set_properties,
    snapshot,
    space_path,
    table_path,
)

RENAME = f"{ROOT}/tables/rename"


def rename(source: tuple[str, ...], target: tuple[str, ...]) -> dict[str, object]:
    """Return the body of a rename."""
    ends = {"source": source, "destination": target}
    return {end: {"namespace": list(levels[:-1]), "name": levels[-1]} for end, levels in ends.items()}


def test_every_table_route_succeeds(lake: DriverNode) -> None:
    """A table is created, found, committed to, renamed, registered and dropped."""
    lake.done("POST", SPACES, {"namespace": ["a", "b"]})
    space, home = space_path("a", "b"), table_path("a", "b", "t")

    created = lake.post(f"{space}/tables", {"name": "t", "schema": SCHEMA})
    loaded, head = lake.get(home), lake.ask("HEAD", home)
    committed = lake.post(home, {"requirements": [], "updates": [set_properties(k="v")]})
    reported = lake.post(f"{home}/metrics", {"report-type": "scan-report", "table-name": "t"})
    listed = lake.get(f"{space}/tables")
    renamed = lake.post(RENAME, rename(("a", "b", "t"), ("a", "b", "u")))
    dropped = lake.delete(table_path("a", "b", "u"))
    registered = lake.post(f"{space}/register", {"name": "t", "metadata-location": committed["metadata-location"]})

    assert [answer.status for answer in (created, loaded, head, committed, reported)] == [200, 200, 204, 200, 204]
    assert [answer.status for answer in (listed, renamed, dropped, registered)] == [200, 204, 204, 200]
    assert loaded.json() == created.json()
    assert (head.body, reported.body, renamed.body, dropped.body) == (b"", b"", b"", b"")
    assert listed.json() == {"identifiers": [{"namespace": ["a", "b"], "name": "t"}], "next-page-token": None}
    assert registered["metadata"] == committed["metadata"]


def test_created_table_has_new_field_ids_and_metadata_file(lake: DriverNode) -> None:
    """A created table has newly assigned field ids, a location without names in it, and a metadata file with the
    returned metadata.
    """
    spec = {"fields": [{"source-id": 5, "name": "city", "transform": "identity"}]}
    order = {
        "order-id": 7,
        "fields": [
            {"source-id": 5, "transform": "identity", "direction": "asc", "null-order": "nulls-first"},
        ],
    }
    schema = {"type": "struct", "fields": [{"id": 5, "name": "city", "required": False, "type": "string"}]}
    properties = {"k": "v", "format-version": "3"}

    created = make_table(lake, "a", "t", schema=schema, partition_spec=spec, write_order=order, properties=properties)
    metadata = metadata_of(lake, "a", "t")

    assert created["metadata"] == metadata == json.loads(local(created["metadata-location"]).read_bytes())
    assert created["config"] == {}
    assert metadata["format-version"] == 3
    assert metadata["schemas"][0]["fields"][0]["id"] == 1
    assert metadata["partition-specs"][0]["fields"][0] == {
        "source-id": 1,
        "field-id": 1000,
        "name": "city",
        "transform": "identity",
    }
    assert (metadata["default-sort-order-id"], metadata["sort-orders"][0]["fields"][0]["source-id"]) == (1, 1)
    assert metadata["properties"] == {"k": "v", "write.parquet.compression-codec": "zstd"}
    assert str(metadata["location"]).endswith(f"/warehouse/main/{uuid.UUID(metadata['table-uuid']).hex}")


def test_create_with_a_used_name_returns_409(lake: DriverNode) -> None:
    """A create and a staged create with a name in use are refused with 409, and the table is unchanged."""
    before = make_table(lake, "a", "t")

    answers = [
        lake.post(f"{space_path('a')}/tables", {"name": "t", "schema": SCHEMA, "stage-create": staged})
        for staged in (False, True)
    ]

    assert [error_of(answer)[:2] for answer in answers] == [(409, "AlreadyExistsException")] * 2
    assert lake.get(table_path("a", "t")).json() == before
    assert len(files_of(lake)) == 1


def test_create_in_a_missing_namespace_leaves_no_file(lake: DriverNode) -> None:
    """A create in a missing namespace is refused and leaves no file."""
    answer = lake.post(f"{space_path('gone')}/tables", {"name": "t", "schema": SCHEMA})

    assert error_of(answer)[:2] == (404, "NoSuchNamespaceException")
    assert files_of(lake) == []


def test_staged_create_is_stored_only_by_its_commit(lake: DriverNode) -> None:
    """A staged create stores nothing; the following commit creates the table with all of its parts."""
    make_space(lake, "a")
    body = {"name": "t", "schema": SCHEMA, "stage-create": True, "properties": {"k": "v"}}
    staged = lake.post(f"{space_path('a')}/tables", body).json()
    absent = (lake.ask("HEAD", table_path("a", "t")).status, files_of(lake))
    location = staged["metadata"]["location"]
    updates = [*creation(location), set_properties(k="v"), snapshot(1), point(1)]
    created = commit(lake, "a", "t", updates=updates, requirements=[{"type": "assert-create"}])

    assert set(staged) == {"metadata", "config"}
    assert absent == (404, [])
    assert created.status == 200
    metadata = metadata_of(lake, "a", "t")
    assert metadata == created["metadata"] == json.loads(local(created["metadata-location"]).read_bytes())
    assert (metadata["location"], metadata["current-snapshot-id"], metadata["properties"]["k"]) == (location, 100, "v")


def test_second_commit_of_two_staged_creates_returns_409(lake: DriverNode) -> None:
    """If two clients commit staged creates of one name, the second is refused with 409 and the message that clients
    expect.
    """
    make_space(lake, "a")
    warehouse = str(lake.data / "warehouse" / "main")
    attempts = [(f"file://{warehouse}/{name}", [{"type": "assert-create"}]) for name in "xy"]

    first, second = (commit(lake, "a", "t", updates=creation(at), requirements=needs) for at, needs in attempts)

    assert first.status == 200
    assert error_of(second) == (409, "CommitFailedException", "Requirement failed: table already exists")
    assert files_of(lake) == [str(local(first["metadata-location"]))]


def test_load_with_current_etag_returns_304(lake: DriverNode) -> None:
    """Create, load and commit return an ETag; a load with it is 304 without a body until the next commit."""
    make_space(lake, "a")
    created = lake.post(f"{space_path('a')}/tables", {"name": "t", "schema": SCHEMA})
    home, etag = table_path("a", "t"), created.headers["etag"]

    loaded = lake.get(home)
    same = lake.get(home, if_none_match=etag)
    among = lake.get(home, if_none_match=f'W/"other", {etag}')
    other = lake.get(home, if_none_match='W/"other"')
    committed = commit(lake, "a", "t", updates=[set_properties(k="v")])
    stale = lake.get(home, if_none_match=etag)
    fresh = lake.get(home, if_none_match=committed.headers["etag"])

    assert loaded.headers["etag"] == etag
    assert [(answer.status, answer.body) for answer in (same, among, fresh)] == [(304, b"")] * 3
    assert same.headers["etag"] == etag
    assert "content-length" not in same.headers
    assert (other.status, stale.status) == (200, 200)
    assert stale.headers["etag"] == committed.headers["etag"] != etag


def test_etag_differs_by_snapshots_mode(lake: DriverNode) -> None:
    """Loads with all snapshots and with referenced snapshots have different ETags."""
    make_table(lake, "a", "t")
    home = table_path("a", "t")
    everything, refs = lake.get(home).headers["etag"], lake.get(f"{home}?snapshots=refs").headers["etag"]

    statuses = [
        lake.get(f"{home}?snapshots={mode}", if_none_match=etag).status
        for mode in ("all", "refs")
        for etag in (everything, refs)
    ]

    assert everything != refs
    assert statuses == [304, 200, 200, 304]


def test_caller_without_load_privilege_gets_403_instead_of_304(lake: DriverNode) -> None:
    """A user who may no longer load the table gets 403 for a load with its ETag, instead of 304."""
    make_table(lake, "a", "t")
    role = grant(lake, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    home = table_path("a", "t")
    etag = lake.get(home, user="ana").headers["etag"]
    before = lake.get(home, user="ana", if_none_match=etag)

    lake.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})
    after = lake.get(home, user="ana", if_none_match=etag)

    assert (before.status, after.status) == (304, 403)


def test_recreated_table_has_another_etag(lake: DriverNode) -> None:
    """A table created again under a dropped one's name has another ETag."""
    make_table(lake, "a", "t")
    home = table_path("a", "t")
    etag = lake.get(home).headers["etag"]
    lake.delete(home)
    missing = lake.get(home, if_none_match=etag)
    make_table(lake, "a", "t")

    again = lake.get(home, if_none_match=etag)

    assert (missing.status, again.status) == (404, 200)


def test_snapshots_refs_omits_only_unreferenced_snapshots(lake: DriverNode) -> None:
    """`snapshots=refs` omits only snapshots without a reference."""
    make_table(lake, "a", "t")
    commit(lake, "a", "t", updates=[snapshot(1), point(1)])
    commit(lake, "a", "t", updates=[snapshot(2, parent=1), point(2), point(1, "old", "tag")])
    commit(lake, "a", "t", updates=[snapshot(3, parent=2), point(3)])

    loaded = [lake.get(f"{table_path('a', 't')}?snapshots={mode}")["metadata"] for mode in ("all", "refs", "")]

    ids = [[one["snapshot-id"] for one in metadata.pop("snapshots")] for metadata in loaded]
    assert ids == [[100, 200, 300], [100, 300], [100, 200, 300]]
    assert loaded[0] == loaded[1]


def test_unknown_snapshots_mode_returns_400(node: DriverNode) -> None:
    """An unknown mode is refused with 400 and the known modes."""
    make_table(node, "a", "t")

    answer = node.get(f"{table_path('a', 't')}?snapshots=some")

    assert error_of(answer) == (400, "IllegalArgumentException", "snapshots must be all or refs, not some")


@pytest.mark.parametrize(
    "name", ["dot.ted", "sla/sh", "sp ace", "per%cent", "%2F", "数据", "a+b", "q?u#ery", "rename", "metrics"]
)
def test_table_names_may_contain_any_level_character(lake: DriverNode, name: str) -> None:
    """A table's name may contain any character that a level may contain. The location does not contain the name."""
    created = make_table(lake, name, name)

    assert lake.get(table_path(name, name)).json() == created
    assert lake.get(f"{space_path(name)}/tables")["identifiers"] == [{"namespace": [name], "name": name}]
    assert lake.post(RENAME, rename((name, name), (name, f"{name}2"))).status == 204
    assert lake.delete(table_path(name, f"{name}2")).status == 204
    assert name not in str(created["metadata"]["location"]).rpartition("/")[2]


def test_metadata_table_names_are_ordinary_in_nested_namespaces(lake: DriverNode) -> None:
    """In a nested namespace, names of Iceberg's metadata tables are ordinary table names. A missing table with such a
    name is 404.
    """
    for name in ("files", "snapshots", "history"):
        make_table(lake, "a", "b", name)

    assert [lake.get(table_path("a", "b", name)).status for name in ("files", "snapshots", "history")] == [200] * 3
    assert error_of(lake.get(table_path("a", "b", "files", "partitions")))[0] == 404


def test_rename_across_namespaces_keeps_id_and_grants(lake: DriverNode) -> None:
    """A table moved to another namespace keeps its id, documents and grants, and the old name is free."""
    created = make_table(lake, "a", "b", "t")
    make_space(lake, "c")
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.a:b.t")

    answer = lake.post(RENAME, rename(("a", "b", "t"), ("c", "u")))

    assert answer.status == 204
    assert lake.get(table_path("a", "b", "t")).status == 404
    assert lake.get(table_path("c", "u"), user="ana").json() == created
    assert make_table(lake, "a", "b", "t")["metadata"]["table-uuid"] != created["metadata"]["table-uuid"]


def test_impossible_renames_have_distinct_errors(lake: DriverNode) -> None:
    """A missing table, a missing target namespace and a name in use have different errors, and nothing is moved."""
    first, second = make_table(lake, "a", "t"), make_table(lake, "b", "u")

    answers = {
        target: error_of(lake.post(RENAME, rename(source, target)))[:2]
        for source, target in (
            (("a", "gone"), ("a", "x")),
            (("gone", "t"), ("a", "y")),
            (("a", "t"), ("gone", "t")),
            (("a", "t"), ("b", "u")),
        )
    }

    assert answers == {
        ("a", "x"): (404, "NoSuchTableException"),
        ("a", "y"): (404, "NoSuchTableException"),
        ("gone", "t"): (404, "NoSuchNamespaceException"),
        ("b", "u"): (409, "AlreadyExistsException"),
    }
    assert [lake.get(table_path(*levels)).json() for levels in (("a", "t"), ("b", "u"))] == [first, second]


def test_rename_to_itself_changes_nothing(node: DriverNode) -> None:
    """A rename to the table's own name succeeds without a change."""
    table = make_table(node, "a", "t")

    answer = node.post(RENAME, rename(("a", "t"), ("a", "t")))

    assert answer.status == 204
    assert node.get(table_path("a", "t")).json() == table


def test_drop_keeps_files(lake: DriverNode) -> None:
    """A drop without purge keeps the table's files and frees the name immediately."""
    table = make_table(lake, "a", "t")

    dropped = lake.delete(table_path("a", "t"))

    assert dropped.status == 204
    assert local(table["metadata-location"]).exists()
    assert error_of(lake.get(table_path("a", "t"))) == (404, "NoSuchTableException", "Table does not exist: a.t")
    assert error_of(lake.delete(table_path("a", "t")))[0] == 404
    assert lake.get(f"{space_path('a')}/tables")["identifiers"] == []


def test_metrics_report_for_a_missing_table_returns_404(node: DriverNode) -> None:
    """A report about a missing table is 404."""
    make_space(node, "a")

    answer = node.post(f"{table_path('a', 'gone')}/metrics", {"report-type": "commit-report"})

    assert error_of(answer)[:2] == (404, "NoSuchTableException")


def test_locations_are_unique(lake: DriverNode) -> None:
    """Tables created repeatedly under one name never share a location, and a chosen location is used once."""
    places = []
    for _ in range(3):
        places.append(make_table(lake, "a", "t")["metadata"]["location"])
        lake.delete(table_path("a", "t"))

    assert len(set(places)) == 3


@pytest.mark.parametrize("spelling", ["file://{}/x", "{}/x", "file:{}/x", "file://{}//x", "file://{}/x/"])
def test_create_at_another_tables_location_is_refused(lake: DriverNode, spelling: str) -> None:
    """A create at another table's location is refused in every spelling, and leaves no file."""
    warehouse = str(lake.data / "warehouse" / "main")
    make_table(lake, "a", "t", location=f"file://{warehouse}/x")
    files = files_of(lake)

    body = {"name": "u", "schema": SCHEMA, "location": spelling.format(warehouse)}
    answer = lake.post(f"{space_path('a')}/tables", body)

    status, kind, message = error_of(answer)
    assert (status, kind) == (400, "IllegalArgumentException")
    assert "Another table is at location" in message
    assert lake.ask("HEAD", table_path("a", "u")).status == 404
    assert files_of(lake) == files


def test_chosen_location_is_honoured(lake: DriverNode) -> None:
    """A requested location within the roots is used unchanged, except for a trailing slash."""
    warehouse = str(lake.data / "warehouse" / "main")

    table = make_table(lake, "a", "t", location=f"file://{warehouse}/deep/er/")

    assert table["metadata"]["location"] == f"file://{warehouse}/deep/er"
    assert local(table["metadata-location"]).parent == lake.data / "warehouse" / "main" / "deep" / "er" / "metadata"


@pytest.mark.parametrize(
    "location",
    ["file:///etc", "{}/../other", "{}/%2e%2e/other", "{}x/t", "s3://bucket/t", "{}/a/./b"],
)
@pytest.mark.parametrize("way", ["create", "stage", "property", "commit", "staged-commit"])
def test_location_outside_the_roots_is_refused(node: DriverNode, location: str, way: str) -> None:
    """A location outside of the catalog's roots is refused in every spelling, and no file is left."""
    make_table(node, "a", "t")
    place = location.format(f"file://{node.data}/warehouse/main")
    bodies: dict[str, dict[str, object]] = {
        "create": {"location": place},
        "stage": {"location": place, "stage-create": True},
        "property": {"properties": {"write.metadata.path": place}},
    }

    with nothing_done(node):
        if way in bodies:
            answer = node.post(f"{space_path('a')}/tables", {"name": "u", "schema": SCHEMA, **bodies[way]})
        elif way == "commit":
            answer = commit(node, "a", "t", updates=[{"action": "set-location", "location": place}])
        else:
            answer = commit(node, "a", "u", updates=creation(place), requirements=[{"type": "assert-create"}])

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_allowed_locations_property_adds_roots(fresh: Callable[[str], Path]) -> None:
    """The catalog's property `allowed-locations` adds roots, which the server must allow, from the next request on."""
    outside = fresh("elsewhere")
    with node_at(fresh("data"), storage=StorageSection(allowed_roots=(str(outside), "s3://b"))) as node:
        _open_and_use(node, outside)


def _open_and_use(node: DriverNode, outside: Path) -> None:
    body = {"name": "t", "schema": SCHEMA, "location": f"file://{outside}/t"}
    make_space(node, "a")
    before = node.post(f"{space_path('a')}/tables", body)
    update = {"@type": "setProperty", "property": "allowed-locations", "value": f"s3://b/x, file://{outside}"}
    node.done("PUT", f"{API}/lake/catalogs/main", {"updates": [update]})

    after = node.post(f"{space_path('a')}/tables", body)

    assert (before.status, after.status) == (400, 200)
    assert "allowed-locations" in error_of(before)[2]
    assert local(after["metadata-location"]).is_relative_to(outside / "t")


def test_rename_to_a_name_with_catalog_prefix_is_refused(node: DriverNode) -> None:
    """A rename to a name that begins with the catalog, as in `RENAME TO main.a.u`, is refused with advice to omit the
    catalog.
    """
    make_table(node, "a", "t")

    error = error_of(node.post(RENAME, rename(("a", "t"), ("main", "a", "u"))))
    plain = error_of(node.post(RENAME, rename(("a", "t"), ("gone", "a", "u"))))
    two = error_of(node.post(RENAME, rename(("a", "t"), ("main", "u"))))

    assert error[:2] == plain[:2] == two[:2] == (404, "NoSuchNamespaceException")
    assert error[2].startswith(
        "Namespace does not exist: main.a. The new name of a table must be relative to its catalog: write a.u"
    )
    assert plain[2] == "Namespace does not exist: gone.a"
    assert two[2] == "Namespace does not exist: main"


def test_tables_can_be_moved_to_namespace_named_like_catalog(node: DriverNode) -> None:
    """A namespace may have its catalog's name, and tables can be moved into it."""
    make_table(node, "a", "t")
    make_space(node, "main", "a")

    assert node.post(RENAME, rename(("a", "t"), ("main", "a", "u"))).status == 204
    assert node.get(table_path("main", "a", "u")).status == 200
