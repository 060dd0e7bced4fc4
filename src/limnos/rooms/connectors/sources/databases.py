# SPDX-License-Identifier: Apache-2.0
"""Relational databases as catalogs: connections, schemas and tables by name, with one transaction for each call.

Must not know `postgresql` and `mysql`, which implement the differences between databases. Each call has its own
deadlines, on a connection of this catalog's pool. System schemas are hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import ClassVar, Final, Protocol
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy.schema import DropSchema, DropTable

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import AlreadyExists, BadRequest, NotFound, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources.columns import name_of
from limnos.rooms.connectors.sources.database_errors import translate_database_errors
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

IDLE_S: Final = 300
"""The age in seconds after which a connection is replaced."""


class _DriverConnection(Protocol):
    """The method of a DB-API connection that `close` of a source needs."""

    def close(self) -> None:
        """Close the connection, also while another thread uses it."""


class DatabaseSource(ABC):
    """The base class of relational databases as catalogs: a server or one of its databases, with schemas of one
    level.
    """

    SCHEMAS: ClassVar[str]
    """The query for the names of all schemas."""
    SCHEMA: ClassVar[str]
    """A condition to append to SCHEMAS: names that the database considers equal to `:schema`."""
    TABLES: ClassVar[str]
    """The query for schema and name of each table, without views, in the schemas that the database considers equal to
    `:schema`.
    """
    TABLE: ClassVar[str]
    """A condition to append to TABLES: names that the database considers equal to `:table`."""

    def __init__(self, url: sa.URL, *, connect: dict[str, object], connections_max: int) -> None:
        self._engine = sa.create_engine(
            url,
            connect_args=connect,
            pool_size=connections_max,
            max_overflow=0,
            pool_pre_ping=True,
            pool_recycle=IDLE_S,
            pool_timeout=float(str(connect.get("connect_timeout", 5))),
            hide_parameters=True,
        )
        self._drivers: WeakSet[_DriverConnection] = WeakSet()
        sa.event.listen(self._engine, "connect", lambda connection, _: self._drivers.add(connection))

    # -- implemented by each database ------------------------------------------------------------------------------

    @abstractmethod
    def hides(self, schema: str) -> bool:
        """Return whether a schema is a system schema, such as `information_schema`, which the catalog does not list."""

    @abstractmethod
    def _load_schema(self, connection: sa.Connection, schema: str) -> SourceSchemaInfo:
        """Return the comment of an existing schema, if the database stores comments of schemas."""

    @abstractmethod
    def _create_schema(self, connection: sa.Connection, schema: str, *, comment: str | None) -> None:
        """Create a schema. Raises UnsupportedOperation for a comment that the database cannot store."""

    @abstractmethod
    def _load_table(self, connection: sa.Connection, schema: str, *, table: str) -> SourceTableInfo:
        """Return the columns, keys and comment of a table. Raises NotFound if it was dropped concurrently."""

    @abstractmethod
    def _create_table(self, connection: sa.Connection, schema: str, *, table: str, definition: GravitinoCreate) -> None:
        """Create a table atomically. Raises BadRequest for an invalid definition, UnsupportedOperation for a feature
        that the database lacks.
        """

    @abstractmethod
    def _alter_table(
        self, connection: sa.Connection, schema: str, *, table: str, changes: Sequence[TableChange]
    ) -> None:
        """Apply the changes atomically. Raises BadRequest for an invalid change, UnsupportedOperation for a change that
        the database lacks.
        """

    @abstractmethod
    def _rename_table(self, connection: sa.Connection, schema: str, *, table: str, target: Levels) -> None:
        """Rename a table. Raises AlreadyExists, and UnsupportedOperation for a move that the database lacks."""

    def _require_name(self, connection: sa.Connection, name: str, *, what: str) -> None:
        """Raise BadRequest for a new name that the database would truncate or change."""
        name_of(name, dialect=connection.dialect, what=what)

    def _drop_schema(self, connection: sa.Connection, schema: str) -> None:
        """Drop a schema without its objects. The database refuses to drop a schema that is not empty. Raises
        NotEmpty.
        """
        connection.execute(DropSchema(schema))

    # -- the source itself -----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Run `SELECT 1`, which shows that the connection and the credentials work. Raises SourceFailed otherwise."""
        with self._read_connection("the database") as connection:
            connection.execute(sa.select(sa.literal(1)))

    def close(self) -> None:
        """Close the pool, and connections that abandoned threads still use."""
        self._engine.dispose()
        for connection in list(self._drivers):
            with suppress(Exception):  # closed regardless of its state
                connection.close()

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the names of all schemas except system schemas, sorted. Raises UnsupportedOperation for a `parent`."""
        if parent:
            raise UnsupportedOperation("Schemas of this source do not nest")
        with self._read_connection("the database") as connection:
            names = connection.scalars(sa.text(self.SCHEMAS)).all()
        return sorted(name for name in names if not self.hides(name))

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the database has a schema of exactly this name that is not a system schema."""
        single = _single(schema)
        with self._read_connection(f"Schema {preview_value(single)}") as connection:
            return self._has_schema(connection, single)

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Read a schema and its comment from the database. Raises NotFound."""
        single = _single(schema)
        with self._read_connection(f"Schema {preview_value(single)}") as connection:
            self._require_schema(connection, single)
            return self._load_schema(connection, single)

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Run CREATE SCHEMA (MySQL: CREATE DATABASE). Raises AlreadyExists, BadRequest for a system schema's name,
        UnsupportedOperation for properties.
        """
        single = _single(schema)
        if properties:
            raise UnsupportedOperation("Schemas of this source have no properties: leave them out")
        self._refuse_system(single)
        with self._write_transaction(f"Schema {preview_value(single)}") as connection:
            self._require_name(connection, single, what="Schema")
            self._create_schema(connection, single, comment=comment)

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Raise UnsupportedOperation, because schemas cannot be changed, or NotFound if the schema does not exist."""
        single = _single(schema)
        with self._read_connection(f"Schema {preview_value(single)}") as connection:
            self._require_schema(connection, single)
        raise UnsupportedOperation("Schemas of this source cannot be changed")

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty schema; the database itself checks that it is empty."""
        single = _single(schema)
        self._refuse_system(single)
        with self._write_transaction(f"Schema {preview_value(single)}", container=True) as connection:
            self._require_schema(connection, single)
            self._drop_schema(connection, single)

    def _has_schema(self, connection: sa.Connection, schema: str) -> bool:
        """Return whether a schema with exactly this name exists: a database's collation may treat different names as
        equal.
        """
        if self.hides(schema):
            return False
        return schema in connection.scalars(sa.text(self.SCHEMAS + self.SCHEMA), {"schema": schema}).all()

    def _require_schema(self, connection: sa.Connection, schema: str) -> None:
        if not self._has_schema(connection, schema):
            raise NotFound(f"Schema {preview_value(schema)} does not exist in the source", kind="namespace")

    def _refuse_system(self, schema: str) -> None:
        if self.hides(schema):
            raise BadRequest(f"Schema {preview_value(schema)} is reserved by the database: choose another name")

    # -- tables ----------------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """Return the names of a schema's tables, without views, sorted. Raises NotFound for the schema."""
        single = _single(schema)
        with self._read_connection(f"Schema {preview_value(single)}") as connection:
            self._require_schema(connection, single)
            rows = connection.execute(sa.text(self.TABLES), {"schema": single}).all()
        return sorted(name for result, name in rows if result == single)

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Return whether a schema has a table of exactly this name; False for a view."""
        single = _single(schema)
        with self._read_connection(f"Table {preview_value(table)}") as connection:
            return self._has_table(connection, schema=single, table=table)

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Reflect a table: its columns, keys and comment. Raises NotFound."""
        single = _single(schema)
        with self._read_connection(f"Table {preview_value(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            return self._load_table(connection, single, table=table)

    def table_create(self, schema: Levels, table: str, *, definition: GravitinoCreate) -> None:
        """Run CREATE TABLE, with comments and keys, in one transaction. Raises AlreadyExists, NotFound for the schema,
        BadRequest for an invalid definition.
        """
        single = _single(schema)
        with self._write_transaction(f"Table {preview_value(table)}") as connection:
            self._require_schema(connection, single)
            self._require_name(connection, table, what="Table")
            if self._has_table(connection, schema=single, table=table):
                raise AlreadyExists(f"Table {preview_value(table)} already exists in the source", kind="table")
            self._create_table(connection, single, table=table, definition=definition)

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Run the ALTER statements of all changes in one transaction. Raises NotFound, BadRequest for an invalid
        change, UnsupportedOperation for a change that the database lacks.
        """
        single = _single(schema)
        with self._write_transaction(f"Table {preview_value(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            self._alter_table(connection, single, table=table, changes=changes)

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Rename a table, also into another schema. Raises NotFound, AlreadyExists, UnsupportedOperation for a move
        that the database lacks.
        """
        single, name = _single(schema), target[-1]
        with self._write_transaction(f"Table {preview_value(name)}") as connection:
            self._require_name(connection, name, what="Table")
            self._require_table(connection, schema=single, table=table)
            self._rename_table(connection, single, table=table, target=(_single(target[:-1]), name))

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table unless another object depends on it. `purge` raises UnsupportedOperation: there are no files."""
        single = _single(schema)
        if purge:
            raise UnsupportedOperation(
                "Tables of this source have no files to purge: drop the table, which deletes its rows"
            )
        with self._write_transaction(f"Table {preview_value(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            connection.execute(DropTable(sa.Table(table, sa.MetaData(), schema=single)))

    def _has_table(self, connection: sa.Connection, *, schema: str, table: str) -> bool:
        """Return whether a table, not a view, of exactly this name exists."""
        if self.hides(schema):
            return False
        arguments = {"schema": schema, "table": table}
        return (schema, table) in map(tuple, connection.execute(sa.text(self.TABLES + self.TABLE), arguments).all())

    def _require_table(self, connection: sa.Connection, *, schema: str, table: str) -> None:
        if not self._has_table(connection, schema=schema, table=table):
            self._require_schema(connection, schema)  # raises NotFound for the schema if that is missing
            raise no_table(table)

    # -- connections -----------------------------------------------------------------------------------------------

    @contextmanager
    def _read_connection(self, about: str) -> Iterator[sa.Connection]:
        with translate_database_errors(about), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write_transaction(self, about: str, *, container: bool = False) -> Iterator[sa.Connection]:
        with translate_database_errors(about, container=container, changes=True), self._engine.begin() as connection:
            yield connection


def _single(schema: Levels) -> str:
    """Return the single name of a schema. Raises NotFound for a nested name."""
    if len(schema) != 1:
        raise NotFound(
            f"Schemas of this source do not nest: {preview_value(schema[0])} cannot contain schemas", kind="namespace"
        )
    return schema[0]


def no_table(table: str) -> NotFound:
    """Return the NotFound error (kind `table`) for a table that the source lacks."""
    return NotFound(f"Table {preview_value(table)} does not exist in the source", kind="table")


def require_no_layout(create: GravitinoCreate, *, properties: bool = False) -> None:
    """Raise UnsupportedOperation for a request with a file layout (partitioning, sort orders, distribution) or
    properties, which databases lack.

    `properties`: table properties are allowed.
    """
    stated_fields = {
        "properties": create.properties and not properties,
        "partitioning": create.partitioning,
        "sortOrders": create.sort_orders,
        "distribution": (create.distribution or {}).get("strategy") not in (None, "none", "NONE"),
    }
    for name, value in stated_fields.items():
        if value:
            raise UnsupportedOperation(f"Tables of this source have no {name}: leave it out")


def require_columns(create: GravitinoCreate) -> None:
    """Raise BadRequest for a new table without columns."""
    if not create.columns:
        raise BadRequest("A table needs at least one column: columns is empty")
