# SPDX-License-Identifier: Apache-2.0
"""Kill -9 during a purge, more than once: the resumed purge deletes exactly the files that the table's metadata
names.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from limnos.store.faults import PURGE_POINT
from tests.faults.rig import BACKENDS, FOREIGN_HOLDER, FULL, Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import GRAVITINO, PREFIX, namespace_body, table_path

pytestmark = pytest.mark.heavy

APPENDS = 4
KILLED_AFTER = (1, 4)
"""Numbers of files that each worker deletes before it dies."""


def path_of(location: str) -> Path:
    """Return the path of a local location."""
    return Path(unquote(urlsplit(location).path))


def make_table(rig: Rig, tag: str) -> Table:
    """Create a table with some snapshots, through PyIceberg."""
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    catalog = load_catalog("main", type="rest", uri=f"{rig.node.uri}/iceberg", warehouse="main", token=rig.node.token)
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = catalog.create_table((tag, "t"), schema=rows.schema)
    for _ in range(APPENDS):
        table.append(rows)
    return table


def listed_files(table: Table) -> set[Path]:
    """Return every file that a table's metadata names, as PyIceberg reads it."""
    locations = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        locations.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            locations.add(manifest.manifest_path)
            locations |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    return {path_of(location) for location in locations}


def decoys(table: Table) -> set[Path]:
    """Put unnamed files beside the named ones."""
    home = path_of(table.location())
    stray_files = {home / "stray", home / "data" / "stray.parquet", home / "metadata" / "stray.metadata.json"}
    for path in stray_files:
        path.write_text("not the table's")
    return stray_files


def test_killed_purge_is_completed_by_other_worker(rig: Rig) -> None:
    """Several workers die after some files, and the last one completes the purge: all named files are deleted, and all
    others exist.
    """
    table = make_table(rig, rig.tag())
    (tag, name), metadata_file = table.name(), path_of(table.metadata_location)
    listed, strays = listed_files(table), decoys(table)
    assert len(listed) > sum(KILLED_AFTER)

    rig.arm(PURGE_POINT, count=KILLED_AFTER[0])
    dropped = rig.admin.ask("DELETE", f"{table_path(tag, name)}?purgeRequested=true")
    rig.node.wait_killed()
    left = [sum(path.exists() for path in listed)]
    for count in KILLED_AFTER[1:]:
        rig.sql("UPDATE task SET leased_until = 0, due_at = 0")  # as if the dead worker's lease had expired
        rig.arm(PURGE_POINT, count=count)
        rig.node.spawn()
        rig.node.wait_killed()
        left.append(sum(path.exists() for path in listed))
    has_metadata_file = metadata_file.exists()
    rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.start()
    rig.wait_done("purge-table")

    assert dropped.status == 204
    assert left == sorted(left, reverse=True)
    assert left[0] == len(listed) - KILLED_AFTER[0]
    assert has_metadata_file, "the metadata file was deleted before the files that it names"
    assert not [path for path in listed if path.exists()]
    assert all(path.exists() for path in strays)
    assert rig.rows("SELECT 1 FROM task WHERE kind = 'purge-table'") == []
    assert rig.admin.ask("HEAD", table_path(tag, name)).status == 404
    assert complaints(rig.database) == []


def test_purge_with_valid_lease_is_not_leased_again(rig: Rig) -> None:
    """While the lease of a worker on another machine is valid, a node does not lease its task, because a slow worker
    might still be running. A dead worker on its own machine would have lost its lease.
    """
    table = make_table(rig, rig.tag())
    tag, name = table.name()
    listed = listed_files(table)
    rig.arm(PURGE_POINT)
    rig.try_to("DELETE", f"{table_path(tag, name)}?purgeRequested=true", None)
    rig.node.wait_killed()
    rig.sql(f"UPDATE task SET holder = '{FOREIGN_HOLDER}' WHERE kind = 'purge-table'")

    rig.start()

    assert sum(path.exists() for path in listed) == len(listed) - 1
    assert len(rig.rows("SELECT 1 FROM task WHERE leased_until > 0 AND kind = 'purge-table'")) == 1
    rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.node.stop()
    rig.start()
    rig.wait_done("purge-table")
    assert not [path for path in listed if path.exists()]


