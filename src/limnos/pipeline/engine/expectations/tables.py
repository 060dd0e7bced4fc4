# SPDX-License-Identifier: Apache-2.0
"""Table rules: queries on the branch that a step has written.

Evaluates the rules unique, not null, references, rows between, fresh, no fewer rows than before, and queries that must
return nothing. Rules that one aggregation can answer share it; others need a count by keys, a join or a query each.
Must not know the branch or snapshot of a name: `reads` returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Protocol

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegralType, LongType, StringType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Expectation, RuleKind, StepDeclaration
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.engine.distinct import key_counts
from limnos.pipeline.engine.expectations.flags import sample
from limnos.pipeline.engine.expectations.judgement import finding
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.relations import relations, splice_names
from limnos.pipeline.outcomes import ExpectationFinding
from limnos.pipeline.problems import InvalidQuery

Reads = Callable[[Parts], str]
"""A function that returns the text to use for a table in the FROM of a query: its branch of this run, or its pinned
snapshot.
"""

_ROWS = "rows"
_IS_KEY, _IS_LOST = "_limnos_is_key", "_limnos_is_lost"
_SHARED = (RuleKind.NOT_NULL, RuleKind.ROWS, RuleKind.FRESH, RuleKind.NO_FEWER_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RuleContext:
    """The arguments that all table rules are evaluated with: session, step, written table, and the run's time and
    parameters.
    """

    spark: SparkSession
    step: StepDeclaration
    table: DataFrame
    reads: Reads
    run_at: datetime
    rows_before: int | None
    parameters: Mapping[str, Scalar]


def table_findings(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    reads: Reads,
    run_at: datetime,
    rows_before: int | None = None,
    parameters: Mapping[str, Scalar] | None = None,
) -> tuple[ExpectationFinding, ...]:
    """Return the findings of the step's table rules, in the order of the declaration.

    Args:
        spark: The session.
        step: The step, with its expectations.
        reads: Returns the SQL to use for a table, including the step's own (its branch).
        run_at: The run's time.
        rows_before: Number of rows of the published table; None if it is new.
        parameters: The run's parameters, for queries.

    Raises:
        BadRequest: A rule that cannot be evaluated, with its position.
    """
    rules = [rule for rule in step.expectations if rule.kind in _JUDGES]
    if not rules:
        return ()
    table = spark.sql(f"SELECT * FROM {reads(step.table)}")
    check_columns(step, table.columns)
    context = _RuleContext(
        spark=spark,
        step=step,
        table=table,
        reads=reads,
        run_at=run_at,
        rows_before=rows_before,
        parameters=dict(parameters or {}),
    )
    read = cache(lambda: _shared_counts(context, rules))
    return tuple(
        _JUDGES[rule.kind](context, rule, counts=_SharedCounts(read, str(rules.index(rule)))) for rule in rules
    )


def check_columns(step: StepDeclaration, columns: Sequence[str]) -> None:
    """Raise BadRequest for a table rule that names a column not among `columns`. Case does not matter, as in SQL."""
    column_names = {column.lower() for column in columns}
    for rule in step.expectations:
        unknown = [column for column in rule.columns if column.lower() not in column_names and rule.kind in _JUDGES]
        if unknown:
            raise _refusal(step, rule, why=f"names a column {unknown[0]!r}; the table has {', '.join(columns)}.")


@dataclass(frozen=True, slots=True)
class _SharedCounts:
    """The shared aggregation, which runs when its result row is first read, and the name of one rule's column in it."""

    read: Callable[[], Row]
    name: str

    @property
    def rows(self) -> int:
        return int(self.read()[_ROWS])

    @property
    def own(self) -> float | None:
        """The value of this rule's column in the aggregation's row; None for NULL."""
        value: float | None = self.read()[self.name]
        return value


class _RuleJudge(Protocol):
    """Evaluates one kind of rule, with the shared counts and further queries."""

    def __call__(self, context: _RuleContext, rule: Expectation, /, *, counts: _SharedCounts) -> ExpectationFinding: ...


def _shared_counts(context: _RuleContext, rules: Sequence[Expectation]) -> Row:
    columns = [F.count(F.lit(1)).alias(_ROWS)]
    columns += [_shared_column(rule).alias(str(number)) for number, rule in enumerate(rules) if rule.kind in _SHARED]
    return context.table.agg(*columns).collect()[0]


