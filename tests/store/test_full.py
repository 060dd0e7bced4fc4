"""A disk without room for one page more, on SQLite: SQLITE_FULL as it comes, within a statement and at the COMMIT."""

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
    """Whether the fake disk has space."""

    is_left = True


@pytest.fixture
def room() -> Iterator[Room]:
    """The disk of this process."""
    room = Room()
    disk = Disk(lambda: not room.is_left)
    yield room
    disk.give_back()
    assert disk.refused, "the disk was never full"


def much(tx: Tx) -> int:
    """Write more than a small cache holds."""
    for _ in range(20):
        tx.tasks.create("purge", PAYLOAD)
    return 20


def full(refused: BaseException) -> bool:
    """Say whether SQLite said that the disk is full, and we that nothing was changed."""
    code = getattr(refused.__cause__, "sqlite_errorcode", None)
    return isinstance(refused, NoSpace) and code == sqlite3.SQLITE_FULL and "Nothing was changed" in str(refused)


def test_no_room_at_the_commit(lab: StoreLab, room: Room) -> None:
    """A COMMIT that finds no room is a certain refusal, reads go on, and with room the next write is served."""
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


def test_no_room_within_a_statement(lab: StoreLab, room: Room) -> None:
    """What a statement must write before the COMMIT finds no room: everyone of the batch is told, nothing is kept."""
    assert isinstance(lab.store, SqliteStore)
    store = lab.store
    store._writer.execute("PRAGMA cache_size = 2")  # pages leave the cache, for the log, while statements run

    async def together() -> list[object]:
        permit = lab.permit(0)
        asked = [store.submit(permit, each) for each in (touch, much, touch)]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    room.is_left = False
    told = lab.run(together())
    room.is_left = True

    assert [full(each) for each in told if isinstance(each, BaseException)] == [True] * 3
    assert lab.write(touch) == 1
    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]
    assert lab.database.sql("PRAGMA integrity_check") == [("ok",)]
