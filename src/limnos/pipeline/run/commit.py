"""Publishing: one transaction moves `main` of every output and marks the run, or does nothing.

Job: send it, find out what became of it when no answer came, say who moved an output when it was refused, and what came from what when it was not. May
import `client` and this room. An assertion is never refreshed here: whose `main` has moved runs its step again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from limnos.client.errors import ClientError, ConflictError, NotFoundError
from limnos.pipeline.lineage import lineage_of_tables, report_lineage
from limnos.pipeline.publish import publish_operations
from limnos.pipeline.run.heartbeat import superseded_message
from limnos.pipeline.run.refs import TableHeads, heads_of
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.run.stop import RunStopped

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.declaration import Parts
    from limnos.pipeline.outcomes import StepBranch, StepOutcome
    from limnos.pipeline.run.retries import RetryPolicy

PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class MovedOutput:
    """An output that is not what the run began from. `gone`: there is no such table any longer."""

    branch: StepBranch
    who: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class PublishResult:
    """All outputs are published, as of this revision of their catalog; None where only the record told of it."""

    revision: int | None


def publish(
    client: Client, branches: Sequence[StepBranch], *, run: str, attempt: int, again: int, patience: RetryPolicy
) -> PublishResult | tuple[MovedOutput, ...]:
    """Move `main` of all tables to the heads of their branches, or tell which have moved. `again` counts the tries.

    Raises Stopped when another attempt acts, DeniedError and RefusedError as the server says, UnavailableError when it
    was away for too long: whether it was published then stands in the run's record.
    """
    metadata = {
        branch.table: heads.metadata
        for branch in branches
        if branch.columns_to_drop and (heads := _load_heads(client, branch.table, patience=patience)) is not None
    }
    try:
        moves = publish_operations(branches, metadata=metadata)
    except ValueError as error:
        # Its columns are not those that the step saw: nothing was sent.
        return tuple(_moved_outputs(client, branches, patience=patience)) or _reraise(error)
    operations = [*moves, {"do": "publish-run", "run": run, "attempt": attempt}]
    key = key_of(run, attempt, again=again)
    catalog = branches[0].table[0]
    try:
        answer = patience.on(lambda: client.transactions.run(catalog, operations, key=key))
    except (ConflictError, NotFoundError) as error:
        return _explain_refusal(client, branches, run=run, attempt=attempt, error=error, patience=patience)
    return PublishResult(answer.revision)


def tell_lineage(client: Client, outcomes: Mapping[str, StepOutcome], *, pipeline: str, run: str) -> None:
    """Say what the tables of each published step come from; where its query told nothing, the tables that it read."""
    for name, outcome in outcomes.items():
        lineage = outcome.lineage or lineage_of_tables(pin.table for pin in outcome.pins if pin.table is not None)
        targets = [branch.table for branch in outcome.branches]
        report_lineage(client, pipeline=pipeline, run_id=run, step=name, targets=targets, lineage=lineage)


def key_of(run: str, attempt: int, *, again: int) -> str:
    """The transaction's idempotency key: a UUID of version 7 in form, the same whenever the same try is sent."""
    digest = hashlib.sha256(f"{run}/{attempt}/{again}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-7{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _explain_refusal(
    client: Client, branches: Sequence[StepBranch], *, run: str, attempt: int, error: ClientError, patience: RetryPolicy
) -> PublishResult | tuple[MovedOutput, ...]:
    """Look at the run and at the tables, and say which of them was in the way."""
    seen = patience.on(lambda: client.runs.load(run))
    if seen.attempt != attempt:
        raise RunStopped(EndReason.SUPERSEDED, superseded_message(run, error)) from error
    if seen.state == PUBLISHED:
        return PublishResult(seen.revision)
    if seen.state == "cancelling":
        raise RunStopped(EndReason.CANCELLED, "the run was cancelled by `limnos pipeline cancel`") from error
    moved = tuple(_moved_outputs(client, branches, patience=patience))
    if not moved:
        raise error
    return moved


def _moved_outputs(client: Client, branches: Iterable[StepBranch], *, patience: RetryPolicy) -> Iterable[MovedOutput]:
    for branch in branches:
        words = _difference(branch, _load_heads(client, branch.table, patience=patience))
        if words is not None:
            yield words


def _load_heads(client: Client, table: Parts, *, patience: RetryPolicy) -> TableHeads | None:
    return patience.on(lambda: heads_of(client, table))


def _difference(branch: StepBranch, heads: TableHeads | None) -> MovedOutput | None:
    """What became of an output, when it is not what the run began from."""
    path = ".".join(branch.table)
    if heads is None:
        return MovedOutput(branch, f"{path} was dropped or renamed during the run", gone=True)
    if heads.uuid != branch.uuid:
        return MovedOutput(branch, f"{path} was dropped and made again during the run")
    if heads.main != branch.base:
        return MovedOutput(branch, f"{path} was written {_writer(heads)}")
    if _schema(heads) != branch.schema_id:
        return MovedOutput(branch, f"the columns of {path} were changed during the run")
    if heads.refs.get(branch.name) != branch.head:
        return MovedOutput(branch, f"branch {branch.name} of {path} is not as its step left it")
    return None


def _reraise(error: ValueError) -> NoReturn:
    raise error


def _schema(heads: TableHeads) -> int | None:
    found = heads.metadata.get("current-schema-id")
    return found if isinstance(found, int) else None


def _writer(heads: TableHeads) -> str:
    """Who wrote the head of `main`, and when, as its snapshot tells."""
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
    return " ".join(words) or "by somebody else"
