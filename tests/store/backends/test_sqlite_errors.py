# SPDX-License-Identifier: Apache-2.0
"""Failures of SQLite as errors for callers: each result code, real input/output errors, and a damaged file."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest, LimnosError, NoSpace, ServiceUnavailable, StateUnknown, StoreDamaged
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.backends.sqlite_errors import read_error, write_error
from limnos.store.changes import EPOCH, UNKNOWN
from limnos.store.sql import Sql, read_rows
from limnos.store.tx import Tx
from tests.backends import StoreLab, sqlite_copy
from tests.full_disks import Access, Disk
from tests.store.test_clock import touch

FOREIGN_COMMIT = "INSERT INTO setting_name VALUES (1, 'any')"
"""A commit by another connection, after which a store reads pages again that it has cached."""
CASES = [
    (sqlite3.SQLITE_IOERR_READ, ServiceUnavailable, "cannot be read (input/output error)"),
    (sqlite3.SQLITE_IOERR_CORRUPTFS, ServiceUnavailable, "cannot be read (input/output error)"),
    (sqlite3.SQLITE_CORRUPT, StoreDamaged, "limnos server check"),
    (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamaged, "limnos server check"),
    (sqlite3.SQLITE_NOTADB, StoreDamaged, "limnos server check"),
    (sqlite3.SQLITE_FULL, NoSpace, "is full"),
    (sqlite3.SQLITE_READONLY, ServiceUnavailable, "read-only"),
    (sqlite3.SQLITE_CANTOPEN, ServiceUnavailable, "cannot be opened"),
    (sqlite3.SQLITE_PERM, ServiceUnavailable, "may not use"),
    (sqlite3.SQLITE_BUSY_SNAPSHOT, ServiceUnavailable, "locked"),
    (sqlite3.SQLITE_LOCKED, ServiceUnavailable, "locked"),
    (sqlite3.SQLITE_PROTOCOL, ServiceUnavailable, "locks"),
    (sqlite3.SQLITE_NOMEM, ServiceUnavailable, "out of memory"),
]


class Mode:
    """What fails on the disk of this process."""

    access: Access | None = None


@pytest.fixture
def mode() -> Iterator[Mode]:
    """The switch of this process's broken disk."""
    mode = Mode()
    disk = Disk(lambda access: errno.EIO if access == mode.access else 0)
    yield mode
    disk.give_back()
    assert disk.refused, "the disk never failed"


@pytest.fixture
def lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    lab.open()
    yield lab
    lab.close()


def failure(code: int) -> sqlite3.DatabaseError:
    """Build SQLite's error for a result code. Its text names a file, as some of SQLite's messages do."""
    error = sqlite3.OperationalError("failed in /srv/limnos.db")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("code, kind, text", CASES)
def test_result_codes_have_their_cause_in_the_message(
    code: int, kind: type[LimnosError], text: str, tmp_path: Path
) -> None:
    """Each result code is reported as what it is, without SQLite's own words, for a read and for a write."""
    read, write = read_error(failure(code), tmp_path), write_error(failure(code), tmp_path)

    assert read is not None
    assert write is not None
    assert (type(read), type(write)) == (kind, kind)
    assert text in read.message
    assert "Nothing was changed" in write.message
    assert "/srv" not in read.message + write.message
    assert read.context["cause"] == "failed in /srv/limnos.db"


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC])
def test_input_output_error_of_a_write_is_not_a_full_disk(code: int, tmp_path: Path) -> None:
    """A write that fails with an input/output error is reported as that."""
    error = write_error(failure(code), tmp_path)

    assert type(error) is ServiceUnavailable
    assert error.message.startswith("The file of the store cannot be written (input/output error)")


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_TOOBIG])
def test_errors_of_a_statement_itself_stay(code: int, tmp_path: Path) -> None:
    """A wrong statement is not reported as a failure of the store."""
    assert (read_error(failure(code), tmp_path), write_error(failure(code), tmp_path)) == (None, None)


def test_missing_table_is_unavailable(lab: StoreLab) -> None:
    """While a table is renamed, reads and writes are unavailable, and work again after it."""
    store = lab.store
    assert isinstance(store, SqliteStore)
    lab.database.sql("ALTER TABLE task RENAME TO elsewhere")

    with pytest.raises(ServiceUnavailable, match="lacks a table"):
        store.find((Sql("SELECT count(*) FROM task"), {}))
    with pytest.raises(ServiceUnavailable, match=r"lacks a table.*Nothing was changed"):
        lab.write(add_task)

    lab.database.sql("ALTER TABLE elsewhere RENAME TO task")
    lab.write(add_task)
    assert store.find((Sql("SELECT count(*) FROM task"), {})) == [(1,)]


