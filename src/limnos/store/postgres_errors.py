"""What is told when PostgreSQL refuses or does not answer: each cause in words of its own, and always what is certain.

May import `model` and the two drivers.
"""

from __future__ import annotations

import re

import asyncpg
import psycopg

from limnos.model.errors import NoSpace, ServiceUnavailable

NO_TEXT = "A name or another text holds U+0000, which no stored text can: leave it out"
LOST = (
    asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError, TimeoutError,
    asyncpg.OperatorInterventionError,  # it is shutting down, starting up, or was told to give up
    asyncpg.InsufficientResourcesError,  # too many connections
    asyncpg.InternalClientError,  # what its driver says of a connection that was ended while it was idle
)  # fmt: skip
REFUSED = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)
"""Failures that concern a whole transaction and not one of its mutations."""
NO_CONNECTION = "The database answers and has no connection left for this server (whoever runs it raises max_connections, or lowers database.pool_max)"
_NOTHING = "nothing was changed: try again"
_FULL = re.compile("too many clients|too many connections|connection slots are reserved|no more connections allowed")
"""What PostgreSQL and poolers before it say of that; the driver gives a refused connection no code."""


def is_full(error: BaseException) -> bool:
    """Say whether the database refused a connection because it has as many as it takes."""
    return isinstance(error, asyncpg.TooManyConnectionsError) or _FULL.search(str(error)) is not None


def unreachable_error(error: BaseException) -> ServiceUnavailable:
    """Say that a question got no answer, or no connection to be asked on."""
    if is_full(error):
        return ServiceUnavailable(f"{NO_CONNECTION}: try again", cause=str(error))
    return ServiceUnavailable("The database does not answer: try again", cause=str(error) or repr(error))


def transaction_refused_error(error: psycopg.Error) -> ServiceUnavailable:
    """Say why a transaction was certainly not committed."""
    said = (error.diag.message_primary or str(error)).strip()
    if isinstance(error, psycopg.errors.LockNotAvailable):
        text = f"Another session of the database holds a lock that this write waits for; {_NOTHING}"
    elif isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        text = f"The database is read-only, as a standby is; {_NOTHING} when it takes writes, or point the server at the primary"
    elif isinstance(error, (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory)):
        text = f"The database has no room left ({said}); {_NOTHING} when it has"
    elif isinstance(error, psycopg.errors.QueryCanceled):
        text = f"The database gave up a statement of this write ({said}); {_NOTHING}"
    elif is_full(error):
        text = f"{NO_CONNECTION}; {_NOTHING}"
    else:
        text = f"The database does not answer; {_NOTHING}"
    kind = NoSpace if isinstance(error, psycopg.errors.DiskFull) else ServiceUnavailable
    return kind(text, cause=str(error))


def is_certain(error: psycopg.Error, *, closed: bool) -> bool:
    """Say whether a COMMIT that failed certainly committed nothing: the database itself refused it, and lives on."""
    return error.sqlstate is not None and not closed and not error.sqlstate.startswith(("08", "57P", "58"))
