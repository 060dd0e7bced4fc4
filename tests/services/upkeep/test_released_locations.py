# SPDX-License-Identifier: Apache-2.0
"""Released locations: the location of a dropped object stays reserved while files exist there, and is freed once a task
finds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from limnos.app.server_checks import check
from limnos.config.access import AccessSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, Settings
from limnos.config.storage import StorageSection
from limnos.files import path_of, store_for
from limnos.model.permits import upkeep_permit
from limnos.services.storage.purges import PURGE
from limnos.services.upkeep import released_locations
from limnos.services.upkeep.released_locations import FREE_PLACES, ReleasedLocations
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA
from tests.objects import objects
from tests.store.location_upgrade_story import serving


class World(NamedTuple):
    """A node with a catalog `c` on a directory, and access to its files."""

    node: DriverNode
    root: str
    properties: dict[str, str]

    def write(self, location: str) -> None:
        """Write a file."""
        store_for(location, self.properties).write_new(location, b"rows")

    def create(self, name: str, *, user: str = "admin", location: str = "", **properties: str) -> int:
        """Create a table. Returns the status."""
        body = {"name": name, "schema": SCHEMA, "properties": properties} | ({"location": location} if location else {})
        return self.node.ask("POST", "/iceberg/v1/lake.c/namespaces/s/tables", body, user=user).status

    def run(self, statement: str) -> None:
        """Execute SQL on the store."""
        store = self.node.built.services.store
        self.node.runner.run(store.submit(upkeep_permit("t"), lambda tx: tx.count(Sql(statement), {})))

    def let_go(self, name: str) -> None:
        """Drop a table and remove it from the trash, while its files stay."""
        assert self.node.delete(f"/iceberg/v1/lake.c/namespaces/s/tables/{name}").status == 204
        self.run("UPDATE trash SET expires_at = 0")
        self.node.runner.run(self.node.built.services.store.submit(upkeep_permit("t"), trash_sweep))

    def work(self) -> None:
        """Run the due tasks."""
        while self.node.runner.run(self.node.built.upkeep.run_one()):
            pass

    def round(self, *, days: bool = True) -> ReleasedLocations:
        """Run a round of the task, by default a day after all drops. Returns the position of the next round."""
        if days:
            self.run("UPDATE place SET since = 0, keys_until = keys_until - 86400000")
        self.run(f"DELETE FROM task WHERE kind = '{FREE_PLACES}'")
        store, permit = self.node.built.services.store, upkeep_permit("t")
        self.node.runner.run(store.submit(permit, lambda tx: tx.tasks.ensure(FREE_PLACES, "{}", delay_ms=0)))
        self.work()
        payload = self.node.runner.run(store.submit(permit, lambda tx: tx.tasks.waiting_payload(FREE_PLACES)))
        return msgspec.json.decode(str(payload), type=ReleasedLocations)


@pytest.fixture(
    params=[
        "disk",
        pytest.param("disk and postgres", marks=pytest.mark.integration),
        pytest.param("s3", marks=pytest.mark.integration),
    ]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A node whose catalog has its files on a disk, or in an object store."""
    (data := tmp_path / "data").mkdir(mode=0o700)
    database = None
    if "postgres" in request.param:
        database = str(request.getfixturevalue("postgres_server").empty_database())
    if request.param == "s3":
        with objects() as store:
            storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
            with made(data, storage, "s3://lake/c", database=database, **store.properties) as served_world:
                yield served_world
        return
    root = f"file://{tmp_path}/lake"
    with made(data, StorageSection(allowed_roots=(root,)), f"{root}/c", database=database) as served_world:
        yield served_world


DISK = pytest.mark.parametrize("world", ["disk"], indirect=True)


