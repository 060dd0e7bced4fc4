# SPDX-License-Identifier: Apache-2.0
"""Malformed rows of a source: their table, and the finding that counts them.

Takes rows whose column `BAD` has the text of a malformed row, and `FILE` its place. Must not know formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind
from limnos.pipeline.engine.expectations.flags import sample
from limnos.pipeline.engine.expectations.judgement import finding
from limnos.pipeline.engine.expectations.rows import AT_COLUMN, RUN_COLUMN, read_observation
from limnos.pipeline.engine.naming import BAD, FILE, quote_identifier
from limnos.pipeline.engine.sources.values import (
    FILE_COLUMN,
    SOURCE_COLUMN,
    TEXT_COLUMN,
    MalformedRows,
    SourceReadRequest,
)
from limnos.pipeline.outcomes import ExpectationFinding
from limnos.pipeline.source_declarations import MalformedRowPolicy

KEPT_ACTION: Final = "keep"
"""The action in findings about rows that are kept in the table of malformed rows. They are not in quarantine."""
_ACTIONS = {
    MalformedRowPolicy.FAIL: ExpectationAction.FAIL,
    MalformedRowPolicy.KEEP: ExpectationAction.QUARANTINE,
    MalformedRowPolicy.COUNT: ExpectationAction.DROP,
}


def malformed_rows(
    request: SourceReadRequest, policy: MalformedRowPolicy, *, parsed: DataFrame, observation: Observation | None = None
) -> MalformedRows:
    """Return the rows of `parsed` whose column `BAD` is not NULL, with their file in `FILE`.

    With `observation`, which is used by a watched read, they are counted during the write; otherwise by a query.
    """
    bad = parsed.observe(Observation(), *counts(parsed)).where(F.col(BAD).isNotNull())

    def findings() -> tuple[ExpectationFinding, ...]:
        numbers = read_observation(observation) if request.watched and observation is not None else None
        if numbers is None:
            numbers = parsed.agg(*counts(parsed)).collect()[0].asDict()
        return (_finding(request, policy, counts=numbers, bad=bad),)

    rows = bad.select(
        F.col(BAD).alias(TEXT_COLUMN),
        F.col(FILE).alias(FILE_COLUMN),
        F.lit(request.source.name).alias(SOURCE_COLUMN),
        F.lit(request.parameters.get("run_id")).cast("string").alias(RUN_COLUMN),
        F.lit(request.parameters.get("run_at")).cast("timestamp").alias(AT_COLUMN),
    )
    return MalformedRows(rows=rows, keep=policy is MalformedRowPolicy.KEEP, findings=findings)


def counts(parsed: DataFrame) -> list[Column]:
    """Return aggregates: all rows, malformed rows, and a checksum of every column.

    The checksum is not used. It keeps Spark from skipping columns that the query does not need. Spark has no checksum
    of maps and variants; a test for NULL needs their values, too.
    """
    columns = [(F.col(quote_identifier((field.name,))), field.dataType) for field in parsed.schema.fields]
    every = [column if _has_checksum(kind) else column.isNotNull() for column, kind in columns]
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.col(BAD).isNotNull()).alias("malformed"),
        F.bit_xor(F.xxhash64(*every)).alias("every"),
    ]


def _has_checksum(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_has_checksum(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_checksum(kind.elementType)
    return not isinstance(kind, (MapType, VariantType))


def _finding(
    request: SourceReadRequest, policy: MalformedRowPolicy, *, counts: Mapping[str, int], bad: DataFrame
) -> ExpectationFinding:
    name = f"{request.source.name} is well formed"
    rule = Expectation(name=name, kind=RuleKind.ROW, action=_ACTIONS[policy])
    number, rows = counts["malformed"], counts["rows"]
    result = finding(rule, broken=number, checked=rows, sample=_sample(bad) if number else None)
    if policy is MalformedRowPolicy.KEEP:
        result = replace(result, action=KEPT_ACTION)
    if not number:
        return result
    became = {
        MalformedRowPolicy.FAIL: "correct them, or write `malformed: keep` or `count`",
        MalformedRowPolicy.KEEP: "they are in the table of malformed rows, with their text and file",
        MalformedRowPolicy.COUNT: "they were left out",
    }
    text = f"{number:,} of {rows:,} rows do not match its format and schema; {became[policy]}"
    return replace(result, message=f"{name}: {text}")


def _sample(bad: DataFrame) -> str | None:
    return sample(bad.select(F.col(FILE).alias(FILE_COLUMN), F.col(BAD).alias(TEXT_COLUMN)))
