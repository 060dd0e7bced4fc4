# SPDX-License-Identifier: Apache-2.0
"""Checks of merge keys: not NULL and unique.

Returns the result as a finding. Must not know tables. Without the check, a merge silently inserts duplicate new keys,
and inserts NULL keys again in each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import ExpectationAction, RuleKind
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.distinct import key_counts
from limnos.pipeline.outcomes import ExpectationFinding
from limnos.spark.scala import scala_items

_SAMPLES = 3
_COUNT = "_limnos_count"
_EMPTY = "_limnos_empty"


class KeyViolation(BadRequest):
    """Raised if keys of rows do not allow a merge. `finding` has the counts and examples."""

    def __init__(self, message: str, *, finding: ExpectationFinding) -> None:
        super().__init__(message)
        self.finding = finding


def keys_finding(
    frame: DataFrame, keys: Sequence[str], *, labels: Mapping[str, str] | None = None
) -> ExpectationFinding:
    """Return a finding that counts the rows whose key is NULL or a duplicate. `labels` has the names in messages of
    columns whose own names the declaration lacks.
    """
    counts = key_counts(frame, keys)
    if not counts.are_keys:
        return _find_broken_keys(frame, keys, labels=dict(labels or {}))
    return _finding(f"every row has a unique key ({', '.join(keys)})", checked=counts.rows)


def _find_broken_keys(frame: DataFrame, keys: Sequence[str], *, labels: Mapping[str, str]) -> ExpectationFinding:
    """Group by each key and describe the keys with the most violations."""
    columns = [f.col(quote_column(each)) for each in keys]
    counted = frame.groupBy(*columns).agg(f.count(f.lit(1)).alias(_COUNT))
    counted = counted.withColumn(_EMPTY, reduce(or_, [each.isNull() for each in columns]))
    bad = f.col(_EMPTY) | (f.col(_COUNT) > 1)
    rows = f.coalesce(f.sum(f.col(_COUNT)), f.lit(0))
    empty = f.coalesce(f.sum(f.when(f.col(_EMPTY), f.col(_COUNT))), f.lit(0))
    broken = f.coalesce(f.sum(f.when(bad, f.col(_COUNT))), f.lit(0))
    result = counted.agg(rows.alias("rows"), empty.alias("empty"), broken.alias("broken")).collect()[0]
    examples = counted.where(bad).orderBy(f.col(_COUNT).desc()).limit(_SAMPLES).collect()
    sample = "; ".join(
        ", ".join(f"{labels.get(each, each)}={_key_text(row[each])}" for each in keys) + f" ({row[_COUNT]} rows)"
        for row in examples
    )
    repeated, names = result["broken"] - result["empty"], ", ".join(labels.get(each, each) for each in keys)
    faults = [
        *([f"{result['empty']} rows have a NULL in their key ({names})"] if result["empty"] else []),
        *([f"{repeated} rows share their key ({names}) with another row"] if repeated else []),
    ]
    message = f"{', '.join(faults)}: {sample}"
    return _finding(message, checked=result["rows"], broken=result["broken"], sample=sample)


def _key_text(value: object) -> str:
    """Return a part of a key for a message: texts in quotes, other values as SQL writes them."""
    return repr(value) if isinstance(value, str) else "NULL" if value is None else str(value)


def _finding(message: str, *, checked: int, broken: int = 0, sample: str | None = None) -> ExpectationFinding:
    return ExpectationFinding(
        rule="key",
        kind=RuleKind.KEY.value,
        action=ExpectationAction.FAIL.value,
        broken=broken,
        checked=checked,
        tolerated=0.0,
        held=not broken,
        message=message,
        sample=sample,
    )


def are_distinct(frame: DataFrame, keys: Sequence[str]) -> bool:
    """Return whether Spark's optimized plan guarantees distinct keys, for example by a GROUP BY.

    Call it before the rows are staged, because staged rows have no plan. Returns False if the plan does not guarantee
    it, and over Spark Connect.
    """
    java: Any = getattr(frame, "_jdf", None)
    if java is None:
        return False
    plan = java.queryExecution().optimizedPlan()
    requested_names = {key.lower() for key in keys}
    key_ids = {each.exprId().id() for each in scala_items(plan.output()) if each.name().lower() in requested_names}
    return any(_attributes(known) <= key_ids for known in scala_items(_plan_below_observation(plan).distinctKeys()))


def _plan_below_observation(plan: Any) -> Any:  # noqa: ANN401 - Spark's own
    """Return the plan below an observation, which passes rows unchanged but hides which columns are distinct."""
    below = plan
    while below.getClass().getSimpleName() == "Project":
        below = below.child()
    return below.child() if below.getClass().getSimpleName() == "CollectMetrics" else plan


def _attributes(known: Any) -> set[object]:  # noqa: ANN401 - Spark's own
    """Return the expression ids of a set of distinct columns; other expressions as text, which never equals a key."""
    is_column = "AttributeReference"
    return {
        each.exprId().id() if each.getClass().getSimpleName() == is_column else str(each.toString())
        for each in scala_items(known)
    }


def require_keys(
    frame: DataFrame,
    keys: Sequence[str],
    *,
    step: str,
    distinct: bool = False,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Raise KeyViolation unless the key columns are unique and not NULL.

    `distinct`: the keys are guaranteed to be unique, so that only NULLs are checked. `labels` as for `keys_finding`.
    """
    if distinct and frame.where(reduce(or_, [f.col(quote_column(each)).isNull() for each in keys])).isEmpty():
        return
    finding = keys_finding(frame, keys, labels=labels)
    if not finding.held:
        raise KeyViolation(
            f"Step {step}: {finding.message}. Nothing was written: make the query return each key once.",
            finding=finding,
        )
