# SPDX-License-Identifier: Apache-2.0
"""Locations of a namespace's tables: set by the namespace, by the request or inherited; and directories of staged
tables.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.config.storage import StorageSection
from tests.http.driver import API, DriverNode, grant, node_at
from tests.http.iceberg.wire import (
    SCHEMA,
    SPACES,
    commit,
    creation,
    error_of,
    local,
    make_space,
    make_table,
    nothing_done,
    properties_of,
    space_path,
    table_path,
    view_body,
)

MOVE = "/api/limnos/v1/metalakes/lake/catalogs/main/move"


def location_of(node: DriverNode, *levels: str) -> str:
    """Return the location in a namespace's answer."""
    return str(node.done("GET", space_path(*levels))["properties"]["location"])


def root_of(node: DriverNode) -> str:
    """Return the warehouse of the catalog, with its scheme."""
    return f"file://{node.data}/warehouse/main"


def stage(node: DriverNode, *levels: str, **more: object) -> dict[str, object]:
    """Stage a table. Returns its metadata."""
    body = {"name": levels[-1], "schema": SCHEMA, "stage-create": True, **more}
    metadata: dict[str, object] = node.done("POST", f"{space_path(*levels[:-1])}/tables", body)["metadata"]
    return metadata


def test_every_namespace_has_a_location(lake: DriverNode) -> None:
    """A new namespace has a location below the warehouse, which does not contain the namespace's name."""
    namespace = lake.post(SPACES, {"namespace": ["a", "b"]})

    own = location_of(lake, "a", "b")
    assert namespace["properties"] == {"location": own}
    assert own.startswith(f"{root_of(lake)}/n")
    assert own.removeprefix(f"{root_of(lake)}/n").isdigit()
    assert own != location_of(lake, "a")


def test_table_staged_below_its_namespace_location_is_created(lake: DriverNode) -> None:
    """A client that stages a table below its namespace's location, as Trino does, finds no files there and can create
    the table.
    """
    make_space(lake, "a")
    place = f"{location_of(lake, 'a')}/t-0123"

    staged = stage(lake, "a", "t", location=place)
    files = [path for path in local(place).rglob("*") if path.is_file()]
    created = commit(lake, "a", "t", updates=creation(place), requirements=[{"type": "assert-create"}])

    assert (staged["location"], files) == (place, [])
    assert (created.status, lake.get(table_path("a", "t"))["metadata"]["location"]) == (200, place)


def test_renamed_namespace_keeps_its_location(lake: DriverNode) -> None:
    """A renamed or moved namespace keeps its location. A new namespace under the old name gets another one."""
    for name in ("a", "b"):
        make_space(lake, name)
    table = make_table(lake, "a", "t")
    before = location_of(lake, "a")

    lake.done("POST", MOVE, {"kind": "namespace", "source": ["a"], "target": ["b", "c"]})
    make_space(lake, "a")

    assert location_of(lake, "b", "c") == before
    assert location_of(lake, "a") != before
    assert lake.get(table_path("b", "c", "t"))["metadata-location"] == table["metadata-location"]


def test_new_table_is_below_the_set_namespace_location(lake: DriverNode) -> None:
    """A table without a location gets one below the nearest namespace with a set location. Existing tables keep
    theirs.
    """
    early = make_table(lake, "a", "b", "early")
    place = f"{root_of(lake)}/of_a"
    lake.done("POST", f"{space_path('a')}/properties", {"updates": {"location": f"{place}/"}})

    direct, below = make_table(lake, "a", "t"), make_table(lake, "a", "b", "t")
    staged = stage(lake, "a", "s")

    assert location_of(lake, "a") == place
    assert location_of(lake, "a", "b").startswith(f"{place}/n")
    for metadata in (direct["metadata"], below["metadata"], staged):
        assert str(metadata["location"]).rpartition("/")[0] == place
    assert not str(early["metadata"]["location"]).startswith(place)


