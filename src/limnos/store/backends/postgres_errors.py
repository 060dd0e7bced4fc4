# SPDX-License-Identifier: Apache-2.0
"""Errors for callers when PostgreSQL refuses or does not answer: one message per cause, which states whether anything
was committed.

Must not know statements.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

import asyncpg
import psycopg

from limnos.model.errors import (
    DESCRIPTORS,
    OUT_OF_DESCRIPTORS,
    LimnosError,
    NoSpace,
    ServiceUnavailable,
    StoreDamaged,
)

NO_TEXT = "A name or another string contains U+0000, which cannot be stored: leave it out"
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
    asyncpg.OperatorInterventionError,  # the database is shutting down or starting up, or an operator ended the session
    asyncpg.InsufficientResourcesError,  # too many connections
    asyncpg.InternalClientError,  # the driver's error for a connection that was closed while idle
    asyncpg.InvalidCachedStatementError,
    asyncpg.InvalidSQLStatementNameError,  # a migration, or a pooler
)
REFUSED = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)
"""Failures of a whole transaction, not of one of its mutations."""
NO_CONNECTION = (
    "The database has no connection left for this server (its operator raises max_connections, or lowers"
    " database.pool_max)"
)
_FULL = re.compile("too many clients|too many connections|connection slots are reserved|no more connections allowed")
"""Messages of PostgreSQL and of poolers for too many connections. The driver gives no code for them."""
_NO_DESCRIPTOR = re.compile("Too many open files")
"""The message of libpq if it cannot open a socket. The driver gives no code for it."""


class DatabaseFailure(NamedTuple):
    """A cause of failed statements: the text for callers, and the class of its error."""

    text: str
    kind: type[LimnosError] = ServiceUnavailable


_SILENT = DatabaseFailure("The database does not answer")
_DAMAGED = DatabaseFailure(
    "The database is damaged: an operator runs 'limnos server check', and restores a backup", StoreDamaged
)
_MISFIT = DatabaseFailure("The database lacks a table or a column of this release")
_STATES: tuple[tuple[str, DatabaseFailure], ...] = (
    ("XX001", _DAMAGED),
    ("XX002", _DAMAGED),
    ("XX", DatabaseFailure("The database reports an internal error")),
    ("53100", DatabaseFailure("The database has no space left", NoSpace)),
    ("53200", DatabaseFailure("The database is out of memory")),
    ("53300", DatabaseFailure(NO_CONNECTION)),
    ("53", DatabaseFailure("The database lacks a resource")),
    ("58030", DatabaseFailure("The database cannot read or write its files (input/output error)")),
    ("58", DatabaseFailure("The system of the database reports an error")),
    ("57014", DatabaseFailure("The database cancelled a statement")),
    ("57P", DatabaseFailure("The database is stopping or starting")),
    ("55P03", DatabaseFailure("Another session of the database holds a lock that this statement waits for")),
    (
        "25006",
        DatabaseFailure("The database is read-only, as a standby is (an operator names the primary)"),
    ),
    ("42P01", _MISFIT),
    ("42703", _MISFIT),
    ("3F000", _MISFIT),
    ("0A000", DatabaseFailure("The tables of the database were changed by another program")),
    ("42501", DatabaseFailure("The database does not allow this statement to the server's user")),
    ("28", DatabaseFailure("The database rejects the server's credentials")),
    ("3D000", DatabaseFailure("The server's database does not exist")),
    ("40", DatabaseFailure("Too many writes are in progress")),
    ("26000", DatabaseFailure("The database does not know the server's session")),
)
"""The causes by SQLSTATE, or its beginning; the first match counts. Other states are errors of the statement itself."""


def is_full(error: BaseException) -> bool:
    """Return whether the database refused a connection because it has too many."""
    return isinstance(error, asyncpg.TooManyConnectionsError) or _FULL.search(str(error)) is not None


def read_error(error: BaseException) -> LimnosError | None:
    """Return the error for the caller of a failed read; None if the statement itself is wrong."""
    cause = _cause(error)
    if cause is None and not isinstance(error, (*LOST, psycopg.OperationalError)):
        return None
    return _public_error(error, cause or _SILENT, ends=(": try again", ""))


def raise_read_error(error: Exception) -> NoReturn:
    """Raise the error for the caller of a failed read, or the same error if the statement itself is wrong."""
    raise read_error(error) or error


def write_error(error: BaseException) -> LimnosError | None:
    """Return the error for the caller of a write that certainly was not committed; None if the statement itself is
    wrong.
    """
    cause = _cause(error)
    if cause is None and not isinstance(error, psycopg.OperationalError):
        return None
    return _public_error(error, cause or _SILENT, ends=("; nothing was changed: try again", ". Nothing was changed"))


def _public_error(error: BaseException, cause: DatabaseFailure, *, ends: tuple[str, str]) -> LimnosError:
    """Build the error of a cause. `ends` is the end of the message if a retry may help, and if it does not."""
    end = ends[cause.kind is StoreDamaged]
    public = cause.kind(f"{cause.text}{end}", cause=str(error) or repr(error), sqlstate=_state(error) or "")
    public.__cause__ = error
    return public


def _cause(error: BaseException) -> DatabaseFailure | None:
    """Return why the database failed; None if it gave no reason, or if the statement itself is wrong."""
    if getattr(error, "errno", None) in OUT_OF_DESCRIPTORS or _NO_DESCRIPTOR.search(str(error)):
        return DatabaseFailure(DESCRIPTORS)
    if is_full(error):
        return DatabaseFailure(NO_CONNECTION)
    state = _state(error)
    return None if state is None else next((failure for begin, failure in _STATES if state.startswith(begin)), None)


def _state(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def is_of_rows(error: BaseException) -> bool:
    """Return whether a write failed because of the rows that it needed, so that writes of other rows may succeed."""
    return isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled))


def is_certain(error: psycopg.Error, *, closed: bool) -> bool:
    """Return whether a failed COMMIT certainly committed nothing: the database refused it and is still running."""
    return error.sqlstate is not None and not closed and not error.sqlstate.startswith(("08", "57P", "58"))
