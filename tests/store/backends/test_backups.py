# SPDX-License-Identifier: Apache-2.0
"""Backups of an SQLite store: consistent during writes, restored only if valid; and what a restore invalidates."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.model.principals import TokenTrust
from limnos.store.backends.backups import BadBackup, backup_restore, backup_write
from tests.backends import StoreLab, sqlite_copy
from tests.store.test_clock import touch


@pytest.fixture
def lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file whose store is open and has written."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    assert lab.write(touch) == 1
    yield lab
    lab.close()


@pytest.fixture
def database(lab: StoreLab) -> Path:
    """The path of the store's file."""
    return Path(lab.database.address)


def stop(lab: StoreLab) -> None:
    """Close the store, as a stop of the server does."""
    for store in lab._stores:
        lab.run(store.close())
    lab._stores.clear()


def token(lab: StoreLab, name: str) -> int:
    """Create a token. Returns its id."""
    return lab.write(
        lambda tx: tx.tokens.create(user="ana", name=name, secret_hash=b"x", expires_at=None, trust=TokenTrust.OPEN).id
    )


def valid(path: Path) -> set[int]:
    """Return the ids of the tokens that are valid in a file."""
    with closing(sqlite3.connect(path)) as file:
        return {row[0] for row in file.execute("SELECT id FROM token WHERE NOT revoked")}


def revision(path: Path) -> int:
    """Return the server's revision in a file."""
    with closing(sqlite3.connect(path)) as file:
        stored_revision: int = file.execute("SELECT revision FROM clock WHERE zone = 0").fetchone()[0]
        return stored_revision


def restore(
    database: Path, source: Path, *, keeps_tokens: bool = False, vouched: bool = False
) -> tuple[Path | None, int]:
    """Restore a backup."""
    return backup_restore(database, source, keeps_tokens=keeps_tokens, vouched=vouched)


def test_backup_contains_the_newest_change_of_the_log(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """A backup of a store in use contains the newest change, is one file of mode 600, and does not overwrite a file."""
    target = tmp_path / "copies" / "b.db"
    target.parent.mkdir()
    epoch = lab.epoch()

    backup_write(database, target)

    assert revision(target) == lab.clock(0)[0] == 1
    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o600
    assert lab.write(touch) == 2
    with pytest.raises(BadBackup, match="exists and is not overwritten"):
        backup_write(database, target)
    assert lab.epoch() == epoch


def test_backup_of_a_missing_store_fails_and_creates_nothing(tmp_path: Path) -> None:
    """A backup of a store that does not exist fails and does not create the store."""
    with pytest.raises(BadBackup, match="no store"):
        backup_write(tmp_path / "none.db", tmp_path / "b.db")

    assert list(tmp_path.iterdir()) == []


def test_plain_copy_is_refused(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """A copy of the database file alone, made beside a running server, lacks the newest change and can be opened. A
    restore refuses it with the reason.
    """
    copy = tmp_path / "plain.db"
    shutil.copyfile(database, copy)
    stop(lab)
    before = database.read_bytes()

    with pytest.raises(BadBackup, match=r"-wal.*--plain-copy"):
        restore(database, copy)

    assert revision(copy) == 0
    assert database.read_bytes() == before
    restore(database, copy, vouched=True)
    assert revision(database) == 0


@pytest.mark.parametrize("how", ["no database", "cut", "another database", "missing"])
def test_damaged_or_foreign_file_is_refused(lab: StoreLab, database: Path, tmp_path: Path, how: str) -> None:
    """A damaged file, or one that is no store, is refused and replaces nothing."""
    copy = tmp_path / "bad.db"
    backup_write(database, copy)
    if how == "no database":
        copy.write_text("hello")
    elif how == "cut":
        copy.write_bytes(copy.read_bytes()[:-8192])
    else:
        copy.unlink()
    if how == "another database":
        with closing(sqlite3.connect(copy)) as file:
            file.execute("CREATE TABLE x (y)")
    stop(lab)

    with pytest.raises(BadBackup):
        restore(database, copy, vouched=True)

    assert revision(database) == 1


def test_store_in_use_is_not_replaced(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """A store that a server has open is not replaced, and the server continues."""
    copy = tmp_path / "b.db"
    backup_write(database, copy)

    with pytest.raises(BadBackup, match="A server uses"):
        restore(database, copy)

    assert lab.write(touch) == 2


def test_restored_store_has_a_new_epoch_and_new_ids(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """A restored store has a new epoch and assigns new ids. The replaced store is kept beside it, complete."""
    copy = tmp_path / "b.db"
    backup_write(database, copy)
    lab.write(touch)
    epoch, first = lab.epoch(), token(lab, "later")
    stop(lab)

    replaced, _ = restore(database, copy)

    assert replaced is not None
    assert (revision(database), revision(replaced)) == (1, 3)
    assert lab.epoch() != epoch
    assert lab.database.sql("SELECT next_id > ? FROM store", first) == [(1,)]
    assert lab.database.sql("PRAGMA user_version") == [(0,)]
    assert lab.database.sql("PRAGMA journal_mode") == [("wal",)]
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]
    opened = StoreLab(lab.database)
    assert opened.write(touch) == 2
    opened.close()


def test_restored_store_has_no_nodes(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """The nodes of a backup have ended: a restored store does not report them as silent."""
    copy = tmp_path / "b.db"
    lab.database.sql(
        "INSERT INTO node_seen (id, name, version, started_at, seen_at, clock_offset_ms) VALUES ('a', 'vm', '1', 1, 1, 0)"
    )
    backup_write(database, copy)
    stop(lab)

    restore(database, copy)

    assert lab.database.sql("SELECT count(*) FROM node_seen") == [(0,)]


def test_revoked_token_stays_revoked(lab: StoreLab, database: Path, tmp_path: Path) -> None:
    """A token that was revoked since the backup is revoked after the restore, too. Other tokens stay valid."""
    valid_token, lost = token(lab, "kept"), token(lab, "lost")
    copy = tmp_path / "b.db"
    backup_write(database, copy)
    lab.database.sql("UPDATE token SET revoked = 1 WHERE id = ?", lost)
    stop(lab)

    _, revoked = restore(database, copy)

    assert valid(copy) == {valid_token, lost}
    assert (valid(database), revoked) == ({valid_token}, 1)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("existing_file", ["nothing", "a damaged one"])
def test_tokens_of_unknown_validity_are_revoked(
    lab: StoreLab, database: Path, tmp_path: Path, keeps: bool, existing_file: str
) -> None:
    """If the replaced store cannot tell which tokens are valid, all tokens are revoked, unless the caller requests
    otherwise.
    """
    token_id = token(lab, "t")
    copy = tmp_path / "b.db"
    backup_write(database, copy)
    stop(lab)
    if existing_file == "nothing":
        database.unlink()
    else:
        database.write_bytes(b"broken" * 5000)

    replaced, revoked = restore(database, copy, keeps_tokens=keeps)

    assert (valid(database), revoked) == (({token_id}, 0) if keeps else (set(), 1))
    assert (replaced is None) == (existing_file == "nothing")