def test_removed_location_property_restores_the_computed_location(node: DriverNode) -> None:
    """Removing the location property restores the computed location. Removing it while it is not set is reported as
    missing.
    """
    make_space(node, "a")
    computed = location_of(node, "a")
    properties = f"{space_path('a')}/properties"

    first = node.post(properties, {"removals": ["location"]})
    node.done("POST", properties, {"updates": {"location": f"{root_of(node)}/x"}})
    second = node.post(properties, {"removals": ["location"]})

    assert (first["missing"], second["removed"]) == (["location"], ["location"])
    assert location_of(node, "a") == computed


@pytest.mark.parametrize(
    "place", ["file:///etc/x", "/etc/x", "s3://bucket/x", "relative", "", "file:///{root}/../x", "ftp://x/y"]
)
def test_namespace_location_outside_the_roots_returns_400(node: DriverNode, place: str) -> None:
    """Over each protocol, a namespace location outside of the catalog's roots is refused with 400, and nothing is
    changed.
    """
    make_space(node, "a")
    place = place.replace("{root}", f"{node.data}/warehouse/main")
    change = [{"@type": "setProperty", "property": "location", "value": place}]

    with nothing_done(node):
        answers = [
            node.post(SPACES, {"namespace": ["b"], "properties": {"location": place}}),
            node.post(SPACES, {"namespace": ["c", "d"], "properties": {"location": place}}),
            node.post(f"{space_path('a')}/properties", {"updates": {"location": place}}),
        ]
        schemas = f"{API}/lake/catalogs/main/schemas"
        schema_answers = [
            node.post(schemas, {"name": "b", "properties": {"location": place}}),
            node.put(f"{schemas}/a", {"updates": change}),
        ]

    assert [error_of(answer)[0] for answer in answers] == [400] * 3
    assert [answer.status for answer in schema_answers] == [400] * 2


def test_local_namespace_location_is_stored_as_a_url(node: DriverNode) -> None:
    """A local path is stored and returned as a URL, and later property changes do not change it."""
    make_space(node, "a", location=f"{node.data}/warehouse/main/x/")
    node.done("POST", f"{space_path('a')}/properties", {"updates": {"k": "v"}})

    assert location_of(node, "a") == f"{root_of(node)}/x"
    assert properties_of(node.get(space_path("a"))) == {"k": "v"}


def test_locations_below_a_plain_path_warehouse_have_a_scheme(node: DriverNode) -> None:
    """Locations below a warehouse that is a plain path have a scheme."""
    warehouse = f"{node.data}/warehouse/plain"
    properties = {"warehouse": warehouse}
    body = {"name": "plain", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)
    root = "/iceberg/v1/lake.plain"

    namespace = node.post(f"{root}/namespaces", {"namespace": ["a"]})
    table = node.post(f"{space_path('a', root=root)}/tables", {"name": "t", "schema": SCHEMA})

    assert namespace["properties"]["location"].startswith(f"file://{warehouse}/n")
    assert namespace["properties"] == node.get(space_path("a", root=root))["properties"]
    assert table["metadata"]["location"].startswith(f"file://{warehouse}/")


