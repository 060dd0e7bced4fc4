# SPDX-License-Identifier: Apache-2.0
"""The declaration of a pipeline: steps, write modes, expectations, unit tests, schedule and environments.

YAML files and Python decorators are both converted to these frozen values, which checks, plans and runs use. Its
sources are in `source_declarations`. Must not know Spark, servers or the form in which a declaration is written. Each
value has its position (`at`), which comparisons ignore.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from limnos.pipeline.declared_values import Parts, Scalar, SourcePosition
from limnos.pipeline.source_declarations import DeclaredSource

LOOP_VARIABLE: Final = re.compile(r"\{\{\s*([^\s{}]*)\s*\}\}")
"""A variable of a loop in a step's name and texts."""


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
        return self.write.mode is not WriteMode.REPLACE

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
