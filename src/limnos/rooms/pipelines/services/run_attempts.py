# SPDX-License-Identifier: Apache-2.0
"""Attempts of runs of pipelines: start, resume and finish.

Must not know any wire format, and runs nothing; `runners` records a runner's reports. Only a run's own user may
continue it, since it acts with that user's rights. Starting and resuming need the right to run the pipeline. Changes of
runs belong to the metalake's zone, so starts of one pipeline are serialized, even on different nodes.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.runs import DISCARDED, FINISHES, RUNNING, PipelineRun, RunStepState
from limnos.services.iceberg.snapshot_pins import PinnedSnapshots, pins_of_options
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_templates import refuse_busy
from limnos.services.runs.pinned_tables import owned_pinned_table
from limnos.services.runs.pipelines import require_pipeline_type
from limnos.services.runs.run_access import (
    RunView,
    caller_identity,
    chain_of,
    not_own_error,
    now_ms_of,
    require_attempt,
    require_own,
    run_authorize,
    run_look_up,
)
from limnos.services.runs.runs import RunChange, pinned_run_change, run_reread, run_state_conflict, run_view
from limnos.store.activity.pipelines import declaration_read
from limnos.store.tx import Tx

LEASE_S_MIN: Final = 2
LEASE_S_MAX: Final = 3600
STEPS_MAX: Final = 1000
HOLDER_MAX: Final = 200
PARAMETERS_MAX: Final = 16 << 10
"""The maximum length of a run's parameters as JSON, in characters; a page shows those of a thousand runs."""
MESSAGE_MAX: Final = 10_000
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOST = "Its process stopped responding, and another run of the pipeline was started"


class RunBegin(msgspec.Struct, frozen=True, kw_only=True):
    """A runner's request to start a run: its unique id, the process that executes it, its lease, its parameters and
    options, and its steps.

    `version` is the version of the declaration that it runs; None for the newest.
    """

    uuid: str
    holder: str
    lease_ms: int
    parameters: str
    options: str
    steps: tuple[RunStepState, ...]
    version: int | None = None


class RunStart(msgspec.Struct, frozen=True, kw_only=True):
    """The command to start a run of a pipeline, with the snapshots that it pins."""

    pipeline: Node
    begin: RunBegin
    user: str
    user_id: int
    owner_id: int | None
    pins: PinnedSnapshots
    """The snapshots that it reads."""


class RunResume(msgspec.Struct, frozen=True, kw_only=True):
    """The command to begin a run's next attempt. `after` is the previous attempt, which makes a repeated request
    idempotent.
    """

    run_id: int
    pipeline: Node
    holder: str
    lease_ms: int
    after: int | None


def begin_check(begin: RunBegin) -> None:
    """Raise BadRequest for an invalid request to start a run: its UUID, step names, parameters or lease."""
    if not _UUID.fullmatch(begin.uuid):
        raise BadRequest(f"'{begin.uuid[:50]}' is not an id for a run: choose a new UUID, in lower case")
    if len(begin.steps) > STEPS_MAX:
        raise BadRequest(f"A run may have at most {STEPS_MAX} steps, not {len(begin.steps)}")
    names = [step.name for step in begin.steps]
    if len(set(names)) < len(names) or "" in names:
        raise BadRequest("Each step of a run needs a unique name")
    if len(begin.parameters) > PARAMETERS_MAX:
        raise BadRequest(
            f"Field 'parameters' has at most {PARAMETERS_MAX} characters as JSON: put the remaining values into a file"
            " or table and name it"
        )
    lease_check(begin.holder, begin.lease_ms)


def lease_check(holder: str, lease_ms: int) -> None:
    """Raise BadRequest for a malformed holder's name, or a lease that is too short or too long."""
    if not holder or len(holder) > HOLDER_MAX:
        raise BadRequest(f"Field 'holder' must name the process, as host:pid, in at most {HOLDER_MAX} characters")
    if not LEASE_S_MIN * 1000 <= lease_ms <= LEASE_S_MAX * 1000:
        raise BadRequest(f"Field 'lease_s' must be from {LEASE_S_MIN} to {LEASE_S_MAX} seconds")