def test_new_tables_in_a_disallowed_warehouse_are_refused(fresh: Callable[[str], Path]) -> None:
    """If the server no longer allows a catalog's warehouse, namespaces are answered and new tables are refused."""
    data, outside = fresh("data"), fresh("outside")
    properties = {"warehouse": f"file://{outside}"}
    body = {"name": "far", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": properties}
    root = "/iceberg/v1/lake.far"
    with node_at(data, storage=StorageSection(allowed_roots=(str(outside),))) as node:
        node.done("POST", f"{API}/lake/catalogs", body)
        before = node.post(f"{root}/namespaces", {"namespace": ["a"]})

    with node_at(data) as node:
        after = node.get(space_path("a", root=root))
        created = node.post(f"{root}/namespaces", {"namespace": ["b"]})
        refused = node.post(f"{space_path('a', root=root)}/tables", {"name": "t", "schema": SCHEMA})

    assert (before.status, after.status, created.status) == (200, 200, 200)
    assert after["properties"] == before["properties"]
    assert refused.status in (400, 403)


@pytest.mark.parametrize("end", ["", "/"])
def test_table_at_a_namespace_location_returns_400(node: DriverNode, end: str) -> None:
    """A table at another namespace's computed location is refused with 400, because it would contain that namespace's
    tables. Below it only that namespace's own tables are allowed.
    """
    make_space(node, "theirs")
    make_table(node, "mine", "t")
    place = location_of(node, "theirs")

    created = node.post(f"{space_path('mine')}/tables", {"name": "u", "schema": SCHEMA, "location": f"{place}{end}"})
    moved = commit(node, "mine", "t", updates=[{"action": "set-location", "location": f"{place}{end}"}])
    below = make_table(node, "theirs", "u", location=f"{place}/u")

    assert [error_of(answer)[:2] for answer in (created, moved)] == [(400, "IllegalArgumentException")] * 2
    assert below["metadata"]["location"] == f"{place}/u"


def test_new_table_outside_narrowed_roots_is_refused(node: DriverNode) -> None:
    """New tables at a location that the catalog no longer allows are refused."""
    elsewhere = node.data / "warehouse" / "elsewhere"
    updates = [{"@type": "setProperty", "property": "allowed-locations", "value": f"file://{elsewhere}"}]
    node.done("PUT", f"{API}/lake/catalogs/main", {"updates": updates})
    make_space(node, "a", location=f"file://{elsewhere}/a")
    make_table(node, "a", "t")
    node.done(
        "PUT", f"{API}/lake/catalogs/main", {"updates": [{"@type": "removeProperty", "property": "allowed-locations"}]}
    )

    refused = node.post(f"{space_path('a')}/tables", {"name": "u", "schema": SCHEMA})

    assert error_of(refused)[0] == 400
    assert f"{elsewhere}/a" in error_of(refused)[2]


def test_staged_create_makes_empty_directories(node: DriverNode) -> None:
    """A staged create creates the table's empty directories, because DuckDB writes files without creating
    directories.
    """
    make_space(node, "a")

    place = local(stage(node, "a", "t")["location"])

    assert sorted(path.name for path in place.iterdir()) == ["data", "metadata"]
    assert not any(Path(place).rglob("*/*"))


def test_refused_staged_create_makes_no_directory(node: DriverNode) -> None:
    """A staged create outside of the roots, or of a name in use, is refused and leaves no directory."""
    make_table(node, "a", "t")
    before = sorted((node.data / "warehouse").rglob("*"))
    outside = node.data / "outside"

    answers = [
        node.post(
            f"{space_path('a')}/tables", {"name": "u", "schema": SCHEMA, "stage-create": True, "location": str(outside)}
        ),
        node.post(f"{space_path('a')}/tables", {"name": "t", "schema": SCHEMA, "stage-create": True}),
    ]

    assert [answer.status for answer in answers] == [400, 409]
    assert sorted((node.data / "warehouse").rglob("*")) == before
    assert not outside.exists()


def test_staged_create_by_a_reader_is_refused(node: DriverNode) -> None:
    """A staged create by a user who may only read the namespace is refused before any work, and leaves no directory."""
    make_space(node, "a")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    before = sorted(node.data.rglob("*/"))
    body = {"name": "t", "schema": SCHEMA, "stage-create": True}

    assert node.post(f"{space_path('a')}/tables", body, user="ana").status == 403
    assert sorted(node.data.rglob("*/")) == before


@pytest.mark.parametrize("directory", ["n{id}", "%6e{id}", "/n{id}", "n9007199254740"])
def test_directory_of_another_namespace_is_refused(lake: DriverNode, directory: str) -> None:
    """No table, view or data path of another namespace can be in a namespace's directory, not even that of a later
    namespace, in any spelling. The namespace's own tables can.
    """
    for name in ("a", "b"):
        make_space(lake, name)
    own = location_of(lake, "a")
    place = f"{root_of(lake)}/{directory.format(id=own.rpartition('/n')[2])}"
    body = {"name": "t", "schema": SCHEMA, "location": f"{place}/orders"}
    sends = {"name": "t", "schema": SCHEMA, "properties": {"write.data.path": f"{place}/orders"}}
    update = {"action": "set-location", "location": f"{place}/orders"}
    make_table(lake, "b", "mine")
    refused = [
        lake.post(f"{space_path('b')}/tables", body).status,
        lake.post(f"{space_path('b')}/tables", sends).status,
        lake.post(table_path("b", "mine"), {"requirements": [], "updates": [update]}).status,
        lake.post(f"{space_path('b')}/views", view_body("v", location=f"{place}/v")).status,
    ]
    answer = lake.post(f"{space_path('a')}/tables", body | {"location": f"{own}/orders"})

    assert (refused, answer.status) == ([400] * 4, 200)


def test_directory_below_a_set_location_belongs_to_its_namespace(lake: DriverNode) -> None:
    """The directory of a namespace below the location of the namespace around it is closed to others, too. A table
    that leaves its namespace keeps its location there, and may return to it.
    """
    place = f"{root_of(lake)}/set"
    make_space(lake, "a", location=place)
    make_space(lake, "a", "c")
    make_space(lake, "b")
    own = location_of(lake, "a", "c")
    other = lake.post(f"{space_path('b')}/tables", {"name": "t", "schema": SCHEMA, "location": f"{own}/t"})
    lake.done("POST", f"{space_path('a', 'c')}/tables", {"name": "t", "schema": SCHEMA, "location": f"{own}/t"})
    source, target = {"namespace": ["a", "c"], "name": "t"}, {"namespace": ["b"], "name": "t"}
    moved = lake.post("/iceberg/v1/lake.main/tables/rename", {"source": source, "destination": target})
    statuses = [
        lake.post(
            table_path("b", "t"), {"requirements": [], "updates": [{"action": "set-location", "location": location}]}
        ).status
        for location in (f"{place}/free", f"{own}/t", f"{own}/new")
    ]

    assert own.startswith(f"{place}/n")
    assert (other.status, moved.status, statuses) == (400, 204, [200, 200, 400])


def test_earlier_locations_of_a_replaced_table_pass_to_the_user(lake: DriverNode) -> None:
    """A user who creates a table where a dropped one was may also use the dropped table's earlier locations; others
    may not.
    """
    for user in ("ana", "ben"):
        grant(lake, user, "use_catalog use_schema create_table", kind="CATALOG", on="main")
    make_space(lake, "a")
    first, second = (f"{location_of(lake, 'a')}/{name}" for name in ("first", "second"))

    def create(name: str, location: str, user: str) -> int:
        body = {"name": name, "schema": SCHEMA, "location": location}
        return lake.post(f"{space_path('a')}/tables", body, user=user).status

    assert create("t", first, "ana") == 200
    update = {"action": "set-location", "location": second}
    assert lake.post(table_path("a", "t"), {"requirements": [], "updates": [update]}, user="ana").status == 200
    assert lake.delete(table_path("a", "t"), user="ana").status == 204

    assert create("u", second, "ana") == 200
    assert create("v", first, "ben") == 400
    assert create("v", first, "ana") == 200


@pytest.mark.parametrize("spelling", ["%72estricted-reads", "restricted%2Dreads/x", "x/%72estricted%2Dreads"])
def test_directory_of_restricted_reads_is_refused_in_any_spelling(lake: DriverNode, spelling: str) -> None:
    """The directory for rewritten files of restricted tables is reserved however it is spelled."""
    make_space(lake, "a")
    body = {"name": "t", "schema": SCHEMA, "location": f"{root_of(lake)}/{spelling}"}

    assert lake.post(f"{space_path('a')}/tables", body).status == 400
