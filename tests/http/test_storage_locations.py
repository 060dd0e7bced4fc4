# SPDX-License-Identifier: Apache-2.0
"""Storage locations over every protocol: creating an object at a location gives no access to other objects' files."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import LocationKind
from limnos.services.storage import location_reconciliation
from limnos.services.storage.location_reconciliation import describe_conflicts, locations_reconcile, locations_refresh
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import creation, make_space, view_body

SPACE = "/iceberg/v1/lake.main/namespaces/s"
TABLES = f"{SPACE}/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}


def files_over(node: DriverNode, root: str) -> str:
    """Create a catalog for filesets over a directory, with a schema. Returns the directory of its filesets."""
    body = {"name": "files", "type": "fileset", "properties": {"allowed-locations": root}}
    node.done("POST", f"{API}/lake/catalogs", body)
    node.done("POST", f"{API}/lake/catalogs/files/schemas", {"name": "s"})
    return f"{API}/lake/catalogs/files/schemas/s/filesets"


def table(node: DriverNode, name: str, *, user: str = "admin", **more: object) -> DriverAnswer:
    """Request the creation of a table. Returns the answer."""
    return node.ask("POST", TABLES, {"name": name, "schema": SCHEMA, **more}, user=user)


def where(answer: DriverAnswer) -> str:
    """Return the location of a table."""
    assert answer.status == 200, answer.body
    return str(answer["metadata"]["location"])


def warehouse_of(node: DriverNode) -> str:
    """Return the warehouse of `main`."""
    return str(node.done("GET", f"{API}/lake/catalogs/main")["catalog"]["properties"]["warehouse"])


def run(node: DriverNode, statement: str) -> None:
    """Execute SQL directly on the store, to make it look as an older release left it."""
    store = node.built.services.store
    node.runner.run(store.submit(upkeep_permit("t"), lambda tx: tx.count(Sql(statement), {})))


@pytest.mark.parametrize("kind", ["external", "managed"])
@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/data", "{}/../{}", "{}//data", "{}/d%61ta"])
def test_fileset_cannot_be_created_in_a_table_location(node: DriverNode, kind: str, spelling: str) -> None:
    """A user who may create filesets cannot create one at or below a table's location, in any spelling."""
    make_space(node, "s")
    location = where(table(node, "t"))
    filesets = files_over(node, warehouse_of(node))
    grant(node, "eve", "use_catalog use_schema create_fileset", kind="catalog", on="files")
    at = spelling.format(location, location.rpartition("/")[2])
    answer = node.ask("POST", filesets, {"name": "f", "type": kind, "storageLocation": at}, user="eve")

    assert answer.status == 400
    assert "s.t" not in answer.body.decode()


@pytest.mark.parametrize("kind", ["external", "managed"])
def test_table_cannot_be_created_around_a_fileset(node: DriverNode, kind: str) -> None:
    """A user who may create tables cannot create one at, above or below a fileset, by a create, a staged create or a
    data path.
    """
    make_space(node, "s")
    root = f"{warehouse_of(node)}/files"
    filesets = files_over(node, root)
    node.done("POST", filesets, {"name": "f", "type": kind, "storageLocation": f"{root}/f"})
    grant(node, "eve", "use_catalog use_schema create_table", kind="catalog", on="main")
    refused = [
        table(node, "t", user="eve", location=at, **more)
        for at in (f"{root}/f", f"{root}/f/below", root)
        for more in ({}, {"properties": {"write.data.path": f"{root}/f"}})
    ]
    sent_there = table(node, "t", user="eve", properties={"write.data.path": f"{root}/f/x"})

    assert [each.status for each in (*refused, sent_there)] == [400] * 7


