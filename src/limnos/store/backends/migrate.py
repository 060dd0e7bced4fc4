# SPDX-License-Identifier: Apache-2.0
"""Schema migrations: upgrades a store to the schema of this release, exactly once if several nodes start at the same
time.

Must not know servers: it runs before a node serves.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError

from limnos.model.errors import LimnosError
from limnos.store.backends import APPLICATION
from limnos.store.file_modes import FILE, private_database

LOCK_S = 2
"""The time that an upgrade waits for a lock of PostgreSQL, and then for the next attempt, in seconds."""
ATTEMPTS_MAX = 225
"""The number of attempts: 15 minutes, longer than any read in parts holds a transaction."""
_LOCK_NOT_AVAILABLE = "55P03"
_LOCK = 0x4C494D4E
CONNECT_S = 5
"""The maximum time that a check waits for a database that accepts connections but does not answer, in seconds."""
START_CONNECT_S = 300
"""The same for the start of a node: a database under load may take minutes to open a session."""
_ID_EPOCH_S = 1_600_000_000
EPOCHS = 2**52
"""The number of possible epochs."""
_RENEW = text("UPDATE store SET epoch = :epoch, next_id = CASE WHEN next_id < :first THEN :first ELSE next_id END")
_RENEW_SEQUENCE = text("SELECT setval('limnos_id', greatest(:first, last_value + 1), false) FROM limnos_id")

_MAY_CREATE = text("SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)")
_AUTHENTICATION = text("SELECT authentication FROM store WHERE one = 1")
_REVOKE = text("UPDATE token SET revoked = TRUE WHERE NOT revoked")
_SESSIONS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND application_name = current_setting('application_name')"
)
"""The number of other sessions whose application has the name of this one: those of servers."""


class WrongSchema(LimnosError):
    """The store has the schema of a newer release, or of a version before the first release."""

    code = "wrong-schema"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    return config


@contextmanager
def _migration_lock(connection: Connection) -> Iterator[None]:
    """Hold a lock during the `with` block, so that only one node migrates at a time.

    After an error the lock ends with the session, which the caller closes: another statement in a failed transaction
    would raise an error of its own in place of the first.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
        connection.commit()
        yield
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
        connection.commit()
        return
    path = f"{connection.engine.url.database}.migrate"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _enable_wal(connection)
        yield


def _enable_wal(connection: Connection) -> None:
    """Set the file's journal mode to WAL, which is stored in the file.

    Call it under the migration lock: two connections that change the mode at once do not wait for each other.
    """
    connection.connection.cursor().execute("PRAGMA journal_mode = WAL")  # bare: not within a transaction


def engine_url(database: str, *, connect_s: int = CONNECT_S) -> URL:
    """Return SQLAlchemy's URL of a database: PostgreSQL with the shipped driver, or an SQLite file for a path.

    A session of PostgreSQL must open within `connect_s` seconds, unless the URL says otherwise.
    """
    if "://" not in database:
        return URL.create("sqlite", database=database)
    url = make_url(database).set(drivername="postgresql+psycopg")
    defaults = {"connect_timeout": str(connect_s), "application_name": APPLICATION}
    return url.update_query_dict({name: value for name, value in defaults.items() if name not in url.query})


def _engine(database: str, *, connect_s: int = CONNECT_S) -> Engine:
    """Build an engine whose transactions include schema changes: a start that is killed leaves no half-migrated store.

    SQLite supports that, but its driver begins a transaction only at the first row written. `connect_s` is that of
    `engine_url`.
    """
    if "://" not in database:
        private_database(Path(database))
    engine = create_engine(engine_url(database, connect_s=connect_s))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _disable_driver_transactions)
        event.listen(engine, "begin", _begin)
    return engine


def _disable_driver_transactions(connection: DBAPIConnection, _: object) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def head_revision() -> str:
    """Return the schema revision of this release."""
    return _revisions()[0]


@cache
def _revisions() -> tuple[str, frozenset[str]]:
    """Return the newest revision of this release, and all revisions of its migrations.

    Cached: reading them takes as long as a migration.
    """
    scripts = ScriptDirectory.from_config(_config())
    return scripts.get_current_head() or "", frozenset(each.revision for each in scripts.walk_revisions())


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def current_revision(database: str) -> str | None:
    """Return the schema revision of a store, or None for an empty database."""
    engine = _engine(database)
    try:
        with engine.connect() as connection:
            return _current(connection)
    finally:
        engine.dispose()


def migrate(database: str) -> tuple[str | None, str]:
    """Migrate a store, given by an SQLite path or a `postgresql://` URL. Returns the revisions before and after.

    Raises WrongSchema for a store of a newer release, or of a version before the first release.
    """
    head, known = _revisions()
    engine = _engine(database, connect_s=START_CONNECT_S)
    try:
        with engine.connect() as connection, _migration_lock(connection):
            before = _current(connection)
            connection.rollback()
            if before is not None and before not in known:
                raise _wrong_schema(before, head=head, first=min(known))
            if before != head:
                _upgrade(connection)
            return before, head
    finally:
        engine.dispose()


