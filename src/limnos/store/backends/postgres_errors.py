"""Errors for callers when PostgreSQL refuses or does not answer: one message per cause, which states whether anything
was committed.

May import `model` and the two drivers. Must not know statements.
"""

from __future__ import annotations

import re

import asyncpg
import psycopg

from limnos.model.errors import NoSpace, ServiceUnavailable

NO_TEXT = "A name or another string contains U+0000, which cannot be stored: leave it out"
LOST = (
    asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError, TimeoutError,
    asyncpg.OperatorInterventionError,  # the database is shutting down or starting up, or an operator ended the session
    asyncpg.InsufficientResourcesError,  # too many connections
    asyncpg.InternalClientError,  # the driver's error for a connection that was closed while idle
)  # fmt: skip
REFUSED = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)
"""Failures of a whole transaction, not of one of its mutations."""
NO_CONNECTION = "The database has no connection left for this server (its operator raises max_connections, or lowers database.pool_max)"
_NOTHING = "nothing was changed: try again"
_FULL = re.compile("too many clients|too many connections|connection slots are reserved|no more connections allowed")
"""Messages of PostgreSQL and of poolers for too many connections. The driver gives no code for them."""


def is_full(error: BaseException) -> bool:
    """Return whether the database refused a connection because it has too many."""
    return isinstance(error, asyncpg.TooManyConnectionsError) or _FULL.search(str(error)) is not None


def unreachable_error(error: BaseException) -> ServiceUnavailable:
    """Build the error for a read whose connection failed or could not be opened."""
    if is_full(error):
        return ServiceUnavailable(f"{NO_CONNECTION}: try again", cause=str(error))
    return ServiceUnavailable("The database does not answer: try again", cause=str(error) or repr(error))


def transaction_refused_error(error: psycopg.Error) -> ServiceUnavailable:
    """Build the error for a transaction that certainly was not committed, with the reason."""
    message = (error.diag.message_primary or str(error)).strip()
    if isinstance(error, psycopg.errors.LockNotAvailable):
        text = f"Another session of the database holds a lock that this write waits for; {_NOTHING}"
    elif isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        text = f"The database is read-only, as a standby is; {_NOTHING} when it accepts writes, or point the server at the primary"
    elif isinstance(error, (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory)):
        text = f"The database has no space left ({message}); {_NOTHING} when it has"
    elif isinstance(error, psycopg.errors.QueryCanceled):
        text = f"The database cancelled a statement of this write ({message}); {_NOTHING}"
    elif is_full(error):
        text = f"{NO_CONNECTION}; {_NOTHING}"
    else:
        text = f"The database does not answer; {_NOTHING}"
    kind = NoSpace if isinstance(error, psycopg.errors.DiskFull) else ServiceUnavailable
    return kind(text, cause=str(error))


def is_certain(error: psycopg.Error, *, closed: bool) -> bool:
    """Return whether a failed COMMIT certainly committed nothing: the database refused it and is still running."""
    return error.sqlstate is not None and not closed and not error.sqlstate.startswith(("08", "57P", "58"))
