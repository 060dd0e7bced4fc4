# SPDX-License-Identifier: Apache-2.0
"""Changes of a database's table: Gravitino's changes as Alembic's operations, one after the other in a transaction.

Must not know pools: a connection is passed in. Changes that databases lack (properties, positions of columns) are
refused before any change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from limnos.formats.gravitino import tables as gravitino_tables
from limnos.formats.gravitino.tables import TableChange
from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.connectors.sources.columns import column_of, default_of, name_of, require_counting, type_of

PRIMARY: Final = "PRIMARY_KEY"
UNIQUE: Final = "UNIQUE_KEY"


class DatabaseAlteration:
    """Alters one table in an open transaction."""

    def __init__(self, connection: sa.Connection, *, schema: str, table: str) -> None:
        self._connection = connection
        self._dialect = connection.dialect
        self._schema, self._table = schema, table
        self._operations = Operations(MigrationContext.configure(connection))

    def carry_out(self, changes: Sequence[TableChange]) -> None:
        """Apply all changes. Raises BadRequest for an invalid change, UnsupportedOperation for a change that databases
        lack; the caller then rolls back.
        """
        for change in changes:
            refuse(change)
        for change in changes:
            self._do(change)

    def rename(self, name: str) -> None:
        """Run `ALTER TABLE … RENAME`, or the dialect's equivalent, within the transaction."""
        self._operations.rename_table(self._table, name, schema=self._schema)

    def _do(self, change: TableChange) -> None:
        match change:
            case gravitino_tables.UpdateTableComment(comment):
                self._comment(comment)
            case gravitino_tables.AddColumn(field_name=path):
                self._add(change, name=flat(path))
            case gravitino_tables.RenameColumn(old_field_name=path, new_field_name=new):
                self._alter(flat(path), new_column_name=name_of(new, dialect=self._dialect))
            case gravitino_tables.UpdateColumnDefaultValue(field_name=path, new_default_value=value):
                default = None if value is None else default_of(value, column=flat(path))
                self._alter(flat(path), server_default=default)
            case gravitino_tables.UpdateColumnType(field_name=path, new_type=kind):
                self._alter(flat(path), type_=type_of(kind, column=flat(path), dialect=self._dialect))
            case gravitino_tables.UpdateColumnComment(field_name=path, new_comment=comment):
                self._alter(flat(path), comment=comment)
            case gravitino_tables.UpdateColumnNullability(field_name=path, nullable=nullable):
                self._alter(flat(path), nullable=nullable)
            case gravitino_tables.UpdateColumnAutoIncrement(field_name=path, auto_increment=counts):
                self._count(flat(path), counts=counts)
            case gravitino_tables.DeleteColumn(field_name=path, if_exists=if_exists):
                self._delete(flat(path), if_exists=if_exists)
            case gravitino_tables.AddTableIndex(index=index):
                self._add_index(index)
            case gravitino_tables.DeleteTableIndex(name=name, if_exists=if_exists):
                self._delete_index(name, if_exists=if_exists)

    def _comment(self, comment: str | None) -> None:
        if comment is None:
            self._operations.drop_table_comment(self._table, schema=self._schema)
        else:
            self._operations.create_table_comment(self._table, comment, schema=self._schema)

    def _add(self, change: gravitino_tables.AddColumn, *, name: str) -> None:
        fields: Json = {
            "name": name,
            "type": change.type,
            "comment": change.comment,
            "nullable": change.nullable,
            "autoIncrement": change.auto_increment,
            "defaultValue": change.default_value,
        }
        self._operations.add_column(self._table, column_of(fields, dialect=self._dialect), schema=self._schema)

    def _alter(self, column: str, **change: object) -> None:
        self._operations.alter_column(self._table, column, schema=self._schema, **change)  # type: ignore[arg-type]

    def _count(self, column: str, *, counts: bool) -> None:
        result = next((each for each in self._columns() if each["name"] == column), None)
        if result is None:
            raise BadRequest(f"The table has no column {preview_value(column)}")
        if counts == (result.get("identity") is not None):
            return
        require_counting(result["type"], column=column)
        was, now = (False, sa.Identity()) if counts else (sa.Identity(), None)
        self._alter(column, server_default=now, existing_server_default=was)

    def _delete(self, column: str, *, if_exists: bool) -> None:
        if if_exists and all(each["name"] != column for each in self._columns()):
            return
        self._operations.drop_column(self._table, column, schema=self._schema)

    def _columns(self) -> list[sa.engine.interfaces.ReflectedColumn]:
        return sa.inspect(self._connection).get_columns(self._table, schema=self._schema)

    def _add_index(self, index: Json) -> None:
        name, columns = index_parts(index)
        if str(index.get("indexType")).upper() == PRIMARY:
            self._operations.create_primary_key(name, self._table, columns, schema=self._schema)
        else:
            self._operations.create_unique_constraint(name, self._table, columns, schema=self._schema)

    def _delete_index(self, name: str, *, if_exists: bool) -> None:
        results = [
            each["name"] for each in indexes_json(sa.inspect(self._connection), self._table, schema=self._schema)
        ]
        if name in results:
            self._operations.drop_constraint(name, self._table, schema=self._schema)
        elif not if_exists:
            raise BadRequest(f"The table has no primary key and no unique key {preview_value(name)}")