async def run_start(ctx: Context, *, metalake: str, pipeline: str, begin: RunBegin) -> RunView:
    """Start a run, which the caller owns; a repeated request with the same UUID returns the same run.

    Raises PipelineBusy if a process executes another run, AlreadyExists if the UUID belongs to a different run,
    NotFound, BadRequest for an invalid request or an unknown version, NotInUse, PermissionDenied.
    """
    begin_check(begin)
    await _require_version(ctx, metalake, pipeline=pipeline, version=begin.version)
    pins = await pins_of_options(ctx, metalake, options=begin.options)

    def decide(request_view: RequestView) -> Permit[RunStart]:
        request_view.require_in_metalake_use()
        result = request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN)
        require_pipeline_type(result.entity)
        user, user_id = caller_identity(request_view)
        command = RunStart(
            pipeline=result.entity, begin=begin, user=user, user_id=user_id, owner_id=request_view.maker_id, pins=pins
        )
        return request_view.permit(command, result.decision)

    run, steps = await ctx.write(RequestScope(metalake), decide, run_insert)
    return RunView(run=run, pipeline=pipeline, now_ms=now_ms_of(ctx), steps=steps)


async def _require_version(ctx: Context, metalake: str, *, pipeline: str, version: int | None) -> None:
    if version is None:
        return

    def find(request_view: RequestView) -> int:
        return request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN).entity.id

    node_id = await ctx.read(RequestScope(metalake), find)
    if await ctx.look_up(lambda: declaration_read(node_id, version)) is None:
        raise BadRequest(f"Pipeline {pipeline} has no version {version}: declare it first, or leave out 'version'")


def run_insert(tx: Tx, permit: Permit[RunStart]) -> tuple[PipelineRun, list[RunStepState]]:
    """Insert the run with its steps and pins, and set earlier runs whose lease has expired to failed. A run of the same
    user with this UUID is returned unchanged.

    The branches of a run have the first digits of its UUID in their names, so no other user's run may have the same.

    Raises PipelineBusy if a process executes another run of the pipeline, AlreadyExists if the UUID belongs to another
    run, or begins like that of another user's run.
    """
    command = permit.command
    begin, pipeline = command.begin, tx.nodes.confirm(command.pipeline)
    existing_run = tx.runs.find(pipeline.parent_id, begin.uuid)
    if existing_run is not None:
        if (existing_run.pipeline_id, existing_run.user, existing_run.user_id) != (
            pipeline.id,
            command.user,
            command.user_id,
        ):
            raise AlreadyExists(f"The id {begin.uuid} belongs to another run: choose a new UUID", kind=Kind.JOB.word)
        return existing_run, tx.runs.steps(existing_run.id)
    if tx.runs.has_foreign_prefix(pipeline.parent_id, begin.uuid, user=command.user, user_id=command.user_id):
        raise AlreadyExists(
            f"The id {begin.uuid} begins like that of another user's run: choose a new UUID", kind=Kind.JOB.word
        )
    tx.runs.lose(pipeline.id, but=0, message=_LOST)
    refuse_busy(tx.runs.live_of(pipeline.id), pipeline.name, now_ms=tx.now_ms)
    version = begin.version or pipeline.record.declared  # type: ignore[union-attr]
    run = tx.runs.create(_new_run(tx, command, pipeline=pipeline, version=version), begin.steps)
    if command.pins.by_table:
        tx.snapshot_pins.run_set(run.id, "", pins=command.pins.by_table, keep_ms=command.pins.keep_ms)
    return run, tx.runs.steps(run.id)


def _new_run(tx: Tx, command: RunStart, *, pipeline: Node, version: int) -> PipelineRun:
    begin = command.begin
    return PipelineRun(
        id=0,
        metalake_id=pipeline.parent_id,
        pipeline_id=pipeline.id,
        version=version,
        uuid=begin.uuid,
        user=command.user,
        user_id=command.user_id,
        state=RUNNING,
        attempt=1,
        holder=begin.holder,
        beat_at=tx.now_ms,
        lease_ms=begin.lease_ms,
        parameters=begin.parameters,
        options=begin.options,
        progress=None,
        message=None,
        catalog_id=None,
        revision=None,
        started_at=tx.now_ms,
        resumed_at=None,
        ended_at=None,
        phases=None,
        attempts=None,
        owner_id=command.owner_id,
    )


