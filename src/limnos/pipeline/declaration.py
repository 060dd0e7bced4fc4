# SPDX-License-Identifier: Apache-2.0
"""The declaration of a pipeline: sources, steps, write modes and expectations.

YAML files and Python decorators are both converted to these frozen values, which checks, plans and runs use. Must not
know Spark, servers or the form in which a declaration is written. Each value has its position (`at`), which comparisons
ignore.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from limnos.formats.system_tables import SYSTEM_TABLES, ColumnType
from limnos.model.harvest_formats import HARVEST_FORMATS, ICEBERG

Scalar = str | int | float | bool | None
Parts = tuple[str, ...]
"""The parts of a name. A table's first part is its catalog."""

LOOP_VARIABLE: Final = re.compile(r"\{\{\s*([^\s{}]*)\s*\}\}")
"""A variable of a loop in a step's name and texts."""

_SYSTEM_TYPES: Final[Mapping[ColumnType, str]] = {
    "int": "BIGINT",
    "text": "STRING",
    "bool": "BOOLEAN",
    "time": "TIMESTAMP",
    "texts": "ARRAY<STRING>",
    "map": "MAP<STRING, STRING>",
}


class SourcePosition(NamedTuple):
    """A position in a source file; line and column count from one. For Python it is the function's first line."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return `file:line:column`, which editors and terminals open."""
        return f"{self.file}:{self.line}:{self.column}"


class ParameterType(Enum):
    """The types of a pipeline's parameters. The values are their names in the file."""

    STRING = "string"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the pipeline, to which each run assigns a value.

    SQL uses it as Spark's named parameter `:name`; its text is never inserted into a query.
    """

    name: str
    type: ParameterType
    default: Scalar = None
    """The default value; None if the parameter is required."""
    comment: str | None = None
    at: SourcePosition | None = field(default=None, compare=False)


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
    """The tables in a directory, at any depth: one row for each, with what its metadata states, or its problem.

    A step that loads it carries over the rows of its published table whose directories have not changed.
    """

    root: str
    """A directory of the machines that run the pipeline, relative to its file, or `s3://BUCKET/DIRECTORY`."""
    formats: tuple[str, ...] = HARVEST_FORMATS

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


class WriteMode(Enum):
    """The way in which a step's rows change its table: its write mode."""

    REPLACE = "replace"
    APPEND = "append"
    MERGE = "merge"
    PARTITIONS = "partitions"
    """Replace the partitions to which the rows belong."""
    HISTORY = "history"
    """Slowly changing dimension of type 2: one row per state of a key, with its period of validity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDeclaration:
    """The write mode of a step and its settings. `merge` and `history` require `keys`."""

    mode: WriteMode = WriteMode.REPLACE
    keys: tuple[str, ...] = ()
    delete_when: str | None = None
    """For merge: a SQL condition on the source's row. If it is true, the target's row with the same key is deleted."""
    delete_missing: bool = False
    """For merge and history: delete (history: close) keys that the source lacks. The step then reads all of the
    source.
    """
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    current: str = "is_current"
    as_of: str | None = None
    """For history: a SQL expression for the time from which the source's row is valid; None for the run's time."""
    tracked: tuple[str, ...] = ()
    """For history: columns whose change starts a new row; empty for all columns except the keys."""


class ExpectationAction(Enum):
    """The action for a broken expectation: fail the run, drop or quarantine the rows, or only warn."""

    FAIL = "fail"
    DROP = "drop"
    QUARANTINE = "quarantine"
    WARN = "warn"


class RuleKind(Enum):
    """The kinds of expectations. ROW is a condition on each row, KEY a check before the write; all other kinds are
    queries on the written branch.
    """

    ROW = "row"
    UNIQUE = "unique"
    NOT_NULL = "not_null"
    REFERENCES = "references"
    ROWS = "rows"
    FRESH = "fresh"
    NO_FEWER_ROWS = "no_fewer_rows"
    EMPTY = "empty"
    KEY = "key"
    """Added automatically for `merge` and `history`: the source's keys are unique and not NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An expectation about a step's table. `kind` determines which fields are used."""

    name: str
    kind: RuleKind
    action: ExpectationAction = ExpectationAction.FAIL
    """The action; DROP and QUARANTINE are allowed only for ROW."""
    tolerated: float = 0.0
    """The share of the rows that may break the rule, from 0 to 1."""
    condition: str | None = None
    """For ROW: a SQL condition that a good row satisfies. NULL counts as broken."""
    columns: tuple[str, ...] = ()
    """For UNIQUE, NOT_NULL, REFERENCES and KEY: the columns. For FRESH: the column with the time."""
    table: Parts | None = None
    """For REFERENCES: the referenced table."""
    table_columns: tuple[str, ...] = ()
    rows_min: int | None = None
    rows_max: int | None = None
    within_s: int | None = None
    """For FRESH: the maximum age of the newest value at the run's start, in seconds."""
    query: str | None = None
    """For EMPTY: a query that must return no rows."""
    at: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn:
    """A column for which the declaration has a comment."""

    name: str
    comment: str | None = None


