# SPDX-License-Identifier: Apache-2.0
"""Makes a store ready for this release before a node serves it, and answers questions about a store without a server.

Must not know servers. A store that has the newest schema needs neither SQLAlchemy nor Alembic.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from limnos.store.backends.direct_connection import START_CONNECT_S, direct_connection
from limnos.store.backends.schema_revisions import current_revision, head_revision
from limnos.store.sql import Sql

_ID_EPOCH_S = 1_600_000_000
EPOCHS = 2**52
"""The number of possible epochs."""
_RENEW = Sql("UPDATE store SET epoch = :epoch, next_id = CASE WHEN next_id < :first THEN :first ELSE next_id END")
_RENEW_SEQUENCE = Sql("SELECT setval('limnos_id', greatest(:first, last_value + 1), false) FROM limnos_id")
_JOURNAL_MODE = Sql("PRAGMA journal_mode")
_MAY_CREATE = Sql("SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)")
_AUTHENTICATION = Sql("SELECT authentication FROM store WHERE one = 1")
_REVOKE = Sql("UPDATE token SET revoked = TRUE WHERE NOT revoked RETURNING 1")
_SESSIONS = Sql(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND application_name = current_setting('application_name')"
)
"""The number of other sessions whose application has the name of this one: those of servers."""


def migrate(database: str) -> tuple[str | None, str]:
    """Migrate a store, given by an SQLite path or a `postgresql://` URL. Returns the revisions before and after.

    Raises WrongSchema for a store of a newer release, or of a version before the first release.
    """
    head = head_revision()
    if current_revision(database, connect_s=START_CONNECT_S) == head and _has_several_readers(database):
        return head, head
    from limnos.store.backends.upgrades import upgrade_store

    return upgrade_store(database), head


def _has_several_readers(database: str) -> bool:
    """Return whether readers and a writer may use the database at once: an SQLite file that was restored from a backup
    is not in WAL mode, which is set under the lock of migrations.
    """
    if "://" in database:
        return True
    with direct_connection(database) as connection:
        return bool(connection.value(_JOURNAL_MODE) == "wal")


def migrate_rooms(database: str, packages: Mapping[str, str]) -> None:
    """Migrate the tables of rooms of other packages, in the given order: room → package with its migrations.

    Raises WrongSchema for tables of a newer version of the room.
    """
    if not packages:
        return
    from limnos.store.backends.upgrades import upgrade_rooms

    upgrade_rooms(database, packages)


def stored_authentication(database: str) -> str | None:
    """Return the mode of authentication that a migrated store keeps from an earlier release; None for a newer store."""
    with direct_connection(database, connect_s=START_CONNECT_S) as connection:
        mode: str | None = connection.value(_AUTHENTICATION)
        return mode


def may_create_tables(database: str) -> bool:
    """Return whether the user of a `postgresql://` URL may create tables in the schema that the store uses."""
    with direct_connection(database) as connection:
        return bool(connection.value(_MAY_CREATE))


def is_in_use(database: str) -> bool:
    """Return whether a server has the store open: another session of PostgreSQL, or another process with the file.

    A heartbeat is no evidence: a dump has those of the moment at which it was made. An SQLite store that no server has
    open leaves WAL mode, until it is migrated or opened.
    """
    if "://" in database:
        with direct_connection(database) as connection:
            return bool(connection.value(_SESSIONS))
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
    with direct_connection(database) as connection:
        connection.rows(_RENEW, {"epoch": secrets.randbelow(EPOCHS), "first": first})
        if "://" in database:
            connection.rows(_RENEW_SEQUENCE, {"first": first})


def revoke_tokens(database: str) -> int:
    """Revoke every token of a restored store.

    Returns how many were valid. Nodes discard cached tokens because the epoch is new.
    """
    with direct_connection(database) as connection:
        return len(connection.rows(_REVOKE, {}))
