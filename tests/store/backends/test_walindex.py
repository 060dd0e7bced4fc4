# SPDX-License-Identifier: Apache-2.0
"""The index of SQLite's write-ahead log: it shows every commit, and reading it never releases SQLite's locks."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from limnos.store.backends import walindex
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.backends.walindex import WalIndex, open_index
from tests.backends import StoreLab, sqlite_copy
from tests.store.test_clock import touch

VISITOR = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM store").fetchall()
connection.close()
"""


@pytest.fixture
def path(sqlite_template: Path, tmp_path: Path) -> Path:
    """The path of a migrated file."""
    return Path(sqlite_copy(sqlite_template, tmp_path).address)


def locks_on(path: Path) -> int:
    """Return the number of locks that this process holds on the file's index, according to the kernel."""
    inode = path.with_name(f"{path.name}-shm").stat().st_ino
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(row[1] == "POSIX" and row[4] == str(os.getpid()) and row[5].endswith(f":{inode}") for row in rows)


def visit(path: Path) -> None:
    """Let another process open, read and close the file. The last process that closes it deletes the log and its
    index.
    """
    subprocess.run([sys.executable, "-c", VISITOR, str(path)], check=True, timeout=60)


def test_every_commit_changes_the_header(path: Path) -> None:
    """Equal headers mean that nothing was committed. A commit by any process changes the header."""
    store = SqliteStore(path)
    before = store.moment()

    assert before is not None
    assert store.moment() == before
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE store SET next_id = next_id + 1")
    assert store.moment() not in (None, before)
    asyncio.run(store.close())


def silent_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the index unreadable, as on a file system without shared memory."""
    monkeypatch.setattr(walindex, "_PROBE", "SELECT 1")


@pytest.mark.parametrize("tells", [True, False])
def test_locks_survive_an_unreadable_index_and_another_close(
    path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    """While a store is open the kernel has its locks, also if the index is unreadable, and after another store was
    closed.
    """
    if not tells:
        silent_index(monkeypatch)
    store = SqliteStore(path)
    neighbour = SqliteStore(path)
    asyncio.run(neighbour.close())

    assert locks_on(path) > 0
    assert (store.moment() is not None) == tells
    asyncio.run(store.close())
    assert walindex._mappings == {}


@pytest.mark.parametrize("tells", [True, False])
def test_store_survives_open_and_close_by_other_processes(
    path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    """If other processes open and close the file, an open store keeps its log and index."""
    if not tells:
        silent_index(monkeypatch)
    (path.parent / "lab").mkdir()
    lab = StoreLab(sqlite_copy(path, path.parent / "lab"))
    file = Path(lab.database.address)
    index = file.with_name(f"{file.name}-shm")
    assert lab.write(touch) == 1
    before = index.stat().st_ino

    for revision in (2, 3):
        visit(file)
        assert lab.write(touch) == revision

    assert index.stat().st_ino == before
    assert lab.clock(0)[0] == 3
    lab.close()


def test_index_that_is_too_short_is_not_opened(tmp_path: Path) -> None:
    """An index file that is too short for a header is not kept open, because closing it later would release locks."""
    (tmp_path / "x.db-shm").write_bytes(b"short")
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(ValueError, match="no header"):
        WalIndex(tmp_path / "x.db")
    with closing(sqlite3.connect(":memory:")) as writer:
        assert open_index(tmp_path / "x.db", writer) is None

    assert len(list(Path("/proc/self/fd").iterdir())) == before
