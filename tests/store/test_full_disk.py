# SPDX-License-Identifier: Apache-2.0
"""A disk without free space, on SQLite: SQLITE_FULL within a statement and at the COMMIT."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.model.errors import NoSpace
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.changes import UNKNOWN
from limnos.store.tx import Tx
from tests.backends import StoreLab, sqlite_copy
from tests.full_disks import Disk
from tests.full_disks import full as full_disk
from tests.store.test_clock import touch

PAYLOAD = "x" * 100_000


@pytest.fixture
def lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    lab.open()
    yield lab
    lab.close()


class Room:
    """A switch for whether the fake disk has space."""

    is_left = True


@pytest.fixture
def room() -> Iterator[Room]:
    """The switch of this process's fake disk."""
    room = Room()
    disk = Disk(full_disk(lambda: not room.is_left))
    yield room
    disk.give_back()
    assert disk.refused, "the disk was never full"


def much(tx: Tx) -> int:
    """Write more rows than a small cache can hold."""
    for _ in range(20):
        tx.tasks.create("purge", PAYLOAD)
    return 20


def full(refused: BaseException) -> bool:
    """Return whether the error says that the disk is full and that nothing was changed."""
    code = getattr(refused.__cause__, "sqlite_errorcode", None)
    return isinstance(refused, NoSpace) and code == sqlite3.SQLITE_FULL and "Nothing was changed" in str(refused)


def test_full_disk_at_commit_refuses_the_mutation(lab: StoreLab, room: Room) -> None:
    """If COMMIT finds no space, the mutation is refused with a certain outcome and reads continue. With space, the next
    write succeeds.
    """
    lab.write(touch)

    room.is_left = False
    with pytest.raises(NoSpace, match=r"(no space left|is full)") as first:
        lab.write(much)
    with pytest.raises(NoSpace, match=r"(no space left|is full)") as second:
        lab.write(touch)
    assert isinstance(lab.store, SqliteStore)
    seen = lab.store.gate(0, ((0, UNKNOWN),)).clocks[0].revision
    room.is_left = True

    assert full(first.value)
    assert full(second.value)
    assert seen == 1
    assert lab.write(touch) == 2
    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]


def test_full_disk_within_a_statement_refuses_the_batch(lab: StoreLab, room: Room) -> None:
    """If a statement finds no space, every writer of the batch gets the error and nothing is changed."""
    assert isinstance(lab.store, SqliteStore)
    store = lab.store
    store._writer.execute("PRAGMA cache_size = 2")  # the cache writes pages to the log during statements

    async def together() -> list[object]:
        permit = lab.permit(0)
        submissions = [store.submit(permit, each) for each in (touch, much, touch)]
        return list(await asyncio.gather(*submissions, return_exceptions=True))

    room.is_left = False
    outcomes = lab.run(together())
    room.is_left = True

    assert [full(each) for each in outcomes if isinstance(each, BaseException)] == [True] * 3
    assert lab.write(touch) == 1
    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]
    assert lab.database.sql("PRAGMA integrity_check") == [("ok",)]
