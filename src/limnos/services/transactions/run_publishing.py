# SPDX-License-Identifier: Apache-2.0
"""Run publishing: an operation that publishes a pipeline run atomically with the commits to its tables.

Must not know any wire format or branches: the client chooses the transaction's commits. One conditional statement
updates the run's row if its attempt and state are as expected. So of two attempts, or of a publish and a cancel, only
the first succeeds; the other is rolled back with its whole transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.runs import HELD, PUBLISHED, PipelineRun
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs import run_access
from limnos.services.transactions.operations import OperationMutation, OperationStep, TransactionOperation
from limnos.services.transactions.transaction_view import TransactionView
from limnos.store.tx import Tx


class RunPublish(msgspec.Struct, frozen=True, kw_only=True):
    """The command to publish a run, if the given attempt is the newest."""

    run_id: int
    pipeline: Node
    user: str
    user_id: int
    attempt: int


class RunPublishOperation(NamedTuple):
    """The operation that publishes a running or held run, if the given attempt is its newest.

    `known_run` is the run as read before the decision.
    """

    uuid: str
    attempt: int
    known_run: PipelineRun | None = None

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """Empty: the operation needs no names of the catalog."""
        return ()

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Find the run, for a caller who may run its pipeline. The mutation checks the run's user."""
        run, pipeline, decision = run_access.run_authorize(
            request_view, self.known_run, uuid=self.uuid, action=Action.JOB_LOAD
        )
        runs = request_view.require(Action.JOB_RUN, run_access.chain_of(request_view, run, pipeline=pipeline)[1:])
        user, user_id = run_access.caller_identity(request_view)
        command = RunPublish(run_id=run.id, pipeline=pipeline, user=user, user_id=user_id, attempt=self.attempt)
        permit = request_view.permit(command, decision, runs)
        return OperationStep(permit=permit, path=(), mutation=cast("OperationMutation", run_publish), kind=Kind.JOB)


async def with_runs(
    ctx: Context, scope: RequestScope, *, operations: Sequence[TransactionOperation]
) -> Sequence[TransactionOperation]:
    """Read the runs of the operations that publish runs, and add them to these operations."""
    if not any(isinstance(each, RunPublishOperation) for each in operations):
        return operations
    ready: list[TransactionOperation] = []
    for each in operations:
        if isinstance(each, RunPublishOperation):
            pipeline_run = await run_access.run_look_up(ctx, scope.metalake or "", uuid=each.uuid)
            ready.append(each._replace(known_run=pipeline_run))
        else:
            ready.append(each)
    return ready


def run_publish(tx: Tx, permit: Permit[RunPublish]) -> None:
    """Publish the run with this transaction's revision.

    Any caller who may see and execute the pipeline may publish a held run.

    Raises:
        StalePermit: The run no longer exists.
        AttemptSuperseded: Another attempt has taken over the run.
        PermissionDenied: The run is not held, and belongs to another user.
        RunConflict: The run is in another state.
    """
    command = permit.command
    tx.nodes.require(command.pipeline)
    run = tx.runs.by_id(command.run_id)
    if run is None:
        tx.stale()
    run_access.require_attempt(run, command.attempt)
    if run.state != HELD and (run.user, run.user_id) != (command.user, command.user_id):
        raise run_access.not_own_error(run)
    if not tx.runs.publish(run, attempt=command.attempt, catalog_id=permit.zone):
        raise run_access.state_conflict_error(tx.runs.by_id(run.id) or run, PUBLISHED, now_ms=tx.now_ms)
