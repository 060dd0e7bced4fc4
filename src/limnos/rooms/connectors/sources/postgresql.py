# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL database as a catalog: reads it with SQLAlchemy's inspection, and changes it with DDL and Alembic's
operations.

Must not know the allowed addresses: the caller has checked them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.schema import CreateSchema, CreateTable, SetColumnComment, SetTableComment

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources.columns import DialectTypes, column_json, column_of
from limnos.rooms.connectors.sources.databases import DatabaseSource, no_table, require_columns, require_no_layout
from limnos.rooms.connectors.sources.table_alterations import PRIMARY, DatabaseAlteration, index_parts, indexes_json
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

_COMMENT = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :schema"
_COMMENTED = "COMMENT ON SCHEMA {} IS {}"


class PostgresqlSource(DatabaseSource):
    """A connector for one PostgreSQL database, whose schemas are the catalog's schemas."""

    SCHEMAS = "SELECT nspname FROM pg_namespace WHERE true"
    SCHEMA = " AND nspname = :schema"
    TABLES = (
        "SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        "WHERE relkind IN ('r', 'p') AND relpersistence != 't' AND nspname = :schema"
    )
    TABLE = " AND relname = :table"

    def __init__(self, url: sa.URL, *, connect: dict[str, object], connections_max: int) -> None:
        super().__init__(url, connect=connect, connections_max=connections_max)
        type_makers: Mapping[str, Callable[..., sa.types.TypeEngine[Any]]] = getattr(
            self._engine.dialect, "ischema_names", {}
        )
        self._engine.dialect.ischema_names = DialectTypes(type_makers)  # type: ignore[attr-defined]

    def hides(self, schema: str) -> bool:
        """Return whether a schema is a system schema: `information_schema`, or a name that begins with `pg_`."""
        return schema == "information_schema" or schema.startswith("pg_")

    def _load_schema(self, connection: sa.Connection, schema: str) -> SourceSchemaInfo:
        return SourceSchemaInfo(connection.scalar(sa.text(_COMMENT), {"schema": schema}), {})

    def _create_schema(self, connection: sa.Connection, schema: str, *, comment: str | None) -> None:
        connection.execute(CreateSchema(schema))
        if comment:
            dialect = connection.dialect
            text = str(sa.literal(comment).compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            connection.exec_driver_sql(_COMMENTED.format(dialect.identifier_preparer.quote_identifier(schema), text))

    def _load_table(self, connection: sa.Connection, schema: str, *, table: str) -> SourceTableInfo:
        inspector = sa.inspect(connection)
        try:
            columns = inspector.get_columns(table, schema=schema)
            comment = inspector.get_table_comment(table, schema=schema)["text"]
            indexes = indexes_json(inspector, table, schema=schema)
        except NoSuchTableError:  # dropped concurrently
            raise no_table(table) from None
        return SourceTableInfo(
            comment=comment,
            columns=[column_json(each, dialect=connection.dialect) for each in columns],
            indexes=indexes,
            properties={},
        )

    def _create_table(self, connection: sa.Connection, schema: str, *, table: str, definition: GravitinoCreate) -> None:
        result = _table(connection, schema, table=table, definition=definition)
        connection.execute(CreateTable(result))
        if result.comment is not None:
            connection.execute(SetTableComment(result))
        for column in result.columns:
            if column.comment is not None:
                connection.execute(SetColumnComment(column))

    def _alter_table(
        self, connection: sa.Connection, schema: str, *, table: str, changes: Sequence[TableChange]
    ) -> None:
        DatabaseAlteration(connection, schema=schema, table=table).carry_out(changes)

    def _rename_table(self, connection: sa.Connection, schema: str, *, table: str, target: Levels) -> None:
        if target[:-1] != (schema,):
            raise UnsupportedOperation("Tables of this source cannot move to another schema: leave newSchemaName out")
        DatabaseAlteration(connection, schema=schema, table=table).rename(target[-1])


def _table(connection: sa.Connection, schema: str, *, table: str, definition: GravitinoCreate) -> sa.Table:
    require_no_layout(definition)
    require_columns(definition)
    columns = [column_of(each, dialect=connection.dialect) for each in definition.columns]
    names = [each.name for each in columns]
    if len(set(names)) != len(names):
        raise BadRequest("Two columns have the same name: give each its own")
    keys = [_key(each, names) for each in definition.indexes]
    return sa.Table(table, sa.MetaData(), *columns, *keys, schema=schema, comment=definition.comment)


def _key(index: Json, names: Sequence[object]) -> sa.PrimaryKeyConstraint | sa.UniqueConstraint:
    name, columns = index_parts(index)
    for column in columns:
        if column not in names:
            raise BadRequest(f"The table has no column {preview_value(column)}")
    primary = str(index.get("indexType")).upper() == PRIMARY
    return sa.PrimaryKeyConstraint(*columns, name=name) if primary else sa.UniqueConstraint(*columns, name=name)
