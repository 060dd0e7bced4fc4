"""Which of a step's tables are read by increments: decided from what it last published, its mode, and the query's plan.

Job: the reads of an incremental step, each with its reason where it takes the whole. May import this room, `names` and PySpark. It
must not know how an increment is found (`increments`) nor how rows are written. What a step last read stands in the summary
of its own table's published snapshot, so a table that was restored and its pipeline agree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from limnos.names import engine
from limnos.pipeline.checkpoints import INPUTS, inputs_of
from limnos.pipeline.declaration import PythonStep, Sql, WriteMode
from limnos.pipeline.engine.increments import Increment, increment
from limnos.pipeline.engine.metadata import is_classic, metadata_of
from limnos.pipeline.engine.parser import Java
from limnos.pipeline.engine.pinned_reads import PinnedRead, frame_of, reads, stand_in
from limnos.pipeline.outcomes import ReadPin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declaration import Parts, StepDeclaration
    from limnos.pipeline.engine.metadata import TableMetadata, TableSnapshot

QUERY_MARK = "limnos.query"
"""A digest of what makes the rows: another query can't go on from what this one made."""
_THROUGH = frozenset(
    {
        "Project", "Filter", "SubqueryAlias", "View", "Generate", "Sort", "CollectMetrics", "ResolvedHint", "RepartitionByExpression",
        "Repartition", "CTERelationDef", "Union",
    }
)  # fmt: skip
_LEFT = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"})
_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadChoice:
    """How an incremental step reads. `whole_because` None: `increments` has the tables that are read by increments."""

    found: Mapping[Parts, PinnedRead]
    whole_because: str | None = None
    increments: frozenset[Parts] = frozenset()
    nothing_new: bool = False
    """No table has anything new: the step has nothing to write."""


def marks_of(step: StepDeclaration, pins: Mapping[Parts, ReadPin]) -> dict[str, str]:
    """What the snapshot of an incremental step says of what it read, for the next run."""
    inputs = {engine.render_spark(table): _state(pin) for table, pin in pins.items()}
    return {INPUTS: json.dumps(inputs, sort_keys=True), QUERY_MARK: _digest(step)}


def choose(
    spark: SparkSession, step: StepDeclaration, *, pins: Mapping[Parts, ReadPin], full: bool = False
) -> ReadChoice:
    """How an incremental step reads the tables that are pinned for it. `full`: the caller wants the whole."""
    whole = reads(spark, pins)
    reason = "the whole was asked for" if full else _mode_reason(step)
    last = None if reason is not None else _last(spark, step)
    if reason is None and last is None:
        reason = "nothing was published yet, or by another query"
    if reason is not None or last is None:
        return _whole(whole, reason or "")
    changed = {each: pin for each, pin in pins.items() if last.get(engine.render_spark(each), -1) != _state(pin)}
    if not changed:
        return ReadChoice(found=whole, nothing_new=True)
    found = {each: _increment(spark, pin, last=last) for each, pin in changed.items()}
    reasons = [each.whole_because for each in found.values() if each.whole_because is not None]
    if step.write.mode is WriteMode.APPEND:
        reasons += [
            f"{'.'.join(table)}: rows were changed since, and `append` can't take back what it made of them"
            for table, each in found.items()
            if each.frame is not None and not each.only_new
        ]
    if reasons:
        return _whole(whole, "; ".join(reasons))
    frames = {each: found[each].frame for each in changed}
    given = {
        each: stand_in(frame, pin=replace(changed[each], since=_since(changed[each], last=last)))
        for each, frame in frames.items()
        if frame is not None
    }
    return ReadChoice(found=reads(spark, pins, given=given), increments=frozenset(given))


def checkpoint_snapshot(found: TableMetadata) -> TableSnapshot | None:
    """The newest published snapshot that says what it was made of: maintenance lays others on top."""
    return next((each for each in found.ancestors(found.head()) if INPUTS in each.summary), None)


def inputs_of_mark(snapshot: TableSnapshot) -> Mapping[str, int | str | None] | None:
    """What a snapshot says it was made of; None where it says nothing that a step writes."""
    return inputs_of(snapshot.summary.get(INPUTS))


def _increment(spark: SparkSession, pin: ReadPin, *, last: Mapping[str, int | str | None]) -> Increment:
    table = pin.table or ()
    name = engine.render_spark(table)
    if pin.fingerprint is not None:
        return Increment(whole_because=f"view {pin.name} was defined otherwise when it was read last")
    if name in last and last[name] is None:
        return Increment(frame=frame_of(spark, reads(spark, {table: pin})[table]), only_new=True)
    return increment(spark, table, since=_since(pin, last=last), until=pin.snapshot)


