# SPDX-License-Identifier: Apache-2.0
"""Branches of steps: begin, look up, drop; and the check that a statement writes only its branch.

Must not know write modes. A write names its branch in the table's name. Before it runs, its analyzed plan must name the
same branch, because other ways to select a branch silently fall back to `main`.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from limnos.model.errors import BadRequest, CommitConflict, NotFound
from limnos.names import engine
from limnos.pipeline.context import MADE_BY
from limnos.pipeline.engine.metadata import (
    MAIN,
    LoadedTable,
    TableMetadata,
    is_classic,
    loaded_from,
    metadata_of,
    require_metadata,
    require_table,
)
from limnos.pipeline.outcomes import StepBranch
from limnos.spark.gateway import Java, java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.declaration import StepDeclaration
    from limnos.pipeline.declared_values import Parts

BASE_MARK = "limnos.base"
"""The summary key for the head of `main` from which the branch began, or `none`, in each snapshot that a step
writes.
"""
_NO_BASE = "none"
_RETAIN_DAYS = 7
_RUN_BRANCH = re.compile(r"(?P<run>run_[0-9a-f]{12})_\d+")


class WriteKind(Enum):
    """Kinds of write statements. A kind's value is the root node of the statement's analyzed plan."""

    APPEND = "AppendData"
    OVERWRITE = "OverwriteByExpression"
    OVERWRITE_PARTITIONS = "OverwritePartitionsDynamic"
    MERGE = "ReplaceData"
    MERGE_DELTA = "WriteDelta"


_NODES = frozenset(kind.value for kind in WriteKind)
_PREFIX = "branch_"
_EXPLAINED = re.compile(
    r"(?P<node>\w+) RelationV2\[.*\] (?P<name>(?:`(?:[^`]|``)+`|\w+)(?:\.(?:`(?:[^`]|``)+`|\w+))*)(?:,|$)"
)
MERGES = frozenset({WriteKind.MERGE, WriteKind.MERGE_DELTA})


def begin(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    branch: str,
    at: int | None = None,
    loaded: LoadedTable | None = None,
) -> StepBranch:
    """Create `branch` of the step's table at the head of `main`, or at the snapshot `at` of an earlier attempt.

    An existing branch of that name is replaced. The result's `base` is the head of `main`; with `at` it is the base of
    the earlier attempt.

    `loaded` is the table, if the caller has just loaded it. Publishing then asserts that state, so it detects any later
    change.

    Raises:
        NotFound: The table or the snapshot does not exist.
        CommitConflict: `main` has moved since the earlier attempt began. Run the step again from `main`.
    """
    loaded = loaded or require_table(spark, step.table)
    metadata = loaded.metadata
    base = metadata.head() if at is None else _base_of(metadata, table=step.table, at=at)
    start = base if at is None else at
    _begin_at(spark, step.table, branch=branch, start=start, loaded=loaded)
    if start is None:  # creating a branch of an empty table adds an empty snapshot
        metadata = require_metadata(spark, step.table)
        start = metadata.head(branch)
    return _branch(metadata, table=step.table, name=branch, base=base, head=start)


def restore(spark: SparkSession, branch: StepBranch) -> None:
    """Set a branch back to its head before a write of this step. The written snapshot loses its only reference."""
    _set_branch(spark, branch.table, name=branch.name, snapshot_id=branch.head)


def head(spark: SparkSession, branch: StepBranch) -> int | None:
    """Return the id of the branch's newest snapshot; None if the branch or its table no longer exists."""
    metadata = metadata_of(spark, branch.table)
    return None if metadata is None else metadata.head(branch.name)


def drop(spark: SparkSession, table: Parts, *, name: str) -> None:
    """Drop a branch if it and its table exist. Raises BadRequest for `main`."""
    if name == MAIN:
        raise BadRequest("`main` is the published branch, not the branch of a run: it is not dropped.")
    if metadata_of(spark, table) is not None:
        spark.sql(f"ALTER TABLE {engine.render_spark(table)} DROP BRANCH IF EXISTS {engine.render_spark((name,))}")


