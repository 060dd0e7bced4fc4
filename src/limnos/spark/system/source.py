# SPDX-License-Identifier: Apache-2.0
"""The data source `limnos.system`: `spark.read.format("limnos.system").option("table", "nodes").load()`.

Each partition is a part of the table at one revision, which a task reads from the server with the session's credential.
A revision that ends before all parts are read fails the query, so it never has half of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql import types as kinds
from pyspark.sql.pandas.types import to_arrow_schema

from limnos.client.activity.system_tables import time_condition
from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from limnos.client.activity.system_tables import Condition
    from limnos.client.values import SystemTableInfo
    from limnos.spark.lance.server_access import ServerAccess

SOURCE: Final = "limnos.system"
"""The source's name for Spark's `format`."""
OPTIONS: Final = frozenset({"table", "path", "columns", "parts"})
"""Options of the source. Spark passes their names in lower case, and the argument of `load` as `path`."""
PARTS: Final = 8
_TYPES: Final[Mapping[str, kinds.DataType]] = {
    "int": kinds.LongType(),
    "text": kinds.StringType(),
    "bool": kinds.BooleanType(),
    "time": kinds.TimestampType(),
    "texts": kinds.ArrayType(kinds.StringType()),
    "map": kinds.MapType(kinds.StringType(), kinds.StringType()),
}
_OPERATORS: Final[Mapping[type[spark.Filter], str]] = {
    spark.EqualTo: "=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
}
_INTEGER_MAX: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOptions:
    """The options of a read: the table, the columns (None for all), and the number of parts."""

    table: str
    columns: tuple[str, ...] | None = None
    parts: int = PARTS


def system_options_of(options: Mapping[str, str]) -> SystemOptions:
    """Parse the options of a data source. Raises BadRequest, which names the invalid option."""
    arguments = {key.lower(): value for key, value in options.items()}
    unknown = sorted(set(arguments) - OPTIONS)
    if unknown:
        raise BadRequest(f"There is no option {unknown[0]}: the options are {', '.join(sorted(OPTIONS - {'path'}))}")
    table, parts = arguments.get("table") or arguments.get("path"), arguments.get("parts", str(PARTS))
    if not table:
        raise BadRequest("Name a system table, as option('table', 'nodes')")
    if not (parts.isascii() and parts.isdigit()):
        raise BadRequest(f"The option parts must be a number, not {parts}")
    columns = arguments.get("columns")
    names = None if columns is None else tuple(each.strip() for each in columns.split(",") if each.strip())
    return SystemOptions(table=table, columns=names, parts=int(parts))


class SystemSource(spark.DataSource):
    """System tables of a server. Each session has its own subclass with its server and credential."""

    home: ClassVar[ServerAccess | None] = None

    @classmethod
    def name(cls) -> str:
        """Return `limnos.system`, the name for Spark's `format`."""
        return SOURCE

    def schema(self) -> kinds.StructType:
        """Return the Spark schema of the columns to read. Raises BadRequest for an unknown table or column."""
        options = system_options_of(self.options)
        with self._home().client() as client:
            tables = {each.name: each for each in client.system_tables.list()}
        table = tables.get(options.table)
        if table is None:
            raise BadRequest(f"There is no system table {options.table}: there are {', '.join(tables)}")
        return _schema_of(table, options)

    def reader(self, schema: kinds.StructType) -> SystemReader:
        """Return a reader of the table."""
        return SystemReader(self._home(), system_options_of(self.options), schema=schema)

    def _home(self) -> ServerAccess:
        if self.home is None:
            raise BadRequest("This session has no server: create it with limnos.spark.session")
        return self.home


def _schema_of(table: SystemTableInfo, options: SystemOptions) -> kinds.StructType:
    types = {each.name: _TYPES[each.type] for each in table.columns}
    for name in options.columns or ():
        if name not in types:
            raise BadRequest(f"Table {table.name} has no column {name}: it has {', '.join(types)}")
    return kinds.StructType([kinds.StructField(name, types[name]) for name in options.columns or types])


def source_of(home: ServerAccess) -> type[SystemSource]:
    """Return a subclass of SystemSource with a session's server and credential. It is defined in this function so that
    Spark pickles the class by value, with its attributes.
    """

    class SessionSource(SystemSource):
        pass

    SessionSource.home = home
    return SessionSource


@dataclass
class TablePart(spark.InputPartition):
    """The input partition of one task: a part of the table at a revision."""

    revision: str
    part: str


class SystemReader(spark.DataSourceReader):
    """The Spark data source reader of one system table."""

    def __init__(self, home: ServerAccess, options: SystemOptions, *, schema: kinds.StructType) -> None:
        self._home, self._options = home, options
        self._names = schema.fieldNames()
        self._types = {field.name: field.dataType for field in schema}
        self._schema = to_arrow_schema(schema, timestamp_utc=True)
        self._where: list[Condition] = []

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:  # noqa: N802 - PySpark's name
        """Send comparisons of numbers, texts and times to the server. Spark evaluates all filters, too."""
        for each in filters:
            condition = self._condition(each)
            if condition is not None:
                self._where.append(condition)
            yield each

    def _condition(self, condition: spark.Filter) -> Condition | None:
        """Translate a filter to a condition of the server; None if only Spark evaluates it."""
        sign = _OPERATORS.get(type(condition))
        path: tuple[str, ...] = getattr(condition, "attribute", ())
        value: object = getattr(condition, "value", None)
        if sign is None or len(path) != 1:
            return None
        name, type_ = path[0], self._types.get(path[0])
        if isinstance(type_, kinds.StringType) and isinstance(value, str):
            return name, sign, value
        if isinstance(type_, kinds.LongType) and isinstance(value, int) and -_INTEGER_MAX <= value < _INTEGER_MAX:
            return name, sign, int(value)
        if isinstance(type_, kinds.TimestampType) and isinstance(value, datetime) and value.tzinfo is not None:
            return time_condition(name, sign, moment=value)
        return None

    def partitions(self) -> list[TablePart]:
        """Hold the current revision, and return its parts."""
        with self._home.client() as client:
            scan = client.system_tables.scan(self._options.table, parts=self._options.parts)
        return [TablePart(scan.revision, part) for part in scan.parts]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part as Arrow batches. Raises the client's errors."""
        if not isinstance(partition, TablePart):
            return
        with self._home.client() as client:
            stream = client.system_tables.read_part(
                self._options.table,
                revision=partition.revision,
                part=partition.part,
                columns=self._names,
                where=self._where,
            )
        for batch in pa.ipc.open_stream(stream):
            columns = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(batch.columns, self._schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