def test_data_path_must_be_unused_and_within_the_roots(node: DriverNode) -> None:
    """A table's data path must be an unused location within its catalog's roots, when the table is created and at each
    commit.
    """
    make_space(node, "s")
    root = warehouse_of(node)
    victim = where(table(node, "victim"))
    mine = table(node, "mine", properties={"write.data.path": f"{root}/shared/mine"})
    overlapping = table(node, "other", properties={"write.object-storage.path": f"{root}/shared/mine/x"})
    outside = table(node, "other", properties={"write.data.path": "file:///etc"})
    staged = table(node, "other", properties={"write.data.path": "file:///etc"}, **{"stage-create": True})

    def send_to(at: str) -> int:
        update = {"action": "set-properties", "updates": {"write.data.path": at}}
        return node.post(f"{TABLES}/victim", {"requirements": [], "updates": [update]}).status

    commits = [send_to(at) for at in (f"{root}/shared", "file:///etc", victim + "/d", f"{root}/shared/v")]

    assert [each.status for each in (mine, overlapping, outside, staged)] == [200, 400, 400, 400]
    assert commits == [400, 400, 200, 200]
    assert table(node, "third", location=f"{root}/shared/v/x").status == 400


def test_locations_are_registered_by_every_kind_of_request(node: DriverNode) -> None:
    """Locations and data paths set by transactions, staged creates, registers and views are registered for their
    objects.
    """
    make_space(node, "s")
    mine, root = table(node, "mine"), warehouse_of(node)
    change = f"{SPACE.removesuffix('/namespaces/s')}/transactions/commit"
    new = [{"type": "assert-create"}]

    def sends_to(name: str) -> dict[str, object]:
        return {"action": "set-properties", "updates": {"write.data.path": f"{root}/shared/{name}"}}

    def in_transaction(name: str, requirements: list[object], updates: list[object]) -> DriverAnswer:
        table_change = {
            "identifier": {"namespace": ["s"], "name": name},
            "requirements": requirements,
            "updates": updates,
        }
        return node.post(change, {"table-changes": [table_change]})

    def registers(name: str, place: str, *, overwrite: bool) -> DriverAnswer:
        location = f"{root}/{place}"
        metadata = {**mine["metadata"], "location": location, "table-uuid": str(uuid4())}
        metadata["properties"] = {"write.data.path": f"{root}/shared/{place}"}
        file = Path(f"{location}/metadata/00000-{place}.metadata.json".removeprefix("file://"))
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(metadata))
        return node.post(
            f"{SPACE}/register", {"name": name, "metadata-location": f"file://{file}", "overwrite": overwrite}
        )

    view = view_body("view", location=f"{root}/shared/view")
    moved = {"requirements": [], "updates": [{"action": "set-location", "location": f"{root}/shared/moved"}]}
    doors = {
        "committed": in_transaction("mine", [], [sends_to("committed")]),
        "made": in_transaction("made", new, [*creation(f"{root}/made"), sends_to("made")]),
        "staged": node.post(
            f"{TABLES}/staged", {"requirements": new, "updates": [*creation(f"{root}/staged"), sends_to("staged")]}
        ),
        "registered": registers("registered", "registered", overwrite=False),
        "replaced": registers("mine", "replaced", overwrite=True),
        "view": node.post(f"{SPACE}/views", view),
        "moved": node.post(f"{SPACE}/views/view", moved),
    }

    assert {name: each.status for name, each in doors.items()} == dict.fromkeys(doors, 200) | {
        "committed": 204,
        "made": 204,
    }
    occupied_paths = [*(f"shared/{name}" for name in doors), "replaced"]
    assert [table(node, "late", location=f"{root}/{name}/x").status for name in occupied_paths] == [400] * len(
        occupied_paths
    )


