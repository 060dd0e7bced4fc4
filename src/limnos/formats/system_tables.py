# SPDX-License-Identifier: Apache-2.0
"""System tables: their columns, conditions on their rows, and their encoding as an Arrow IPC stream.

Pure. Must not know stores or rights. pyarrow is imported only when rows are encoded.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.extras import missing_part

if TYPE_CHECKING:
    import pyarrow as pa

ColumnType = Literal["int", "text", "bool", "time", "texts", "map"]
Cells = tuple[object, ...]
"""The values of a row, in the order of the table's columns."""
CONDITIONS_MAX: Final = 20
OCCURRED_AT: Final = "occurred_at"
"""The column with the time of a change or an audit record."""
_NUMBER_MAX: Final = 2**63


class SystemColumn(NamedTuple):
    """A column of a system table; a `time` is in milliseconds since 1970, in UTC."""

    name: str
    type: ColumnType


class SystemTable(NamedTuple):
    """A system table: its name, a sentence about its rows, its columns, and whether its rows are about activity.

    Rows about activity may change while the revision of the tree stays the same.
    """

    name: str
    about: str
    columns: tuple[SystemColumn, ...]
    is_activity: bool = False

    def position(self, name: str) -> int:
        """Return the index of a column. Raises BadRequest for an unknown name."""
        for at, column in enumerate(self.columns):
            if column.name == name:
                return at
        column_names = ", ".join(column.name for column in self.columns)
        raise BadRequest(f"Table {self.name} has no column {name[:50]}: it has {column_names}")


def _columns(text: str) -> tuple[SystemColumn, ...]:
    """Parse `name type, name type`."""
    return tuple(
        SystemColumn(name, msgspec.convert(kind, ColumnType))
        for name, kind in (part.split() for part in text.split(","))
    )


_OBJECT = "id int, kind text, path text"
_MADE = "created_by text, created_at time, modified_by text, modified_at time"


_REPORTED = "job_namespace text, job text, run text, at time"


def _table(name: str, about: str, *, columns: str, is_activity: bool = False) -> SystemTable:
    return SystemTable(name, about, _columns(columns), is_activity)


