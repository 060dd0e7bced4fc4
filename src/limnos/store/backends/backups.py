# SPDX-License-Identifier: Apache-2.0
"""Backups of an SQLite store: an online backup, and a restore that accepts only complete backups.

Must not know servers. The newest commits are in the `-wal` file next to the database until a checkpoint copies them
into the database. A plain copy of the database file alone lacks them, which cannot be detected in the copy. So a copy
made here contains a marker, and the restore refuses a copy without the marker unless the caller vouches for it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from limnos.model.errors import LimnosError
from limnos.store.backends.migrate import migrate, renew_epoch
from limnos.store.file_modes import FILE, private_directory

MARK = 0x4C494D42
"""SQLite's `user_version` of a copy made by `server backup`. A store in use has 0."""
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")


class BadBackup(LimnosError):
    """Raised if a backup cannot be made or restored; the message has the reason and advice."""

    code = "bad-backup"


def backup_write(database: Path, target: Path) -> int:
    """Copy a store to a new file of mode 600, completely or not at all. Returns its size in bytes.

    Raises BadBackup if the source is missing or damaged, or if the target exists or cannot be written.
    """
    if not database.exists():
        raise BadBackup(f"There is no store at {database}: name the server's directory with --data")
    if target.exists():
        raise BadBackup(f"{target} exists and is not overwritten: name another file, or move that one away")
    try:
        with _draft(target) as draft:
            with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(draft)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # a single file without a -wal file
                copy.execute(f"PRAGMA user_version = {MARK}")
                _check_whole(copy, target)
            _sync(draft)
            os.link(draft, target)  # unlike a rename, it fails if the target was created concurrently
    except (OSError, sqlite3.Error) as error:
        raise BadBackup(f"The backup {target} was not made: {error}") from error
    _sync(target.parent)
    return target.stat().st_size


def backup_restore(database: Path, source: Path, *, keeps_tokens: bool, vouched: bool) -> tuple[Path | None, int]:
    """Replace a store by a backup. No server may be using the store.

    Returns the path of the replaced store, if any, and the number of revoked tokens. The copy is migrated to this
    release and gets a new epoch, and its next id is one that was never used. A token of the copy stays valid if it is
    valid in the replaced store. If that store cannot be read, all tokens are revoked unless `keeps_tokens`. Raises
    BadBackup, or WrongSchema for a backup of a newer release; the store is then not replaced.

    Args:
        database: The store to replace.
        source: The copy.
        keeps_tokens: Keep the copy's tokens if the valid ones cannot be determined.
        vouched: Accept a copy that was not made by `server backup`.
    """
    backup_check(source, vouched=vouched)
    private_directory(database.parent, marks=(database.name,))
    try:
        with _exclusive_store(database) as valid, _draft(database) as draft:
            with closing(sqlite3.connect(source)) as connection, closing(sqlite3.connect(draft)) as copy:
                connection.backup(copy)
                copy.execute("PRAGMA user_version = 0")
                copy.commit()
            migrate(str(draft))
            renew_epoch(str(draft))
            _nodes_forget(draft)
            revoked = tokens_revoke(draft, valid=valid, keeps_unknown=keeps_tokens)
            _sync(draft)
            replaced_path = _move_away(database)
            draft.rename(database)
    except (OSError, sqlite3.Error) as error:
        raise BadBackup(f"{source} was not restored: {error}") from error
    _sync(database.parent)
    return replaced_path, revoked


def _nodes_forget(path: Path) -> None:
    """Delete the heartbeats in a restored SQLite file: its nodes have ended, and none of them is silent."""
    with closing(sqlite3.connect(path)) as copy, copy:
        copy.execute("DELETE FROM node_seen")


def tokens_revoke(path: Path, *, valid: set[int] | None, keeps_unknown: bool) -> int:
    """Revoke API tokens in a restored SQLite file. Returns the number of newly revoked tokens.

    Args:
        path: The SQLite file.
        valid: The ids of the tokens that stay valid. None, if they are unknown, revokes all.
        keeps_unknown: Whether to revoke nothing if `valid` is None.
    """
    if valid is None and keeps_unknown:
        return 0
    with closing(sqlite3.connect(path)) as copy, copy:
        ids = [row[0] for row in copy.execute("SELECT id FROM token WHERE NOT revoked")]
        removed_rows = [(each,) for each in ids if valid is None or each not in valid]
        copy.executemany("UPDATE token SET revoked = 1 WHERE id = ?", removed_rows)
        return len(removed_rows)


def backup_check(source: Path, *, vouched: bool) -> None:
    """Check that a file is a complete copy of a store. Raises BadBackup if it is not."""
    try:
        with source.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise BadBackup(f"{source} can't be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise BadBackup(f"{source} is not an SQLite database: name a file from 'limnos server backup'")
    try:
        with closing(sqlite3.connect(source)) as connection:
            _check_whole(connection, source)
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchall():
                raise BadBackup(f"{source} is a database, but not a store of this product")
            mark = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise BadBackup(f"{source} is damaged: {error}. Take another backup") from error
    if mark != MARK and not vouched:
        raise BadBackup(
            f"{source} was not made by 'limnos server backup'. A plain copy of a store in use lacks the content of its"
            " -wal file, which cannot be detected. If the copy was made while no server ran, or together with its -wal"
            " file in one snapshot, use --plain-copy"
        )


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if result != "ok":
        raise BadBackup(f"{path} is damaged: {result}. Take another backup")


@contextmanager
def _exclusive_store(database: Path) -> Iterator[set[int] | None]:
    """Lock a store, so that no server can start on it. Raises BadBackup if a server runs.

    Yields the ids of its valid tokens, or None if they cannot be read.
    """
    lock_file = Path(f"{database}.migrate")  # a starting server takes this lock first
    with os.fdopen(os.open(lock_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadBackup(f"A server is starting on {database}: stop it, then restore") from None
        yield _valid_tokens(database) if database.exists() else None


def _valid_tokens(database: Path) -> set[int] | None:
    """Read the ids of the valid tokens, and end WAL mode, which succeeds only if no other process has the file open.

    Returns None if the store is damaged. Raises BadBackup if a server uses it.
    """
    with closing(sqlite3.connect(database, isolation_level=None, timeout=1)) as connection:
        try:
            results = {row[0] for row in connection.execute("SELECT id FROM token WHERE NOT revoked")}
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BadBackup(f"A server uses {database}: stop it, then restore") from error
            return None
        except sqlite3.DatabaseError:
            return None  # damaged, so its tokens are unknown
        return results


def _move_away(database: Path) -> Path | None:
    """Rename the replaced store, with SQLite's companion files. Returns its new path, or None if there was no store."""
    if not database.exists():
        return None
    away = database.with_name(f"{database.name}.replaced-{time.time_ns() // 1_000_000}")
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{database}{suffix}").rename(f"{away}{suffix}")
    database.rename(away)
    return away


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Yield an empty file of mode 600 in the target's directory. It is deleted afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    draft = Path(name)
    try:
        yield draft
    finally:
        for ending in ("", ".migrate", *_BESIDE):
            Path(f"{draft}{ending}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
