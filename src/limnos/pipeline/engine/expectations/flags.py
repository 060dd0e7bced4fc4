# SPDX-License-Identifier: Apache-2.0
"""Conditions of row rules as boolean columns: true if the row satisfies the rule.

Evaluates the declared conditions for each row, and derives counts, samples and names of broken rules from them. A
condition that Spark rejects is refused with its position. A NULL condition counts as broken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it
from pyspark.sql.types import BooleanType, NullType, StringType, VariantType

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind, StepDeclaration
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.problems import InvalidQuery
from limnos.spark.scala import scala_items

ROWS = "rows"
"""Name of the count of all rows among the observed counts."""
KEPT_ROWS = f"{ROWS}_kept"
"""Name of the count of the rows that no rule removes."""
SAMPLE_ROWS_MAX = 5
SAMPLE_VALUE_CHARACTERS_MAX = 120
_PREFIX = "_limnos_rule_"


class RuleFlags:
    """The row rules of one step, and the columns with their results."""

    def __init__(self, step: StepDeclaration, parameters: Mapping[str, Scalar] | None = None) -> None:
        self.rules = tuple(rule for rule in step.expectations if rule.kind is RuleKind.ROW)
        self.names = tuple(f"{_PREFIX}{number}" for number in range(len(self.rules)))
        self._parameters = dict(parameters or {})
        self._step = step

    def of(self, *actions: ExpectationAction) -> tuple[str, ...]:
        """Return the flag columns of the rules with one of these actions."""
        return tuple(flag for flag, rule in zip(self.names, self.rules, strict=True) if rule.action in actions)

    def add_flags(self, frame: DataFrame) -> DataFrame:
        """Return `frame` with a boolean column, never NULL, for each rule. Nothing is run.

        Raises BadRequest with the position of the first rule that Spark rejects.
        """
        self._refuse_taken_names(frame)
        self._refuse_tables(frame, self.rules)
        try:
            flagged = self._select(frame, self.rules)
            fits = flagged.columns == [*frame.columns, *self.names]
        except (AnalysisException, ParseException):
            fits = False
        if not fits or any(not isinstance(flagged.schema[flag].dataType, BooleanType) for flag in self.names):
            for rule in self.rules:
                self._refuse_unusable(frame, rule)
        return flagged.withColumns({flag: F.expr(f"coalesce({flag}, false)") for flag in self.names})

    def columns_read(self, frame: DataFrame) -> frozenset[str] | None:
        """Return the columns of `frame` that the conditions read, in lower case.

        None if the conditions must be evaluated on `frame` itself: one is not deterministic, as `rand()` or
        `input_file_name()`, or depends on other rows. None as well over Spark Connect, which does not tell.
        """
        java: Any = getattr(frame, "_jdf", None)
        if java is None:
            return None
        flagged: Any = self._select(frame, self.rules)
        plan = flagged._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no API for plans
        if plan.getClass().getSimpleName() != "Project":
            return None
        names = {
            each.exprId().id(): each.name().lower() for each in scala_items(java.queryExecution().analyzed().output())
        }
        conditions = list(scala_items(plan.projectList()))[-len(self.rules) :]
        read = [each.exprId().id() for condition in conditions for each in scala_items(condition.references())]
        if not all(condition.deterministic() for condition in conditions) or not names.keys() >= set(read):
            return None
        return frozenset(names[each] for each in read)

    def counts(self) -> list[Column]:
        """Return aggregates over flagged rows: the count of all rows, and for each rule the count of rows that break
        it.

        Rules with the actions fail and warn count only rows that are written to the table, not dropped and quarantined
        rows.
        """
        removing = (ExpectationAction.DROP, ExpectationAction.QUARANTINE)
        stays = _all(self.of(*removing))
        counts = [f"count(1) AS {ROWS}", f"count_if({stays}) AS {KEPT_ROWS}"]
        for flag, rule in zip(self.names, self.rules, strict=True):
            counted = f"NOT {flag}" if rule.action in removing else f"NOT {flag} AND {stays}"
            counts.append(f"count_if({counted}) AS {flag}")
        return [F.expr(count) for count in counts]

    def accepted_rows(self) -> Column:
        """Return the filter for the rows that are written to the table: they break no rule that drops a row or puts it
        into quarantine.
        """
        return F.expr(_all(self.of(ExpectationAction.DROP, ExpectationAction.QUARANTINE)))

    def set_aside(self) -> Column:
        """Return the filter for the rows that are written to quarantine: they break a rule with that action."""
        return F.expr(f"NOT ({_all(self.of(ExpectationAction.QUARANTINE))})")

    def broken_names(self) -> Column:
        """Return an array column with the names of the broken rules that exclude a row from the table."""
        out = (ExpectationAction.DROP, ExpectationAction.QUARANTINE)
        pairs = [pair for pair in zip(self.names, self.rules, strict=True) if pair[1].action in out]
        return F.array_compact(F.array(*(F.when(~F.col(flag), F.lit(rule.name)) for flag, rule in pairs)))

    def sample(self, flagged: DataFrame, rule: Expectation) -> str | None:
        """Return some rows that break the rule, as JSON with shortened values; None if there are none."""
        flag = self.names[self.rules.index(rule)]
        among = (
            flagged
            if rule.action in (ExpectationAction.DROP, ExpectationAction.QUARANTINE)
            else flagged.where(self.accepted_rows())
        )
        return sample(among.where(~F.col(flag)).drop(*self.names))

    def _select(self, frame: DataFrame, rules: Sequence[Expectation]) -> DataFrame:
        """Add the conditions' results to the rows.

        Each condition is on separate lines, so that Spark reports correct positions.
        """
        flags = (f"(\n{_braces(rule.condition or '')}\n) AS `{self.names[self.rules.index(rule)]}`" for rule in rules)
        text = f"SELECT *, {', '.join(flags)} FROM {{limnos_rows}}"
        return frame.sparkSession.sql(text, args=self._parameters or None, limnos_rows=frame)

    def _refuse_tables(self, frame: DataFrame, rules: Sequence[Expectation]) -> None:
        """Raise BadRequest for a condition that names a table: it would read its current state, not the run's pin."""
        text = f"SELECT {', '.join(f'({chr(10)}{rule.condition}{chr(10)})' for rule in rules)}"
        try:
            relation_names = query_names(frame.sparkSession, text).relations
        except InvalidQuery as error:
            if len(rules) > 1:
                self._refuse_one_of(frame, rules)
            place = f"line {max(error.line - 1, 1)}, column {error.column} of it"
            raise self._refusal(rules[0], f"is {error.message} ({place})") from error
        if relation_names and len(rules) > 1:
            self._refuse_one_of(frame, rules)
        elif relation_names:
            table = ".".join(relation_names[0].parts)
            raise self._refusal(
                rules[0],
                f"reads the table {table}; a condition may only read its row: write `references`, or a rule with a"
                " query.",
            )

    def _refuse_one_of(self, frame: DataFrame, rules: Sequence[Expectation]) -> None:
        for rule in rules:
            self._refuse_tables(frame, [rule])

    def _refuse_unusable(self, frame: DataFrame, rule: Expectation) -> None:
        try:
            selected = self._select(frame, [rule])
            columns, kind = selected.columns, selected.schema[-1].dataType
        except (AnalysisException, ParseException) as error:
            raise self._refusal(rule, _error_sentence(error)) from error
        if len(columns) != len(frame.columns) + 1:
            raise self._refusal(rule, "is not one condition: write a single SQL expression.")
        if not isinstance(kind, (BooleanType, NullType)):
            raise self._refusal(rule, f"is of type {kind.simpleString()}: write one that is true or false.")

    def _refusal(self, rule: Expectation, why: str) -> BadRequest:
        prefix = f"{rule.at}: " if rule.at else ""
        return BadRequest(
            f"{prefix}expectation {rule.name!r} of {self._step.name}: its condition `{rule.condition}` {why}",
            step=self._step.name,
            rule=rule.name,
        )

    def _refuse_taken_names(self, frame: DataFrame) -> None:
        names = [column for column in frame.columns if column.lower() in self.names]
        if names:
            raise BadRequest(
                f"Step {self._step.name} makes a column {names[0]!r}, a name that is reserved while rows are checked:"
                " rename it."
            )


