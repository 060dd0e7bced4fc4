# SPDX-License-Identifier: Apache-2.0
"""Tables of MySQL or MariaDB as values, and Gravitino's changes as one statement.

Pure. The server commits at every DDL statement, so all changes of a request become one `ALTER TABLE`, which is atomic.
The complete definition of a changed column is written again; a change that would lose a part of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from limnos.formats.gravitino import tables as gravitino_tables
from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import Json, as_object, preview_value, text_at
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.connectors.sources.mysql_types import (
    COUNTS,
    default_json,
    default_of,
    literal,
    normalize_type,
    type_json,
    type_of,
)
from limnos.rooms.connectors.sources.table_alterations import PRIMARY, flat, index_parts

NAME_MAX: Final = 64
ENGINE: Final = "engine"
_INNODB: Final = "InnoDB"
_PRIMARY: Final = "PRIMARY"
"""The server's name of every primary key."""
_KNOWN: Final = re.compile(
    r"|auto_increment|default_generated|(?:default_generated )?on update current_timestamp(?:\(\d?\))?", re.IGNORECASE
)
_ON_UPDATE: Final = re.compile(r"on update current_timestamp(?:\(\d?\))?", re.IGNORECASE)
_TEXTUAL: Final = ("char", "varchar", "text", "tinytext", "mediumtext", "longtext", "enum", "set")


@dataclass(frozen=True, kw_only=True)
class MysqlColumn:
    """A column of a table. `was` is its current name in the database, None for a new column."""

    name: str
    kind: str
    nullable: bool = True
    default: str | None = None
    """The default as SQL text."""
    counts: bool = False
    comment: str = ""
    collation: str | None = None
    extra: str = ""
    checked: bool = False
    """Whether it has a CHECK condition of its own."""
    was: str | None = None

    def to_json(self) -> Json:
        """Encode the column as Gravitino's JSON."""
        kind = type_json(self.kind)
        fields: Json = {"name": self.name, "type": kind, "nullable": self.nullable, "autoIncrement": self.counts}
        if self.comment:
            fields["comment"] = self.comment
        default = None if self.counts or "generated always" in self.extra.lower() else default_json(self.default, kind)
        return fields if default is None else {**fields, "defaultValue": default}

    def definition(self) -> str:
        """Return the column's definition for CREATE or ALTER TABLE.

        Raises UnsupportedOperation if that would lose a part of the column.
        """
        if self.checked or _KNOWN.fullmatch(self.extra) is None:
            raise UnsupportedOperation(
                f"Column {preview_value(self.name)} has constraints or generated values: change it with the source's"
                " own tools"
            )
        textual = self.kind.partition("(")[0] in _TEXTUAL
        on_update = _ON_UPDATE.search(self.extra)
        parts = (
            self.kind,
            f"COLLATE {self.collation}" if self.collation and textual else "",
            "NULL" if self.nullable else "NOT NULL",
            "AUTO_INCREMENT" if self.counts else "" if self.default is None else f"DEFAULT {self.default}",
            on_update[0].upper() if on_update is not None else "",
            f"COMMENT {literal(self.comment)}" if self.comment else "",
        )
        return " ".join(each for each in parts if each)


def column_of(fields: Json) -> MysqlColumn:
    """Build a new column from Gravitino's JSON. Raises BadRequest for an invalid definition, UnsupportedOperation for a
    default that MySQL lacks.
    """
    name = name_of(text_at(fields, "name", where="Column"), what="Column")
    kind = type_of(fields.get("type"), column=name)
    comment = fields.get("comment")
    counts = fields.get("autoIncrement") is True
    if counts:
        _require_counting(kind, column=name)
    default = (
        None
        if counts or fields.get("defaultValue") is None
        else default_of(fields["defaultValue"], column=name, kind=kind)
    )
    return MysqlColumn(
        name=name,
        kind=kind,
        nullable=not counts and fields.get("nullable") is not False,
        default=default,
        counts=counts,
        comment=comment if isinstance(comment, str) else "",
    )


def name_of(name: str, *, what: str) -> str:
    """Return a new name after checking its length and characters. Raises BadRequest for a name that is empty, too long,
    or has characters that MySQL rejects.
    """
    if (
        name != name.rstrip()
        or not name
        or "\0" in name
        or len(name) > NAME_MAX
        or any(ord(each) > 0xFFFF for each in name)
    ):
        raise BadRequest(
            f"{what} {preview_value(name)} needs a name of 1 to {NAME_MAX} characters that does not end with a space"
        )
    return name


