"""What a pipeline is when it is written down: sources, steps, how each step writes, and what must hold of its rows.

Job: frozen values that a file (YAML) and Python's decorators both come to, so that checking, planning and running know
one form. May import the standard library and `names` only; it must not know of Spark, of servers, nor of how a
declaration is spelled. A value knows where it was written (`at`), which takes no part in comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Scalar = str | int | float | bool | None
Parts = tuple[str, ...]
"""Parts of a name; a table's begin with its catalog."""


class SourcePosition(NamedTuple):
    """Where something is written: file, and line and column counted from one; of Python, the function's first line."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """As editors and terminals open it."""
        return f"{self.file}:{self.line}:{self.column}"


class ParameterType(Enum):
    """Types of a parameter, by their word in the file."""

    STRING = "string"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value that a run is given; SQL takes it as Spark's named parameter `:name`, never as pasted text."""

    name: str
    type: ParameterType
    default: Scalar = None
    """None: it must be given."""
    comment: str | None = None
    at: SourcePosition | None = field(default=None, compare=False)


class MalformedRowPolicy(Enum):
    """What becomes of a row that a file's format or schema does not take."""

    FAIL = "fail"
    KEEP = "keep"
    """Into `<table>__malformed`, with its text and file."""
    COUNT = "count"
    """Left out, and told how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files by URL and pattern. `schema` is Spark's column list; None: inferred at the first run, then pinned."""

    path: str
    format: str
    """csv, json, parquet, orc or text."""
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    malformed: MalformedRowPolicy = MalformedRowPolicy.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """An Iceberg table or view of any catalog of the session."""

    table: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdbc:
    """A table or a query of a database. The password comes from an environment variable, never from the file."""

    url: str
    table: str | None = None
    query: str | None = None
    user: str | None = None
    password_env: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_column: str | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource:
    """A function that yields Arrow batches, or that takes `spark` and returns a DataFrame: `module:function`."""

    function: str
    schema: str | None = None
    """Spark's column list; needed where batches are yielded."""
    callable: Callable[..., object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What is new since the last run, by Structured Streaming with `availableNow`; files, an Iceberg table or Kafka."""

    files: Files | None = None
    table: Parts | None = None
    kafka: Mapping[str, str] | None = None


SourceKind = Files | TableSource | Jdbc | PythonSource | Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSource:
    """Something to read, under a name of one part by which steps speak of it."""

    name: str
    kind: SourceKind
    comment: str | None = None
    at: SourcePosition | None = field(default=None, compare=False)


class WriteMode(Enum):
    """How a step's rows come into its table."""

    REPLACE = "replace"
    APPEND = "append"
    MERGE = "merge"
    PARTITIONS = "partitions"
    """The partitions that the rows fall into are replaced."""
    HISTORY = "history"
    """Slowly changing dimension of type 2: a row per state of a key, with the times it held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDeclaration:
    """How a step writes. `keys` are needed by `merge` and `history`."""

    mode: WriteMode = WriteMode.REPLACE
    keys: tuple[str, ...] = ()
    delete_when: str | None = None
    """merge: SQL condition over the source's row; rows of the target with its key are deleted."""
    delete_missing: bool = False
    """merge and history: keys that the source lacks are deleted, or closed. Takes the whole source, never an increment."""
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    current: str = "is_current"
    as_of: str | None = None
    """history: SQL expression of the time from which the source's row holds; None: the run's time."""
    tracked: tuple[str, ...] = ()
    """history: columns whose change makes a new row; none named: all but the keys."""


class ExpectationAction(Enum):
    """What becomes of a broken expectation."""

    FAIL = "fail"
    DROP = "drop"
    QUARANTINE = "quarantine"
    WARN = "warn"


class RuleKind(Enum):
    """What an expectation is about. ROW is counted in the write itself; the others are asked of the written table."""

    ROW = "row"
    UNIQUE = "unique"
    NOT_NULL = "not_null"
    REFERENCES = "references"
    ROWS = "rows"
    FRESH = "fresh"
    NO_FEWER_ROWS = "no_fewer_rows"
    EMPTY = "empty"
    KEY = "key"
    """Made by the product for `merge` and `history`: no NULL and no duplicate among the source's keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One expectation of a step's table. Which fields say something depends on `kind`."""

    name: str
    kind: RuleKind
    action: ExpectationAction = ExpectationAction.FAIL
    """DROP and QUARANTINE are of row rules only."""
    tolerated: float = 0.0
    """Share of the rows that may break it, from 0 to 1."""
    condition: str | None = None
    """ROW: SQL condition that holds for a good row; one that is NULL is broken."""
    columns: tuple[str, ...] = ()
    """UNIQUE, NOT_NULL, REFERENCES, KEY; FRESH: the one with the time."""
    table: Parts | None = None
    """REFERENCES: the other table."""
    table_columns: tuple[str, ...] = ()
    rows_min: int | None = None
    rows_max: int | None = None
    within_s: int | None = None
    """FRESH: the newest value is at most so many seconds before the run's start."""
    query: str | None = None
    """EMPTY: a query that must return no row."""
    at: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn:
    """What is declared of one column beyond the query: comment, and that its NULLs are refused."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedChanges:
    """Changes of the table's schema that lose something, allowed by name."""

    drop: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A query in Spark's SQL. A name of one part is a source or a CTE; longer ones are tables."""

    text: str
    at: SourcePosition | None = field(default=None, compare=False)
    """Where the text's first character stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    """A function from DataFrames (and parameters) to a DataFrame.

    `inputs` says for each argument what it is given: a source's name, or a table's parts.
    """

    function: str
    inputs: Mapping[str, str | Parts] = field(default_factory=dict)
    callable: Callable[..., object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A source taken as it is."""

    source: str


StepBody = Sql | PythonStep | Load


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDeclaration:
    """What makes one table. Its name is the table's path below the pipeline's catalog: `curated.nyc.delays`."""

    table: Parts
    """Catalog first."""
    body: StepBody
    write: WriteDeclaration = field(default_factory=WriteDeclaration)
    incremental: bool = False
    partition: tuple[str, ...] = ()
    """Iceberg's transforms as SQL writes them: `days(flight_date)`, `bucket(16, id)`, `carrier`."""
    sort: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[DeclaredColumn, ...] = ()
    comment: str | None = None
    allowed: AllowedChanges = field(default_factory=AllowedChanges)
    expectations: tuple[Expectation, ...] = ()
    after: tuple[Parts, ...] = ()
    """Steps that must be done before, though nothing of them is read."""
    at: SourcePosition | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The table below its catalog, dots between the parts: how commands and runs speak of the step."""
        return ".".join(self.table[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A whole declaration. All its tables lie in one catalog, because one commit publishes them."""

    name: str
    catalog: str
    steps: tuple[StepDeclaration, ...]
    """In the order written; the order of running is `graph`'s."""
    sources: tuple[DeclaredSource, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    comment: str | None = None
    python_files: tuple[str, ...] = ()
    """Files shipped to executors."""
    at: SourcePosition | None = field(default=None, compare=False)