async def run_finish(
    ctx: Context, *, metalake: str, uuid: str, attempt: int, state: str, message: str | None
) -> RunView:
    """Set a run to a final state.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        uuid: The run's id.
        attempt: The attempt that finishes it.
        state: The final state.
        message: A message to store with it.

    Raises:
        BadRequest: `state` is not a final state.
        NotFound: The run is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The caller is not the run's user. A caller who may cancel a run, or owns a table that it pins,
            may still discard it while no process executes it.
        AttemptSuperseded: Another attempt has begun.
        RunConflict: The state transition from the run's present state is not allowed.
    """
    if state not in FINISHES:
        raise BadRequest(f"'{state[:50]}' is not a final state of a run: use one of {', '.join(FINISHES)}")
    pipeline_run = await run_look_up(ctx, metalake, uuid=uuid)

    def decide(request_view: RequestView) -> Permit[RunChange]:
        decision = run_authorize(request_view, pipeline_run, uuid=uuid, action=Action.JOB_CANCEL)
        if state != DISCARDED or decision.run.is_held(now_ms_of(ctx)):
            require_own(request_view, decision.run)
        user, user_id = caller_identity(request_view)
        command = RunChange(
            run_id=decision.run.id,
            pipeline=decision.pipeline,
            user=user,
            user_id=user_id,
            state=state,
            attempt=attempt,
            message=_shorten_message(message),
        )
        return request_view.permit(command, decision.decision)

    try:
        return run_view(ctx, await ctx.write(RequestScope(metalake), decide, run_end))
    except (NotFound, PermissionDenied):
        table = None if state != DISCARDED else await owned_pinned_table(ctx, metalake, run=pipeline_run)
        if table is None or pipeline_run is None:
            raise
    change = partial(pinned_run_change, run=pipeline_run, table=table, state=state, attempt=attempt)
    return run_view(ctx, await ctx.write(table.scope, change, run_end))


def _shorten_message(message: str | None) -> str | None:
    return None if message is None else message[:MESSAGE_MAX]


def run_end(tx: Tx, permit: Permit[RunChange]) -> tuple[PipelineRun, str]:
    """Set the run's final state; no-op if the run already has it. Returns the run and its pipeline's name.

    Raises AttemptSuperseded, PermissionDenied if a process executes another user's run, RunConflict if the state
    transition is not allowed.
    """
    command = permit.command
    run, pipeline = run_reread(tx, command.run_id, pipeline=command.pipeline)
    require_attempt(run, command.attempt)
    is_own_run = (run.user, run.user_id) == (command.user, command.user_id)
    if run.is_held(tx.now_ms) and not is_own_run:
        raise not_own_error(run)
    if run.state == command.state:
        return run, pipeline.name
    if not tx.runs.finish(run, command.state, attempt=command.attempt, message=command.message):
        raise run_state_conflict(tx, run, state=command.state)
    return run_reread(tx, run.id, pipeline=pipeline)[0], pipeline.name


async def run_resume(
    ctx: Context, *, metalake: str, uuid: str, holder: str, lease_ms: int, after: int | None
) -> RunView:
    """Begin the next attempt of a run that failed, was cancelled, is held for a review or was lost.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        uuid: The run's id.
        holder: The process that will work on the run, as `host:pid`.
        lease_ms: The lease of the attempt, in milliseconds.
        after: The number of the previous attempt, which makes a repeated request of the same holder idempotent. None
            resumes after any attempt.

    Raises:
        BadRequest: The holder or the lease is invalid.
        AttemptSuperseded: Another attempt has begun.
        RunConflict: The run is in another state.
        PipelineBusy: A process executes another run of the pipeline.
        NotFound: The run is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The caller is not the run's user, or may not run the pipeline.
    """
    lease_check(holder, lease_ms)
    pipeline_run = await run_look_up(ctx, metalake, uuid=uuid)

    def decide(request_view: RequestView) -> Permit[RunResume]:
        decision = run_authorize(request_view, pipeline_run, uuid=uuid, action=Action.JOB_LOAD)
        require_own(request_view, decision.run)
        runs = request_view.require(
            Action.JOB_RUN, chain_of(request_view, decision.run, pipeline=decision.pipeline)[1:]
        )
        command = RunResume(
            run_id=decision.run.id, pipeline=decision.pipeline, holder=holder, lease_ms=lease_ms, after=after
        )
        return request_view.permit(command, decision.decision, runs)

    return run_view(ctx, await ctx.write(RequestScope(metalake), decide, run_revive))


def run_revive(tx: Tx, permit: Permit[RunResume]) -> tuple[PipelineRun, str]:
    """Begin the run's next attempt. Returns the run and its pipeline's name.

    Raises AttemptSuperseded, PipelineBusy if a process executes another run of the pipeline, and RunConflict if the run
    cannot be resumed.
    """
    command = permit.command
    run, pipeline = run_reread(tx, command.run_id, pipeline=command.pipeline)
    if command.after is not None and run.attempt != command.after:
        if run.attempt == command.after + 1 and run.holder == command.holder and run.is_held(tx.now_ms):
            return run, pipeline.name
        require_attempt(run, command.after)
    tx.runs.lose(pipeline.id, but=run.id, message=_LOST)
    refuse_busy(tx.runs.live_of(pipeline.id), pipeline.name, now_ms=tx.now_ms)
    if not tx.runs.resume(run, holder=command.holder, lease_ms=command.lease_ms):
        raise run_state_conflict(tx, run, state="resumed")
    return run_reread(tx, run.id, pipeline=pipeline)[0], pipeline.name