def add_task(tx: Tx) -> None:
    """Add a row."""
    tx.tasks.create("purge", "{}")


def test_input_output_errors_of_reads_are_unavailable(lab: StoreLab, mode: Mode) -> None:
    """A gate read, a load, a query and a snapshot that meet EIO are unavailable. Reads work again after it."""
    store = lab.store
    assert isinstance(store, SqliteStore)

    async def export() -> None:
        async with store.snapshot() as moment:
            await moment.rows((Sql("SELECT * FROM clock"), {}))

    reads = (
        lambda: store.gate(0, ((0, UNKNOWN),)),
        lambda: store.load(0, (), lambda: read_rows(EPOCH)),
        lambda: store.find((Sql("SELECT * FROM clock"), {})),
        lambda: lab.run(export()),
    )
    lab.database.sql(FOREIGN_COMMIT)
    mode.access = "read"

    for read in reads:
        with pytest.raises(ServiceUnavailable, match=r"cannot be read \(input/output error\)"):
            read()

    mode.access = None
    for read in reads:
        read()


def test_input_output_error_of_a_commit_names_its_reason(lab: StoreLab, mode: Mode) -> None:
    """A COMMIT whose pages cannot be written certainly stored nothing, and the message names the input/output error."""
    permit = lab.permit(0)
    mode.access = "write"

    with pytest.raises(ServiceUnavailable, match=r"written \(input/output error\)\. Nothing was changed"):
        lab.run(lab.store.submit(permit, touch))

    mode.access = None
    assert lab.write(touch) == 1


def test_store_records_whether_its_last_write_failed(lab: StoreLab, mode: Mode) -> None:
    """A failed write is recorded until the next commit. A mutation that the product refuses is no failure."""
    store = lab.store
    permit = lab.permit(0)
    outcomes = [store.last_write_failed]

    mode.access = "write"
    with pytest.raises(ServiceUnavailable):
        lab.run(store.submit(permit, touch))
    outcomes.append(store.last_write_failed)
    mode.access = None
    lab.write(touch)
    outcomes.append(store.last_write_failed)
    with pytest.raises(BadRequest):
        lab.write(refuse)
    outcomes.append(store.last_write_failed)

    assert outcomes == [False, True, False, False]


def refuse(_: Tx) -> None:
    """Refuse the mutation."""
    raise BadRequest("no")


def test_read_error_before_the_commit_is_not_an_unknown_state(lab: StoreLab, mode: Mode) -> None:
    """A mutation that meets EIO in a read is unavailable: its commit was never tried."""
    permit = lab.permit(0)
    lab.database.sql(FOREIGN_COMMIT)
    mode.access = "read"

    with pytest.raises(ServiceUnavailable, match=r"cannot be read .*Nothing was changed") as refused:
        lab.run(lab.store.submit(permit, touch))

    assert not isinstance(refused.value, StateUnknown)
    mode.access = None
    assert lab.write(touch) == 1


def test_damaged_page_is_reported_as_damage(lab: StoreLab) -> None:
    """Reads and writes of a table whose page was overwritten say that the store is damaged."""
    store = lab.store
    assert isinstance(store, SqliteStore)
    lab.write(add_task)
    zero_root_page(Path(lab.database.address), "task")

    with pytest.raises(StoreDamaged, match="limnos server check"):
        store.find((Sql("SELECT * FROM task"), {}))
    with pytest.raises(StoreDamaged, match="Nothing was changed"):
        lab.write(add_task)


def test_text_that_is_not_utf_8_is_reported_as_damage(lab: StoreLab) -> None:
    """A changed bit that makes text unreadable is damage, which Python reports without a result code."""
    store = lab.store
    assert isinstance(store, SqliteStore)
    lab.write(add_task)
    lab.database.sql("UPDATE task SET kind = CAST(x'70ff' AS text)")

    with pytest.raises(StoreDamaged, match="limnos server check"):
        store.find((Sql("SELECT kind FROM task"), {}))


def zero_root_page(path: Path, name: str) -> None:
    """Overwrite the first page of a table or an index with zeroes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(FOREIGN_COMMIT)
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))


def test_snapshot_without_descriptors_is_unavailable(lab: StoreLab) -> None:
    """If no more files can be opened, a snapshot says that, and not only that the file cannot be opened."""
    store = lab.store
    lab.write(touch)

    async def export() -> None:
        async with store.snapshot():
            raise AssertionError("a file was opened")

    with no_descriptors(), pytest.raises(ServiceUnavailable, match="out of file descriptors"):
        lab.run(export())


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let this process open no more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        os.close(lowest)