def leftover_branches(spark: SparkSession, table: Parts) -> tuple[str, ...]:
    """Return the names of all branches of runs in a table, sorted."""
    metadata = metadata_of(spark, table)
    return () if metadata is None else tuple(sorted(name for name in metadata.refs if _RUN_BRANCH.fullmatch(name)))


def run_of(name: str) -> str:
    """Return the common prefix of a run's branch names: the name without the attempt. Another name is returned
    unchanged.
    """
    match = _RUN_BRANCH.fullmatch(name)
    return name if match is None else match["run"]


def branch_identifier(branch: StepBranch) -> str:
    """Return the branch as a quoted identifier of Spark SQL: the table's path, then `branch_` and the branch's name."""
    return engine.render_spark((*branch.table, f"{_PREFIX}{branch.name}"))


def base_mark(branch: StepBranch) -> dict[str, str]:
    """Return the summary entry that records the branch's base, so that a later attempt can continue from it."""
    return {BASE_MARK: _NO_BASE if branch.base is None else str(branch.base)}


def run_on_branch(
    spark: SparkSession, statement: str, *, branch: StepBranch, kinds: frozenset[WriteKind]
) -> LoadedTable | None:
    """Run a statement after checking that it writes `branch` as one of `kinds`.

    A classic session runs exactly the plan that was checked. Returns the table as its commit left it; None over Spark
    Connect. Raises BadRequest before anything is written.
    """
    if not is_classic(spark):
        require_branch(spark, statement, branch=branch, kinds=kinds)
        spark.sql(statement)
        return None
    plan = _analyse_statement(spark, statement)
    _require(_target(plan), branch=branch, kinds=kinds)
    spark._jsparkSession.sessionState().executePlan(plan, _mode(spark).ALL()).commandExecuted()  # noqa: SLF001 - plans are Spark's own
    return loaded_from(spark, _iceberg_table(plan).table())


def require_branch(spark: SparkSession, statement: str, *, branch: StepBranch, kinds: frozenset[WriteKind]) -> None:
    """Check by its analyzed plan that a statement writes `branch` as one of `kinds`. Does not run it.

    Raises BadRequest if it would write elsewhere or in another way.
    """
    target = (
        _target(_analyse_statement(spark, statement)) if is_classic(spark) else _written_table_of_text(spark, statement)
    )
    _require(target, branch=branch, kinds=kinds)


def _require(target: _WriteTarget, *, branch: StepBranch, kinds: frozenset[WriteKind]) -> None:
    if target.node not in {kind.value for kind in kinds}:
        raise BadRequest(
            f"A write of {branch_identifier(branch)} was refused before it ran: its plan is {target.node}."
        )
    if target.name != (*branch.table, f"{_PREFIX}{branch.name}") or target.branch != branch.name:
        where = engine.render_spark(target.name)
        raise BadRequest(f"A write of {branch_identifier(branch)} was refused before it ran: its plan writes {where}.")


def _base_of(metadata: TableMetadata, *, table: Parts, at: int) -> int | None:
    snapshot = metadata.snapshot(at)
    name = engine.render_spark(table)
    if snapshot is None:
        raise NotFound(f"Snapshot {at} of {name} has expired: the step must run again.", kind="snapshot")
    text = snapshot.summary.get(BASE_MARK)
    base = metadata.head() if text is None else None if text == _NO_BASE else int(text)
    if base != metadata.head():
        raise CommitConflict(f"`main` of {name} has moved since the step ended: the step must run again.")
    return base


