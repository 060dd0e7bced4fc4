# SPDX-License-Identifier: Apache-2.0
"""Preview of publishing a run: rows added, removed and changed on a branch, compared with its base snapshot.

Each table is compared in one query, by whole rows and the number of times that each occurs. If the step has keys, rows
with the same key that differ count as changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, MapType, StructType

from limnos.names import display, engine
from limnos.pipeline.engine.pinned_reads import branch_pin
from limnos.pipeline.outcomes import LanceState, ReadPin, StepBranch

_SIDE = "_side"
_TIMES = "_times"
SAMPLE_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDifference:
    """Differences of a branch from its base, the head of `main` when the run began. Without keys, a changed row counts
    as one removed and one added.
    """

    table: str
    added: int
    removed: int
    changed: int | None
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    sample: tuple[dict[str, object], ...] = ()


def difference(spark: SparkSession, branch: StepBranch, *, keys: Sequence[str] = (), rows: int = 0) -> BranchDifference:
    """Compare the branch's head with its base, the head of `main` when the run began: of a Lance table the newest
    staged version with the version where the step began.

    The sample has at most `rows` of the differing rows. Raises NotFound if a staged version is gone.
    """
    if branch.head is None or branch.head == branch.base:
        return BranchDifference(table=display.render(branch.table), added=0, removed=0, changed=0 if keys else None)
    new = _rows_at(spark, branch, at=branch.head)
    old = new.limit(0) if branch.base is None else _rows_at(spark, branch, at=branch.base)
    shared = [column for column in new.columns if column in set(old.columns)]
    unequal = _unequal(new, old, shared=shared)
    added, removed, changed = _counts(unequal, keys=keys)
    return BranchDifference(
        table=display.render(branch.table),
        added=added,
        removed=removed,
        changed=changed,
        columns_added=tuple(column for column in new.columns if column not in set(old.columns)),
        columns_removed=tuple(column for column in old.columns if column not in set(new.columns)),
        sample=_sample(unequal, rows),
    )


def _rows_at(spark: SparkSession, branch: StepBranch, *, at: int) -> DataFrame:
    """Return the table's rows at its branch's head or base."""
    if branch.staged is None:
        return spark.sql(f"SELECT * FROM {engine.render_spark(branch.table)} VERSION AS OF {at}")
    from limnos.pipeline.engine.lance.reading import lance_read  # noqa: PLC0415 - loads Lance's library

    base = ReadPin(name=".".join(branch.table), table=branch.table, snapshot=at, lance=LanceState())
    return lance_read(spark, branch_pin(branch) if at == branch.head else base)[0]


def _unequal(new: DataFrame, old: DataFrame, *, shared: Sequence[str]) -> DataFrame:
    """Return the rows that occur a different number of times in `new` and `old`, with the difference, which is positive
    if `new` has more.
    """
    columns = [F.col(_quote_column(column)) for column in shared]
    both = new.select(*columns, F.lit(1).alias(_SIDE)).unionByName(old.select(*columns, F.lit(-1).alias(_SIDE)))
    types = {field.name: field.dataType for field in new.schema.fields}
    compared = [
        _comparable(F.col(_quote_column(column)), types[column]).alias(f"_{index}")
        for index, column in enumerate(shared)
    ]
    entries = [F.first(_quote_column(column)).alias(column) for column in shared]
    grouped = both.groupBy(*compared).agg(*entries, F.sum(_SIDE).alias(_TIMES))
    return grouped.where(F.col(_TIMES) != 0).select(*columns, _TIMES)


def _comparable(column: Column, kind: DataType) -> Column:
    """Return an expression that Spark can group by: maps and variants are cast to STRING."""
    return column.try_cast("string") if _is_not_groupable(kind) else column


def _is_not_groupable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_is_not_groupable(field.dataType) for field in kind.fields)
    element = getattr(kind, "elementType", None)
    return (
        isinstance(kind, MapType)
        or kind.typeName() == "variant"
        or (element is not None and _is_not_groupable(element))
    )


def _counts(unequal: DataFrame, *, keys: Sequence[str]) -> tuple[int, int, int | None]:
    times = F.col(_TIMES)
    added = F.sum(F.when(times > 0, times).otherwise(0)).alias("added")
    removed = F.sum(F.when(times < 0, -times).otherwise(0)).alias("removed")
    if not keys:
        row = unequal.agg(added, removed).collect()[0]
        return int(row["added"] or 0), int(row["removed"] or 0), None
    by_key = unequal.groupBy(*(F.col(_quote_column(key)) for key in keys)).agg(added, removed)
    changed = F.least("added", "removed").alias("changed")
    row = (
        by_key.select("added", "removed", changed).agg(F.sum("added"), F.sum("removed"), F.sum("changed")).collect()[0]
    )
    moved = int(row[2] or 0)
    return int(row[0] or 0) - moved, int(row[1] or 0) - moved, moved


def _sample(unequal: DataFrame, rows: int) -> tuple[dict[str, object], ...]:
    if not rows:
        return ()
    results = unequal.limit(min(rows, SAMPLE_MAX)).collect()
    return tuple(
        {
            "side": "added" if row[_TIMES] > 0 else "removed",
            **{key: value for key, value in row.asDict().items() if key != _TIMES},
        }
        for row in results
    )


def _quote_column(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
