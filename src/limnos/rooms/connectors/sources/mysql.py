# SPDX-License-Identifier: Apache-2.0
"""A MySQL or MariaDB server as a catalog: its databases are schemas.

Must not know the allowed addresses: the caller has checked them. Names are matched exactly: access decisions treat
names that differ only by the server's collation as different objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import sqlalchemy as sa
from pymysql.connections import Connection as Driven
from sqlalchemy.schema import CreateSchema

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest, NotEmpty, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources import mysql_tables
from limnos.rooms.connectors.sources.databases import DatabaseSource, no_table, require_columns, require_no_layout
from limnos.rooms.connectors.sources.mysql_types import default_sql
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

_SYSTEM: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_MODE: Final = "NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
"""The SQL mode: backslashes are plain characters in strings, and values that do not fit are refused instead of
truncated.
"""
_TABLE: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_COMMENT, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema"
    " AND TABLE_NAME = :table"
)
_COLUMNS: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT,"
    " COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table ORDER BY"
    " ORDINAL_POSITION"
)
_KEYS: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX"
)
_CHECKS: Final = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS "
    "WHERE CONSTRAINT_SCHEMA = :schema AND TABLE_NAME = :table AND LEVEL = 'Column'"
)
"""The query for CHECK conditions, for MariaDB only; MySQL lists all conditions separately from the columns."""
_CONTENTS: Final = (
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema UNION ALL "
    "SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = :schema UNION ALL "
    "SELECT 1 FROM information_schema.EVENTS WHERE EVENT_SCHEMA = :schema LIMIT 1"
)


class MysqlSource(DatabaseSource):
    """A connector for a MySQL or MariaDB server, whose databases are the catalog's schemas."""

    SCHEMAS = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE true"
    SCHEMA = " AND SCHEMA_NAME = :schema"
    TABLES = (
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
        "WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA = :schema"
    )
    TABLE = " AND TABLE_NAME = :table"

    def __init__(self, url: sa.URL, *, connect: dict[str, object], connections_max: int, late_s: float) -> None:
        super().__init__(url, connect=connect, connections_max=connections_max)
        self._late_s = late_s
        sa.event.listen(self._engine, "connect", self._prepare)

    def _prepare(self, driven: Driven[Any], _record: object) -> None:
        """Set the SQL mode (`NO_BACKSLASH_ESCAPES` among others), and the statement and lock timeouts of a new
        connection.
        """
        late_s = max(1, int(self._late_s))
        mariadb = "mariadb" in (driven.get_server_info() or "").lower()
        late = f"max_statement_time = {late_s}" if mariadb else f"max_execution_time = {late_s * 1000}"
        waits = f"lock_wait_timeout = {max(1, late_s // 2)}, innodb_lock_wait_timeout = {max(1, late_s // 2)}"
        with closing(driven.cursor()) as cursor:
            cursor.execute(f"SET SESSION sql_mode = '{_MODE}', {late}, {waits}")

    def hides(self, schema: str) -> bool:
        """Return whether a schema is a system schema, such as `mysql` or `information_schema`."""
        return schema.lower() in _SYSTEM

    def _require_name(self, connection: sa.Connection, name: str, *, what: str) -> None:
        mysql_tables.name_of(name, what=what)
        if connection.scalar(sa.text("SELECT @@lower_case_table_names")) and name != name.lower():
            raise BadRequest(
                f"{what} {preview_value(name)}: the source keeps names in lower case, so write it in lower case"
            )

    def _load_schema(self, connection: sa.Connection, schema: str) -> SourceSchemaInfo:
        return SourceSchemaInfo(None, {})

    def _create_schema(self, connection: sa.Connection, schema: str, *, comment: str | None) -> None:
        if comment:
            raise UnsupportedOperation("Schemas of this source have no comments: leave it out")
        connection.execute(CreateSchema(schema))

    def _drop_schema(self, connection: sa.Connection, schema: str) -> None:
        if connection.execute(sa.text(_CONTENTS), {"schema": schema}).first() is not None:
            raise NotEmpty(f"Schema {preview_value(schema)} is not empty: drop its content first", kind="namespace")
        super()._drop_schema(connection, schema)

    def _load_table(self, connection: sa.Connection, schema: str, *, table: str) -> SourceTableInfo:
        rows = _rows(connection, _TABLE, schema=schema, table=table)
        columns = self._columns(connection, schema, table=table)
        if not rows or not columns:  # dropped concurrently
            raise no_table(table)
        comment, engine = rows[0]
        keys = mysql_tables.keys_json(_rows(connection, _KEYS, schema=schema, table=table))
        properties = {mysql_tables.ENGINE: str(engine)} if engine else {}
        return SourceTableInfo(
            comment=str(comment) if comment else None,
            columns=[each.to_json() for each in columns],
            indexes=keys,
            properties=properties,
        )

    def _columns(
        self, connection: sa.Connection, schema: str, *, table: str, checked: frozenset[str] = frozenset()
    ) -> list[mysql_tables.MysqlColumn]:
        quoted = _is_mariadb(connection)
        columns = []
        for name, kind, nullable, default, extra, comment, collation in _rows(
            connection, _COLUMNS, schema=schema, table=table
        ):
            columns.append(
                mysql_tables.MysqlColumn(
                    name=name,
                    kind=kind,
                    nullable=nullable == "YES",
                    default=default_sql(default, kind=kind, extra=extra, quoted=quoted),
                    counts="auto_increment" in extra.lower(),
                    comment=comment or "",
                    collation=collation,
                    extra=extra,
                    checked=name in checked,
                    was=name,
                )
            )
        return columns

    def _create_table(self, connection: sa.Connection, schema: str, *, table: str, definition: GravitinoCreate) -> None:
        require_no_layout(definition, properties=True)
        require_columns(definition)
        _execute(connection, mysql_tables.create_statement(schema, table, definition=definition))

    def _alter_table(
        self, connection: sa.Connection, schema: str, *, table: str, changes: Sequence[TableChange]
    ) -> None:
        checks = _rows(connection, _CHECKS, schema=schema, table=table) if _is_mariadb(connection) else []
        columns = self._columns(connection, schema, table=table, checked=frozenset(name for (name,) in checks))
        keys = mysql_tables.keys_json(_rows(connection, _KEYS, schema=schema, table=table))
        draft = mysql_tables.MysqlTableDraft(columns=columns, keys=[str(each["name"]) for each in keys])
        draft.carry_out(changes)
        statement = draft.statement(schema, table)
        if statement is not None:
            _execute(connection, statement)

    def _rename_table(self, connection: sa.Connection, schema: str, *, table: str, target: Levels) -> None:
        self._require_schema(connection, target[0])
        _execute(
            connection,
            f"RENAME TABLE {mysql_tables.quote(schema)}.{mysql_tables.quote(table)} TO"
            f" {mysql_tables.quote(target[0])}.{mysql_tables.quote(target[1])}",
        )


def _is_mariadb(connection: sa.Connection) -> bool:
    return bool(getattr(connection.dialect, "is_mariadb", False))


def _rows(connection: sa.Connection, statement: str, *, schema: str, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on information_schema for exactly this table, since a collation may match other
    names.
    """
    rows = connection.execute(sa.text(statement), {"schema": schema, "table": table}).all()
    return [tuple(row[2:]) for row in rows if row[0] == schema and row[1] == table]


def _execute(connection: sa.Connection, statement: str) -> None:
    """Execute a statement through the driver, so that SQLAlchemy does not interpret `:name` or `%` in it as a
    parameter.
    """
    connection.execution_options(no_parameters=True).exec_driver_sql(statement)
