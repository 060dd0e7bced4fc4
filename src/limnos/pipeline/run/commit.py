# SPDX-License-Identifier: Apache-2.0
"""Publishing of a run: one transaction moves `main` of all outputs and marks the run as published.

Sends the transaction, finds its result if the response was lost, explains a refusal, and reports lineage after success.
Assertions are never refreshed here: if `main` of a table has moved, its step runs again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from limnos.client import Client
from limnos.client.errors import ClientError, ConflictError, NotFoundError, RefusedError
from limnos.names import display
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.lineage import lineage_of_tables, report_lineage
from limnos.pipeline.outcomes import StepBranch, StepOutcome
from limnos.pipeline.publish import publish_operations
from limnos.pipeline.run.heartbeat import superseded_message
from limnos.pipeline.run.refs import TableHeads, heads_of, run_operations
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import RunStopped

PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class MovedOutput:
    """An output that changed since the run began. `is_dropped`: the table no longer exists."""

    branch: StepBranch
    who: str
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of publishing all outputs. `revision` is the catalog's revision of the commit; None if its response
    was lost and only the run's record shows the commit.
    """

    revision: int | None


def publish(
    client: Client, branches: Sequence[StepBranch], *, run: str, attempt: int, again: int, patience: RetryPolicy
) -> PublishResult | tuple[MovedOutput, ...]:
    """Move `main` of all tables to their branches' heads, or return the outputs that have moved.

    `again` is the count of earlier tries in this attempt.

    Raises:
        RunStopped: Another attempt has taken over, or the run was cancelled.
        DeniedError: The caller lacks a right.
        ConflictError, NotFoundError: The server refuses the transaction, and no output has moved.
        RefusedError: The server refuses the transaction for another reason, and it has no versions of Lance tables.
        ValueError: A table lacks a column to drop, and no output has moved.
        UnavailableError: The server was unreachable for too long. The run's record shows whether it was published.
    """
    metadata = {
        branch.table: heads.metadata
        for branch in branches
        if branch.columns_to_drop and (heads := _load_heads(client, branch.table, patience=patience)) is not None
    }
    try:
        moves = publish_operations(branches, metadata=metadata)
    except ValueError as error:
        # The table's columns have changed since the step read them. Nothing was sent.
        return tuple(_moved_outputs(client, branches, patience=patience)) or _reraise(error)
    catalog = branches[0].table[0]
    operations = [*moves, {"do": "publish-run", "catalog": catalog, "run": run, "attempt": attempt}]
    key = key_of(run, attempt, again=again)
    try:
        revisions = patience.call(lambda: run_operations(client, operations, key=key))
    except (ConflictError, NotFoundError, RefusedError) as error:
        return _explain_refusal(client, branches, run=run, attempt=attempt, error=error, patience=patience)
    return PublishResult(revisions[catalog])


def report_lineages(client: Client, outcomes: Mapping[str, StepOutcome], *, pipeline: str, run: str) -> None:
    """Report the lineage of each published step. If the query's lineage is unknown, report the tables that it read."""
    for name, outcome in outcomes.items():
        lineage = outcome.lineage or lineage_of_tables(pin.table for pin in outcome.pins if pin.table is not None)
        targets = [branch.table for branch in outcome.branches]
        report_lineage(client, pipeline=pipeline, run_id=run, step=name, targets=targets, lineage=lineage)


def key_of(run: str, attempt: int, *, again: int) -> str:
    """Return the idempotency key of a publishing transaction, in the form of a UUID version 7.

    The same run, attempt and try always give the same key.
    """
    digest = hashlib.sha256(f"{run}/{attempt}/{again}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-7{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _explain_refusal(
    client: Client, branches: Sequence[StepBranch], *, run: str, attempt: int, error: ClientError, patience: RetryPolicy
) -> PublishResult | tuple[MovedOutput, ...]:
    """Determine from the run's record and the tables why the transaction was refused.

    Returns the result if the run was published after all, or the outputs that have moved. Raises RunStopped if another
    attempt has taken over or the run was cancelled, else `error`.
    """
    stored_run = patience.call(lambda: client.runs.load(run))
    if stored_run.attempt != attempt:
        raise RunStopped(EndReason.SUPERSEDED, superseded_message(run, error)) from error
    if stored_run.state == PUBLISHED:
        return PublishResult(stored_run.revision)
    if stored_run.state == "cancelling":
        raise RunStopped(EndReason.CANCELLED, "the run was cancelled by 'limnos pipeline cancel'") from error
    moved = tuple(_moved_outputs(client, branches, patience=patience))
    if not moved and isinstance(error, RefusedError):
        # A staged manifest no longer exists, or not in the table's location: the versions must be written again.
        moved = tuple(MovedOutput(each, f"{error.message}") for each in branches if each.staged)
    if not moved:
        raise error
    return moved


def _moved_outputs(client: Client, branches: Iterable[StepBranch], *, patience: RetryPolicy) -> Iterable[MovedOutput]:
    for branch in branches:
        words = _difference(branch, _load_heads(client, branch.table, patience=patience))
        if words is not None:
            yield words


def _load_heads(client: Client, table: Parts, *, patience: RetryPolicy) -> TableHeads | None:
    return patience.call(lambda: heads_of(client, table))


def _difference(branch: StepBranch, heads: TableHeads | None) -> MovedOutput | None:
    """Describe the change of an output since the run began; None if it is unchanged."""
    path = display.render(branch.table)
    if heads is None:
        return MovedOutput(branch, f"{path} was dropped or renamed during the run", is_dropped=True)
    if heads.uuid != branch.uuid:
        return MovedOutput(branch, f"{path} was dropped and created again during the run")
    if heads.main != branch.base:
        return MovedOutput(branch, f"{path} was written {_writer(heads)}")
    if _schema(heads) != branch.schema_id:
        return MovedOutput(branch, f"the columns of {path} were changed during the run")
    if branch.staged is None and heads.refs.get(branch.name) != branch.head:
        return MovedOutput(branch, f"branch {branch.name} of {path} was changed after its step")
    return None


def _reraise(error: ValueError) -> NoReturn:
    raise error


def _schema(heads: TableHeads) -> int | None:
    result = heads.metadata.get("current-schema-id")
    return result if isinstance(result, int) else None


def _writer(heads: TableHeads) -> str:
    """Return a description of the writer and the time of the head of `main`, from its snapshot."""
    snapshot = heads.snapshot(heads.main)
    summary = snapshot.get("summary") or {}
    words = []
    if at := snapshot.get("timestamp-ms"):
        words.append(f"at {datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC")
    if run := summary.get("limnos.run"):
        words.append(f"by run {run}")
    elif engine := summary.get("engine-name") or summary.get("app-id"):
        words.append(f"by {engine}")
    if operation := summary.get("operation"):
        words.append(f"({operation}, snapshot {heads.main})")
    return " ".join(words) or "by another client"