@pytest.mark.parametrize("rig", BACKENDS if FULL else ("postgresql",), indirect=True)
def test_killed_purge_of_dataset_deletes_exactly_its_files(rig: Rig) -> None:
    """A dataset leaves the trash, and the node is killed before and after that commit, and after a deleted file. At the
    end exactly its files are deleted.
    """
    tag = rig.tag()
    text = f"create type `{tag}` as {{ id: bigint }}; create dataset `{tag}`(`{tag}`) primary key id"
    rig.admin.do("POST", "/query/service", {"statement": text})
    metadata = rig.admin.do("GET", table_path("Default", tag)).body["metadata"]
    home = path_of(metadata["location"])  # type: ignore[index]
    stray = home / "metadata" / "stray.metadata.json"
    stray.write_text("not the table's")
    rig.admin.do("POST", "/query/service", {"statement": f"drop dataset `{tag}`"})
    rig.sql("UPDATE trash SET expires_at = 0")

    for point in ("before-commit", "after-commit"):
        rig.node.stop()  # before arming, because a stopping node writes, too
        rig.arm(point)
        rig.node.spawn()
        rig.node.wait_killed()
    rig.start()
    rig.sql("UPDATE task SET due_at = 0, leased_until = 0 WHERE kind = 'purge-table'")
    rig.node.stop()
    rig.arm(PURGE_POINT)
    rig.node.spawn()
    rig.node.wait_killed()
    rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.start()
    rig.wait_done("purge-table")

    assert files_of(home) == {stray}
    assert rig.rows("SELECT 1 FROM task WHERE kind = 'purge-table'") == []
    assert rig.rows("SELECT 1 FROM trash") == []
    assert complaints(rig.database) == []


@pytest.mark.parametrize("rig", BACKENDS if FULL else ("sqlite",), indirect=True)
def test_killed_purge_of_fileset_deletes_exactly_its_files(rig: Rig) -> None:
    """A managed fileset leaves the trash, and the node is killed before and after that commit, and after each deleted
    file. At the end its files are deleted, those of another fileset are not, and its location is free.
    """
    tag = rig.tag()
    catalogs = f"{GRAVITINO}/catalogs"
    rig.admin.do("POST", catalogs, {"name": tag, "type": "fileset"})
    rig.admin.do("POST", f"{catalogs}/{tag}/schemas", {"name": "a"})
    filesets = f"{catalogs}/{tag}/schemas/a/filesets"
    homes = {}
    for name in ("gone", "stays"):
        created_fileset = rig.admin.do("POST", filesets, {"name": name}).body["fileset"]
        homes[name] = path_of(created_fileset["storageLocation"])  # type: ignore[index]
        for file in ("1", "deep/2", "deep/3"):
            (homes[name] / file).parent.mkdir(parents=True, exist_ok=True)
            (homes[name] / file).write_text("x")
    rig.admin.do("DELETE", f"{filesets}/gone")
    rig.sql("UPDATE trash SET expires_at = 0")

    for point in ("before-commit", "after-commit"):
        rig.node.stop()
        rig.arm(point)
        rig.node.spawn()
        rig.node.wait_killed()
    left = files_of(homes["gone"])
    assert len(left) == 3
    while left:
        rig.node.stop()
        rig.arm(PURGE_POINT)
        rig.node.spawn()
        rig.node.wait_killed()
        assert files_of(homes["gone"]) < left, "one more file is deleted"
        left = files_of(homes["gone"])
        rig.sql("UPDATE task SET leased_until = 0, due_at = 0")
    rig.start()
    rig.wait_done("purge-fileset")

    assert files_of(homes["gone"]) == set()
    assert len(files_of(homes["stays"])) == 3
    assert rig.rows("SELECT 1 FROM task WHERE kind = 'purge-fileset'") == []
    assert rig.rows("SELECT 1 FROM trash") == []
    assert rig.admin.ask("POST", filesets, {"name": "gone"}).status == 200
    assert complaints(rig.database) == []


def files_of(home: Path) -> set[Path]:
    """Return the files below a directory."""
    return {each for each in home.rglob("*") if each.is_file()}
