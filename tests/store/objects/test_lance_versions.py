# SPDX-License-Identifier: Apache-2.0
"""Versions of Lance tables in the store: ordered, settled in ascending order, and deleted with their table."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.schema import CreateTable

from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.records import BLANK_TABLE
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.objects.lance_versions import (
    INSERT,
    SETTLE,
    UNSETTLED,
    LanceVersionWrites,
    lance_branches_read,
    lance_top_read,
    lance_unsettled_read,
    lance_version_read,
    lance_versions_read,
)
from limnos.store.schema.tree import lance_version
from limnos.store.sql import Sql, Value
from tests.backends import StoreLab
from tests.store.world import StoreWorld


def row(version: int, branch: str = "") -> LanceVersion:
    """Return a version."""
    return LanceVersion(
        branch=branch,
        version=version,
        scheme=2,
        staged=f"staged-{version}",
        size=10,
        e_tag=None,
        metadata="{}",
        created_at=5,
        settled=False,
    )


def test_versions_are_read_in_order(lab: StoreLab, world: StoreWorld) -> None:
    """Versions of one branch are read in both orders, after a version and with a limit. A taken version number is not
    assigned again.
    """
    for each in (row(1), row(2), row(3), row(7, "dev")):
        assert lab.write(lambda tx, each=each: tx.lance_versions.create(9, each), zone=world.main.id)
    assert not lab.write(lambda tx: tx.lance_versions.create(9, row(3)), zone=world.main.id)

    def read(*, after: int | None = None, descending: bool = False, limit: int = 10) -> list[int]:
        versions = lab.load(lance_versions_read(9, "", after=after, descending=descending, limit=limit))
        return [each.version for each in versions]

    assert (read(), read(descending=True), read(after=1), read(after=3, descending=True, limit=1)) == (
        [1, 2, 3],
        [3, 2, 1],
        [2, 3],
        [2],
    )
    assert lab.load(lance_version_read(9, "", version=2)) == row(2)
    assert lab.load(lance_version_read(9, "dev", version=2)) is None
    assert lab.load(lance_top_read(9, "dev")) == row(7, "dev")
    assert lab.load(lance_branches_read(9)) == ["", "dev"]


def test_versions_are_settled_and_deleted(lab: StoreLab, world: StoreWorld) -> None:
    """Settling covers all versions of a branch up to a number. Deletion covers ranges or whole branches."""
    lab.write(lambda tx: tx.lance_versions.create_all(9, [row(1), row(2), row(3), row(1, "dev")]), zone=world.main.id)
    lab.write(lambda tx: tx.lance_versions.settle(9, "", version=2), zone=world.main.id)

    assert [each.version for each in lab.load(lance_unsettled_read(9, ""))] == [3]
    assert [each.version for each in lab.load(lance_unsettled_read(9, "dev"))] == [1]
    assert lab.write(lambda tx: tx.lance_versions.delete(9, "", start=1, end=3), zone=world.main.id) == 2
    assert lab.write(lambda tx: tx.lance_versions.delete_branch(9, "dev"), zone=world.main.id) == 1
    assert lab.load(lance_branches_read(9)) == [""]


def test_sweep_deletes_versions_of_purged_tables(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes versions of tables that were dropped for good, and keeps those of tables in the trash."""
    trashed_table, purged_table = (
        lab.write(
            lambda tx, name=name: tx.nodes.create(
                kind=Kind.TABLE,
                space="table",
                name=name,
                parent_id=world.main.id,
                zone=world.main.id,
                record=BLANK_TABLE,
            ),
            zone=world.main.id,
        )
        for name in ("kept", "gone")
    )
    for node in (trashed_table, purged_table):
        lab.write(lambda tx, node=node: tx.lance_versions.create(node.id, row(1)), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(trashed_table, keep_ms=1000), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(purged_table), zone=world.main.id)

    lab.write(orphans_sweep, zone=world.main.id)

    assert lab.load(lance_top_read(trashed_table.id, "")) == row(1)
    assert lab.load(lance_top_read(purged_table.id, "")) is None


def steps(rows: int, statement: Sql, **more: Value) -> int:
    """Return the number of steps of SQLite's virtual machine for a statement on a branch of this many versions, all
    settled except the newest.
    """
    step_counter = [0]

    def count() -> int:
        step_counter[0] += 1
        return 0

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(str(CreateTable(lance_version).compile(dialect=sqlite_dialect())))
        connection.executemany(
            INSERT.sqlite, [INSERT.values(LanceVersionWrites._params(9, row(each))) for each in range(1, rows + 1)]
        )
        connection.execute("UPDATE lance_version SET settled = 1 WHERE version < ?", (rows,))
        connection.set_progress_handler(count, 1)
        connection.execute(statement.sqlite, statement.values({"id": 9, "branch": "", "yes": True, **more})).fetchall()
        connection.set_progress_handler(None, 0)
    return step_counter[0]


def test_unsettled_versions_are_read_without_settled_ones() -> None:
    """A commit finds and settles the unsettled versions without reading the settled ones."""
    for statement, few, many in ((UNSETTLED, {}, {}), (SETTLE, {"version": 10}, {"version": 1000})):
        assert steps(1000, statement, **many) == steps(10, statement, **few)