def _since(pin: ReadPin, *, last: Mapping[str, int | str | None]) -> int | None:
    told = last.get(engine.render_spark(pin.table or ()))
    return told if isinstance(told, int) else None


def _state(pin: ReadPin) -> int | str | None:
    return pin.snapshot if pin.fingerprint is None else pin.fingerprint


def read_whole(spark: SparkSession, *, pins: Mapping[Parts, ReadPin], reason: str) -> ReadChoice:
    """The same step, reading everything after all."""
    return _whole(reads(spark, pins), reason)


def not_incremental(frame: DataFrame, chosen: ReadChoice, *, also: frozenset[str] = frozenset()) -> str | None:
    """Why the rows that a step makes of increments are not the increment of its rows; None: they are.

    `also` are temporary views of other sources that hold only what is new. Filters, projections, unions, and joins with what has not changed are; what looks at several rows at once is not.
    """
    if not is_classic(frame.sparkSession):
        return "over Spark Connect plans can't be looked into"
    names = also | {chosen.found[each].text for each in chosen.increments}
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - plans are Spark's own
    try:
        _passes_new_rows(plan, names=names, shared={})
    except _NotIncremental as error:
        return str(error)
    return None


class _NotIncremental(Exception):
    """Says which part of a plan needs more than the new rows."""


def _passes_new_rows(plan: Java, *, names: frozenset[str], shared: dict[int, bool]) -> bool:
    """Whether new rows come through a node of a plan. Raises _NotIncremental."""
    node: str = plan.getClass().getSimpleName()
    if node == "SubqueryAlias" and plan.alias() in names:
        return True
    if node == "CTERelationRef":
        return shared.get(plan.cteId(), False)
    for each in _each(plan.subqueries()):
        if _passes_new_rows(each, names=names, shared=shared):
            raise _NotIncremental("a subquery of the query reads what has changed")
    if node == "WithCTE":
        for each in _each(plan.cteDefs()):
            shared[each.id()] = _passes_new_rows(each, names=names, shared=shared)
        return _passes_new_rows(plan.plan(), names=names, shared=shared)
    below = [_passes_new_rows(each, names=names, shared=shared) for each in _each(plan.children())]
    if not any(below):
        return False
    if node == "Join":
        return _passes_through_join(plan, left=below[0], right=below[1])
    if node not in _THROUGH:
        raise _NotIncremental(f"the query has {_WORDS.get(node, node)}, which looks at more than the new rows")
    return True


def _passes_through_join(plan: Java, *, left: bool, right: bool) -> bool:
    kind: str = plan.joinType().toString()
    if left and right:
        raise _NotIncremental("the query joins tables that have both changed")
    if kind not in (_LEFT if left else _RIGHT):
        raise _NotIncremental(
            f"the query has a join ({kind}) by which new rows of one table change what was made of the other"
        )
    return True


_WORDS = {
    "Aggregate": "an aggregate",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Window": "a window",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Sample": "TABLESAMPLE",
    "Pivot": "PIVOT",
}


def _each(sequence: Java) -> Iterator[Java]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _mode_reason(step: StepDeclaration) -> str | None:
    if step.write.mode is WriteMode.REPLACE:
        return "`replace` makes the whole table anew"
    if step.write.mode is WriteMode.PARTITIONS:
        return "`partitions` replaces whole partitions, of which an increment has only the new rows"
    if step.write.delete_missing:
        return "`delete_missing` has to see every row of the source"
    return None


def _last(spark: SparkSession, step: StepDeclaration) -> Mapping[str, int | str | None] | None:
    """What the step's published table was made of; None where nothing says so, or another query made it."""
    found = metadata_of(spark, step.table)
    if found is None:
        return None
    newest = checkpoint_snapshot(found)
    if newest is None or newest.summary.get(QUERY_MARK) != _digest(step):
        return None
    return inputs_of_mark(newest)


def _digest(step: StepDeclaration) -> str:
    body = step.body
    told: tuple[object, ...] = (step.write,)
    if isinstance(body, Sql):
        told += ("sql", body.text)
    elif isinstance(body, PythonStep):
        told += ("python", body.function, sorted(body.inputs.items()))
    else:
        told += ("load", body.source)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _whole(whole: Mapping[Parts, PinnedRead], reason: str) -> ReadChoice:
    told = {table: replace(each, pin=replace(each.pin, whole_because=reason)) for table, each in whole.items()}
    return ReadChoice(found=told, whole_because=reason)