def _shared_column(rule: Expectation) -> Column:
    """Return the aggregate that the shared aggregation needs for this rule."""
    columns = [F.col(quote_identifier((column,))) for column in rule.columns]
    if rule.kind is RuleKind.NOT_NULL:
        return F.count_if(~_are_all_known(columns))
    if rule.kind is RuleKind.FRESH:
        return F.max(columns[0].cast("timestamp")).cast("double")
    return F.count(F.lit(1))


def _unique(
    context: _RuleContext,
    rule: Expectation,
    *,
    counts: _SharedCounts,  # noqa: ARG001 - its own query counts the rows
) -> ExpectationFinding:
    """Evaluate UNIQUE. Rows with NULL in a column are never duplicates, because NULL equals nothing."""
    result = key_counts(context.table, rule.columns)
    again = result.known - result.distinct
    return finding(
        rule,
        broken=again,
        checked=result.rows,
        what=f"{again:,} of {result.rows:,} rows repeat another's {', '.join(rule.columns)}" if again else None,
        sample=_duplicate_key_sample(context, rule) if again else None,
    )


def _duplicate_key_sample(context: _RuleContext, rule: Expectation) -> str | None:
    columns = [F.col(quote_identifier((column,))) for column in rule.columns]
    counted = context.table.where(_are_all_known(columns)).groupBy(*columns).agg(F.count(F.lit(1)).alias("repeated"))
    return sample(counted.where(F.col("repeated") > 1))


def _not_null(context: _RuleContext, rule: Expectation, *, counts: _SharedCounts) -> ExpectationFinding:
    nulls = int(counts.own or 0)
    columns = [F.col(quote_identifier((column,))) for column in rule.columns]
    return finding(
        rule,
        broken=nulls,
        checked=counts.rows,
        what=f"{nulls:,} of {counts.rows:,} rows have no {' or no '.join(rule.columns)}" if nulls else None,
        sample=sample(context.table.where(~_are_all_known(columns))) if nulls else None,
    )


def _rows(_: _RuleContext, rule: Expectation, *, counts: _SharedCounts) -> ExpectationFinding:
    low, high = rule.rows_min or 0, rule.rows_max
    outside = max(low - counts.rows, counts.rows - high if high is not None else 0, 0)
    expected = f"at least {low:,}" if high is None else f"between {low:,} and {high:,}"
    return finding(
        rule,
        broken=outside,
        checked=counts.rows,
        what=f"{counts.rows:,} rows, {expected} {'are' if outside else 'were'} expected",
    )


def _fresh(context: _RuleContext, rule: Expectation, *, counts: _SharedCounts) -> ExpectationFinding:
    within = rule.within_s or 0
    column = rule.columns[0]
    if counts.own is None:
        return finding(rule, broken=1, checked=1, what=f"no row has a time: {column} is NULL in all {counts.rows:,}")
    age = context.run_at.timestamp() - counts.own
    what = f"the newest {column} is {_duration(age)} before the run's start, {_duration(within)} is allowed"
    return finding(rule, broken=int(age > within), checked=1, what=what)


def _no_fewer_rows(context: _RuleContext, rule: Expectation, *, counts: _SharedCounts) -> ExpectationFinding:
    former_count = context.rows_before
    if former_count is None:
        return finding(rule, broken=0, checked=0, what=f"{counts.rows:,} rows in a new table")
    what = f"{counts.rows:,} rows, {former_count:,} are published"
    return finding(rule, broken=max(former_count - counts.rows, 0), checked=former_count, what=what)


def _references(
    context: _RuleContext,
    rule: Expectation,
    *,
    counts: _SharedCounts,  # noqa: ARG001 - its own query counts the rows
) -> ExpectationFinding:
    if rule.table is None:
        raise _refusal(context.step, rule, why="names no table: name the referenced table.")
    theirs = rule.table_columns or rule.columns
    try:
        rows = _marked_references(context, rule, theirs=theirs)
        checked_count, broken_count = rows.agg(F.count(F.lit(1)), F.count_if(F.col(_IS_LOST))).collect()[0]
    except AnalysisException as error:
        raise _refusal(context.step, rule, why=f"cannot be evaluated: {_first_line(error)}") from error
    referenced_text = f"{'.'.join(rule.table)} ({', '.join(theirs)})"
    return finding(
        rule,
        broken=broken_count,
        checked=checked_count,
        what=f"{broken_count:,} of {checked_count:,} rows have no match in {referenced_text}" if broken_count else None,
        sample=sample(rows.where(F.col(_IS_LOST)).select("mine.*")) if broken_count else None,
    )