class made:  # noqa: N801 - a context manager, used as a function
    """Serve a node with catalog `c`, and eve who may create tables in it."""

    def __init__(
        self, data: Path, storage: StorageSection, root: str, *, database: str | None, **properties: str
    ) -> None:
        settings = Settings(
            server=ServerSection(data=str(data)),
            access=AccessSection(authentication="simple"),
            database=DatabaseSection.model_validate({"url": database}),
            storage=storage,
        )
        self.serving, self.root, self.properties = serving(settings), root, properties

    def __enter__(self) -> World:
        node = self.serving.__enter__()
        body = {"name": "c", "type": "relational", "provider": "lakehouse-iceberg"}
        node.done("POST", f"{API}/lake/catalogs", body | {"properties": {"warehouse": self.root, **self.properties}})
        node.done("POST", f"{API}/lake/catalogs/c/schemas", {"name": "s"})
        grant(node, "eve", "use_catalog use_schema create_table", kind="catalog", on="c")
        return World(node, self.root, self.properties)

    def __exit__(self, *raised: object) -> None:
        self.serving.__exit__(None, None, None)


def test_location_is_freed_only_after_its_files_are_deleted(world: World) -> None:
    """A round does not free a location with files, and reports it. Once the files are deleted, any table may use the
    location.
    """
    at, file = f"{world.root}/t%20x", f"{world.root}/t%20x/data/f"
    assert world.create("t", location=at) == 200
    world.write(file)
    world.let_go("t")
    early = world.round(days=False)
    for each in list(store_for(at, world.properties).below(f"{at}/metadata")):
        store_for(at, world.properties).delete(each)
    retained, refused = world.round(), world.create("mine", user="eve", location=at)
    store_for(file, world.properties).delete(file)
    freed, created_status = world.round(), world.create("mine", user="eve", location=at)

    assert (early.kept, retained.kept, retained.kept_first, freed.kept) == (0, 1, (f"{world.root}/t x",), 0)
    assert (refused, created_status) == (400, 200)