def sample(rows: DataFrame) -> str | None:
    """Return the first rows as a JSON list; None if there are none."""
    columns = [
        _sample_text(F.col(quote_identifier((field.name,))), field.dataType).alias(field.name)
        for field in rows.schema.fields
    ]
    results = rows.select(*columns).limit(SAMPLE_ROWS_MAX).collect()
    return json.dumps([row.asDict() for row in results], ensure_ascii=False) if results else None


def _sample_text(column: Column, kind: object) -> Column:
    """Convert a column to strings of limited length, because samples are sent to the server with the run's record."""
    if isinstance(kind, VariantType):
        column = F.to_json(column)
    text = column if isinstance(kind, StringType) else column.cast("string")
    return F.substring(text, 1, SAMPLE_VALUE_CHARACTERS_MAX)


def _all(flags: Sequence[str]) -> str:
    """Return the condition that all flags are true."""
    return " AND ".join(flags) or "true"


def _braces(text: str) -> str:
    """Escape braces, which PySpark's SQL formatter uses for its own parameters."""
    return text.replace("{", "{{").replace("}", "}}")


def _error_sentence(error: AnalysisException | ParseException) -> str:
    """Return Spark's first sentence and the fragment that it refers to."""
    message = str(error.getMessage() or error).split("\n", 1)[0].split(" SQLSTATE:", 1)[0].strip()
    return f"is rejected by Spark: {message}{_position(error)}"


def _position(error: AnalysisException | ParseException) -> str:
    """Return the fragment of SQL that Spark's error refers to as ` (at «…»)`; empty if there is none."""
    contexts = error.getQueryContext() or []
    fragments = [context.fragment() for context in contexts]
    return f" (at «{fragments[0].strip()}»)" if fragments and fragments[0].strip() else ""
