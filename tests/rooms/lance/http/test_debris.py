# SPDX-License-Identifier: Apache-2.0
"""Orphan files of killed writers on a node: a create leaves a purge task until its table exists, and the janitor finds
all other orphan files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from limnos.files import allow_everything
from limnos.model.records import CatalogRecord
from limnos.rooms.lance.services import table_creation as lance_creating
from limnos.rooms.lance.services.debris import DebrisTable, delete_debris
from limnos.services.lance.purge_tasks import LANCE_PURGE, lance_purge_of
from limnos.services.request.catalog_storage import catalog_storage_within
from limnos.services.request.named_storages import NamedStorages
from limnos.services.upkeep.janitors import JANITOR, JanitorPayload
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.arrow_rows import ROWS, arrow
from tests.http.driver import DriverNode, node_at
from tests.objects import BUCKET, objects
from tests.rooms.lance.http.wire import fill, table

pytestmark = pytest.mark.slow

OLD_S = 8 * 86_400
CATALOG = Sql("SELECT zone FROM node WHERE name = :name")
DUE = Sql("UPDATE task SET due_at = 0 WHERE kind = :kind")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node over SQLite."""
    with node_at(tmp_path / "data") as running:
        yield running


def marks(node: DriverNode) -> list[str]:
    """Return the payloads of the tasks that would delete a location."""
    services = node.built.services
    return node.runner.run(services.store.submit(node.built.upkeep._permit, lambda tx: tx.tasks.payloads(LANCE_PURGE)))


def run_due(node: DriverNode, kind: str = LANCE_PURGE) -> None:
    """Make the tasks of a kind due, and run one."""
    permit, store = node.built.upkeep._permit, node.built.services.store
    node.runner.run(store.submit(permit, lambda tx: tx.count(DUE, {"kind": kind})))
    assert node.runner.run(node.built.upkeep.run_one()) is True


def places(node: DriverNode) -> list[Path]:
    """Return the directories of tables that contain files."""
    return sorted({each.parent.parent for each in (node.data / "warehouse" / "lance").rglob("*") if each.is_file()})


def count(node: DriverNode, *path: str) -> object:
    """Return the number of rows of a table."""
    return node.ask("POST", f"{table(*path)}/count_rows", {}).body


def test_create_removes_its_file_deletion_task(node: DriverNode) -> None:
    """The transaction that creates the table removes the task that would delete its files."""
    fill(node, "lance", "docs")

    assert marks(node) == []


def test_refused_create_deletes_its_files_and_task(node: DriverNode) -> None:
    """A refused create deletes its files and its task immediately."""
    assert node.ask("POST", f"{table('lance', 'docs')}/create", arrow()[:-40]).status == 400

    async def finish_background() -> None:
        for each in tuple(node.built.services.files._background):
            await each

    node.runner.run(finish_background())
    assert marks(node) == []
    assert places(node) == []


def test_files_of_a_killed_create_are_deleted_by_its_task(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server is killed between writing the rows and creating the table, the due task deletes the files, and no
    others.
    """
    fill(node, "lance", "mine")
    before = places(node)

    async def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lance_creating, "lance_table_make", killed)
        patch.setattr(node.built.services.files, "run_in_background", lambda work: work.close())
        with pytest.raises(KeyboardInterrupt):
            node.ask("POST", f"{table('lance', 'docs')}/create", arrow())
    assert len(marks(node)) == 1
    assert len(places(node)) > len(before)

    run_due(node)
    assert places(node) == before
    assert count(node, "lance", "mine") == b"3"


def test_deletion_task_keeps_files_of_an_existing_table(node: DriverNode) -> None:
    """If a table exists at the location when the task runs, its files stay."""
    fill(node, "lance", "docs")
    location = str(node.done("POST", f"{table('lance', 'docs')}/describe", {})["location"])
    services, permit = node.built.services, node.built.upkeep._permit

    def mark(tx: Tx) -> None:
        ((catalog,),) = tx.rows(CATALOG, {"name": "docs"})
        tx.tasks.create(LANCE_PURGE, lance_purge_of(int(catalog), location))

    node.runner.run(services.store.submit(permit, mark))

    run_due(node)
    assert count(node, "lance", "docs") == b"3"


def test_janitor_deletes_old_files_of_killed_inserts(node: DriverNode) -> None:
    """The janitor's round deletes old files that no version names; the table is unchanged, and young files stay."""
    fill(node, "lance", "docs")
    location = str(node.done("POST", f"{table('lance', 'docs')}/describe", {})["location"]).removeprefix("file://")
    left = [
        Path(location, "data", f"{'ab' * 25}.lance"),
        Path(location, "data", ".tmpX"),
        Path(location, "_bypassed", "1.manifest-x"),
    ]
    young = Path(location, "data", f"{'cd' * 25}.lance")
    for each in (*left, young):
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(b"x")
    then = time.time() - OLD_S
    for each in Path(location).rglob("*"):
        if each.is_file() and each != young:
            os.utime(each, (then, then))
    services, permit = node.built.services, node.built.upkeep._permit

    def put(tx: Tx) -> None:
        tx.tasks.create(JANITOR, msgspec.json.encode(JanitorPayload(1, tx.epoch(), "ours")).decode())

    node.runner.run(services.store.submit(permit, put))
    run_due(node, JANITOR)

    assert [each.exists() for each in (*left, young)] == [False, False, False, True]
    assert count(node, "lance", "docs") == b"3"


@pytest.mark.integration
def test_janitor_deletes_unreferenced_files_on_s3() -> None:
    """On S3, too, old files that no version names are deleted. The table and other tables' files stay."""
    import lance

    with objects() as store:
        keys = {
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_endpoint": store.uri,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }
        for mode in ("create", "append"):
            lance.write_dataset(ROWS, "s3://lake/w/t", mode=mode, storage_options=keys)
        lance.dataset("s3://lake/w/t", storage_options=keys).delete("id = 1")
        before = store.names("w/t/")
        left = [
            f"w/t/data/{'ab' * 25}.lance",
            "w/t/_versions/18446744073709551000.manifest-abc",
            "w/t/_deletions/0-1-77777777777.arrow",
        ]
        owner = store.client()
        for name in (*left, "w/t2/data/other.lance"):
            owner.put_object(Bucket=BUCKET, Key=name, Body=b"x")
        owner.close()
        record = CatalogRecord(
            type="RELATIONAL", provider="lakehouse-generic", comment=None, properties=store.properties, in_use=True
        )
        place = catalog_storage_within(record, "s3://lake/w", allow_everything(), storages=NamedStorages())
        deleted_names = delete_debris(
            DebrisTable("s3://lake/w/t", place, frozenset()), lambda _: None, before_ms=int(time.time() * 1000) + 60_000
        )

        assert sorted(f"w/t/{name}" for name in deleted_names) == sorted(left)
        assert store.names("w/t/") == before
        assert lance.dataset("s3://lake/w/t", storage_options=keys).count_rows() == 4