def quote(name: str) -> str:
    """Quote a name as an identifier, in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(map(quote, names))


def create_statement(schema: str, table: str, *, definition: GravitinoCreate) -> str:
    """Return the CREATE TABLE statement. Raises BadRequest for an invalid definition, UnsupportedOperation for a
    feature that MySQL lacks.
    """
    engine = _engine_of(definition.properties)
    columns = [column_of(each) for each in definition.columns]
    if len({each.name.lower() for each in columns}) != len(columns):
        raise BadRequest("Two columns have the same name: give each its own")
    parts = [f"{quote(each.name)} {each.definition()}" for each in columns]
    parts += [_key(each, named=[column.name for column in columns]) for each in definition.indexes]
    comment = f" COMMENT={literal(definition.comment)}" if definition.comment else ""
    return f"CREATE TABLE {quote(schema)}.{quote(table)} ({', '.join(parts)}) ENGINE={engine}{comment}"


def _engine_of(properties: Mapping[str, str]) -> str:
    for name, value in properties.items():
        if name != ENGINE or value.lower() != _INNODB.lower():
            raise UnsupportedOperation(
                f"Tables of this source have only the property {ENGINE}, with the value {_INNODB}: leave others out"
            )
    return _INNODB


def _key(index: Json, *, named: Sequence[str]) -> str:
    name, columns = index_parts(index)
    for column in columns:
        if column not in named:
            raise BadRequest(f"The table has no column {preview_value(column)}")
    if str(index.get("indexType")).upper() == PRIMARY:
        return f"PRIMARY KEY ({_quote_names(columns)})"
    return f"UNIQUE KEY {quote(name_of(name, what='Index')) if name else ''} ({_quote_names(columns)})"


def _require_counting(kind: str, *, column: str) -> None:
    if COUNTS.fullmatch(normalize_type(kind)) is None:
        raise BadRequest(f"Column {preview_value(column)} cannot be autoIncrement: that is for integer types")


@dataclass(kw_only=True)
class MysqlTableDraft:
    """A table with pending changes: its future columns and the clauses of the ALTER TABLE."""

    columns: list[MysqlColumn]
    keys: Sequence[str]
    """Names of primary and unique keys."""
    _others: list[str] = field(default_factory=list)
    _renamed_columns: list[str] = field(default_factory=list)
    _moved: dict[str, str] = field(default_factory=dict)
    """The clause (` FIRST`, ` AFTER x`) of each moved column, by its new name."""

    def __post_init__(self) -> None:
        self._before = {each.was: each for each in self.columns if each.was is not None}

    def carry_out(self, changes: Sequence[TableChange]) -> None:
        """Apply changes to the draft in order. Raises BadRequest for an invalid change, UnsupportedOperation for a
        change that MySQL lacks.
        """
        for change in changes:
            self._do(change)

    def statement(self, schema: str, table: str) -> str | None:
        """Return the ALTER TABLE statement; None if nothing changes."""
        clauses = [*self._of_columns(), *self._others]
        return f"ALTER TABLE {quote(schema)}.{quote(table)} {', '.join(clauses)}" if clauses else None

    def _of_columns(self) -> Iterator[str]:
        for name in self._renamed_columns:
            yield f"DROP COLUMN {quote(name)}"
        moved_columns = [self._find_column(name) for name in self._moved]
        for column in (*(each for each in self.columns if each.name not in self._moved), *moved_columns):
            place = self._moved.get(column.name, "")
            if column.was is None:
                yield f"ADD COLUMN {quote(column.name)} {column.definition()}{place}"
            elif column != self._before[column.was] or place:
                yield f"CHANGE COLUMN {quote(column.was)} {quote(column.name)} {column.definition()}{place}"

    def _do(self, change: TableChange) -> None:
        match change:
            case gravitino_tables.UpdateTableComment(comment):
                self._others.append(f"COMMENT={literal(comment or '')}")
            case gravitino_tables.AddColumn(field_name=path):
                self._add(change, name=flat(path))
            case gravitino_tables.RenameColumn(old_field_name=path, new_field_name=new):
                self._rename(flat(path), name_of(new, what="Column"))
            case gravitino_tables.UpdateColumnDefaultValue(field_name=path, new_default_value=value):
                column = self._find_column(flat(path))
                default = None if value is None else default_of(value, column=column.name, kind=column.kind)
                self._put(column, replace(column, default=default))
            case gravitino_tables.UpdateColumnType(field_name=path, new_type=kind):
                column = self._find_column(flat(path))
                self._put(column, replace(column, kind=type_of(kind, column=column.name)))
            case gravitino_tables.UpdateColumnComment(field_name=path, new_comment=comment):
                column = self._find_column(flat(path))
                self._put(column, replace(column, comment=comment or ""))
            case gravitino_tables.UpdateColumnNullability(field_name=path, nullable=nullable):
                column = self._find_column(flat(path))
                self._put(column, replace(column, nullable=nullable))
            case gravitino_tables.UpdateColumnAutoIncrement(field_name=path, auto_increment=counts):
                self._count(self._find_column(flat(path)), counts=counts)
            case gravitino_tables.UpdateColumnPosition(field_name=path, new_position=position):
                self._place(self._find_column(flat(path)), position)
            case gravitino_tables.DeleteColumn(field_name=path, if_exists=if_exists):
                self._delete(flat(path), if_exists=if_exists)
            case gravitino_tables.AddTableIndex(index=index):
                self._others.append(f"ADD {_key(index, named=[each.name for each in self.columns])}")
            case gravitino_tables.DeleteTableIndex(name=name, if_exists=if_exists):
                self._delete_key(name, if_exists=if_exists)
            case _:
                raise UnsupportedOperation("Properties of this source's tables cannot be changed: leave them out")

    def _find_column(self, name: str) -> MysqlColumn:
        column = next((each for each in self.columns if each.name == name), None)
        if column is None:
            raise BadRequest(f"The table has no column {preview_value(name)}")
        return column

    def _put(self, column: MysqlColumn, changed: MysqlColumn) -> None:
        self.columns[self.columns.index(column)] = changed

    def _refuse_taken(self, name: str, *, but: MysqlColumn | None = None) -> None:
        if any(each is not but and each.name.lower() == name.lower() for each in self.columns):
            raise BadRequest(f"The table has a column {preview_value(name)} already")

    def _add(self, change: gravitino_tables.AddColumn, *, name: str) -> None:
        self._refuse_taken(name)
        fields: Json = {
            "name": name,
            "type": change.type,
            "comment": change.comment,
            "nullable": change.nullable,
            "autoIncrement": change.auto_increment,
            "defaultValue": change.default_value,
        }
        column = column_of(fields)
        self.columns.append(column)
        if change.position not in (None, "default", "DEFAULT"):
            self._place(column, change.position)

    def _rename(self, old: str, new: str) -> None:
        column = self._find_column(old)
        self._refuse_taken(new, but=column)
        if old in self._moved or any(place.endswith(f" AFTER {quote(old)}") for place in self._moved.values()):
            raise BadRequest(f"Column {preview_value(old)} is moved and renamed: rename it in a separate request")
        self._put(column, replace(column, name=new))

    def _place(self, column: MysqlColumn, position: object) -> None:
        if isinstance(position, str) and position.lower() == "first":
            place = " FIRST"
        else:
            after = text_at(as_object(position, "A position"), "after", where="A position")
            if self._find_column(after) is column:
                raise BadRequest(f"Column {preview_value(after)} cannot follow itself")
            place = f" AFTER {quote(after)}"
        self._moved.pop(column.name, None)
        self._moved[column.name] = place

    def _count(self, column: MysqlColumn, *, counts: bool) -> None:
        if counts:
            _require_counting(column.kind, column=column.name)
        nullable = column.nullable and not counts
        self._put(
            column,
            replace(
                column,
                counts=counts,
                nullable=nullable,
                default=None if counts else column.default,
                extra="auto_increment" if counts else "",
            ),
        )

    def _delete(self, name: str, *, if_exists: bool) -> None:
        if if_exists and all(each.name != name for each in self.columns):
            return
        column = self._find_column(name)
        if column.was is None or name in self._moved:
            raise BadRequest(
                f"Column {preview_value(name)} is changed and deleted in one request: leave the change out"
            )
        self.columns.remove(column)
        self._renamed_columns.append(column.was)

    def _delete_key(self, name: str, *, if_exists: bool) -> None:
        if name in self.keys:
            self._others.append("DROP PRIMARY KEY" if name == _PRIMARY else f"DROP INDEX {quote(name)}")
        elif not if_exists:
            raise BadRequest(f"The table has no primary key and no unique key {preview_value(name)}")


def keys_json(rows: Iterable[tuple[str, str, int | None]]) -> list[Json]:
    """Return primary and unique keys as Gravitino's JSON, except keys with a column prefix.

    Each row has the name of a key, a column and the length of the column's prefix, in the order of the key.
    """
    results: dict[str, list[str]] = {}
    partial: set[str] = set()
    for name, column, part in rows:
        results.setdefault(name, []).append(column)
        if part is not None or column is None:
            partial.add(name)
    return [
        {
            "indexType": PRIMARY if name == _PRIMARY else "UNIQUE_KEY",
            "name": name,
            "fieldNames": [[each] for each in columns],
        }
        for name, columns in sorted(results.items(), key=lambda item: (item[0] != _PRIMARY, item[0]))
        if name not in partial
    ]