def test_catalog_root_in_another_metalake_is_refused(node: DriverNode) -> None:
    """No root of a catalog may be at, above or below another metalake's locations or in the server's own
    directories.
    """
    make_space(node, "s")
    location, root = where(table(node, "t")), warehouse_of(node)
    node.done("POST", f"{API}", {"name": "other"})
    named = {
        f"{key}={at}": node.post(
            f"{API}/other/catalogs", {"name": "c", "type": "relational", "provider": provider, "properties": {key: at}}
        )
        for at in (root, f"{root}/x", root.rpartition("/")[0], location, f"{location}/data")
        for key, provider in (
            ("warehouse", "lakehouse-iceberg"),
            ("allowed-locations", "lakehouse-iceberg"),
            ("lance-directory", "lakehouse-generic"),
        )
    }
    own = node.post(
        f"{API}/other/catalogs", {"name": "c", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    )

    assert {key: each.status for key, each in named.items()} == dict.fromkeys(named, 400)
    assert own.status == 200
    assert not any("s.t" in each.body.decode() for each in named.values())


@pytest.mark.room("exchange")
@pytest.mark.parametrize("place", ["{root}", "{root}/x", "{above}"])
@pytest.mark.parametrize("key", ["warehouse", "allowed-locations", "former warehouse"])
def test_import_with_roots_of_another_metalake_is_refused(node: DriverNode, key: str, place: str) -> None:
    """An imported catalog gets no root at, above or below another metalake's. One that stated no warehouse gets a new
    directory.
    """
    make_space(node, "s")
    root = warehouse_of(node)
    lines = [json.loads(line) for line in node.get(f"{OWN}/metalakes/lake/export?format=json").body.splitlines()]
    catalog, other = (line for line in lines if "catalog" in line)
    other["catalog"]["properties"] = {}
    location = place.format(root=root, above=root.rpartition("/")[0])
    is_stated = key != "former warehouse"
    catalog["warehouse"] = location
    catalog["catalog"]["properties"] = {key: location} if is_stated else {}
    created = node.post(f"{OWN}/imports", {"name": "copy", "format": "json"}).json()
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    answer = node.post(f"{OWN}/imports/{created['id']}/records?after=0", body)

    assert answer.status == (400 if is_stated else 200), answer.body
    if is_stated:
        assert b"metalake" in answer.body or b"server's own warehouse" in answer.body, answer.body


def test_table_moves_to_and_fro(node: DriverNode) -> None:
    """A table and a view that move away, back and away again can go on moving, and keep their locations."""
    make_space(node, "s")
    root = warehouse_of(node)
    node.done("POST", TABLES, {"name": "t", "schema": SCHEMA, "location": f"{root}/t"})
    node.done("POST", f"{SPACE}/views", view_body("v", location=f"{root}/v"))

    def moved(path: str, location: str) -> int:
        update = {"action": "set-location", "location": location}
        return node.post(f"{SPACE}/{path}", {"requirements": [], "updates": [update]}).status

    statuses = [
        moved(f"{kind}s/{name}", f"{root}/{name}{end}")
        for kind, name in (("table", "t"), ("view", "v"))
        for end in ("x", "", "x", "", "y", "x")
    ]

    assert statuses == [200] * 12
    assert [table(node, "late", location=f"{root}/{at}").status for at in ("t", "tx", "ty", "v", "vx", "vy")] == [
        400
    ] * 6


def test_directory_catalog_location_is_closed_to_other_catalogs(node: DriverNode) -> None:
    """A directory catalog may have the same parent directory as other catalogs. Objects of other catalogs cannot be
    created in its directory.
    """
    make_space(node, "s")
    root = warehouse_of(node)
    body = {"name": "dir", "type": "relational", "provider": "lakehouse-generic"}
    inside = [
        node.post(f"{API}/lake/catalogs", {**body, "properties": {"lance-directory": at}})
        for at in (root, f"{root}/x", root.rpartition("/")[0])
    ]
    beside = f"{root.rpartition('/')[0]}/shown"
    node.done(
        "PUT",
        f"{API}/lake/catalogs/main",
        {"updates": [{"@type": "setProperty", "property": "allowed-locations", "value": f"{beside}/x"}]},
    )
    covered = node.post(f"{API}/lake/catalogs", {**body, "properties": {"lance-directory": beside}})
    uncovered = node.post(f"{API}/lake/catalogs", {**body, "properties": {"lance-directory": f"{beside}-2"}})
    into = table(node, "t", location=f"{beside}-2/t")

    assert [each.status for each in inside] == [400] * 3
    assert (covered.status, uncovered.status, into.status) == (400, 200, 400)


def test_dropped_table_can_be_registered_only_by_its_dropper(node: DriverNode) -> None:
    """Only the user who dropped a table may register its metadata file, even after the trash retention, while its files
    exist.
    """
    make_space(node, "s")
    created = table(node, "t")
    file = created["metadata-location"]
    node.delete(f"{TABLES}/t")
    run(node, "UPDATE trash SET expires_at = 0")
    store = node.built.services.store
    node.runner.run(store.submit(upkeep_permit("t"), trash_sweep))
    grant(node, "eve", "use_catalog use_schema create_table", kind="catalog", on="main")
    body = {"name": "t2", "metadata-location": file}
    hers = node.ask("POST", f"{SPACE}/register", body, user="eve")
    own = node.post(f"{SPACE}/register", body)

    assert (hers.status, own.status) == (400, 200)


def test_purge_frees_only_locations_without_files(node: DriverNode) -> None:
    """Until a purge has run, nothing can be created at the location. Then the location is free, but a data path with
    files stays registered for its owner.
    """
    make_space(node, "s")
    path = f"{warehouse_of(node)}/shared/t"
    location = where(table(node, "t", properties={"write.data.path": path}))
    assert node.delete(f"{TABLES}/t?purgeRequested=true").status == 204
    early = table(node, "early", location=location)
    directory = Path(path.removeprefix("file://"))
    directory.mkdir(parents=True)
    (directory / "unlisted").touch()
    while node.runner.run(node.built.upkeep.run_one()):
        pass
    grant(node, "eve", "use_catalog use_schema create_table", kind="catalog", on="main")
    late = [table(node, f"late{at.count('/')}", user="eve", location=at).status for at in (location, path)]

    assert (early.status, early.headers.get("retry-after"), late) == (503, "5", [200, 400])


def test_second_staged_create_at_one_location_is_refused(node: DriverNode) -> None:
    """Two staged creates at one location succeed; the commit of the second is refused, and its table does not exist."""
    make_space(node, "s")
    at = f"{warehouse_of(node)}/both"
    grant(node, "eve", "use_catalog use_schema create_table", kind="catalog", on="main")
    staged = [
        table(node, name, user=user, location=at, **{"stage-create": True}).status
        for name, user in (("hers", "eve"), ("mine", "admin"))
    ]
    commit_statuses = [
        node.ask(
            "POST",
            f"{TABLES}/{name}",
            {"requirements": [{"type": "assert-create"}], "updates": creation(at)},
            user=user,
        ).status
        for name, user in (("hers", "eve"), ("mine", "admin"))
    ]

    assert (staged, commit_statuses) == ([200, 200], [200, 400])
    assert [node.get(f"{TABLES}/{name}").status for name in ("hers", "mine")] == [200, 404]


def unsettled(node: DriverNode) -> None:
    """Set the register to the state after the migration of an older store."""
    run(node, f"DELETE FROM place WHERE kind IN ({LocationKind.WAREHOUSE}, {LocationKind.ALLOWED_LOCATION})")
    run(node, "INSERT INTO place VALUES ('', 0, 0, 0, 0, 0, FALSE, NULL, 0, NULL, NULL)")


def settle(node: DriverNode) -> list[dict[str, object]]:
    """Restart the node. Returns the reported violations."""
    services = node.built.services
    node.runner.run(locations_reconcile(services))
    return node.runner.run(services.store.submit(upkeep_permit("t"), describe_conflicts))


def test_old_table_at_the_root_does_not_block_creates(node: DriverNode) -> None:
    """After an upgrade a violation is reported with its name and remedy, and tables can be created below the
    location.
    """
    make_space(node, "s")
    root, location = warehouse_of(node), where(table(node, "old"))
    run(node, f"UPDATE document SET location = '{root}' WHERE location = '{location}'")
    run(node, f"UPDATE place SET location = '{root}' WHERE location = '{location}'")
    unsettled(node)
    (violation,) = settle(node)

    assert (violation["name"], violation["kind"], violation["location"]) == ("lake.main.s.old", "table", root)
    assert violation["mend"]
    run(node, f"UPDATE document SET location = '{location}' WHERE location = '{root}'")
    assert table(node, "new").status == 200


def test_old_fileset_at_a_table_location_lists_no_files(node: DriverNode, tmp_path: Path) -> None:
    """A fileset of an older release at a table's location lists and opens no files until its location is repaired."""
    make_space(node, "s")
    root, location = warehouse_of(node), where(table(node, "t"))
    filesets = files_over(node, root)
    node.done("POST", filesets, {"name": "f", "type": "external", "storageLocation": f"{root}/free"})
    listing = f"{filesets}/f/files?sub_path=/"
    before = node.get(listing)
    run(node, f"UPDATE place SET location = '{location}' WHERE location = '{root}/free'")
    unsettled(node)
    violations = settle(node)
    after = node.get(listing)
    created = table(node, "t2")
    run(
        node,
        f"UPDATE place SET location = '{root}/free' WHERE location = '{location}' AND kind ="
        f" {LocationKind.EXTERNAL_FILESET}",
    )
    node.runner.run(locations_refresh(node.built.services))

    assert (before.status, after.status, created.status, node.get(listing).status) == (200, 403, 200, 200)
    assert [each["name"] for each in violations] == ["lake.files.s.f"]


def test_mark_of_a_repaired_location_is_removed_despite_others(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of a repaired location is removed even if marks of others on earlier pages remain."""
    monkeypatch.setattr(location_reconciliation, "UNMARK_PAGE", 1)
    make_space(node, "s")
    root, location = warehouse_of(node), where(table(node, "t"))
    filesets = files_over(node, root)
    for name in ("first", "second"):
        node.done("POST", filesets, {"name": name, "type": "external", "storageLocation": f"{root}/{name}"})
        run(node, f"UPDATE place SET location = '{location}/{name}' WHERE location = '{root}/{name}'")
    unsettled(node)
    before = len(settle(node))
    run(node, f"UPDATE place SET location = '{root}/second' WHERE location = '{location}/second'")
    node.runner.run(locations_refresh(node.built.services))

    assert (before, len(node.built.services.defaults.location_conflicts.ids)) == (2, 1)


def test_upkeep_registers_locations_of_older_nodes(node: DriverNode) -> None:
    """The next upkeep round registers the location of a table without one, which an older node may have created. The
    location is protected from then on.
    """
    make_space(node, "s")
    location = where(table(node, "t"))
    filesets = files_over(node, warehouse_of(node))
    run(node, f"DELETE FROM place WHERE location = '{location}'")
    node.runner.run(locations_refresh(node.built.services))
    answer = node.post(filesets, {"name": "f", "type": "external", "storageLocation": location})

    assert answer.status == 400


@pytest.mark.parametrize("place", ["{}", "{}/data", "{}/.."])
def test_conflict_with_a_location_of_an_older_node_is_marked(node: DriverNode, place: str) -> None:
    """If a fileset was made at, below or above the location of a table that an older node created, the next upkeep
    round marks it: its files are not listed.
    """
    make_space(node, "s")
    root = warehouse_of(node)
    location = where(table(node, "t", location=f"{root}/old/t"))
    filesets = files_over(node, root)
    run(node, f"DELETE FROM place WHERE location = '{location}'")
    at = place.format(location).replace("/t/..", "")
    node.done("POST", filesets, {"name": "f", "type": "external", "storageLocation": at})
    before = node.get(f"{filesets}/f/files?sub_path=/").status
    node.runner.run(locations_refresh(node.built.services))

    assert (before, node.get(f"{filesets}/f/files?sub_path=/").status) == (200, 403)