SYSTEM_TABLES: Final[Mapping[str, SystemTable]] = {
    table.name: table
    for table in (
        _table(
            "nodes",
            "Objects of the tree, and tags, policies and job templates of the metalake.",
            columns=(
                f"{_OBJECT}, parent_id int, catalog text, name text, format text, placeholder bool, {_MADE}, revision"
                " int, comment text, properties map"
            ),
        ),
        _table(
            "tables",
            "Tables and views with their metadata. A restricted reader gets no location, properties and totals.",
            columns=(
                f"{_OBJECT}, format text, restricted bool, location text, metadata_location text, version int, uuid"
                " text, changed_at time, snapshot_id int, comment text, properties map, row_count int, byte_count int"
            ),
        ),
        _table(
            "columns",
            "Columns of Iceberg tables and of views, nested fields after the column that contains them.",
            columns=f"{_OBJECT}, position int, field_id int, column_name text, type text, required bool, doc text",
        ),
        _table(
            "tags",
            "Tags on objects, and on columns by their field ids.",
            columns=f"{_OBJECT}, field_id int, tag text, tag_values texts",
        ),
        _table(
            "policies",
            "Policies on objects, and on columns by their field ids.",
            columns=f"{_OBJECT}, field_id int, policy text",
        ),
        _table("owners", "Owners of objects and roles.", columns=f"{_OBJECT}, owner text, owner_kind text"),
        _table(
            "principals", "Users, groups and roles.", columns=f"id int, kind text, name text, enabled bool, {_MADE}"
        ),
        _table(
            "memberships",
            "Users in groups, and roles of users and groups.",
            columns="id int, kind text, name text, of_id int, of_kind text, of_name text",
        ),
        _table(
            "grants",
            "Grants and denials of privileges to roles.",
            columns=f"{_OBJECT}, role_id int, role text, privilege text, allowed bool",
        ),
        _table(
            "effective_access",
            "Access levels of users on objects: read, write, create, drop, grant.",
            columns=f"{_OBJECT}, user_name text, enabled bool, levels texts, restricted bool",
        ),
        _table(
            "lineage",
            "Tables, views and external datasets with the sources from which jobs derived them.",
            columns=(
                f"{_OBJECT}, namespace text, source_id int, source_kind text, source_path text, source_namespace text,"
                f" {_REPORTED}, reported_by text, reported_at time, kinds texts"
            ),
            is_activity=True,
        ),
        _table(
            "column_lineage",
            "Columns with the columns from which jobs derived them; all columns of the target without a column.",
            columns=(
                f"{_OBJECT}, field_id int, column_name text, source_id int, source_kind text, source_path text,"
                f" source_field_id int, source_column text, {_REPORTED}, type text, direct bool"
            ),
            is_activity=True,
        ),
        _table(
            "runs",
            "Runs of pipelines.",
            columns=(
                "id int, uuid text, pipeline_id int, pipeline text, version int, state text, attempt int,"
                " user_name text, started_at time, resumed_at time, ended_at time, message text"
            ),
            is_activity=True,
        ),
        _table(
            "operations",
            "Maintenance operations on tables that the reader may maintain.",
            columns=(
                f"{_OBJECT}, operation_id int, operation text, state text, user_name text, started_at time,"
                " ended_at time, result text"
            ),
            is_activity=True,
        ),
        _table(
            "changes",
            "Committed changes of objects, as in the change feed. A path that is hidden from the reader is empty.",
            columns=(
                f"{_OBJECT}, old_path text, new_path text, operation text, actor text, request_id text, occurred_at"
                " time, zone int, revision int, ordinal int"
            ),
            is_activity=True,
        ),
        _table(
            "audit",
            "Audit records: all for the owner of the metalake and service admins, else those of the reader's own"
            " actions.",
            columns=(
                f"{_OBJECT}, record_id int, occurred_at time, user_name text, outcome text, change text, action text,"
                " new_path text, detail text, rights text, protocol text, operation text, status int, request_id text,"
                " client text, peer text, credential text, zone int, revision int, ordinal int"
            ),
            is_activity=True,
        ),
    )
}
"""The system tables by name."""
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARED: Final[Mapping[ColumnType, type]] = {"int": int, "time": int, "text": str, "bool": bool}


class Condition(NamedTuple):
    """A comparison of a column with a value. Rows without a value in the column do not meet it."""

    column: str
    operator: str
    value: int | str | bool
    position: int

    def is_met(self, row: Cells) -> bool:
        """Return whether a row meets the condition."""
        cell = row[self.position]
        return cell is not None and _OPERATORS[self.operator](cell, self.value)


class RowRequest(NamedTuple):
    """The requested columns of a table, by position, and the conditions that its rows meet."""

    table: SystemTable
    positions: tuple[int, ...]
    conditions: tuple[Condition, ...]

    @property
    def wanted(self) -> frozenset[str]:
        """The names of columns that are requested, or that conditions need."""
        names = {self.table.columns[at].name for at in self.positions}
        return frozenset(names | {each.column for each in self.conditions})

    def equal_to(self, column: str) -> frozenset[int | str | bool] | None:
        """Return the values to which conditions set a column equal; None without such a condition."""
        values = [each.value for each in self.conditions if each.column == column and each.operator == "="]
        return frozenset(values[:1]) if len(set(values)) == 1 else frozenset() if values else None

    def id_range(self, first: int, last: int) -> tuple[int, int]:
        """Narrow a range of ids, both inclusive, by the conditions on the column `id`."""
        return self.range_of("id", first=first, last=last)

    def range_of(self, column: str, *, first: int, last: int) -> tuple[int, int]:
        """Narrow a range of numbers or times, both inclusive, by the conditions on a column."""
        for each in self.conditions:
            if each.column != column or not isinstance(each.value, int):
                continue
            if each.operator in ("=", ">", ">="):
                first = max(first, each.value + (each.operator == ">"))
            if each.operator in ("=", "<", "<="):
                last = min(last, each.value - (each.operator == "<"))
        return first, last

    def select_rows(self, rows: Iterable[Cells]) -> list[Cells]:
        """Return the rows that meet all conditions."""
        conditions = self.conditions
        return [row for row in rows if all(each.is_met(row) for each in conditions)]


