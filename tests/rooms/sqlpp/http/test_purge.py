# SPDX-License-Identifier: Apache-2.0
"""Files of dropped datasets: they are kept while the dataset can be restored or read, and deleted afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from limnos.services.storage.purges import PURGE, READERS_MS
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import local, metadata_of, table_path
from tests.rooms.sqlpp.http.wire import rows

GONE = ("Default", "gone")
MADE = "create type Thing as { id: bigint }; create dataset gone(Thing) primary key id"


@pytest.fixture
def lake(shared: DriverNode) -> Iterator[DriverNode]:
    """A node with a dataset whose metadata file is on disk."""
    defaults = shared.built.services.defaults
    rows(shared, MADE)
    yield shared
    shared.built.services.defaults = defaults
    rows(shared, "drop dataset gone if exists; drop type Thing if exists")
    sql(shared, "DELETE FROM task WHERE kind = ?", PURGE)
    sql(shared, "DELETE FROM trash")


def sql(node: DriverNode, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    """Execute SQL on the store."""
    with closing(sqlite3.connect(node.data / "limnos.db", timeout=30)) as connection, connection:
        return connection.execute(statement, parameters).fetchall()


def files(node: DriverNode) -> Path:
    """Return the paths of the dataset's files."""
    return local(metadata_of(node, *GONE)["location"])


def pass_by(node: DriverNode) -> None:
    """Advance the time beyond the trash retention, and run the sweep."""
    sql(node, "UPDATE trash SET expires_at = 0")
    node.runner.run(node.built.upkeep.sweep())


def purges(node: DriverNode) -> list[int]:
    """Return the delay of each purge task, in milliseconds."""
    return [
        due - created_at for created_at, due in sql(node, "SELECT created_at, due_at FROM task WHERE kind = ?", PURGE)
    ]


def purged(node: DriverNode) -> None:
    """Advance the time beyond the readers' grace period, and run the purge tasks."""
    sql(node, "UPDATE task SET due_at = 0 WHERE kind = ?", PURGE)
    while node.runner.run(node.built.upkeep.run_one()):
        pass


@pytest.mark.parametrize("statement", ["drop dataset gone", "drop dataverse D"])
def test_files_are_deleted_after_retention_and_grace_period(lake: DriverNode, statement: str) -> None:
    """Files are deleted after the trash retention and the readers' grace period, and not before."""
    path = GONE
    if "dataverse" in statement:
        rows(
            lake,
            "create dataverse D; create type D.Thing as { id: bigint }; create dataset D.gone(Thing) primary key id",
        )
        path = ("D", "gone")
    place = local(metadata_of(lake, *path)["location"])

    rows(lake, statement)
    lake.runner.run(lake.built.upkeep.sweep())
    before = (place.exists(), purges(lake))
    pass_by(lake)
    waiting = (place.exists(), purges(lake))
    purged(lake)

    assert before == (True, [])
    assert waiting == (True, [READERS_MS])
    assert (place.exists(), purges(lake)) == (False, [])


def test_restored_dataset_dropped_without_purge_retains_files(lake: DriverNode) -> None:
    """A dataset that is restored, and then dropped by another client without purge, keeps its files."""
    place = files(lake)
    rows(lake, "drop dataset gone")
    ((number,),) = sql(lake, "SELECT node_id FROM trash")
    lake.done("POST", f"/api/limnos/v1/metalakes/lake/catalogs/main/trash/{number}/undrop", {})

    assert lake.ask("DELETE", table_path(*GONE)).status == 204
    pass_by(lake)

    assert (place.exists(), purges(lake)) == (True, [])


def test_files_are_deleted_after_grace_period_without_trash(lake: DriverNode) -> None:
    """Without a trash, files are deleted after the readers' grace period."""
    place = files(lake)
    lake.built.services.defaults = lake.built.services.defaults._replace(keep_dropped_ms=0)

    rows(lake, "drop dataset gone")

    assert (place.exists(), purges(lake)) == (True, [READERS_MS])
    purged(lake)
    assert not place.exists()


def test_drop_of_another_clients_table_retains_files(lake: DriverNode) -> None:
    """DROP DATASET of a table that SQL++ did not create does not delete the table's files."""
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
    lake.done("POST", "/iceberg/v1/lake.main/namespaces/Default/tables", {"name": "plain", "schema": schema})
    place = local(metadata_of(lake, "Default", "plain")["location"])

    rows(lake, "drop dataset plain")
    pass_by(lake)

    assert (place.exists(), purges(lake)) == (True, [])