def flat(path: tuple[str, ...]) -> str:
    """Return the name of a top-level column. Raises BadRequest for the path of a nested field."""
    if len(path) != 1 or not path[0]:
        raise BadRequest("A column of a database must be named by one part: it has no nested columns")
    return path[0]


def refuse(change: TableChange) -> None:
    """Raise UnsupportedOperation for a kind of change that databases lack, such as a change of properties."""
    if isinstance(change, gravitino_tables.SetTableProperty | gravitino_tables.RemoveTableProperty):
        raise UnsupportedOperation("Tables of this source have no properties: use the comment")
    is_move = isinstance(change, gravitino_tables.UpdateColumnPosition)
    has_position = isinstance(change, gravitino_tables.AddColumn) and change.position not in (
        None,
        "default",
        "DEFAULT",
    )
    if is_move or has_position:
        raise UnsupportedOperation("Columns of this source keep the order of their creation: leave positions out")


def index_parts(index: Json) -> tuple[str | None, list[str]]:
    """Return the name and the columns of a primary or unique key. Raises UnsupportedOperation for another kind of
    index, BadRequest for malformed JSON.
    """
    if str(index.get("indexType", "")).upper() not in (PRIMARY, UNIQUE):
        raise UnsupportedOperation(
            f"Indexes of this source are {PRIMARY} and {UNIQUE}, not {preview_value(str(index.get('indexType')))}"
        )
    try:
        paths = msgspec.convert(index.get("fieldNames"), type=list[tuple[str]])
    except msgspec.ValidationError:
        paths = []
    if not paths:
        raise BadRequest('fieldNames of an index must be a list of columns, each a list of one name: [["id"]]')
    name = index.get("name")
    return (str(name) if name else None), [each[0] for each in paths]


def indexes_json(inspector: sa.Inspector, table: str, *, schema: str) -> list[Json]:
    """Return a table's primary and unique keys as Gravitino's JSON."""
    results: list[Json] = []
    primary = inspector.get_pk_constraint(table, schema=schema)
    if primary["constrained_columns"]:
        results.append(_index(PRIMARY, primary["name"], columns=primary["constrained_columns"]))
    unique = inspector.get_unique_constraints(table, schema=schema)
    return [*results, *(_index(UNIQUE, each["name"], columns=each["column_names"]) for each in unique)]


def _index(kind: str, name: str | None, *, columns: Sequence[str]) -> Json:
    return {"indexType": kind, "name": name or kind, "fieldNames": [[each] for each in columns]}