def _begin_at(spark: SparkSession, table: Parts, *, branch: str, start: int | None, loaded: LoadedTable) -> None:
    name, ref = engine.render_spark(table), engine.render_spark((branch,))
    if start is None:
        spark.sql(f"ALTER TABLE {name} DROP BRANCH IF EXISTS {ref}")
        spark.sql(f"ALTER TABLE {name} CREATE BRANCH {ref} RETAIN {_RETAIN_DAYS} DAYS")
        return
    if loaded.java is not None and branch not in loaded.metadata.refs:
        _commit_branch(spark, loaded.java, branch=branch, start=start)
        return
    _set_branch(spark, table, name=branch, snapshot_id=start)


def _set_branch(spark: SparkSession, table: Parts, *, name: str, snapshot_id: int | None) -> None:
    reference = f"{engine.render_spark((name,))} AS OF VERSION {snapshot_id} RETAIN {_RETAIN_DAYS} DAYS"
    spark.sql(f"ALTER TABLE {engine.render_spark(table)} CREATE OR REPLACE BRANCH {reference}")


def _commit_branch(spark: SparkSession, table: Java, *, branch: str, start: int) -> None:
    """Create a branch of a loaded table by one request. A statement would load the table three times before it."""
    references = java_class(spark._jvm, "org.apache.iceberg.SnapshotRef")  # noqa: SLF001
    metadata = java_class(spark._jvm, "org.apache.iceberg.TableMetadata")  # noqa: SLF001
    age_ms = _RETAIN_DAYS * 24 * 3600 * 1000
    reference = references.branchBuilder(start).maxRefAgeMs(age_ms).build()
    operations = table.operations()
    base = operations.current()
    operations.commit(base, metadata.buildFrom(base).setRef(branch, reference).build())


def _branch(metadata: TableMetadata, *, table: Parts, name: str, base: int | None, head: int | None) -> StepBranch:
    return StepBranch(
        table=table,
        name=name,
        uuid=metadata.table_uuid,
        schema_id=metadata.current_schema_id,
        base=base,
        head=head,
        is_new=base is None and metadata.properties.get(MADE_BY) == run_of(name),
    )


class _WriteTarget(NamedTuple):
    """The target of a statement: root node of its plan, name of the table, and the branch that Iceberg resolved."""

    node: str
    name: Parts = ()
    branch: str | None = None


def _mode(spark: SparkSession) -> Java:
    return java_class(spark._jvm, "org.apache.spark.sql.execution.CommandExecutionMode")  # noqa: SLF001


def _analyse_statement(spark: SparkSession, statement: str) -> Java:
    session: Java = spark._jsparkSession.sessionState()  # noqa: SLF001 - plans are Spark's own
    return session.executePlan(session.sqlParser().parsePlan(statement), _mode(spark).SKIP()).analyzed()


def _target(plan: Java) -> _WriteTarget:
    """Return the table and branch that an analyzed plan writes; only the node's name if the plan writes no table."""
    node: str = plan.getClass().getSimpleName()
    if node not in _NODES:
        return _WriteTarget(node)
    relation = plan.table()
    identifier = relation.identifier().get()
    name = (relation.catalog().get().name(), *identifier.namespace(), identifier.name())
    return _WriteTarget(node, name, _iceberg_table(plan).branch())


def _iceberg_table(plan: Java) -> Java:
    """Return the `SparkTable` that an analyzed plan writes."""
    table = plan.table().table()
    return table.table() if table.getClass().getSimpleName() == "RowLevelOperationTable" else table


def _written_table_of_text(spark: SparkSession, statement: str) -> _WriteTarget:
    """Return the target from the text of a plan, for Spark Connect: from the line of the analyzed plan that writes."""
    text: str = spark.sql(f"EXPLAIN EXTENDED {statement}").collect()[0][0]
    analyzed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    line = next((each for each in analyzed.splitlines() if each.split(" ", 1)[0] in _NODES), "")
    match = _EXPLAINED.match(line)
    if match is None:
        return _WriteTarget(line.split(" ", 1)[0] or "unknown")
    name = engine.parse_spark(match["name"])
    return _WriteTarget(match["node"], name, name[-1].removeprefix(_PREFIX) if name[-1].startswith(_PREFIX) else None)