def system_table(name: str) -> SystemTable:
    """Return a system table. Raises NotFound for an unknown name."""
    table = SYSTEM_TABLES.get(name)
    if table is None:
        raise NotFound(f"There is no system table {name[:50]}: there are {', '.join(SYSTEM_TABLES)}", kind="route")
    return table


def row_request(table: SystemTable, *, columns: str | None, where: str | None) -> RowRequest:
    """Parse the columns (names, separated by commas; all by default) and the conditions (a JSON list of
    `[column, operator, value]`) of a request. Raises BadRequest.
    """
    names = [each.name for each in table.columns] if columns is None else [each.strip() for each in columns.split(",")]
    positions = tuple(table.position(name) for name in names)
    if len(set(positions)) < len(positions):
        raise BadRequest("A column is requested twice")
    return RowRequest(table, positions, _conditions(table, where))


def _conditions(table: SystemTable, where: str | None) -> tuple[Condition, ...]:
    if not where:
        return ()
    try:
        triples = msgspec.json.decode(where, type=list[tuple[str, str, bool | int | str]])
    except msgspec.DecodeError:
        raise BadRequest('where must be a JSON list of conditions, as [["kind", "=", "table"]]') from None
    if len(triples) > CONDITIONS_MAX:
        raise BadRequest(f"where has {len(triples)} conditions: at most {CONDITIONS_MAX} are allowed")
    results = []
    for name, sign, value in triples:
        at = table.position(name)
        expected = _COMPARED.get(table.columns[at].type)
        if sign not in _OPERATORS:
            raise BadRequest(f"A condition has one of the operators {' '.join(_OPERATORS)}, not {sign[:10]}")
        if expected is None or type(value) is not expected:
            kind = "cannot be compared" if expected is None else f"is compared with values of type {expected.__name__}"
            raise BadRequest(f"Column {name} {kind}")
        if isinstance(value, int) and not -_NUMBER_MAX <= value < _NUMBER_MAX:
            raise BadRequest(f"The number that column {name} is compared with must have at most 64 bits")
        results.append(Condition(name, sign, value, at))
    return tuple(results)


class ArrowEncoder:
    """Encodes the rows of one request as an Arrow IPC stream, page by page."""

    def __init__(self, request: RowRequest) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - loads 40 MB, which only this needs
        except ImportError:
            raise UnsupportedOperation(missing_part("An Arrow stream needs", ("server",))) from None
        self._pa = pa
        types: dict[ColumnType, pa.DataType] = {
            "int": pa.int64(),
            "text": pa.string(),
            "bool": pa.bool_(),
            "time": pa.timestamp("ms", tz="UTC"),
            "texts": pa.list_(pa.string()),
            "map": pa.map_(pa.string(), pa.string()),
        }
        columns = [request.table.columns[at] for at in request.positions]
        self._positions = request.positions
        self._schema = pa.schema([pa.field(each.name, types[each.type]) for each in columns])
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, self._schema)

    def page(self, rows: Sequence[Cells]) -> bytes:
        """Return the bytes of the next rows. The first page begins with the schema."""
        if rows:
            cells = list(zip(*rows, strict=True))
            arrays = [
                self._pa.array(cells[at], type=field.type)
                for at, field in zip(self._positions, self._schema, strict=True)
            ]
            self._writer.write_batch(self._pa.record_batch(arrays, schema=self._schema))
        return self._drain_sink()

    def end(self) -> bytes:
        """Return the end of the stream."""
        self._writer.close()
        return self._drain_sink()

    def _drain_sink(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data
