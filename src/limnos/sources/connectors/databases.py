"""A relational database as a catalog: SQLAlchemy's inspection to look, its DDL and Alembic's operations to change.

May import SQLAlchemy, this package, `formats` for the shapes of requests, `model`, and `names` for paths. Each call is one transaction with deadlines of its own, on a
connection of this catalog's pool. System schemas are not shown. What differs between databases is in `Manner`.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.schema import CreateSchema, CreateTable, DropSchema, DropTable, SetColumnComment, SetTableComment

from limnos.formats.iceberg.json_types import shown
from limnos.model.errors import AlreadyExists, BadRequest, NotFound, Unsupported
from limnos.sources.connectors.alterations import PRIMARY, Alteration, index_parts, indexes_told
from limnos.sources.connectors.capabilities import SchemaTold, TableTold
from limnos.sources.connectors.columns import Names, column_of, column_told, name_of
from limnos.sources.connectors.failures import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from limnos.formats.gravitino.tables import Asked, TableChange
    from limnos.formats.iceberg.json_types import Json
    from limnos.names.path import Levels

IDLE_S: Final = 300
"""How old a connection gets before another one takes its place."""


class _Closes(Protocol):
    """A driver's connection."""

    def close(self) -> None:
        """Close it."""
        ...


class Manner(NamedTuple):
    """What one database has of its own."""

    hides: Callable[[str], bool]
    """Whether a schema is the system's."""
    schema_comment: str
    """The statement that answers a schema's comment, as `:schema`."""
    comment_on_schema: str
    """The statement that sets it, with places for the quoted name and the literal."""


