# SPDX-License-Identifier: Apache-2.0
"""Purges of tables: which of the files that the metadata names they delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.http.driver import DriverNode, node_at
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.iceberg_manifests import data_file, entry


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node."""
    with node_at(tmp_path / "data") as running:
        yield running


def written(node: DriverNode) -> tuple[WrittenTable, Path, Path]:
    """Create a table with one data file. Returns it, the data file, and the manifest list."""
    table = WrittenTable(node)
    data = wire.local(f"{table.location}/data/1.parquet")
    data.parent.mkdir(parents=True)
    data.write_bytes(b"rows")
    table.commit([table.manifest("m.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    return table, data, wire.local(f"{table.location}/metadata/snap-1.avro")


def purge(node: DriverNode, table: WrittenTable) -> None:
    """Drop the table with its files, and run the task."""
    assert node.delete(f"{table.path}?purgeRequested=true").status == 204


def work(node: DriverNode) -> None:
    """Run the due tasks."""
    while node.runner.run(node.built.upkeep.run_one()):
        pass


@pytest.mark.parametrize("keeps_data", [True, False])
def test_purge_keeps_the_data_of_tables_that_collect_no_garbage(node: DriverNode, keeps_data: bool) -> None:
    """With gc.enabled=false a purge keeps the data files, which other tables may share, and deletes the metadata."""
    table, data, listing = written(node)
    if keeps_data:
        assert wire.commit(node, "a", "t", updates=[wire.set_properties(**{"gc.enabled": "false"})]).status == 200

    purge(node, table)
    work(node)

    assert (data.exists(), listing.exists()) == (keeps_data, False)


@pytest.mark.parametrize("relation", ["same", "above", "below", "deleting above", "root below"])
def test_purge_deletes_no_file_of_another_object(node: DriverNode, relation: str) -> None:
    """A purge deletes nothing while another object is at, above or below the table's location, also one whose files
    are being deleted; a catalog's root is no object.
    """
    table, data, listing = written(node)
    purge(node, table)
    place = {
        "same": table.location,
        "above": table.location.rpartition("/")[0],
        "below": f"{table.location}/data",
        "deleting above": table.location.rpartition("/")[0],
        "root below": f"{table.location}/data",
    }[relation]
    kind = LocationKind.ALLOWED_LOCATION if relation == "root below" else LocationKind.EXTERNAL_FILESET
    main = Sql("SELECT id FROM node WHERE name = 'main'")

    def claim(tx: Tx) -> None:
        ((catalog_id,),) = tx.rows(main, {})
        tx.places.put(LocationClaim(kind=kind, owner_id=999_999, catalog_id=catalog_id, metalake_id=0), place)
        if relation.startswith("deleting"):
            tx.count(Sql("UPDATE place SET state = 3 WHERE owner_id = 999999"), {})

    node.runner.run(node.built.services.store.submit(upkeep_permit("t"), claim))
    work(node)

    is_kept = relation != "root below"
    assert (data.exists(), listing.exists()) == (is_kept, is_kept)
