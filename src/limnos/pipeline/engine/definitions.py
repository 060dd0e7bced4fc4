# SPDX-License-Identifier: Apache-2.0
"""The whole definition of a step, and what in it differs from run to run.

Adds to the declared parts what only the engine knows: the values of the parameters that the step uses, its Python code
and the session's settings. Finds clocks, random numbers, the run's own id and time, and branches of tables, which no
digest can compare. Must not know how increments are read.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from limnos.pipeline.declaration import Load, PythonStep, Sql
from limnos.pipeline.definitions import code_part, declared_parts, digests, parameter_parts, removing_rules
from limnos.pipeline.engine.expectations.flags import RuleFlags
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.reads import RUN_PARAMETERS
from limnos.spark.gateway import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declaration import Pipeline, StepDeclaration
    from limnos.pipeline.declared_values import Scalar
    from limnos.pipeline.engine.relations import QueryNames
    from limnos.spark.gateway import Java

NOT_INSPECTED = "over Spark Connect plans can't be inspected"
_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
"""Settings that change results, and whose default depends on the machine or on Spark's release."""
_OTHER_SETTINGS = frozenset(
    {
        "spark.sql.timestampType",
        "spark.sql.storeAssignmentPolicy",
        "spark.sql.mapKeyDedupPolicy",
        "spark.sql.decimalOperations.allowPrecisionLoss",
        "spark.sql.columnNameOfCorruptRecord",
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.sources.partitionColumnTypeInference.enabled",
        "spark.sql.groupByOrdinal",
        "spark.sql.orderByOrdinal",
        "spark.sql.session.collation.default",
        "spark.sql.readSideCharPadding",
        "spark.sql.charAsVarchar",
        "spark.sql.variable.substitute",
        "spark.sql.jsonGenerator.ignoreNullFields",
        "spark.sql.csv.parser.columnPruning.enabled",
        "spark.sql.parquet.inferTimestampNTZ.enabled",
    }
)
"""Further settings that change results; they count if they are set."""
_PREFIXES = ("spark.sql.legacy.", "spark.sql.ansi.", "spark.sql.parser.")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`")
_CLOCKS = (
    "current_timestamp|now|current_date|curdate|localtimestamp|current_time|current_batch_timestamp|current_user"
    "|session_user|user|current_catalog|current_database|current_schema"
)
"""Functions whose value is the same in a query, and another in the next run."""
_AT_A_SNAPSHOT = re.compile(r"\s+(?:FOR\s+)?(?:SYSTEM_)?VERSION\s+AS\s+OF\s+[0-9]+\b", re.IGNORECASE)
"""The version of a table in a query that names the same rows in each run, after the table's name."""
_VARYING = re.compile(rf"\b({_CLOCKS})\(")
_OF_FILES = frozenset({"InputFileName", "InputFileBlockStart", "InputFileBlockLength"})
"""Functions that Spark calls non-deterministic although they depend only on the file of the row."""


def definition_of(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    pipeline: Pipeline,
    sources: Collection[str],
    query: QueryNames,
    values: Mapping[str, Scalar],
) -> dict[str, str]:
    """Return the digests of all parts of the step's definition. `query` has the names in its SQL."""
    used = query.parameters | _rule_parameters(spark, step) | _argument_names(step)
    return {
        **declared_parts(pipeline, step, sources=sources),
        **code_part(step),
        **parameter_parts(values, used - set(RUN_PARAMETERS)),
        **_session_parts(spark),
    }


def unpinned_reason(spark: SparkSession, step: StepDeclaration, *, query: QueryNames) -> str | None:
    """Return why a run may give other rows although its pinned inputs are the same: by its own id or time, unless they
    only stamp rows, or by a table that the query names at a branch, a tag or a time; None if neither is used.
    """
    text = step.body.text if isinstance(step.body, Sql) else ""
    moving = [one for one in query.relations if one.travels and not _AT_A_SNAPSHOT.match(text, one.stop)]
    if moving:
        table = ".".join(moving[0].parts)
        return f"the query reads {table} at a branch, a tag or a time, which runs do not compare (a snapshot's id may)"
    used = (query.parameters - query.stamps) | _rule_parameters(spark, step) | _argument_names(step)
    name = next((each for each in RUN_PARAMETERS if each in used), None)
    if name is None:
        return None
    return f"the step uses {name}, which every run changes (a column `:{name} AS …` of the query itself may)"


def varying_reason(step: StepDeclaration, frame: DataFrame, *, values: Mapping[str, Scalar]) -> str | None:
    """Return why the step's rows differ from run to run although its inputs are the same; None if they do not.

    The plans of the rows, of the rules that remove rows, and of `delete_when` and `as_of` are inspected.
    """
    rules = removing_rules(step)
    settings = {"delete_when": step.write.delete_when, "as_of": step.write.as_of}
    if not is_classic(frame.sparkSession):
        is_plain = isinstance(step.body, Load) and not rules and not any(settings.values())
        return None if is_plain else NOT_INSPECTED
    frames = [("the query", frame)]
    if rules:
        flags = RuleFlags(replace(step, expectations=rules), dict(values))
        frames.append(("a rule that removes rows", flags.add_flags(frame)))
    frames += [(f"`{name}`", frame.select(f.expr(text))) for name, text in settings.items() if text is not None]
    for where, each in frames:
        function = next(_varying_functions(each._jdf.queryExecution().analyzed()), None)  # noqa: SLF001
        if function is not None:
            advice = " (a column with the run's time is `:run_at AS …`)" if where == "the query" else ""
            return f"{where} has {function}, whose value is another one in each run{advice}"
    return None


def varies(expression: str) -> bool:
    """Return whether the text of an SQL expression names a clock, whose value differs between runs."""
    return re.search(rf"\b({_CLOCKS})\b", _QUOTED.sub("", expression), re.IGNORECASE) is not None


def _rule_parameters(spark: SparkSession, step: StepDeclaration) -> frozenset[str]:
    texts = [f"SELECT (\n{rule.condition}\n)" for rule in removing_rules(step) if ":" in (rule.condition or "")]
    return frozenset(name for text in texts for name in query_names(spark, text).parameters)


def _argument_names(step: StepDeclaration) -> frozenset[str]:
    body = step.body
    if not isinstance(body, PythonStep) or body.callable is None:
        return frozenset()
    return frozenset(inspect.signature(body.callable).parameters) - set(body.inputs)


def _session_parts(spark: SparkSession) -> dict[str, str]:
    setting_parts = {f"session setting {name}": spark.conf.get(name) for name in _SETTINGS}
    others = {
        name: value
        for name, value in session_settings(spark).items()
        if (name in _OTHER_SETTINGS or name.startswith(_PREFIXES)) and name not in _SETTINGS
    }
    return digests({**setting_parts, **({"other session settings": others} if others else {})})


def _varying_functions(plan: Java) -> Iterator[str]:
    """Yield the functions of a plan, with its subqueries and common tables, whose value differs between runs."""
    expressions = plan.expressions()
    for index in range(expressions.size()):
        expression = expressions.apply(index)
        text = _QUOTED.sub("", str(expression.sql()))
        if match := _VARYING.search(text):
            yield f"{match[1]}()"
        yield from _random_functions(expression)
    below = [plan.children(), plan.subqueries(), *([plan.cteDefs()] if _is_with(plan) else [])]
    for nodes in below:
        for index in range(nodes.size()):
            yield from _varying_functions(nodes.apply(index))


def _random_functions(expression: Java) -> Iterator[str]:
    if expression.deterministic():
        return
    children = expression.children()
    nested = [children.apply(index) for index in range(children.size())]
    if all(each.deterministic() for each in nested):
        if str(expression.getClass().getSimpleName()) not in _OF_FILES:
            yield str(expression.sql())[:80]
        return
    for each in nested:
        yield from _random_functions(each)


def _is_with(plan: Java) -> bool:
    return str(plan.getClass().getSimpleName()) == "WithCTE"
