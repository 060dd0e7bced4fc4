# SPDX-License-Identifier: Apache-2.0
"""Storage locations of each kind of object at, above or below those of each other kind, by requests alone.

Each test creates one object, tries to create another one at, above or below its location, and checks the answer. The
expected answers are written here a second time, in short form, and are not computed by the product's own rules.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from limnos.config.storage import StorageSection
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, creation, table_path, view_body
from tests.objects import objects
from tests.rooms.lance.http.wire import ROOT as LANCE

DELEGATED = {"x_iceberg_access_delegation": "vended-credentials"}
RELATIONS = ("same", "above", "below")
OWNERS = ("own", "other catalog", "other metalake")


class World(NamedTuple):
    """A node with two metalakes, and a directory that both may use."""

    node: DriverNode
    bucket: str
    counter: Iterator[int]

    def base(self) -> str:
        """Return a new directory."""
        return f"{self.bucket}/c{next(self.counter)}"


class Site(NamedTuple):
    """The metalake of a cell's object, and the suffix of its catalogs' names."""

    metalake: str
    ending: str

    def catalog(self, sort: str) -> str:
        """Return the name of a catalog in the metalake."""
        return f"{sort}{self.ending}"

    def iceberg(self) -> str:
        """Return the root of its catalog's Iceberg routes."""
        return f"/iceberg/v1/{self.metalake}.{self.catalog('ice')}"


FIRST = Site("lake", "1")
SITES = {"own": FIRST, "other catalog": Site("lake", "2"), "other metalake": Site("pond", "1")}
PROVIDERS = {
    "ice": ("relational", "lakehouse-iceberg"),
    "vec": ("relational", "lakehouse-generic"),
    "fil": ("fileset", None),
}


def catalog_make(node: DriverNode, metalake: str, name: str, sort: str, **properties: str) -> DriverAnswer:
    """Create a catalog of a provider."""
    kind, provider = PROVIDERS[sort]
    body = {"name": name, "type": kind, "properties": properties} | ({"provider": provider} if provider else {})
    return node.post(f"{API}/{metalake}/catalogs", body)


def name_of(world: World) -> str:
    """Return an unused name."""
    return f"x{next(world.counter)}"


def make_table(world: World, site: Site, location: str, **properties: str) -> DriverAnswer:
    """Create an Iceberg table at a location."""
    body = {"name": name_of(world), "schema": SCHEMA, "location": location, "properties": properties}
    return world.node.post(f"{site.iceberg()}/namespaces/n/tables", body)


def make_data_path(world: World, site: Site, location: str, *, key: str = "write.data.path") -> DriverAnswer:
    """Create an Iceberg table with a data path at the location, and its own location elsewhere."""
    return make_table(world, site, f"{world.bucket}/own{next(world.counter)}", **{key: location})


def make_object_path(world: World, site: Site, location: str) -> DriverAnswer:
    """Create an Iceberg table with an object storage layout at a location."""
    return make_data_path(world, site, location, key="write.object-storage.path")


def make_view(world: World, site: Site, location: str) -> DriverAnswer:
    """Create a view at a location."""
    return world.node.post(f"{site.iceberg()}/namespaces/n/views", view_body(name_of(world), location=location))


def make_lance_table(world: World, site: Site, location: str) -> DriverAnswer:
    """Declare a Lance table at a location."""
    path = f"{LANCE}/table/{site.catalog('vec')}$n${name_of(world)}"
    assert site.metalake == "lake", "Lance REST serves one metalake"
    return world.node.post(f"{path}/declare", {"location": location})


def make_fileset(world: World, site: Site, location: str, *, kind: str = "MANAGED") -> DriverAnswer:
    """Create a fileset at a location."""
    body = {"name": name_of(world), "type": kind, "storageLocation": location}
    return world.node.post(f"{API}/{site.metalake}/catalogs/{site.catalog('fil')}/schemas/n/filesets", body)


def make_external(world: World, site: Site, location: str) -> DriverAnswer:
    """Create an external fileset at a location."""
    return make_fileset(world, site, location, kind="EXTERNAL")


def make_dropped(world: World, site: Site, location: str) -> DriverAnswer:
    """Create a table at a location and drop it to the trash."""
    created = make_table(world, site, location)
    if created.status == 200:
        name = str(created.json()["metadata-location"] and f"x{next(world.counter) - 1}")
        assert world.node.delete(table_path("n", name, root=site.iceberg())).status == 204
    return created


def make_root(world: World, site: Site, location: str) -> DriverAnswer:
    """Create a catalog for Iceberg tables whose warehouse is a location."""
    return catalog_make(world.node, site.metalake, name_of(world), "ice", warehouse=location)