def _marked_references(context: _RuleContext, rule: Expectation, *, theirs: Sequence[str]) -> DataFrame:
    """Return the rows as `mine`, with a column that marks those whose complete reference has no match. As in SQL, a
    reference with a NULL refers to nothing.
    """
    other = context.spark.sql(f"SELECT * FROM {context.reads(rule.table or ())}")
    mine = context.table.alias("mine")
    keys = other.select(*(F.col(quote_identifier((column,))) for column in theirs)).distinct()
    keys = keys.withColumn(_IS_KEY, F.lit(True)).alias("other")
    on = F.lit(True)
    for here, current in zip(rule.columns, theirs, strict=True):
        on = on & _equal(mine, keys, column=here, key=current)
    are_known = _are_all_known([F.col(f"mine.{quote_identifier((column,))}") for column in rule.columns])
    return mine.join(keys, on, "left").withColumn(_IS_LOST, are_known & F.col(f"other.{_IS_KEY}").isNull())


def _equal(mine: DataFrame, keys: DataFrame, *, column: str, key: str) -> Column:
    """Return the condition that a reference equals a key. Of a text and another type the text is converted; a text that
    is no value of that type equals nothing, where SQL's equality would end the run.
    """
    left, right = F.col(f"mine.{quote_identifier((column,))}"), F.col(f"other.{quote_identifier((key,))}")
    kinds = [frame.select(value).schema.fields[0].dataType for frame, value in ((mine, left), (keys, right))]
    texts = [isinstance(kind, StringType) for kind in kinds]
    if texts == [True, False]:
        left = left.try_cast(_equality_type(kinds[1]))
    if texts == [False, True]:
        right = right.try_cast(_equality_type(kinds[0]))
    return left == right


def _equality_type(kind: DataType) -> DataType:
    return LongType() if isinstance(kind, IntegralType) else kind


def _empty(context: _RuleContext, rule: Expectation, *, counts: _SharedCounts) -> ExpectationFinding:
    try:
        frame = context.spark.sql(_pin_query(context, rule.query or ""), args=dict(context.parameters) or None)
        broken = frame.count()
    except (AnalysisException, ParseException) as error:
        raise _refusal(context.step, rule, why=f"cannot be evaluated: {_first_line(error)}") from error
    except InvalidQuery as error:
        place = f"line {error.line}, column {error.column} of its query"
        raise _refusal(context.step, rule, why=f"cannot be evaluated: {error.message} ({place})") from error
    return finding(
        rule,
        broken=broken,
        checked=counts.rows,
        what=f"the query returned {broken:,} rows, none were expected"
        if broken
        else "the query returned no rows, as expected",
        sample=sample(frame) if broken else None,
    )


def _pin_query(context: _RuleContext, query: str) -> str:
    """Replace the query's tables by the run's branches and pinned snapshots."""
    named_relations = relations(context.spark, query)
    texts = {one.parts: context.reads(one.parts) for one in named_relations}
    views = frozenset(parts for parts, text in texts.items() if "." not in text)
    return splice_names(query, named_relations, texts=texts, renamed=views)


def _are_all_known(columns: Sequence[Column]) -> Column:
    condition = F.lit(True)
    for column in columns:
        condition = condition & column.isNotNull()
    return condition


def _refusal(step: StepDeclaration, rule: Expectation, *, why: str) -> BadRequest:
    prefix = f"{rule.at}: " if rule.at else ""
    return BadRequest(f"{prefix}expectation {rule.name!r} of {step.name} {why}", step=step.name, rule=rule.name)


def _first_line(error: AnalysisException | ParseException) -> str:
    return str(error.getMessage() or error).split("\n", 1)[0].split(" SQLSTATE:", 1)[0].strip()


def _duration(seconds: float) -> str:
    """Format seconds in the largest unit that gives at least one: `2.5 days`, `40 s`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


_JUDGES: Mapping[RuleKind, _RuleJudge] = {
    RuleKind.UNIQUE: _unique,
    RuleKind.NOT_NULL: _not_null,
    RuleKind.ROWS: _rows,
    RuleKind.FRESH: _fresh,
    RuleKind.NO_FEWER_ROWS: _no_fewer_rows,
    RuleKind.REFERENCES: _references,
    RuleKind.EMPTY: _empty,
}