def _wrong_schema(before: str, *, head: str, first: str) -> WrongSchema:
    if before < first:
        return WrongSchema(
            f"The store has schema {before}, made by a version before release 0.1.0, which no release upgrades: with"
            " that version, export each metalake ('limnos export NAME > NAME.export'), then start with an empty store,"
            " and import them ('limnos import NAME.export --into NAME')"
        )
    return WrongSchema(
        f"The store has schema {before}, made by a newer release; this one supports {head}: start the newer one"
    )


def _upgrade(connection: Connection) -> None:
    """Upgrade the schema in one transaction.

    On PostgreSQL, a transaction that reads for long, such as an export, keeps the locks that the upgrade needs, and
    requests of running nodes wait behind the upgrade. So it waits for a lock for `LOCK_S` only, then lets the requests
    go on, and begins again. Raises OperationalError after `ATTEMPTS_MAX` attempts.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_S}s'"))
                config = _config()
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
            return
        except OperationalError as error:
            if attempt == ATTEMPTS_MAX or getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            time.sleep(LOCK_S)


def migrate_rooms(database: str, packages: Mapping[str, str]) -> None:
    """Migrate the tables of rooms of other packages, in the given order: room → package with its migrations.

    Each room has a chain of its own, whose position is in the table `room_NAME_version`. The kernel's chain neither
    knows nor needs it, so a room may be uninstalled and installed again. Raises WrongSchema for tables of a newer
    version of the room.
    """
    if not packages:
        return
    engine = _engine(database, connect_s=START_CONNECT_S)
    try:
        with engine.connect() as connection, _migration_lock(connection):
            for room, package in packages.items():
                connection.rollback()
                with connection.begin():
                    _migrate_room(connection, room, package=package)
    finally:
        engine.dispose()


def _migrate_room(connection: Connection, room: str, *, package: str) -> None:
    config = _config()
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(Path(importlib.import_module(package).__file__ or "").parent))
    table = f"room_{room}_version"
    config.attributes |= {"connection": connection, "version_table": table}
    position = MigrationContext.configure(connection, opts={"version_table": table}).get_current_revision()
    known = {each.revision for each in ScriptDirectory.from_config(config).walk_revisions()}
    if position is not None and position not in known:
        raise WrongSchema(f"The tables of room {room} have schema {position}, made by a newer version of that package")
    command.upgrade(config, "head")


def stored_authentication(database: str) -> str | None:
    """Return the mode of authentication that a migrated store keeps from an earlier release; None for a newer store."""
    engine = _engine(database, connect_s=START_CONNECT_S)
    try:
        with engine.connect() as connection:
            mode: str | None = connection.execute(_AUTHENTICATION).scalar()
            return mode
    finally:
        engine.dispose()


def may_create_tables(database: str) -> bool:
    """Return whether the user of a `postgresql://` URL may create tables in the schema that the store uses."""
    engine = _engine(database)
    try:
        with engine.connect() as connection:
            return bool(connection.execute(_MAY_CREATE).scalar())
    finally:
        engine.dispose()


def is_in_use(database: str) -> bool:
    """Return whether a server has the store open: another session of PostgreSQL, or another process with the file.

    A heartbeat is no evidence: a dump has those of the moment at which it was made. An SQLite store that no server has
    open leaves WAL mode, until it is migrated or opened.
    """
    if "://" in database:
        engine = _engine(database)
        try:
            with engine.connect() as connection:
                return bool(connection.execute(_SESSIONS).scalar())
        finally:
            engine.dispose()
    if not Path(database).exists():
        return False
    with closing(sqlite3.connect(database, isolation_level=None, timeout=1)) as file:
        try:
            file.execute("PRAGMA journal_mode = DELETE")  # succeeds only if no other connection has the file open
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return True
            raise
    return False


def renew_epoch(database: str) -> None:
    """Store a new random epoch and a new next id after a restore: views start empty, and no id is used twice.

    Two restores of one backup get different epochs. Ids continue from a number derived from the wall clock, about a
    million for each second, and never below the highest id in the backup.
    """
    first = (int(time.time()) - _ID_EPOCH_S) << 20
    params = {"epoch": secrets.randbelow(EPOCHS), "first": first}
    engine = _engine(database)
    try:
        with engine.begin() as connection:
            connection.execute(_RENEW, params)
            if connection.dialect.name == "postgresql":
                connection.execute(_RENEW_SEQUENCE, {"first": first})
    finally:
        engine.dispose()


def revoke_tokens(database: str) -> int:
    """Revoke every token of a restored store.

    Returns how many were valid. Nodes discard cached tokens because the epoch is new.
    """
    engine = _engine(database)
    try:
        with engine.begin() as connection:
            return connection.execute(_REVOKE).rowcount
    finally:
        engine.dispose()