class Database:
    """A database, one of whose schemas is a schema here."""

    def __init__(self, url: sa.URL, *, manner: Manner, connect: dict[str, object], connections_max: int) -> None:
        self._manner = manner
        self._engine = sa.create_engine(
            url, connect_args=connect, pool_size=connections_max, max_overflow=0, pool_pre_ping=True, pool_recycle=IDLE_S,
            pool_timeout=float(str(connect.get("connect_timeout", 5))), hide_parameters=True,
        )  # fmt: skip
        self._drivers: WeakSet[_Closes] = WeakSet()
        sa.event.listen(self._engine, "connect", lambda connection, _: self._drivers.add(connection))
        known: Mapping[str, Callable[..., sa.types.TypeEngine[Any]]] = getattr(
            self._engine.dialect, "ischema_names", {}
        )
        self._engine.dialect.ischema_names = Names(known)  # type: ignore[attr-defined]

    def check(self) -> None:
        """Ask for nothing, on a connection."""
        with self._looking("the database") as connection:
            connection.execute(sa.select(sa.literal(1)))

    def close(self) -> None:
        """Close the pool, and what a thread still has in hands that was given up."""
        self._engine.dispose()
        for connection in list(self._drivers):
            with suppress(Exception):  # it is let go, whatever state it is in
                connection.close()

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return all schemas but the system's."""
        if parent:
            raise Unsupported("Schemas of this source do not nest")
        with self._looking("the database") as connection:
            names = sa.inspect(connection).get_schema_names()
        return sorted(name for name in names if not self._manner.hides(name))

    def schema_exists(self, schema: Levels) -> bool:
        """Say whether there is one that is not the system's."""
        single = _single(schema)
        with self._looking(f"Schema {shown(single)}") as connection:
            return self._has_schema(connection, single)

    def schema_load(self, schema: Levels) -> SchemaTold:
        """Return a schema's comment."""
        single = _single(schema)
        with self._looking(f"Schema {shown(single)}") as connection:
            self._require_schema(connection, single)
            comment = connection.scalar(sa.text(self._manner.schema_comment), {"schema": single})
        return SchemaTold(comment, {})

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Make a schema."""
        single = _single(schema)
        if properties:
            raise Unsupported("Schemas of this source have no properties: leave them out")
        name_of(single, dialect=self._engine.dialect, what="Schema")
        self._refuse_system(single)
        with self._changing(f"Schema {shown(single)}") as connection:
            connection.execute(CreateSchema(single))
            if comment:
                connection.exec_driver_sql(self._comment_on(single, comment))

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Say that schemas have nothing to change."""
        single = _single(schema)
        with self._looking(f"Schema {shown(single)}") as connection:
            self._require_schema(connection, single)
        raise Unsupported("Schemas of this source have nothing that can be changed here")

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty schema; the database itself says whether it is."""
        single = _single(schema)
        self._refuse_system(single)
        with self._changing(f"Schema {shown(single)}", container=True) as connection:
            self._require_schema(connection, single)
            connection.execute(DropSchema(single))

    def _comment_on(self, schema: str, comment: str) -> str:
        dialect = self._engine.dialect
        text = str(sa.literal(comment).compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
        return self._manner.comment_on_schema.format(dialect.identifier_preparer.quote_identifier(schema), text)

    def _has_schema(self, connection: sa.Connection, schema: str) -> bool:
        return not self._manner.hides(schema) and sa.inspect(connection).has_schema(schema)

    def _require_schema(self, connection: sa.Connection, schema: str) -> None:
        if not self._has_schema(connection, schema):
            raise NotFound(f"Schema {shown(schema)} does not exist in the source", kind="namespace")

    def _refuse_system(self, schema: str) -> None:
        if self._manner.hides(schema):
            raise BadRequest(f"Schema {shown(schema)} is the database's own: choose another name")

    # -- tables ----------------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """Return the tables of a schema; views are none."""
        single = _single(schema)
        with self._looking(f"Schema {shown(single)}") as connection:
            self._require_schema(connection, single)
            return sorted(sa.inspect(connection).get_table_names(single))

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Say whether a schema has a table."""
        single = _single(schema)
        with self._looking(f"Table {shown(table)}") as connection:
            return self._has_table(connection, schema=single, table=table)

    def table_load(self, schema: Levels, table: str) -> TableTold:
        """Return a table with its columns, keys and comment."""
        single = _single(schema)
        with self._looking(f"Table {shown(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            inspector = sa.inspect(connection)
            try:
                columns = inspector.get_columns(table, schema=single)
                comment = inspector.get_table_comment(table, schema=single)["text"]
                indexes = indexes_told(inspector, table, schema=single)
            except NoSuchTableError:  # dropped since
                raise _no_table(table) from None
        return TableTold(comment, [column_told(each, dialect=self._engine.dialect) for each in columns], indexes, {})

    def table_create(self, schema: Levels, table: str, *, asked: Asked) -> None:
        """Make a table with its comments and keys."""
        single = _single(schema)
        made = self._table(single, table, asked=asked)
        with self._changing(f"Table {shown(table)}") as connection:
            self._require_schema(connection, single)
            if self._has_table(connection, schema=single, table=table):
                raise AlreadyExists(f"Table {shown(table)} already exists in the source", kind="table")
            connection.execute(CreateTable(made))
            if made.comment is not None:
                connection.execute(SetTableComment(made))
            for column in made.columns:
                if column.comment is not None:
                    connection.execute(SetColumnComment(column))

    def _table(self, schema: str, table: str, *, asked: Asked) -> sa.Table:
        _refuse_layout(asked)
        if not asked.columns:
            raise BadRequest("A table has at least one column: columns is empty")
        dialect = self._engine.dialect
        name_of(table, dialect=dialect, what="Table")
        columns = [column_of(each, dialect=dialect) for each in asked.columns]
        names = [each.name for each in columns]
        if len(set(names)) != len(names):
            raise BadRequest("Two columns have the same name: give each its own")
        keys = [_key(each, names) for each in asked.indexes]
        return sa.Table(table, sa.MetaData(), *columns, *keys, schema=schema, comment=asked.comment)

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Carry out changes in one transaction."""
        single = _single(schema)
        with self._changing(f"Table {shown(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            Alteration(connection, schema=single, table=table).carry_out(changes)

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Give a table another name in its schema."""
        single, name = _single(schema), target[-1]
        if target[:-1] != schema:
            raise Unsupported("Tables of this source stay in their schema: leave newSchemaName out")
        name_of(name, dialect=self._engine.dialect, what="Table")
        with self._changing(f"Table {shown(name)}") as connection:
            self._require_table(connection, schema=single, table=table)
            Alteration(connection, schema=single, table=table).rename(name)

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table, unless something else rests on it. There are no files to purge."""
        single = _single(schema)
        if purge:
            raise Unsupported("Tables of this source have no files to purge: drop the table, which takes its rows away")
        with self._changing(f"Table {shown(table)}") as connection:
            self._require_table(connection, schema=single, table=table)
            connection.execute(DropTable(sa.Table(table, sa.MetaData(), schema=single)))

    def _has_table(self, connection: sa.Connection, *, schema: str, table: str) -> bool:
        """Say so by the list's rule: a view is none."""
        return not self._manner.hides(schema) and table in sa.inspect(connection).get_table_names(schema)

    def _require_table(self, connection: sa.Connection, *, schema: str, table: str) -> None:
        self._require_schema(connection, schema)
        if not self._has_table(connection, schema=schema, table=table):
            raise _no_table(table)

    # -- connections -----------------------------------------------------------------------------------------------

    @contextmanager
    def _looking(self, about: str) -> Iterator[sa.Connection]:
        with told(about), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _changing(self, about: str, *, container: bool = False) -> Iterator[sa.Connection]:
        with told(about, container=container, changes=True), self._engine.begin() as connection:
            yield connection


def _single(schema: Levels) -> str:
    """Return the one name of a schema. Raises NotFound, as none lies in another."""
    if len(schema) != 1:
        raise NotFound(f"Schemas of this source do not nest: {shown(schema[0])} holds none", kind="namespace")
    return schema[0]


def _no_table(table: str) -> NotFound:
    return NotFound(f"Table {shown(table)} does not exist in the source", kind="table")


def _refuse_layout(asked: Asked) -> None:
    """Refuse what says how files lie: a database has none. Raises Unsupported."""
    stated = {
        "properties": asked.properties, "partitioning": asked.partitioning, "sortOrders": asked.sort_orders,
        "distribution": (asked.distribution or {}).get("strategy") not in (None, "none", "NONE"),
    }  # fmt: skip
    for name, value in stated.items():
        if value:
            raise Unsupported(f"Tables of this source have no {name}: leave it out")


def _key(index: Json, names: Sequence[object]) -> sa.PrimaryKeyConstraint | sa.UniqueConstraint:
    name, columns = index_parts(index)
    for column in columns:
        if column not in names:
            raise BadRequest(f"The table has no column {shown(column)}")
    primary = str(index.get("indexType")).upper() == PRIMARY
    return sa.PrimaryKeyConstraint(*columns, name=name) if primary else sa.UniqueConstraint(*columns, name=name)