class IndexKind(Enum):
    """The kinds of indexes of a Lance table. The values are their keys in the file."""

    VECTOR = "vector"
    SCALAR = "scalar"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDeclaration:
    """An index of a Lance table. `options` are the other keys of its kind."""

    column: str
    kind: IndexKind
    options: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The index's name: `<column>_idx` as in Lance's library, and `<column>_text_idx` for words."""
        return f"{self.column}_text_idx" if self.kind is IndexKind.TEXT else f"{self.column}_idx"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingDeclaration:
    """A function `module:function` that makes a vector of each row, from some of its columns.

    It takes an Arrow batch of the columns (and the model, if there is one), and returns as many vectors.
    """

    function: str
    columns: tuple[str, ...]
    dimension: int
    into: str = "embedding"
    """The column of the vectors."""
    model: str | None = None
    """A function without arguments, whose result each worker process passes to `function`."""
    version: str = ""
    """Changes of this text embed all rows again."""
    batch: int = 64
    """The largest number of rows of one call."""
    retries: int = 2
    """The number of further tries of a batch that fails."""
    callable: Callable[..., object] | None = field(default=None, compare=False)
    model_callable: Callable[..., object] | None = field(default=None, compare=False)

    @property
    def hash_column(self) -> str:
        """The column with the hash of a row's inputs."""
        return f"{self.into}_hash"

    @property
    def added(self) -> tuple[str, str]:
        """The columns that the step's table has in addition."""
        return (self.into, self.hash_column)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedChanges:
    """Schema changes of the table that lose data and are allowed, by column name."""

    drop: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A query in Spark's SQL. A name with one part is a source or a CTE; longer names are tables."""

    text: str
    at: SourcePosition | None = field(default=None, compare=False)
    """The position of the text's first character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    """A function from DataFrames (and parameters) to a DataFrame.

    `inputs` maps each argument to a source's name or to a table's parts.
    """

    function: str
    inputs: Mapping[str, str | Parts] = field(default_factory=dict)
    callable: Callable[..., object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A source copied without changes."""

    source: str


StepBody = Sql | PythonStep | Load


