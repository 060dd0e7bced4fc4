# SPDX-License-Identifier: Apache-2.0
"""Declarations of a pipeline's sources: one class for each kind, with the columns of its rows where it determines them.

Must not know how a source is read, or the form in which it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from limnos.formats.system_tables import SYSTEM_TABLES, ColumnType
from limnos.model.harvest_formats import HARVEST_FORMATS, ICEBERG
from limnos.pipeline.declared_values import Parts, SourcePosition

_SYSTEM_TYPES: Final[Mapping[ColumnType, str]] = {
    "int": "BIGINT",
    "text": "STRING",
    "bool": "BOOLEAN",
    "time": "TIMESTAMP",
    "texts": "ARRAY<STRING>",
    "map": "MAP<STRING, STRING>",
}


class MalformedRowPolicy(Enum):
    """The reaction of a step to a row that does not fit the file's format or schema: fail, write it to a side table, or
    only count it.
    """

    FAIL = "fail"
    KEEP = "keep"
    """Write the row's text and its file to `<table>__malformed`."""
    COUNT = "count"
    """Skip the row and count it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files by URL and pattern. `schema` is Spark's column list; if None, the first run infers the schema, and later
    runs use the inferred one.
    """

    path: str
    format: str
    """The format: csv, json, parquet, orc or text."""
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    malformed: MalformedRowPolicy = MalformedRowPolicy.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """An Iceberg table or view of any catalog of the session."""

    table: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdbc:
    """A table or a query of a database. The password is read from an environment variable, never from the file."""

    url: str
    table: str | None = None
    query: str | None = None
    user: str | None = None
    password_env: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_column: str | None = None
    partitions: int = 1
    cursor_column: str | None = None
    """The column that grows with each change of a row, by which an incremental step reads new rows."""
    lateness: str | None = None
    """How far before the published value of the cursor an increment begins: a duration, or a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource:
    """A function `module:function` that yields Arrow batches, or that takes `spark` and returns a DataFrame."""

    function: str
    schema: str | None = None
    """Spark's column list, required if the function yields batches."""
    callable: Callable[..., object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """New data since the last published run, by Structured Streaming (`availableNow`), from files or an Iceberg
    table.
    """

    files: Files | None = None
    table: Parts | None = None


class RecordFormat(Enum):
    """The format of the values of a topic's records."""

    JSON = "json"
    AVRO = "avro"
    STRING = "string"
    BINARY = "binary"


class LostRecordPolicy(Enum):
    """The reaction of a run to unread records that are gone from a topic: fail, or continue with those that are
    left.
    """

    FAIL = "fail"
    ACCEPT = "accept"


RECORD_COLUMNS: Final[Mapping[str, str]] = {
    "key": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "tombstone": "BOOLEAN",
}
"""The columns of a record beside its value, with Spark's types. `tombstone` is true for a record without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """Access to brokers and to a schema registry. Passwords are read from environment variables."""

    brokers: str
    """The bootstrap servers: `host:port`, separated by commas."""
    security: str | None = None
    """`plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`; None for `plaintext`, or `sasl_ssl` with a user."""
    mechanism: str = "SCRAM-SHA-512"
    user: str | None = None
    password_env: str | None = None
    ca_file: str | None = None
    """A PEM file with certificate authorities, relative to the pipeline's file."""
    registry: str | None = None
    """URL of a schema registry."""
    registry_user: str | None = None
    registry_password_env: str | None = None
    timeout_s: int = 30
    """The longest wait for an answer of a broker or the registry, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A topic of Kafka: all records between two offsets of each partition, which a run pins when it starts."""

    topic: str
    access: KafkaAccess
    format: RecordFormat
    schema: str | None = None
    """Of JSON, Spark's column list. Of Avro, the schema as Avro's JSON; None for the registry's newest schema."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of `RECORD_COLUMNS` that the source has after those of the value, with their names there."""
    is_compacted: bool = False
    """Whether only the newest record of each key in the range is read."""
    start: str = "earliest"
    """The position of the first read: `earliest`, `latest`, or a time with its zone in ISO 8601."""
    records_max: int | None = None
    """The largest number of offsets by which one run advances."""
    malformed: MalformedRowPolicy = MalformedRowPolicy.FAIL
    lost: LostRecordPolicy = LostRecordPolicy.FAIL
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def column_list(self) -> str | None:
        """Spark's list of all columns; None for Avro, whose columns follow from its schema."""
        values = {RecordFormat.JSON: self.schema, RecordFormat.STRING: "value STRING"}
        value = values.get(self.format, "value BINARY")
        if self.format is RecordFormat.AVRO or value is None:
            return None
        further = [f"`{name}` {RECORD_COLUMNS[column]}" for column, name in self.columns.items()]
        return ", ".join([value, *further])


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemTableSource:
    """A system table of the metalake, with the rows that the run's user may see; `columns` are those to read, without
    them all. `where` are values that columns must have. `last_days` is the parameter with the number of whole days
    before the run's day, of which rows are read.
    """

    table: str
    columns: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    last_days: str | None = None

    @property
    def schema(self) -> str:
        """Spark's list of the columns to read."""
        types = {each.name: _SYSTEM_TYPES[each.type] for each in SYSTEM_TABLES[self.table].columns}
        return ", ".join(f"`{name}` {types[name]}" for name in self.columns or types)


STORAGE_FINDINGS: Final = "findings"
STORAGE_COLUMNS: Final = "columns"
"""The tables of a storage source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSource:
    """What is in storage, for tables and views that the run's user may see: `findings`, the differences from the store,
    or `columns`, the statistics of the columns of tables. `footers` is the parameter that says whether footers of data
    files are read for findings.
    """

    content: str = STORAGE_FINDINGS
    footers: str | None = None

    @property
    def schema(self) -> str:
        """Spark's column list of the rows."""
        if self.content == STORAGE_COLUMNS:
            return (
                "id BIGINT, path STRING, snapshot_id BIGINT, field_id BIGINT, name STRING, type STRING, files BIGINT,"
                " measured_files BIGINT, row_count BIGINT, value_count BIGINT, null_count BIGINT, nan_count BIGINT,"
                " byte_count BIGINT, lower STRING, upper STRING, has_deletes BOOLEAN, problem STRING"
            )
        return (
            "id BIGINT, path STRING, kind STRING, finding STRING, file STRING, expected STRING, actual STRING,"
            " severity STRING, files BIGINT"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestSource:
    """The tables in a directory, at any depth, or in a Hive metastore: one row for each, with what its metadata states,
    or its problem.

    A step that loads it carries over the rows of its published table whose metadata files have not changed.
    """

    root: str
    """A directory of the machines that run the pipeline, relative to its file, `s3://BUCKET/DIRECTORY`, or
    `thrift://HOST:PORT`.
    """
    formats: tuple[str, ...] = HARVEST_FORMATS

    @property
    def is_metastore(self) -> bool:
        """Whether the root is a metastore, whose tables are all Iceberg's."""
        return self.root.startswith("thrift:")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the rows."""
        return tuple(each.strip().partition(" ")[0] for each in self.schema.split(","))

    @property
    def schema(self) -> str:
        """Spark's column list of the rows."""
        return (
            "root STRING, directory STRING, format STRING, namespace ARRAY<STRING>, name STRING, state STRING,"
            " problem STRING, conflict STRING, case_twin STRING, metadata_location STRING, version BIGINT,"
            " modified_at TIMESTAMP, size BIGINT, format_version INT, uuid STRING, location STRING, snapshot_id BIGINT,"
            " columns STRING, row_count BIGINT, byte_count BIGINT, seen_at TIMESTAMP, read_at TIMESTAMP"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationSource:
    """The outcomes of registering harvested tables, the rows of a table that a step loads from a harvest. Reading it
    registers them.
    """

    table: Parts
    """The table of harvested tables."""
    into: Parts
    """The catalog to register in, and the namespace for the tables' namespaces."""
    formats: tuple[str, ...] = (ICEBERG,)

    @property
    def schema(self) -> str:
        """Spark's column list of the rows."""
        return (
            "path STRING, format STRING, directory STRING, metadata_location STRING, outcome STRING, code STRING,"
            " message STRING"
        )


SourceKind = (
    Files
    | TableSource
    | Jdbc
    | Kafka
    | PythonSource
    | Stream
    | SystemTableSource
    | StorageSource
    | HarvestSource
    | RegistrationSource
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSource:
    """A named source. Steps refer to it by this name, which has one part."""

    name: str
    kind: SourceKind
    comment: str | None = None
    at: SourcePosition | None = field(default=None, compare=False)

    @property
    def schema(self) -> str | None:
        """Spark's column list, as far as it is known without reading the source."""
        kind = self.kind.files if isinstance(self.kind, Stream) else self.kind
        if isinstance(kind, Kafka):
            return kind.column_list
        return None if kind is None or isinstance(kind, TableSource | Jdbc) else kind.schema
