# SPDX-License-Identifier: Apache-2.0
"""Tables of Iceberg's JDBC catalog (JdbcCatalog of Java, SqlCatalog of PyIceberg) in PostgreSQL or SQLite.

Must not create a catalog's tables, nor change their schema. Both versions of the schema are read: V0 has tables only,
V1 says in `iceberg_type` which rows are views. A call ends after a deadline, also if the database says nothing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    CommitConflict,
    InvalidTable,
    LimnosError,
    NotFound,
    SourceFailed,
    SourceRefused,
    StateUnknown,
)
from limnos.model.extras import missing_part
from limnos.names.path import Levels
from limnos.sources.catalogs.entries import CatalogEntry, EntryKind, quote_word
from limnos.sources.catalogs.jdbc_addresses import parse_database

CONNECTIONS_MAX: Final = 8
_NAMES_MAX: Final = 20
"""The maximum number of catalog names in a message."""
_TEXT_MAX: Final = 300
_EXISTS: Final = ("exists", "true")
"""A property that both implementations store so that a namespace without properties has a row."""
_TABLES: Final = sa.table(
    "iceberg_tables",
    *map(
        sa.column,
        ("catalog_name", "table_namespace", "table_name", "metadata_location", "previous_metadata_location"),
    ),
    sa.column("iceberg_type"),
)
_PROPERTIES: Final = sa.table(
    "iceberg_namespace_properties",
    *map(sa.column, ("catalog_name", "namespace", "property_key", "property_value")),
)


class JdbcCatalog:
    """One of the catalogs in a database.

    Args:
        uri: The database, as a JDBC URL or a URL of SQLAlchemy.
        name: The catalog's name; None for the only one in the database.
        password: The password, if the URL has none.
        timeout_s: The time in seconds after which a call ends.

    Raises:
        BadRequest: The URL is malformed, or the database has no such catalog, or several and none is named.
        SourceFailed: The database does not answer.
        SourceRefused: It refuses the sign-in, or is no database of a catalog.
    """

    def __init__(self, uri: str, *, name: str | None, password: str | None, timeout_s: float) -> None:
        database = parse_database(uri, password=password)
        self.label = database.label
        self._timeout_s = timeout_s
        arguments: dict[str, object] = {"timeout": timeout_s}
        if database.url.get_backend_name() == "postgresql":
            arguments = {"connect_timeout": max(2, int(timeout_s)), "application_name": "limnos", **database.arguments}
        try:
            self._engine = sa.create_engine(
                database.url,
                connect_args=arguments,
                pool_size=CONNECTIONS_MAX,
                max_overflow=0,
                pool_timeout=timeout_s,
                hide_parameters=True,
            )
        except ModuleNotFoundError as error:
            raise BadRequest(missing_part("Catalogs in PostgreSQL need", ("postgres",))) from error
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _distrust)
        try:
            self._has_types, self._has_properties = self._read_schema()
            self._name = self._choose(name)
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def namespaces(self) -> list[Levels]:
        """Return the namespaces of tables and of properties, and those above them."""
        queries = [sa.select(_TABLES.c.table_namespace).where(_TABLES.c.catalog_name == self._name)]
        if self._has_properties:
            queries.append(sa.select(_PROPERTIES.c.namespace).where(_PROPERTIES.c.catalog_name == self._name))
        with self._connection() as connection:
            dotted_names = {str(each) for query in queries for each in connection.scalars(query.distinct())}
        levels = [tuple(each.split(".")) for each in dotted_names if each]
        return sorted({each[:depth] for each in levels for depth in range(1, len(each) + 1)})

    def namespace_properties(self, namespace: Levels) -> dict[str, str]:
        """Return a namespace's properties; none for one that exists by its tables alone."""
        if not self._has_properties:
            return {}
        query = sa.select(_PROPERTIES.c.property_key, _PROPERTIES.c.property_value).where(
            _PROPERTIES.c.catalog_name == self._name, _PROPERTIES.c.namespace == ".".join(namespace)
        )
        with self._connection() as connection:
            rows = connection.execute(query).all()
        return {str(key): str(value) for key, value in rows if (key, value) != _EXISTS}

    def names(self, namespace: Levels) -> list[tuple[str, EntryKind]]:
        """Return the names of the tables and views of a namespace, sorted."""
        query = self._select(_TABLES.c.table_name).where(*self._namespace_conditions(namespace))
        with self._connection() as connection:
            rows = connection.execute(query).all()
        return sorted((str(row[0]), _kind_of(row[1])) for row in rows)

    def entry(self, path: Levels) -> CatalogEntry:
        """Read a row of `iceberg_tables`."""
        query = self._select(_TABLES.c.metadata_location).where(*self._is(path))
        with self._connection() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise _no_table(path)
        kind = _kind_of(row[1])
        if kind == "other":
            return CatalogEntry(kind, note=f"an object of the type {quote_word(str(row[1]))}")
        if not isinstance(row[0], str) or not row[0]:
            raise InvalidTable("the database does not say which metadata file it has")
        return CatalogEntry(kind, row[0])

    def replace(self, path: Levels, location: str, *, expected: str, properties: Mapping[str, str]) -> None:
        """Update the row if it has the expected file, as both implementations commit."""
        del properties  # the metadata file alone has them
        change = (
            sa.update(_TABLES)
            .where(*self._is(path), _TABLES.c.metadata_location == expected)
            .values(metadata_location=location, previous_metadata_location=expected)
        )
        with self._connection(changes=True) as connection:
            count = connection.execute(change).rowcount
            connection.commit()
        if count != 1:
            self.entry(path)  # raises NotFound if the row is gone
            raise CommitConflict("another client committed to it meanwhile")

    def retire(self, path: Levels, *, name: str) -> str:
        """Rename the row: a client that commits by the former name changes no row, and fails."""
        change = sa.update(_TABLES).where(*self._is(path)).values(table_name=name)
        with self._connection(changes=True) as connection:
            try:
                count = connection.execute(change).rowcount
            except IntegrityError as error:
                raise AlreadyExists(f"{name} already exists there", kind="table") from error
            connection.commit()
        if count != 1:
            raise _no_table(path)
        return name

    def _read_schema(self) -> tuple[bool, bool]:
        """Return whether rows have a type (V1), and whether there are properties of namespaces."""
        with self._connection() as connection:
            tables = set(sa.inspect(connection).get_table_names()) | set(sa.inspect(connection).get_view_names())
            if _TABLES.name not in tables:
                raise SourceRefused(
                    f"{self.label} is no Iceberg JDBC catalog: it has no table {_TABLES.name}; check the database, and"
                    " currentSchema if the tables are in another schema"
                )
            columns = connection.execute(sa.text(f"SELECT * FROM {_TABLES.name} WHERE 1 = 0")).keys()  # noqa: S608 - a constant
        return "iceberg_type" in columns, _PROPERTIES.name in tables

    def _choose(self, name: str | None) -> str:
        queries = [sa.select(_TABLES.c.catalog_name)]
        if self._has_properties:
            queries.append(sa.select(_PROPERTIES.c.catalog_name))
        with self._connection() as connection:
            names = sorted({str(each) for query in queries for each in connection.scalars(query.distinct())})
        name_list = ", ".join(quote_word(each) for each in names[:_NAMES_MAX]) or "none"
        if name is not None and name not in names:
            raise BadRequest(f"{self.label} has no catalog '{quote_word(name)}'; it has: {name_list}")
        if name is None and len(names) != 1:
            raise BadRequest(f"{self.label} has {len(names)} catalogs: name one with --warehouse; it has: {name_list}")
        return names[0] if name is None else name

    def _select(self, column: sa.ColumnClause[Any]) -> sa.Select[Any]:
        return sa.select(column, _TABLES.c.iceberg_type if self._has_types else sa.null())

    def _namespace_conditions(self, namespace: Levels) -> tuple[sa.ColumnElement[bool], ...]:
        return _TABLES.c.catalog_name == self._name, _TABLES.c.table_namespace == ".".join(namespace)

    def _is(self, path: Levels) -> tuple[sa.ColumnElement[bool], ...]:
        return *self._namespace_conditions(path[:-1]), _TABLES.c.table_name == path[-1]

    @contextmanager
    def _connection(self, *, changes: bool = False) -> Iterator[sa.Connection]:
        """Yield a connection whose statements are ended after the deadline."""
        try:
            with self._engine.connect() as connection:
                timer = Timer(self._timeout_s, _interrupt, (connection.connection.driver_connection,))
                timer.daemon = True
                timer.start()
                try:
                    yield connection
                finally:
                    timer.cancel()
        except LimnosError:
            raise
        except SQLAlchemyError as error:
            raise self._error(error, changes=changes) from error

    def _error(self, error: SQLAlchemyError, *, changes: bool) -> LimnosError:
        text = _first_line(str(error.orig) if isinstance(error, DBAPIError) and error.orig else str(error))
        if isinstance(error, DBAPIError) and error.connection_invalidated and changes:
            return StateUnknown(f"{self.label} did not answer, and may have made the change: {text}")
        state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
        if "FATAL:" in text or state[:2] in ("28", "3D", "42") or "not a database" in text or "readonly" in text:
            return SourceRefused(f"{self.label} refuses: {text}")
        return SourceFailed(f"{self.label} does not answer: {text}")


def _kind_of(word: object) -> EntryKind:
    """Return the kind of a row; rows without a type are tables."""
    if word is None or word == "TABLE":
        return "table"
    return "view" if word == "VIEW" else "other"


def _no_table(path: Levels) -> NotFound:
    return NotFound(f"{path[-1]} does not exist there", kind="table")


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"


def _distrust(connection: Any, _record: object) -> None:  # noqa: ANN401 - a driver's connection
    """Keep a database that others wrote from running functions by views and triggers."""
    connection.execute("PRAGMA trusted_schema = OFF")


def _interrupt(driver: Any) -> None:  # noqa: ANN401 - a driver's connection
    """End the statement that a connection executes in another thread."""
    with suppress(Exception):  # it may have ended by itself
        if hasattr(driver, "interrupt"):
            driver.interrupt()
            return
        copy = socket.socket(fileno=os.dup(driver.fileno()))
        with copy:
            copy.shutdown(socket.SHUT_RDWR)