TestCell = Scalar
"""A value of a row of a unit test. Lists and mappings are JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestRows:
    """Rows of a unit test: of an input, or those that the step must make. A column that a row lacks is NULL."""

    rows: tuple[Mapping[str, TestCell], ...]
    columns: tuple[str, ...]
    schema: str | None = None
    """Spark's column list; if None, the types are those of the input, or follow from the values."""
    is_text: bool = False
    """Whether all values are texts of a CSV file, so that their types do not tell anything."""
    at: SourcePosition | None = field(default=None, compare=False)
    rows_at: tuple[SourcePosition, ...] = field(default=(), compare=False)
    columns_at: Mapping[str, SourcePosition] = field(default_factory=dict, compare=False)
    """The position of each column's first mention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """A test of a step: given rows of its inputs, the step makes the expected rows."""

    name: str
    expected: UnitTestRows
    given: Mapping[Parts, UnitTestRows] = field(default_factory=dict)
    """The rows by input: a source's name as one part, or a table's parts as the step writes them."""
    given_at: Mapping[Parts, SourcePosition] = field(default_factory=dict, compare=False)
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    parameters_at: Mapping[str, SourcePosition] = field(default_factory=dict, compare=False)
    at: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDeclaration:
    """A step: the table that it creates, its body, and its write mode.

    Its name is the table's path below the pipeline's catalog, `curated.nyc.delays`.
    """

    table: Parts
    """The table's path, catalog first."""
    body: StepBody
    write: WriteDeclaration = field(default_factory=WriteDeclaration)
    incremental: bool = False
    partition: tuple[str, ...] = ()
    """Iceberg's partition transforms in SQL notation: `days(flight_date)`, `bucket(16, id)`, `carrier`."""
    sort: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Of a Lance table, the array columns that are vectors, with their dimensions."""
    indexes: tuple[IndexDeclaration, ...] = ()
    """Of a Lance table, its indexes."""
    embed: EmbeddingDeclaration | None = None
    """Of a Lance table, the embedding of its rows."""
    columns: tuple[DeclaredColumn, ...] = ()
    comment: str | None = None
    allowed: AllowedChanges = field(default_factory=AllowedChanges)
    expectations: tuple[Expectation, ...] = ()
    tags: tuple[str, ...] = ()
    """Words by which selections find the step. They affect neither its rows nor its table."""
    tests: tuple[UnitTest, ...] = ()
    after: tuple[Parts, ...] = ()
    """Steps that must be done before this one although it does not read their tables."""
    declared: Parts | None = None
    """The table that the file declares, if the step writes another one in an environment."""
    at: SourcePosition | None = field(default=None, compare=False)

    @property
    def declared_table(self) -> Parts:
        """The table that the file declares. Queries and commands name it, also in an environment."""
        return self.declared or self.table

    @property
    def adds_to_its_table(self) -> bool:
        """Whether the rows that a run leaves in the table depend on those that the table had before."""
        return self.incremental or self.write.mode is not WriteMode.REPLACE

    @property
    def name(self) -> str:
        """The declared table's path below its catalog, joined by dots. Commands and runs use it as the step's name."""
        return ".".join(self.declared_table[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRows:
    """The rows of a loop's query, as they were when a run started. Values that are no whole numbers are texts."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLoop:
    """A loop over the rows of a query, whose steps a run makes when it starts."""

    name: str
    """The name of its steps as the file has it, with variables: `raw.orders_{{country}}`."""
    query: str
    variables: tuple[str, ...] = ()
    """The variables in the step's name and texts."""
    example: Mapping[str, str | int] = field(default_factory=dict)
    """Values of variables for unit tests, and for checks that read no rows."""
    at: SourcePosition | None = field(default=None, compare=False)
    query_at: SourcePosition | None = field(default=None, compare=False)

    def may_make(self, table: Parts) -> bool:
        """Return whether a step of the loop may have this table."""
        texts = [re.escape(text) for text in LOOP_VARIABLE.split(self.name)[::2]]
        return re.fullmatch("[A-Za-z0-9_-]+".join(texts), ".".join(table[1:])) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRule:
    """When a pipeline is due: at the times of a cron expression in a time zone, or only at those of them before which
    a table that it reads has changed.
    """

    cron: str
    time_zone: str = "UTC"
    if_changed: bool = False
    at: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRule:
    """The rule for an environment's tables: another catalog, a prefix of their first namespace, or both."""

    name: str
    catalog: str | None = None
    """The catalog of all tables."""
    catalogs: Mapping[str, str] = field(default_factory=dict)
    """The catalog by the declared one; takes precedence over `catalog`."""
    prefix: str = ""
    at: SourcePosition | None = field(default=None, compare=False)

    def table(self, declared: Parts) -> Parts:
        """Return the environment's table for a declared table."""
        catalog = self.catalogs.get(declared[0], self.catalog or declared[0])
        if len(declared) < 3:
            return (catalog, *declared[1:])
        return (catalog, f"{self.prefix}{declared[1]}", *declared[2:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment in which a pipeline runs, and the tables for which the names in its queries stand."""

    name: str
    pipeline: str
    """The name of the pipeline that the file declares."""
    production: Pipeline
    """The declaration of the file."""
    tables: Mapping[Parts, Parts]
    """The environment's table by the declared one. Of a declared table without entry, production's is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline. Its tables are in catalogs of one metalake, and a single commit publishes them."""

    name: str
    catalog: str
    """The catalog of the steps that name no other."""
    steps: tuple[StepDeclaration, ...]
    """Steps in the order of the file. `graph` computes the order of execution."""
    sources: tuple[DeclaredSource, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    comment: str | None = None
    python_files: tuple[str, ...] = ()
    """Files that are shipped to the executors."""
    environments: tuple[EnvironmentRule, ...] = ()
    schedule: ScheduleRule | None = None
    """When a server runs the pipeline, once it is registered there."""
    loops: tuple[QueryLoop, ...] = ()
    """Loops over rows of queries, whose steps are not made yet."""
    expand: Callable[[Mapping[str, LoopRows]], Pipeline] | None = field(default=None, compare=False)
    """Reads the file again with the rows of the loops, by the loops' names. Raises InvalidPipeline."""
    environment: Environment | None = None
    """The environment whose tables the steps write; None for production."""
    at: SourcePosition | None = field(default=None, compare=False)

    def actual_table(self, table: Parts) -> Parts:
        """Return the table for which a full name in a query stands: in an environment, for a table of a step, its own
        table.
        """
        return table if self.environment is None else self.environment.tables.get(table, table)

    @property
    def catalogs(self) -> tuple[str, ...]:
        """The catalogs of the pipeline's tables, its own first."""
        return tuple(dict.fromkeys((self.catalog, *(step.table[0] for step in self.steps))))
