# SPDX-License-Identifier: Apache-2.0
"""Runs of Alembic: a store gets the schema of this release, exactly once if several nodes start at the same time.

Imported only by a start that finds another schema: SQLAlchemy and Alembic take an eighth of a start's CPU.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError

from limnos.store.backends import schema_revisions
from limnos.store.backends.direct_connection import START_CONNECT_S, postgres_settings
from limnos.store.backends.schema_revisions import WrongSchema, head_revision, require_known
from limnos.store.file_modes import FILE, private_database

LOCK_S = 2
"""The time that an upgrade waits for a lock of PostgreSQL, and then for the next attempt, in seconds."""
ATTEMPTS_MAX = 225
"""The number of attempts: 15 minutes, longer than any read in parts holds a transaction."""
_LOCK_NOT_AVAILABLE = "55P03"
_LOCK = 0x4C494D4E


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(schema_revisions.VERSION_FOLDERS[0].parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(str(folder) for folder in schema_revisions.VERSION_FOLDERS))
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


def _engine(database: str) -> Engine:
    """Build an engine whose transactions include schema changes: a start that is killed leaves no half-migrated store.

    SQLite supports that, but its driver begins a transaction only at the first row written.
    """
    if "://" in database:
        settings = postgres_settings(database, connect_s=START_CONNECT_S)
        import psycopg

        return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(**settings))
    private_database(Path(database))
    engine = create_engine(URL.create("sqlite", database=database))
    event.listen(engine, "connect", _disable_driver_transactions)
    event.listen(engine, "begin", _begin)
    return engine


def _disable_driver_transactions(connection: DBAPIConnection, _: object) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def upgrade_store(database: str) -> str | None:
    """Upgrade a store to the schema of this release, under a lock. Returns its revision before, None for an empty
    database. Raises WrongSchema.
    """
    engine = _engine(database)
    try:
        with engine.connect() as connection, _migration_lock(connection):
            before = _current(connection)
            connection.rollback()
            require_known(before)
            if before != head_revision():
                _upgrade(connection)
            return before
    finally:
        engine.dispose()


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


def upgrade_rooms(database: str, packages: Mapping[str, str]) -> None:
    """Upgrade the tables of rooms of other packages, in the given order: room → package with its migrations.

    Each room has a chain of its own, whose position is in the table `room_NAME_version`. The kernel's chain neither
    knows nor needs it, so a room may be uninstalled and installed again. Raises WrongSchema for tables of a newer
    version of the room.
    """
    engine = _engine(database)
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
    config.set_main_option("version_locations", str(Path(importlib.import_module(package).__file__ or "").parent))
    table = f"room_{room}_version"
    config.attributes |= {"connection": connection, "version_table": table}
    position = MigrationContext.configure(connection, opts={"version_table": table}).get_current_revision()
    known_revisions = {each.revision for each in ScriptDirectory.from_config(config).walk_revisions()}
    if position is not None and position not in known_revisions:
        raise WrongSchema(f"The tables of room {room} have schema {position}, made by a newer version of that package")
    command.upgrade(config, "head")
