"""Keys of rows that are merged: none of them NULL, none of them twice.

Job: look at the keys and say what was found, in the form of any expectation. May import this room's values,
`model` and PySpark. It must not know tables. Without it a merge inserts doubled new keys without a word, and NULL keys
again at every run.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import ExpectationAction, RuleKind
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.distinct import key_counts
from limnos.pipeline.outcomes import ExpectationFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_SAMPLES = 3
_COUNT = "_limnos_count"
_EMPTY = "_limnos_empty"


class KeyViolation(BadRequest):
    """Rows that can't be merged by their keys. `finding` says how many and which."""

    def __init__(self, message: str, *, finding: ExpectationFinding) -> None:
        super().__init__(message)
        self.finding = finding


def keys_finding(frame: DataFrame, keys: Sequence[str]) -> ExpectationFinding:
    """Count the rows whose key is NULL or is another row's as well."""
    counts = key_counts(frame, keys)
    if not counts.are_keys:
        return _broken(frame, keys)
    return _finding(f"every row has a key ({', '.join(keys)}) of its own", checked=counts.rows)


def _broken(frame: DataFrame, keys: Sequence[str]) -> ExpectationFinding:
    """Look again, at each key, and tell of the worst."""
    columns = [f.col(quote_column(each)) for each in keys]
    counted = frame.groupBy(*columns).agg(f.count(f.lit(1)).alias(_COUNT))
    counted = counted.withColumn(_EMPTY, reduce(or_, [each.isNull() for each in columns]))
    bad = f.col(_EMPTY) | (f.col(_COUNT) > 1)
    rows = f.coalesce(f.sum(f.col(_COUNT)), f.lit(0))
    empty = f.coalesce(f.sum(f.when(f.col(_EMPTY), f.col(_COUNT))), f.lit(0))
    broken = f.coalesce(f.sum(f.when(bad, f.col(_COUNT))), f.lit(0))
    found = counted.agg(rows.alias("rows"), empty.alias("empty"), broken.alias("broken")).collect()[0]
    examples = counted.where(bad).orderBy(f.col(_COUNT).desc()).limit(_SAMPLES).collect()
    sample = "; ".join(
        ", ".join(f"{each}={row[each]!r}" for each in keys) + f" ({row[_COUNT]} rows)" for row in examples
    )
    message = (
        f"{found['empty']} rows have a NULL in their key ({', '.join(keys)}), {found['broken'] - found['empty']} share it "
        f"with another row: {sample}"
    )
    return _finding(message, checked=found["rows"], broken=found["broken"], sample=sample)


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
    """Whether Spark knows by the frame's plan, as of one that groups by them, that no two rows have the same keys.

    Asked before the rows are held: those come from nowhere. False where it doesn't know, or plans cannot be had (Spark Connect).
    """
    java: Any = getattr(frame, "_jdf", None)
    if java is None:
        return False
    plan = java.queryExecution().optimizedPlan()
    wanted = {key.lower() for key in keys}
    own = {each.exprId().id() for each in _each(plan.output()) if each.name().lower() in wanted}
    return any(_attributes(known) <= own for known in _each(_plan_below_observation(plan).distinctKeys()))


def _plan_below_observation(plan: Any) -> Any:  # noqa: ANN401 - Spark's own
    """What stands below rows that are observed: an observation lets through every row as it is, but Spark then forgets what it knows."""
    below = plan
    while below.getClass().getSimpleName() == "Project":
        below = below.child()
    return below.child() if below.getClass().getSimpleName() == "CollectMetrics" else plan


def _attributes(known: Any) -> set[object]:  # noqa: ANN401 - Spark's own
    """The columns of a set that is distinct, by their numbers; another expression by its text, which is none of the keys."""
    is_column = "AttributeReference"
    return {
        each.exprId().id() if each.getClass().getSimpleName() == is_column else str(each.toString())
        for each in _each(known)
    }


def _each(found: Any) -> Iterator[Any]:  # noqa: ANN401 - Scala's collections
    walk = found.iterator()
    while walk.hasNext():
        yield walk.next()


def require_keys(frame: DataFrame, keys: Sequence[str], *, step: str, distinct: bool = False) -> None:
    """Raise KeyViolation unless every row has a key of its own. `distinct`: that none is there twice is known."""
    if distinct and frame.where(reduce(or_, [f.col(quote_column(each)).isNull() for each in keys])).isEmpty():
        return
    finding = keys_finding(frame, keys)
    if not finding.held:
        raise KeyViolation(
            f"Step {step}: {finding.message}. Nothing was written: make the query give each key once.", finding=finding
        )
