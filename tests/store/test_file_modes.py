# SPDX-License-Identifier: Apache-2.0
"""File modes: the server's files are accessible to its own user only, also those that were readable for others
before.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.store import file_modes
from limnos.store.backends.migrate import migrate
from limnos.store.file_modes import private_database, private_directory

MARKS = ("limnos.db",)


@pytest.fixture(autouse=True)
def customary_umask() -> Iterator[None]:
    """Set the usual umask, under which others may read files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """Return the permission bits of a file or directory."""
    return path.stat().st_mode & 0o7777


def test_new_store_files_are_accessible_to_the_owner_only(tmp_path: Path) -> None:
    """The database, its log, the log's index and the lock file of a new store are accessible to the owner only."""
    path = tmp_path / "limnos.db"

    migrate(str(path))
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE store SET next_id = next_id + 1")
        modes = {each.name: mode(each) for each in tmp_path.iterdir()}

    assert set(modes) == {"limnos.db", "limnos.db-wal", "limnos.db-shm", "limnos.db.migrate"}
    assert set(modes.values()) == {0o600}


def test_older_readable_files_are_restricted_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an earlier release that others can read are restricted at the next start, and each is reported."""
    path = tmp_path / "limnos.db"
    migrate(str(path))
    for each in tmp_path.iterdir():
        each.chmod(0o644)
    (tmp_path / "limnos.db-wal").touch(0o664)
    events: list[str] = []
    monkeypatch.setattr(file_modes.log, "warning", lambda event, **_: events.append(event))

    migrate(str(path))

    assert {mode(each) for each in tmp_path.iterdir()} == {0o600}
    assert "closed to other users of this machine" in events


def test_restricting_open_files_retains_sqlite_locks(tmp_path: Path) -> None:
    """Restricting the files of an open store does not release this process's SQLite locks on them."""
    path = tmp_path / "limnos.db"
    migrate(str(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        locks = _locks(path)

        path.chmod(0o644)
        private_database(path)

        assert _locks(path) == locks == ["limnos.db", "limnos.db-shm"]
        assert mode(path) == 0o600


ASK = """
import fcntl, os, struct, sys
LOCK = "hhqqi4x"  # Linux's struct flock with 64-bit offsets: type, whence, start, length, process
for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        told = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    if struct.unpack(LOCK, told)[0] != fcntl.F_UNLCK:
        print(os.path.basename(path))
"""


def _locks(path: Path) -> list[str]:
    """Return the files of the database on which the kernel holds a lock. Another process checks, because a process's
    own locks do not block it.
    """
    files = sorted(str(each) for each in path.parent.iterdir() if each.suffix != ".migrate")
    return subprocess.run(
        [sys.executable, "-c", ASK, *files], check=True, capture_output=True, text=True
    ).stdout.split()


def test_new_directory_has_mode_700(tmp_path: Path) -> None:
    """A new directory has mode 700. Parents that are created with it have the mode of the umask."""
    private_directory(tmp_path / "srv" / "data", marks=MARKS)

    assert (mode(tmp_path / "srv" / "data"), mode(tmp_path / "srv")) == (0o700, 0o755)


@pytest.mark.parametrize(
    "holds, after",
    [((), 0o700), (("limnos.db", "other"), 0o700), (("other",), 0o755)],
    ids=["empty", "ours", "not ours"],
)
def test_existing_directory_with_the_store_is_restricted(tmp_path: Path, holds: tuple[str, ...], after: int) -> None:
    """An existing directory that is empty or contains the store, also beside other files, is restricted. A directory
    without the store and with other files is not changed.
    """
    tmp_path.chmod(0o755)
    for name in holds:
        (tmp_path / name).touch()

    private_directory(tmp_path, marks=MARKS)

    assert mode(tmp_path) == after


def test_shared_directory_is_never_restricted(tmp_path: Path) -> None:
    """A shared directory such as /tmp is never restricted, whatever it contains."""
    tmp_path.chmod(0o1777)

    private_directory(tmp_path, marks=MARKS)

    assert mode(tmp_path) == 0o1777
