# SPDX-License-Identifier: Apache-2.0
"""Runs of pipelines as jobs: load and cancel.

Must not know any wire format. A run is visible to its owner, who started it, and to the owners of its pipeline and
metalake; a caller who sees it may stop it. The room of pipelines starts, resumes and finishes runs. Jobs of Gravitino
REST include runs, also while that room is off.
"""

from __future__ import annotations

from functools import partial

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import NotFound, PermissionDenied, RunConflict
from limnos.model.permits import Permit
from limnos.model.runs import CANCELLED, CANCELLING, LIVE, PipelineRun
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.pinned_tables import PinnedTable, owned_pinned_table, pinned_run_authorize
from limnos.services.runs.run_access import (
    AuthorizedRun,
    RunView,
    caller_identity,
    now_ms_of,
    run_authorize,
    run_look_up,
    state_conflict_error,
)
from limnos.store.activity.runs import run_whole_read
from limnos.store.tx import Tx


class RunChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to change a run's state. `attempt` is set if the run's process reports the change."""

    run_id: int
    pipeline: Node
    user: str
    user_id: int
    state: str = ""
    attempt: int = 0
    message: str | None = None


async def run_load(ctx: Context, *, metalake: str, uuid: str) -> RunView:
    """Return a run with its steps and findings. The owner of a table that it pins gets it without them, and without its
    parameters and options. Others than the run's user get no samples of rows.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    result = await ctx.look_up(lambda: run_whole_read(metalake_id, uuid))
    run = None if result is None else result[0]

    def look(request_view: RequestView) -> tuple[AuthorizedRun[PipelineRun], tuple[str, int]]:
        authorized = run_authorize(request_view, run, uuid=uuid, action=Action.JOB_LOAD)
        return authorized, caller_identity(request_view)

    try:
        decision, identity = await ctx.read(RequestScope(metalake), look)
    except (NotFound, PermissionDenied):
        table = await owned_pinned_table(ctx, metalake, run=run)
        if table is None or run is None:
            raise
        decision = await ctx.read(table.scope, partial(pinned_run_authorize, run=run, table=table))
        redacted_run = msgspec.structs.replace(run, parameters="{}", options="{}", progress=None, message=None)
        return RunView(run=redacted_run, pipeline=decision.pipeline.name, now_ms=now_ms_of(ctx))
    _, steps, findings = result or (None, (), ())
    return RunView(
        run=decision.run,
        pipeline=decision.pipeline.name,
        now_ms=now_ms_of(ctx),
        steps=steps,
        findings=[each.visible_to(*identity) for each in findings],
    )


def run_view(ctx: Context, result: tuple[PipelineRun, str]) -> RunView:
    """Return a changed run and its pipeline's name as a view at the present time."""
    run, pipeline = result
    return RunView(run=run, pipeline=pipeline, now_ms=now_ms_of(ctx))


def pinned_run_change(
    request_view: RequestView, *, run: PipelineRun, table: PinnedTable, state: str = "", attempt: int = 0
) -> Permit[RunChange]:
    """Decide that the owner of a pinned table changes the state of the run that pins it."""
    _, pipeline, decision = pinned_run_authorize(request_view, run=run, table=table)
    user, user_id = caller_identity(request_view)
    command = RunChange(run_id=run.id, pipeline=pipeline, user=user, user_id=user_id, state=state, attempt=attempt)
    return request_view.permit(command, decision, zone=request_view.metalake.id)


def run_reread(tx: Tx, run_id: int, *, pipeline: Node) -> tuple[PipelineRun, Node]:
    """Read the run and its pipeline again. Raises StalePermit if one of them no longer exists."""
    run = tx.runs.by_id(run_id)
    if run is None:
        tx.stale()
    return run, tx.nodes.confirm(pipeline)


def run_state_conflict(tx: Tx, run: PipelineRun, *, state: str) -> RunConflict:
    """Return the error for a state that a run cannot take, by the run as it is now."""
    return state_conflict_error(tx.runs.by_id(run.id) or run, state, now_ms=tx.now_ms)


async def run_cancel(ctx: Context, *, metalake: str, uuid: str) -> RunView:
    """Request the cancellation of a run: its process stops at the next heartbeat; a run without a process is cancelled
    immediately.

    A run that is cancelling or cancelled is not changed. Raises NotFound, NotInUse, PermissionDenied, RunConflict if
    the run has another final state or is held.
    """
    pipeline_run = await run_look_up(ctx, metalake, uuid=uuid)

    def decide(request_view: RequestView) -> Permit[RunChange]:
        decision = run_authorize(request_view, pipeline_run, uuid=uuid, action=Action.JOB_CANCEL)
        user, user_id = caller_identity(request_view)
        command = RunChange(run_id=decision.run.id, pipeline=decision.pipeline, user=user, user_id=user_id)
        return request_view.permit(command, decision.decision)

    try:
        return run_view(ctx, await ctx.write(RequestScope(metalake), decide, run_stop))
    except (NotFound, PermissionDenied):
        table = await owned_pinned_table(ctx, metalake, run=pipeline_run)
        if table is None or pipeline_run is None:
            raise
    change = partial(pinned_run_change, run=pipeline_run, table=table)
    return run_view(ctx, await ctx.write(table.scope, change, run_stop))


def run_stop(tx: Tx, permit: Permit[RunChange]) -> tuple[PipelineRun, str]:
    """Set the run to cancelling, or to cancelled if its lease has expired. Returns the run and its pipeline's name.

    Raises RunConflict if the run has another final state or is held.
    """
    run, pipeline = run_reread(tx, permit.command.run_id, pipeline=permit.command.pipeline)
    if run.state in LIVE and not run.is_held(tx.now_ms):
        tx.runs.finish(
            run, CANCELLED, attempt=run.attempt, message=f"Cancelled by {tx.actor}; no process held it any more"
        )
    elif run.state not in (CANCELLING, CANCELLED) and not tx.runs.cancel(run):
        raise run_state_conflict(tx, run, state=CANCELLED)
    return run_reread(tx, run.id, pipeline=pipeline)[0], pipeline.name
