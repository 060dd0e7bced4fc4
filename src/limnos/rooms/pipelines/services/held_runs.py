# SPDX-License-Identifier: Apache-2.0
"""Held runs: publishes a held run, which moves `main` of the tables that it wrote, and removes the branches of a
discarded run.

Must not know any wire format. The run's user reported the record of the run, but other users publish it with their own
rights. So only branches that the run itself can have created are changed. Each move asserts the table's identity, its
schema, and the snapshot from which the run began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.model.errors import CommitConflict, LimnosError, UnsupportedOperation
from limnos.model.runs import HELD, PipelineRun, RunStepState
from limnos.names import display
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions.operations import TransactionOperation, table_commit_of
from limnos.services.transactions.run_publishing import RunPublishOperation
from limnos.services.transactions.transactions import joint_transaction_execute, transaction_execute

_DIGITS: Final = 12
_MAIN: Final = "main"


class RunOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a run wrote on a branch: `base` is the snapshot of `main` at the beginning of the run, `head` the
    newest snapshot of the branch.
    """

    table: tuple[str, ...]
    branch: str = ""
    uuid: str = ""
    schema_id: int | None = None
    base: int | None = None
    head: int | None = None
    is_new: bool = False
    columns_to_drop: tuple[str, ...] = ()
    staged: tuple[object, ...] | None = None
    """The staged versions of a Lance table; None for an Iceberg table."""


def run_outputs(steps: Sequence[RunStepState]) -> list[RunOutput]:
    """Return the outputs that the steps of a run reported. Malformed entries are omitted."""
    outputs: list[RunOutput] = []
    for step in steps:
        try:
            outputs += msgspec.json.decode(step.outputs, type=list[RunOutput])
        except msgspec.MsgspecError:
            continue
    return outputs


def _is_own(output: RunOutput, run: PipelineRun) -> bool:
    """Return whether the run can have created the branch, by the branch's name.

    Only users who may write the table can create a branch of that name.
    """
    has_branch = output.head is not None or (output.base is None and not output.columns_to_drop)
    prefix = f"run_{run.uuid.replace('-', '')[:_DIGITS]}_"
    return has_branch and output.branch.startswith(prefix) and len(output.table) > 2


def own_outputs(run: PipelineRun, steps: Sequence[RunStepState]) -> list[RunOutput]:
    """Return the outputs of a run.

    Raises CommitConflict if the run has no outputs, or an output's branch cannot be from this run.
    """
    outputs = run_outputs(steps)
    if not outputs:
        raise CommitConflict(f"Run {run.uuid} has no tables, so there is nothing to publish")
    for output in outputs:
        if not _is_own(output, run):
            raise CommitConflict(
                f"Run {run.uuid} names the branch {output.branch[:100]} of {display.render(output.table)}, which it"
                " cannot have created: nothing was published. Discard the run"
            )
    return outputs


async def held_run_publish(ctx: Context, *, metalake: str, run: PipelineRun, steps: Sequence[RunStepState]) -> int:
    """Publish a held run: in one transaction, move `main` of all its tables and set the run's state. Returns the
    revision.

    The caller must be allowed to commit to each table and to run the pipeline.

    Raises:
        CommitConflict: The run is not held, a table has changed since it began, or its record names branches that it
            did not create.
        UnsupportedOperation: A table loses columns, or is a Lance table; such a run is published with the command line.
        PermissionDenied: The caller lacks one of these rights.
    """
    if run.state != HELD:
        raise CommitConflict(f"Run {run.uuid} is {run.state}, and only a held run can be published")
    outputs = own_outputs(run, steps)
    if any(output.columns_to_drop for output in outputs):
        raise UnsupportedOperation(
            f"A table of this run loses columns: publish it with limnos pipeline publish {run.uuid}"
        )
    if any(output.staged is not None for output in outputs):
        raise UnsupportedOperation(
            f"A table of this run is a Lance table: its user publishes it with limnos pipeline publish {run.uuid}"
        )
    operations: list[tuple[RequestScope, TransactionOperation]] = [
        (RequestScope(metalake, output.table[0]), _move(output)) for output in outputs
    ]
    operations.append((operations[0][0], RunPublishOperation(run.uuid, run.attempt)))
    revisions, _ = await joint_transaction_execute(ctx, operations)
    return revisions[outputs[0].table[0]]


def _move(output: RunOutput) -> TransactionOperation:
    """Return the commit that moves `main` to the branch's head and removes the branch."""
    requirements: list[object] = [
        {"type": "assert-table-uuid", "uuid": output.uuid},
        {"type": "assert-current-schema-id", "current-schema-id": output.schema_id},
        {"type": "assert-ref-snapshot-id", "ref": _MAIN, "snapshot-id": output.base},
        {"type": "assert-ref-snapshot-id", "ref": output.branch, "snapshot-id": output.head},
    ]
    removal = {"action": "remove-snapshot-ref", "ref-name": output.branch}
    move = {"action": "set-snapshot-ref", "ref-name": _MAIN, "type": "branch", "snapshot-id": output.head}
    is_moved = output.head is not None and output.head != output.base
    updates: list[object] = [move, removal] if is_moved else [removal]
    return table_commit_of(output.table[1:], requirements=requirements, updates=updates)


async def branches_remove(
    ctx: Context, *, metalake: str, run: PipelineRun, steps: Sequence[RunStepState]
) -> list[RunOutput]:
    """Remove the branches of a discarded run, each by a separate commit. Returns the outputs that remain.

    New tables remain, too: `limnos delete run` drops new tables that no other client has written to.
    """
    left: list[RunOutput] = []
    for output in run_outputs(steps):
        if not _is_own(output, run):
            continue
        if output.is_new:
            left.append(output)
        if output.head is None or output.staged is not None:
            continue
        requirements: list[object] = [
            {"type": "assert-table-uuid", "uuid": output.uuid},
            {"type": "assert-ref-snapshot-id", "ref": output.branch, "snapshot-id": output.head},
        ]
        updates: list[object] = [{"action": "remove-snapshot-ref", "ref-name": output.branch}]
        removal = table_commit_of(output.table[1:], requirements=requirements, updates=updates)
        try:
            await transaction_execute(ctx, RequestScope(metalake, output.table[0]), [removal])
        except LimnosError:  # the branch moved or was dropped, or the caller may not write the table
            left = left if output in left else [*left, output]
    return left
