# SPDX-License-Identifier: Apache-2.0
"""Orphan files in an object store: found, deleted after their age, and not deleted if a listing is incomplete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.config.storage import StorageSection
from limnos.files import store_for
from limnos.files.remote import RemoteFiles
from tests.http.iceberg.wire import SCHEMA
from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list
from tests.objects import objects
from tests.rooms.maintenance.services.orphans.histories import clock_of, no_wait, run_days, turn_on
from tests.rooms.maintenance.services.orphans.test_faults import removed_beside
from tests.services.upkeep.test_released_locations import World, made

pytestmark = pytest.mark.integration


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A node on SQLite with a catalog `c` in a bucket, for which the removal of orphan files is enabled."""
    no_wait(monkeypatch)
    (data := tmp_path / "data").mkdir(mode=0o700)
    with objects() as store:
        storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
        with made(data, storage, "s3://lake/c", database=None, **store.properties) as world:
            turn_on(world.node)
            yield world


def written_table(world: World) -> str:
    """Create a table with one data file. Returns its location."""
    node = world.node
    body = {"name": "t", "schema": SCHEMA}
    location = str(node.done("POST", "/iceberg/v1/lake.c/namespaces/s/tables", body)["metadata"]["location"])
    rows = [entry(data_file(f"{location}/data/1.parquet", file_size_in_bytes=4))]
    data = manifest(rows)
    manifest_location = f"{location}/metadata/m.avro"
    files = store_for(location, world.properties)
    files.write_new(f"{location}/data/1.parquet", b"rows")
    files.write_new(manifest_location, data)
    files.write_new(f"{location}/metadata/s.avro", manifest_list([listed(manifest_location, data, snapshot=100)]))
    snapshot = {
        "snapshot-id": 100,
        "timestamp-ms": 1,
        "sequence-number": 1,
        "manifest-list": f"{location}/metadata/s.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 100},
    ]
    answer = node.ask("POST", "/iceberg/v1/lake.c/namespaces/s/tables/t", {"requirements": [], "updates": updates})
    assert answer.status == 200, answer.body
    return location


def test_incomplete_listing_deletes_no_file(cloud: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An orphan file is deleted after its age. While the listing lacks a live file, nothing is deleted."""
    location = written_table(cloud)
    files = store_for(location, cloud.properties)
    files.write_new(f"{location}/data/orphan.parquet", b"rows")
    clock = clock_of(cloud.node)
    assert run_days(cloud.node, clock, 2) == 0
    real = RemoteFiles.entries
    with monkeypatch.context() as patch:
        patch.setattr(RemoteFiles, "entries", lambda *a, **n: [e for e in real(*a, **n) if e.name != "data/1.parquet"])
        assert run_days(cloud.node, clock, 5) == 0
    assert run_days(cloud.node, clock, 3) == 0  # a table without candidates is not checked for a week
    assert run_days(cloud.node, clock, 8) == 1
    assert not files.exists(f"{location}/data/orphan.parquet")
    assert files.exists(f"{location}/data/1.parquet")
    assert {each.name for each in files.entries(f"{location}/metadata")} >= {"m.avro", "s.avro"}


def test_rewritten_object_is_not_deleted(cloud: World) -> None:
    """An object that was written anew between the mark and the deletion is not deleted."""
    location = written_table(cloud)
    files, name = store_for(location, cloud.properties), f"{location}/data/orphan.parquet"
    files.write_new(name, b"rows")
    clock = clock_of(cloud.node)
    assert run_days(cloud.node, clock, 3) == 0

    async def write_anew() -> None:
        files.delete(name)
        files.write_new(name, b"other rows")

    assert removed_beside(cloud.node, write_anew) == 0
    assert files.read(name, bytes_max=100) == b"other rows"
    assert run_days(cloud.node, clock, 5) == 1