def make_fileset_root(world: World, site: Site, location: str) -> DriverAnswer:
    """Create a catalog for filesets at a location."""
    return catalog_make(world.node, site.metalake, name_of(world), "fil", location=location)


def make_directory(world: World, site: Site, location: str) -> DriverAnswer:
    """Create a catalog that shows the Lance tables of a directory."""
    return catalog_make(world.node, site.metalake, name_of(world), "vec", **{"lance-directory": location})


MAKERS: dict[str, Callable[[World, Site, str], DriverAnswer]] = {
    "table": make_table,
    "data path": make_data_path,
    "object path": make_object_path,
    "view": make_view,
    "lance table": make_lance_table,
    "managed fileset": make_fileset,
    "external fileset": make_external,
    "dropped table": make_dropped,
    "root": make_root,
    "fileset root": make_fileset_root,
    "directory": make_directory,
}


SAMPLE = 8
"""In short runs, one of this number of cells is tested. `LIMNOS_TEST_PLACES=all` tests all of them."""


@pytest.fixture(scope="module", params=["disk", pytest.param("s3", marks=pytest.mark.integration)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A node; every catalog of `lake` may use the whole bucket, none of `pond` may."""
    data = tmp_path_factory.mktemp("places")
    if request.param == "disk":
        (bucket := data / "bucket").mkdir()
        with serving(
            f"file://{bucket}", data / "data", StorageSection(allowed_roots=(f"file://{bucket}",)), {}
        ) as served_world:
            yield served_world
        return
    with objects() as store:
        storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
        with serving("s3://lake", data / "data", storage, store.properties) as served_world:
            yield served_world


@contextmanager
def serving(bucket: str, data: Path, storage: StorageSection, known: dict[str, str]) -> Iterator[World]:
    """Serve a node whose catalogs may use a bucket."""
    with node_at(data, storage=storage) as node:
        node.done("POST", API, {"name": "pond", "comment": ""})
        for metalake, ending in (("lake", "1"), ("lake", "2"), ("pond", "1")):
            for sort in PROVIDERS:
                more = {"allowed-locations": bucket, **known} if metalake == "lake" else {}
                created = catalog_make(node, metalake, f"{sort}{ending}", sort, **more)
                assert created.status == 200, created
                place = f"{API}/{metalake}/catalogs/{sort}{ending}/schemas"
                node.done("POST", place, {"name": "n"})
        yield World(node, bucket, itertools.count(1))


OBJECTS = {"table", "data path", "object path", "view", "lance table", "managed fileset", "dropped table"}
FILES = OBJECTS | {"external fileset"}
LISTS = {"root", "fileset root"}
"""Kinds that are roots of their own catalogs."""


def may_coexist(new: str, old: str, *, relation: str, owner: str) -> bool:
    """Return whether a new object may be created relative to an older one; each root and directory has its own
    catalog.
    """
    if owner == "other metalake":
        return False
    if old == "dropped table" and relation == "same" and new in FILES:
        return True  # the caller dropped it, and its files become the new object's
    if new in FILES and old in FILES:
        return new == old == "external fileset" and owner == "own"
    if "directory" in (new, old):
        if new == old:
            return True
        return (new, old, relation) in {("directory", "fileset root", "below"), ("fileset root", "directory", "above")}
    if new in LISTS and old in LISTS:
        return True
    root, inside, below = (new, old, "above") if new in LISTS else (old, new, "below")
    return relation == below or (relation == "same" and root == "fileset root" and inside == "external fileset")


def cells() -> list[tuple[str, str, str, str]]:
    """Return each new kind with each older kind, in each relation and for each owner of the new object."""
    return list(itertools.product(MAKERS, MAKERS, RELATIONS, OWNERS))


def outcome(world: World, new: str, old: str, relation: str, owner: str) -> str | None:
    """Create both objects of a cell. Returns the violation, or None."""
    location = f"{world.base()}/a/b"
    place = {"same": location, "above": location.rpartition("/")[0], "below": f"{location}/c"}[relation]
    site = SITES[owner]
    if site.metalake == "pond" and new == "lance table":
        return None  # Lance REST serves one metalake
    first = MAKERS[old](world, FIRST, location)
    if first.status != 200:
        return f"the {old} itself: {first.status} {first.body.decode()}"
    second = MAKERS[new](world, site, place)
    expected = may_coexist(new, old, relation=relation, owner=owner)
    if (second.status == 200) is expected and second.status in (200, 400, 409):
        return None
    return f"{new} {relation} {old}, of {owner}: {second.status}, wanted {expected}: {second.body.decode()[:300]}"


def walk(world: World, chosen: list[tuple[str, str, str, str]]) -> list[str]:
    """Test cells. Returns the violations."""
    return [wrong for cell in chosen if (wrong := outcome(world, *cell)) is not None]


def test_locations_of_all_kinds_of_objects_do_not_overlap(world: World) -> None:
    """Objects share no files, roots contain objects, directories show no other catalog's tables, and metalakes do not
    overlap.
    """
    chosen = cells()
    if os.environ.get("LIMNOS_TEST_PLACES") != "all":
        chosen = random.Random(len(chosen)).sample(chosen, len(chosen) // SAMPLE)

    assert walk(world, chosen) == []


def restricted_table(world: World) -> tuple[str, str]:
    """Create a table in the first catalog with a data file, which ana may not load. Returns its location and path."""
    location = f"{world.base()}/t"
    created = make_table(world, FIRST, location)
    assert created.status == 200, created
    path = table_path("n", f"x{next(world.counter) - 1}", root=FIRST.iceberg())
    world.node.post(f"{API}/lake/users", {"name": "ana"})
    assert world.node.get(path, user="ana").status == 403
    return location, path


def spellings(location: str) -> list[str]:
    """Return other spellings of a location."""
    scheme, _, rest = location.partition("://")
    schemes = ("s3a", "s3n", "S3") if scheme == "s3" else ("FILE",)
    places = [f"{each}://{rest}" for each in schemes]
    last = rest.rpartition("/")[2]
    places += [f"{location}/", f"{location}//", f"{location}/./x/..", f"{location}/%2e", f"{location}/x/%2E%2E/{last}"]
    places += [location.replace("/t", "//t"), location.replace("/t", "/%74"), f"{location}/data"]
    if scheme == "file":
        places += [rest, f"file:{rest}", f"file://localhost{rest}"]
    return places


@pytest.mark.parametrize("maker", [make_fileset, make_external, make_view, make_table, make_data_path])
def test_all_spellings_of_a_table_location_are_equal(
    world: World, maker: Callable[[World, Site, str], DriverAnswer]
) -> None:
    """Spellings of the location with another scheme, letter case, dots, percent escapes and slashes count as the
    table's location.
    """
    location, _ = restricted_table(world)
    statuses = {spelled: maker(world, SITES["other catalog"], spelled).status for spelled in spellings(location)}

    assert set(statuses.values()) <= {400, 409}, statuses


def test_external_fileset_gives_no_access_to_table_files(world: World) -> None:
    """A user who may create filesets, but not load the table, gets neither the table's credentials nor a list of its
    files.
    """
    location, path = restricted_table(world)
    grant(world.node, "ana", "use_catalog use_schema create_fileset", kind="CATALOG", on=FIRST.catalog("fil"))
    filesets = f"{API}/lake/catalogs/{FIRST.catalog('fil')}/schemas/n/filesets"
    body = {"name": "spy", "type": "EXTERNAL", "storageLocation": location}

    refused = [
        world.node.post(filesets, {**body, "storageLocation": each}, user="ana")
        for each in (location, f"{location}/data", location.rpartition("/")[0])
    ]

    assert [answer.status for answer in refused] == [400] * 3, refused
    assert not any(path.rpartition("/")[2] in answer.body.decode() for answer in refused), (
        "names of others are not told"
    )
    assert world.node.get(f"{filesets}/spy").status == 404
    assert world.node.get(f"{filesets}/spy/credentials", user="ana").status in (403, 404)


def test_table_gives_no_access_to_fileset_files(world: World) -> None:
    """A user who may create tables, but not read the fileset, gets no credentials for the fileset's files and cannot
    delete them.
    """
    location = f"{world.base()}/f"
    assert make_fileset(world, FIRST, location).status == 200
    grant(world.node, "ben", "use_catalog use_schema create_table", kind="CATALOG", on=FIRST.catalog("ice"))
    tables = f"{FIRST.iceberg()}/namespaces/n/tables"
    body = {"name": "spy", "schema": SCHEMA}

    tried = [
        world.node.post(tables, {**body, **more}, user="ben")
        for more in (
            {"location": location},
            {"location": f"{location}/in"},
            {"properties": {"write.data.path": location}},
            {"properties": {"write.object-storage.path": f"{location}/in"}},
        )
    ]

    staged = world.node.ask(
        "POST", tables, {**body, "location": location, "stage-create": True}, user="ben", **DELEGATED
    )
    created = world.node.post(
        f"{tables}/spy", {"requirements": [{"type": "assert-create"}], "updates": creation(location)}, user="ben"
    )

    assert [answer.status for answer in tried] == [400] * len(tried), tried
    assert "storage-credentials" not in staged.json(), "nothing is stored yet, and nothing is opened"
    assert (created.status, world.node.get(f"{tables}/spy", user="ben").status in (403, 404)) == (400, True), created


def test_commit_cannot_move_a_table_to_a_used_location(world: World) -> None:
    """A commit cannot move an existing table to another object's location, by its location or by properties."""
    location = f"{world.base()}/f"
    assert make_fileset(world, FIRST, location).status == 200
    _, path = restricted_table(world)
    updates = [
        {"action": "set-location", "location": location},
        {"action": "set-properties", "updates": {"write.data.path": location}},
        {"action": "set-properties", "updates": {"write.object-storage.path": f"{location}/x"}},
        {"action": "set-properties", "updates": {"write.metadata.path": location}},
    ]

    tried = [world.node.post(path, {"requirements": [], "updates": [update]}) for update in updates]

    assert [answer.status for answer in tried] == [400] * len(tried), tried


def test_directory_catalog_cannot_show_a_warehouse(world: World) -> None:
    """A directory catalog cannot show the server's warehouse or another catalog's, in any metalake."""
    server = f"file://{world.node.data}/warehouse"
    location, _ = restricted_table(world)
    grant(world.node, "cat", "create_catalog", kind="METALAKE", on="lake")
    world.node.post(f"{API}/pond/users", {"name": "cat"})
    grants = {
        "name": "maker",
        "properties": {},
        "securableObjects": [
            {"fullName": "pond", "type": "METALAKE", "privileges": [{"name": "create_catalog", "condition": "allow"}]}
        ],
    }
    world.node.done("POST", f"{API}/pond/roles", grants)
    world.node.done("PUT", f"{API}/pond/permissions/users/cat/grant", {"roleNames": ["maker"]})
    main = f"{server}/{world.node.get(f'{API}/lake/catalogs/main').json()['catalog']['properties'].get('warehouse', 'main').rpartition('/')[2]}"
    places = [server, main, location, location.rpartition("/")[0]]
    bodies = [
        {"name": name_of(world), "type": kind, "properties": {key: place}}
        | ({"provider": provider} if provider else {})
        for place in places
        for kind, provider, key in (
            ("relational", "lakehouse-generic", "lance-directory"),
            ("fileset", None, "location"),
            ("relational", "lakehouse-iceberg", "warehouse"),
            ("relational", "lakehouse-iceberg", "allowed-locations"),
        )
    ]

    def tried(metalake: str, body: dict[str, object]) -> int:
        return world.node.post(f"{API}/{metalake}/catalogs", body, user="cat").status

    accepted = [body for body in bodies if "lance-directory" in body["properties"] and tried("lake", body) == 200]
    assert accepted == []
    assert [body for body in bodies if tried("pond", body) == 200] == []


def test_locations_are_compared_after_resolving_links(world: World) -> None:
    """On disks locations are compared after links are resolved."""
    if not world.bucket.startswith("file:"):
        return
    location, _ = restricted_table(world)
    disk = Path(world.bucket.removeprefix("file://"))
    (disk / "link").symlink_to(location.removeprefix("file://"))

    (disk / "way").symlink_to(disk)
    (disk / "out").symlink_to(world.node.data)
    makers = (make_external, make_fileset, make_view, make_table)
    aliases = ("link", "link/data", f"way/{location.rpartition('/')[2]}")

    tried = [make(world, FIRST, f"{world.bucket}/{alias}").status for alias in aliases for make in makers]

    assert tried == [400] * len(tried)


def test_link_in_place_of_a_fileset_directory_is_not_listed(world: World) -> None:
    """If a link to a table's directory replaces a fileset's directory, the files are not listed."""
    if not world.bucket.startswith("file:"):
        return
    location, _ = restricted_table(world)
    place = f"{world.base()}/f"
    name = make_external(world, FIRST, place).json()["fileset"]["name"]
    disk = Path(place.removeprefix("file://"))
    disk.parent.mkdir(parents=True, exist_ok=True)
    disk.symlink_to(location.removeprefix("file://"))
    files = f"{API}/lake/catalogs/{FIRST.catalog('fil')}/schemas/n/filesets/{name}/files?sub_path=%2F"

    answer = world.node.get(files)

    assert (answer.status, "symbolic link" in answer.body.decode()) == (400, True), answer
