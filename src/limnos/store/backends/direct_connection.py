# SPDX-License-Identifier: Apache-2.0
"""`direct_connection`: a few statements on a store outside a server, by the database's own driver.

Must not know SQLAlchemy, whose import takes longer than these statements (decision record 0331).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from limnos.store.backends import APPLICATION
from limnos.store.file_modes import private_database
from limnos.store.sql import Params, Row, Sql, Value

CONNECT_S = 5
"""The maximum time that a check waits for a database that accepts connections but does not answer, in seconds."""
START_CONNECT_S = 300
"""The same for the start of a node: a database under load may take minutes to open a session."""


class DirectConnection:
    """Executes statements on one connection."""

    def __init__(self, cursor: Any, *, is_sqlite: bool) -> None:  # noqa: ANN401 - the cursor of either driver
        self._cursor = cursor
        self._is_sqlite = is_sqlite

    def rows(self, statement: Sql, params: Params) -> list[Row]:
        """Execute a statement, and return the rows that it selects or returns."""
        if self._is_sqlite:
            self._cursor.execute(statement.sqlite, statement.values(params))
        else:
            self._cursor.execute(statement.psycopg, dict(params))
        return [tuple(row) for row in self._cursor.fetchall()] if self._cursor.description else []

    def value(self, statement: Sql, **params: Value) -> Any:  # noqa: ANN401 - a column of any type
        """Execute a statement, and return the first column of its first row; None without rows."""
        rows = self.rows(statement, params)
        return rows[0][0] if rows else None


@contextmanager
def direct_connection(
    database: str, *, connect_s: int = CONNECT_S, in_transaction: bool = True
) -> Iterator[DirectConnection]:
    """Connect to the SQLite file of a path, or to the PostgreSQL of a `postgresql://` URL.

    The statements of the `with` block are one transaction unless `in_transaction` is False. A session of PostgreSQL
    must open within `connect_s` seconds, unless the URL says otherwise. Raises the errors of the driver.
    """
    if "://" in database:
        import psycopg

        with (
            psycopg.connect(
                **postgres_settings(database, connect_s=connect_s), autocommit=not in_transaction
            ) as session,
            session.cursor() as cursor,
        ):
            yield DirectConnection(cursor, is_sqlite=False)
        return
    private_database(Path(database))
    with closing(sqlite3.connect(database, isolation_level=None)) as file, closing(file.cursor()) as cursor:
        if in_transaction:
            file.execute("BEGIN")
        yield DirectConnection(cursor, is_sqlite=True)
        if in_transaction:
            file.execute("COMMIT")


def postgres_settings(url: str, *, connect_s: int) -> dict[str, Any]:
    """Return the settings of a session of PostgreSQL: those of its URL, with this program's defaults."""
    from psycopg.conninfo import conninfo_to_dict

    return {"connect_timeout": connect_s, "application_name": APPLICATION} | conninfo_to_dict(url)
