# SPDX-License-Identifier: Apache-2.0
"""Converts startup errors to messages for the operator: the failure, its cause, and the next step.

It recognizes failures of directories by error numbers and of databases by messages, because the classes of database
drivers stay in `store`. An unknown exception is a bug and is not converted.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from limnos.config.settings import Settings
from limnos.model.errors import CannotStart, LimnosError
from limnos.model.extras import extra_of, install_hint
from limnos.model.secrets import hide_secrets, passwords_of_url
from limnos.store.backends.damage import Damage
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")
NEWER = "wrong-schema"
OTHER_DIRECTORY = "name another directory with --data DIR"
DAMAGED = "the file is damaged"
RESTORE = "restore a backup with 'limnos server restore FILE': the damaged store is kept beside it"
_DRIVERS = ("sqlite3", "psycopg", "asyncpg", "sqlalchemy")

_FILES = {
    errno.EEXIST: ("a file has that name", OTHER_DIRECTORY),
    errno.ENOTDIR: ("a part of its path is a file", OTHER_DIRECTORY),
    errno.EACCES: ("this user may not write there", f"give it to the user who runs the server, or {OTHER_DIRECTORY}"),
    errno.EPERM: ("this user may not write there", f"give it to the user who runs the server, or {OTHER_DIRECTORY}"),
    errno.EROFS: ("the file system is read-only", f"mount it writable, or {OTHER_DIRECTORY}"),
    errno.ENOSPC: ("the disk is full", f"make room, or {OTHER_DIRECTORY}"),
}
"""Meanings of errors of the data directory, with advice, by error number."""

_DATABASES: tuple[tuple[str, str, str], ...] = (
    (
        r"password authentication failed|no password supplied|password is required",
        "the database refused user or password",
        "correct both in --database postgresql://USER:PASSWORD@HOST/NAME (a PGPASSFILE works, too)",
    ),
    (
        r'database ".*" does not exist',
        "the server answers, but has no database of that name",
        "create it there with 'createdb NAME', or name another in --database",
    ),
    (r'role ".*" does not exist', "the database has no such user", "create the user there with 'createuser NAME'"),
    (r"pg_hba\.conf", "the database's pg_hba.conf does not let this host or user in", "add a line for it there"),
    (
        r"too many clients|too many connections|connection slots are reserved|no more connections allowed",
        "the database has no connection left",
        "raise max_connections there, or lower database.pool_max on other nodes",
    ),
    (
        r"resolve|translate host name|Name or service not known|nodename nor servname",
        "the host's name cannot be resolved",
        "correct the host in --database",
    ),
    (
        r"refused|timed? ?out|timeout|No such file or directory|unreachable|not known|closed the connection",
        "no database answers there",
        "start it, or correct host and port in --database; 'limnos server check' tries again",
    ),
    (r"read-only transaction|is in recovery", "it is a read-only copy", "name the primary in --database"),
    (
        r"permission denied for (table|sequence)",
        "the database's user has no rights on the store's tables",
        "as their owner, grant it SELECT, INSERT, UPDATE and DELETE on all tables and USAGE on all sequences there",
    ),
    (
        r"permission denied",
        "the database's user may not create tables",
        "run 'limnos server migrate' as the owner of the tables, or give it the right to create in its schema",
    ),
    (r"disk image is malformed", DAMAGED, RESTORE),
    (r"file is not a database", "the file is not an SQLite database", f"move it away, or {OTHER_DIRECTORY}"),
    (
        r"readonly database",
        "the file cannot be written",
        f"give it to the user who runs the server, or {OTHER_DIRECTORY}",
    ),
    (r"unable to open database", "the file cannot be opened", f"check its permissions, or {OTHER_DIRECTORY}"),
    (r"database is locked", "another program has locked it", "end that program, then start again"),
    (r"disk is full", "the disk is full", f"make room, or {OTHER_DIRECTORY}"),
)
"""Messages of databases (regular expressions), their meanings, and advice."""


class StartPhase:
    """Marks whether startup is over; later failures are not converted to startup errors."""

    is_over = False


@contextmanager
def explain_startup_errors(settings: Settings, database: str) -> Iterator[StartPhase]:
    """Convert recognized failures during startup to CannotStart. The traceback is logged at debug level."""
    start = StartPhase()
    try:
        yield start
    except Exception as error:
        cannot_start = None if start.is_over else startup_error_of(error, settings, database)
        if cannot_start is None:
            raise
        log.debug("cannot start", exc_info=error)
        raise cannot_start from None


def startup_error_of(error: Exception, settings: Settings, database: str) -> CannotStart | None:
    """Convert an exception to a CannotStart; None for an unknown exception."""
    if isinstance(error, CannotStart):
        return error
    if isinstance(error, LimnosError):
        return _newer_store_error(error, database) if error.code == NEWER else None
    if type(error).__module__.partition(".")[0] in _DRIVERS:
        return _database_error(_first_line(error), database)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return _database_error(str(error), database)
    if isinstance(error, OSError):
        return _directory_error(error, settings)
    if isinstance(error, ModuleNotFoundError) and (extra := extra_of(error.name or "")) is not None:
        return missing_package_error(f"{error.name} is needed by these settings", extra)
    return None


def missing_package_error(why: str, extra: str) -> CannotStart:
    """Return the error for a missing package, with advice to install the extra that has it."""
    return CannotStart("A package is not installed here", why=why, advice=install_hint(extra))


def damaged_store_error(damage: Damage, database: str) -> CannotStart:
    """Return the error for a damaged part of a store, with advice to restore a backup."""
    restore = "restore a backup of the database" if "://" in database else RESTORE
    return CannotStart(
        f"The store {masked_address(database)} is damaged: {damage.part}", why=damage.finding, advice=restore
    )


def _newer_store_error(error: LimnosError, database: str) -> CannotStart:
    return CannotStart(
        f"The store {masked_address(database)} cannot be used by this release",
        why=error.message,
        advice="start the newer release, or restore a backup that was made before the upgrade",
    )


def _directory_error(error: OSError, settings: Settings) -> CannotStart:
    text = error.strerror or str(error)
    why, advice = _FILES.get(error.errno or 0, (text, OTHER_DIRECTORY))
    file_text = "" if error.filename in (None, settings.server.data) else f" ({error.filename})"
    return CannotStart(f"The data directory {settings.server.data} cannot be used{file_text}", why=why, advice=advice)


def _database_error(text: str, database: str) -> CannotStart:
    words = hide_secrets(text, passwords_of_url(database))
    for pattern, meaning, advice in _DATABASES:
        if re.search(pattern, words, re.IGNORECASE):
            return _store_error(database, f"{meaning} ({words})", advice)
    return _store_error(database, words, "correct that, then run 'limnos server check' again")


def _store_error(database: str, why: str, advice: str) -> CannotStart:
    return CannotStart(f"The store {masked_address(database)} cannot be opened", why=why, advice=advice)


def _first_line(error: Exception) -> str:
    """Return the first line of an exception's message, or of the driver's if SQLAlchemy wraps it in `orig`."""
    message: object = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(message).__name__


def masked_address(database: str) -> str:
    """Return a store's database URL without user, password and query; a path unchanged."""
    scheme, mark, rest = database.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if mark else database