def test_purge_deletes_named_files_at_the_data_path(world: World) -> None:
    """A purge deletes the files at a table's data path that its metadata names, and frees that location, in a catalog
    that vends credentials once these have expired. With foreign files there, the location is not freed.
    """
    paths = [f"{world.root}/shared/{each}" for each in ("one", "two")]
    for number, path in enumerate(paths):
        name = f"t{number}"
        assert world.create(name, **{"write.data.path": path}) == 200
        world.write(f"{path}/listed")
        statistics = {
            "snapshot-id": 1,
            "statistics-path": f"{path}/listed",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        update = {"action": "set-statistics", "snapshot-id": 1, "statistics": statistics}
        table = f"/iceberg/v1/lake.c/namespaces/s/tables/{name}"
        world.node.done("POST", table, {"requirements": [], "updates": [update]})
        assert world.node.delete(f"{table}?purgeRequested=true").status == 204
    world.write(f"{paths[1]}/stray")
    world.write(f"{world.root}/shared/beside")
    world.work()
    early = [world.create(f"new{number}", user="eve", location=path) for number, path in enumerate(paths)]
    world.round()
    statuses = [world.create(f"newer{number}", user="eve", location=path) for number, path in enumerate(paths)]

    assert early == ([400, 400] if world.root.startswith("s3:") else [200, 400])
    assert [store_for(each, world.properties).exists(f"{each}/listed") for each in paths] == [False, False]
    assert store_for(world.root, world.properties).exists(f"{paths[1]}/stray")
    assert store_for(world.root, world.properties).exists(f"{world.root}/shared/beside")
    assert statuses == [200 if early[0] == 400 else 400, 400]


@pytest.mark.parametrize("place", ["earlier", "unset", "stated"])
def test_place_that_a_table_has_left_is_freed_without_files(world: World, place: str) -> None:
    """The earlier location of a table, and a data path that it no longer states, are freed a day later if no file is
    there. A stated data path stays the table's.
    """
    at = f"{world.root}/left"
    table = "/iceberg/v1/lake.c/namespaces/s/tables/t"
    if place == "earlier":
        assert world.create("t", location=at) == 200
        update: dict[str, object] = {"action": "set-location", "location": f"{world.root}/now"}
    else:
        assert world.create("t", **{"write.data.path": at}) == 200
        update = {"action": "remove-properties", "removals": ["write.data.path" if place == "unset" else "none"]}
    world.node.done("POST", table, {"requirements": [], "updates": [update]})
    world.write(f"{at}/data/f")
    world.round()
    kept_status = world.create("early", user="eve", location=at)
    for each in list(store_for(at, world.properties).below(at)):
        store_for(at, world.properties).delete(each)
    world.round(days=False)
    world.round()
    status = world.create("late", user="eve", location=at)

    assert (kept_status, status) == (400, 400 if place == "stated" else 200)


@DISK
def test_location_released_by_an_older_node_is_freed_later(world: World) -> None:
    """A purge by a node of an earlier release, which does not know the register of locations, leaves a released
    location that a later round frees.
    """
    at = f"{world.root}/t"
    assert world.create("t", location=at) == 200
    world.write(f"{world.root}/other")
    assert world.node.delete("/iceberg/v1/lake.c/namespaces/s/tables/t?purgeRequested=true").status == 204
    world.run(f"UPDATE task SET due_at = due_at + 10000000 WHERE kind = '{PURGE}'")
    world.round()
    waiting = world.create("mine", user="eve", location=at)
    world.run(f"DELETE FROM task WHERE kind = '{PURGE}'")
    for each in list(store_for(at, world.properties).below(at)):
        store_for(at, world.properties).delete(each)
    world.round()
    world.round()

    assert (waiting, world.create("mine", user="eve", location=at)) == (503, 200)


@DISK
def test_unmounted_root_frees_no_location(world: World) -> None:
    """If the root is empty, because the file system may be unmounted, no location below it is freed."""
    at, root = f"{world.root}/t", Path(path_of(world.root))
    assert world.create("t", location=at) == 200
    world.let_go("t")
    away = root.rename(f"{root}-away")
    root.mkdir()
    retained = world.round()
    root.rmdir()
    away.rename(root)

    assert (retained.kept, world.create("mine", user="eve", location=at)) == (1, 400)


@DISK
def test_server_check_lists_released_locations_with_files(world: World) -> None:
    """`server check` lists the number and names of released locations with files, with advice."""
    at = f"{world.root}/t"
    assert world.create("t", location=at) == 200
    world.let_go("t")
    world.round()
    settings = Settings(server=ServerSection(data=str(world.node.data), listen="127.0.0.1:0"))
    (finding,) = [each for each in check(settings) if "dropped" in each.message]

    assert finding.message == "Locations of dropped objects still contain files, or cannot be listed: 1"
    assert finding.why == f"only the last owner of each may create an object there: {at}"
    assert finding.advice == "delete the files there if they are not needed: a task frees empty locations once a day"


@DISK
def test_next_round_continues_after_the_last_location(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round checks a limited number of locations. The next round continues after the last location, and at the end
    from the beginning.
    """
    for name in ("a", "b"):
        assert world.create(name, location=f"{world.root}/{name}") == 200
        world.let_go(name)
    monkeypatch.setattr(released_locations, "LOOKS_MAX", 1)
    monkeypatch.setattr(released_locations, "PAGE", 1)
    first = world.round()

    assert (first.location, first.kept_first) == (f"{world.root}/a", (f"{world.root}/a",))


@DISK
def test_dropped_external_fileset_location_is_freed_despite_files(world: World) -> None:
    """After its catalog is dropped, the location of an external fileset is freed although files exist there."""
    body = {
        "name": "files",
        "type": "fileset",
        "properties": {"allowed-locations": f"{world.root}-files", **world.properties},
    }
    world.node.done("POST", f"{API}/lake/catalogs", body)
    world.node.done("POST", f"{API}/lake/catalogs/files/schemas", {"name": "s"})
    fileset = {"name": "f", "type": "external", "storageLocation": f"{world.root}-files/f"}
    world.node.done("POST", f"{API}/lake/catalogs/files/schemas/s/filesets", fileset)
    world.write(f"{world.root}-files/f/theirs")
    world.node.done("DELETE", f"{API}/lake/catalogs/files?force=true")
    noted, freed = world.round(), world.round()

    assert (noted.kept, freed.kept) == (0, 0)
    assert left(world, f"{world.root}-files/f") == 0


def left(world: World, location: str) -> int:
    """Return the number of registered entries at a location."""
    store = world.node.built.services.store
    count: Callable[..., int] = lambda tx: len(tx.places.upwards(location, but=0))  # noqa: E731
    return world.node.runner.run(store.submit(upkeep_permit("t"), count))
