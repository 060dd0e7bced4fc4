# SPDX-License-Identifier: Apache-2.0
"""Searches a store for damage: pages that the database cannot read, and documents that are not what was written.

Must not know servers. SQLite checks its file with `quick_check`, which reads every page. On both databases, every
metadata document is read and compared with its digest. PostgreSQL's own program pg_amcheck checks its tables and
indexes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from limnos.model.entities import MetadataDocument
from limnos.store.backends.direct_connection import DirectConnection, direct_connection
from limnos.store.objects.documents import DAMAGE_PAGE, intact_document_of
from limnos.store.sql import Params, Row, Sql

NAMED_MAX: Final = 20
"""The maximum number of damaged documents that are named."""
DOCUMENTS_AT_ONCE: Final = 100
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


Inspect: TypeAlias = Callable[[MetadataDocument], None]


def _ignore(_: MetadataDocument) -> None:
    """Do nothing with a document."""


class Damage(NamedTuple):
    """A damaged part of a store, and what was found there."""

    part: str
    finding: str


def first_damage(path: Path) -> Damage | None:
    """Look for damage at the beginning of each table of an SQLite file, in milliseconds. None if there is none."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return next(_damage_by_table(connection, lambda table: _first_row(connection, table)), None)


def find_damage(database: str, *, inspect: Inspect = _ignore) -> list[Damage]:
    """Read a whole store, an SQLite file or a PostgreSQL database, and return its damage. `inspect` is called with each
    metadata document that is not damaged.
    """
    return _find_on_postgres(database, inspect) if "://" in database else _find_on_sqlite(Path(database), inspect)


def _find_on_sqlite(path: Path, inspect: Inspect) -> list[Damage]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = lambda text: text.decode(errors="replace")  # other text than was written is damage
        try:
            is_whole = _quick_check(connection) is None
        except sqlite3.DatabaseError:
            is_whole = False
        damage = [] if is_whole else list(_damage_by_table(connection, lambda table: _quick_check(connection, table)))
        if not is_whole and not damage:
            damage = [Damage("the file", "quick_check reports damage outside the tables")]
        try:
            damage += _damaged_documents(
                lambda statement, params: connection.execute(statement.sqlite, statement.values(params)).fetchall(),
                inspect,
            )
        except sqlite3.DatabaseError:
            if not damage:  # else the damaged table is named already
                raise
        return damage


def _damage_by_table(connection: sqlite3.Connection, look: Callable[[str], str | None]) -> Iterator[Damage]:
    """Yield the damage of each table by a function that returns its finding or fails."""
    try:
        tables = [row[0] for row in connection.execute(_TABLES)]
    except sqlite3.DatabaseError as error:
        yield Damage("the list of tables", _finding(error))
        return
    for table in tables:
        try:
            finding = look(table)
        except sqlite3.DatabaseError as error:
            finding = _finding(error)
        if finding is not None:
            yield Damage(f"table {table}", finding)


def _finding(error: sqlite3.DatabaseError) -> str:
    """Return the text of an error that means damage. Raises all others, such as that of a locked file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        raise error
    return str(error)


def _first_row(connection: sqlite3.Connection, table: str) -> None:
    connection.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall()


def _quick_check(connection: sqlite3.Connection, table: str | None = None) -> str | None:
    """Return the first finding of `quick_check`, on one line, or None."""
    of_table = "" if table is None else f"('{table}')"
    finding: str = connection.execute(f"PRAGMA quick_check{of_table}").fetchone()[0]
    return None if finding == "ok" else _line(finding)


def _find_on_postgres(url: str, inspect: Inspect) -> list[Damage]:
    with direct_connection(url, in_transaction=False) as connection:
        return list(_damaged_documents_on_postgres(connection, inspect))


def _damaged_documents_on_postgres(connection: DirectConnection, inspect: Inspect) -> Iterator[Damage]:
    import psycopg

    try:
        yield from _damaged_documents(connection.rows, inspect)
    except psycopg.DatabaseError as error:
        yield Damage("table document", _line(str(error)))


def _line(text: str) -> str:
    return " ".join(text.split())


def _damaged_documents(rows: Callable[[Sql, Params], list[Row]], inspect: Inspect) -> Iterable[Damage]:
    """Yield each document whose digest differs, the first `NAMED_MAX` of them. Passes the others to `inspect`."""
    after, count = -1, 0
    while page := rows(DAMAGE_PAGE, {"after": after, "limit": DOCUMENTS_AT_ONCE}):
        after = page[-1][0]
        for row in page:
            document = intact_document_of(row)
            if document is not None:
                inspect(document)
            else:
                count += 1
                yield Damage(f"the metadata of object {row[0]}", "it is not what was written: its digest differs")
                if count == NAMED_MAX:
                    return
