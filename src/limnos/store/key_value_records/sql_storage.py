# SPDX-License-Identifier: Apache-2.0
"""Key-value pairs in one table of SQLite or PostgreSQL, for comparison with key-value databases.

May import `model`, SQLAlchemy, the store's `migrate` and this package's `storage`. Must not know other tables of a
store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Column, Connection, LargeBinary, MetaData, Table, TextClause, create_engine, text
from sqlalchemy.exc import DBAPIError

from limnos.model.errors import ServiceUnavailable
from limnos.store.backends.migrate import engine_url
from limnos.store.key_value_records.storage import KeyValueReader, KeyValueTransaction, prefix_end

ROWS_AT_ONCE: Final = 500
_METADATA: Final = MetaData()
_TABLE: Final = Table(
    "record_pair",
    _METADATA,
    Column("key", LargeBinary, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
_GET = text("SELECT value FROM record_pair WHERE key = :key")
_SCAN = text("SELECT key, value FROM record_pair WHERE key >= :start ORDER BY key LIMIT :rows")
_SCAN_UNTIL = text("SELECT key, value FROM record_pair WHERE key >= :start AND key < :until ORDER BY key LIMIT :rows")
_PUT = text(
    "INSERT INTO record_pair (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_DELETE = text("DELETE FROM record_pair WHERE key = :key")
_CLEAR = text("DELETE FROM record_pair")
_LOCK = text("LOCK TABLE record_pair IN EXCLUSIVE MODE")
_BEGIN: Final = {
    "sqlite": ("BEGIN", "BEGIN IMMEDIATE"),
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN"),
}
"""The statements that begin a read and a write transaction."""
WAIT_S: Final = 30
"""The maximum time that a writer on SQLite waits for another one, in seconds."""


class SqlKeyValueStore:
    """A database given like the server's option `--database`: the path of an SQLite file or a PostgreSQL URL.

    The table is created if it does not exist.
    """

    def __init__(self, database: str) -> None:
        # This class begins transactions itself, so the driver must begin none.
        self._engine = create_engine(engine_url(database), isolation_level="AUTOCOMMIT")
        self._reads, self._writes = (text(begin) for begin in _BEGIN[self._engine.dialect.name])
        self._is_file = self._engine.dialect.name == "sqlite"
        with self._connected() as connection:
            if self._is_file:
                connection.execute(text("PRAGMA journal_mode = WAL"))
            _METADATA.create_all(connection)

    @contextmanager
    def reading(self) -> Iterator[KeyValueReader]:
        """Open a read snapshot."""
        with self._transaction(self._reads) as connection:
            yield _SqlTransaction(connection)

    @contextmanager
    def writing(self) -> Iterator[KeyValueTransaction]:
        """Open a write transaction; other writers wait."""
        with self._transaction(self._writes) as connection:
            if not self._is_file:
                connection.execute(_LOCK)
            yield _SqlTransaction(connection)

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, begin: TextClause) -> Iterator[Connection]:
        with self._connected() as connection:
            connection.execute(begin)
            try:
                yield connection
            except BaseException:
                connection.execute(text("ROLLBACK"))
                raise
            connection.execute(text("COMMIT"))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                if self._is_file:
                    connection.execute(text(f"PRAGMA busy_timeout = {WAIT_S * 1000}"))
                    connection.execute(text("PRAGMA synchronous = FULL"))
                yield connection
        except DBAPIError as error:
            raise ServiceUnavailable(f"The database failed: {error.orig}") from error


class _SqlTransaction:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: bytes) -> bytes | None:
        row = self._connection.execute(_GET, {"key": key}).first()
        return None if row is None else bytes(row[0])

    def scan(self, prefix: bytes, *, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        until = prefix_end(prefix)
        statement, fixed = (_SCAN, {}) if until is None else (_SCAN_UNTIL, {"until": until})
        # One lower bound: given two, a database may scan from the smaller one.
        start = max(prefix, after + b"\0" if after else b"")
        while True:
            rows = self._connection.execute(statement, {"start": start, "rows": ROWS_AT_ONCE, **fixed}).all()
            for key, value in rows:
                yield bytes(key), bytes(value)
            if len(rows) < ROWS_AT_ONCE:
                return
            start = bytes(rows[-1][0]) + b"\0"

    def put(self, key: bytes, value: bytes) -> None:
        self._connection.execute(_PUT, {"key": key, "value": value})

    def delete(self, key: bytes) -> bool:
        return self._connection.execute(_DELETE, {"key": key}).rowcount > 0

    def clear(self) -> None:
        self._connection.execute(_CLEAR)
