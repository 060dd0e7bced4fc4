# SPDX-License-Identifier: Apache-2.0
"""Errors for callers when SQLite fails: one message per cause, which states whether anything was committed.

Must not know statements. A message names no file: the caller may not know paths of the server. The result code and
SQLite's own message are in the context, for the log.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final, NoReturn

from limnos.model.errors import DESCRIPTORS, OUT_OF_DESCRIPTORS, LimnosError, NoSpace, ServiceUnavailable, StoreDamaged

FAILURES: Final = (sqlite3.Error, MemoryError)
"""What a statement of the store raises if SQLite fails. For SQLITE_NOMEM, Python raises MemoryError."""
_DAMAGED: Final = "The file of the store is damaged: an operator runs 'limnos server check', and restores a backup"
_READ: Final = {
    sqlite3.SQLITE_IOERR: "The file of the store cannot be read (input/output error)",
    sqlite3.SQLITE_FULL: "The disk of the store is full",
    sqlite3.SQLITE_READONLY: "The file of the store is read-only",
    sqlite3.SQLITE_CANTOPEN: "The file of the store cannot be opened",
    sqlite3.SQLITE_PERM: "The server may not use the file of the store",
    sqlite3.SQLITE_AUTH: "The server may not use the file of the store",
    sqlite3.SQLITE_BUSY: "Another program has locked the file of the store",
    sqlite3.SQLITE_LOCKED: "Another program has locked the file of the store",
    sqlite3.SQLITE_PROTOCOL: "Other programs hold the locks of the file of the store",
    sqlite3.SQLITE_NOMEM: "The server is out of memory",
    sqlite3.SQLITE_INTERRUPT: "The store ended a statement",
    sqlite3.SQLITE_SCHEMA: "The tables of the store were changed by another program",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
}
"""The cause of a failed read, by primary result code. Codes that are not here are errors of the server itself."""
_MISFIT: Final = "The store lacks a table or a column of this release"
_MISFITS: Final = ("no such table", "no such column")
"""The beginnings of SQLite's messages for SQLITE_ERROR if the schema is not this release's."""
_WRITE: Final = {
    sqlite3.SQLITE_IOERR: "The file of the store cannot be written (input/output error)",
    sqlite3.SQLITE_BUSY: "Another program has the write lock of the file of the store",
}
"""The causes of a failed write that have another text than those of a read."""
_KINDS: Final[dict[int, type[LimnosError]]] = {
    sqlite3.SQLITE_FULL: NoSpace,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
}
"""The classes of errors, by primary result code. All others are ServiceUnavailable."""
_ENDS: Final = (": try again", ". Nothing was changed; try again")
_ENDS_OF_DAMAGE: Final = ("", ". Nothing was changed")
"""The ends of the messages of reads and of writes."""
_READING: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)
"""Input/output errors of reads, which a write meets, too. A read that fails with EIO is SQLITE_IOERR_CORRUPTFS."""


def read_error(error: BaseException, path: Path) -> LimnosError | None:
    """Return the error for the caller of a failed read of the file; None if the statement itself is wrong."""
    return _public_error(error, path, is_write=False)


def raise_read_error(error: Exception, path: Path) -> NoReturn:
    """Raise the error for the caller of a failed read, or the same error if the statement itself is wrong."""
    raise read_error(error, path) or error


def write_error(error: BaseException, path: Path) -> LimnosError | None:
    """Return the error for the caller of a write that certainly was not committed; None if the statement itself is
    wrong.
    """
    return _public_error(error, path, is_write=True)


def is_busy(error: BaseException) -> bool:
    """Return whether another process holds the lock of the file."""
    return _code(error) & 0xFF == sqlite3.SQLITE_BUSY


def is_certain(error: BaseException) -> bool:
    """Return whether it is certain that a failed COMMIT, which was rolled back, stored nothing.

    If a page could not be written, the WAL has no commit frame. After a failed fsync it may have one, and recovery
    after a crash may find the transaction committed.
    """
    code = _code(error)
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE


def _public_error(error: BaseException, path: Path, *, is_write: bool) -> LimnosError | None:
    code = _code(error)
    if code & 0xFF == sqlite3.SQLITE_CORRUPT and _fails_to_read(path):
        code = sqlite3.SQLITE_IOERR_READ
    cause = _cause(code, error, is_write=is_write)
    if cause is None:
        return None
    kind = _KINDS.get(code & 0xFF, ServiceUnavailable)
    ends = _ENDS if kind is not StoreDamaged else _ENDS_OF_DAMAGE
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    public = kind(f"{cause}{ends[is_write]}", cause=str(error), code=name, file=str(path))
    public.__cause__ = error
    return public


def _cause(code: int, error: BaseException, *, is_write: bool) -> str | None:
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_CANTOPEN and _is_out_of_descriptors():
        return DESCRIPTORS
    if primary == sqlite3.SQLITE_ERROR:
        return _MISFIT if str(error).startswith(_MISFITS) else None
    if is_write and primary in _WRITE and code not in _READING:
        return _WRITE[primary]
    return _READ.get(primary)


def _code(error: BaseException) -> int:
    """Return the result code of an error. Python's own errors have none: for memory, and for text that is not UTF-8."""
    if isinstance(error, MemoryError):
        return sqlite3.SQLITE_NOMEM
    if str(error).startswith("Could not decode to UTF-8"):
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", 0)


def _fails_to_read(path: Path) -> bool:
    """Return whether a new connection meets an input/output error.

    A statement that meets one in a read ends with SQLITE_CORRUPT, as if the file were damaged; only the first read of a
    connection reports it as what it is.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("SELECT 1 FROM store").fetchall()
    except sqlite3.Error as error:
        return _code(error) & 0xFF == sqlite3.SQLITE_IOERR
    return False


def _is_out_of_descriptors() -> bool:
    """Return whether this process cannot open another file, which SQLite does not tell."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in OUT_OF_DESCRIPTORS
    return False
