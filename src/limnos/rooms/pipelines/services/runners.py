# SPDX-License-Identifier: Apache-2.0
"""Heartbeats and step reports of a run's process.

Must not know any wire format. No decision depends on a report, so reports change no revision. One conditional statement
checks that the sender is the run's own user and newest attempt, and records the heartbeat. Many reports share a
transaction.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, NotFound
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.runs import STEP_STATES, PipelineRun, RuleFinding, RunStepState
from limnos.services.iceberg.snapshot_pins import PinnedSnapshots, pins_of_outputs
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs import run_access
from limnos.store.activity.runs import RunReporter
from limnos.store.tx import Tx

FINDINGS_MAX = 1000
FINDING_MAX = 16 << 10
"""The maximum length of one finding, in characters; the trend of an expectation shows a thousand of them."""
LITTLE_MAX = 16 << 10
"""The length in characters up to which a report of a step skips the check of the run's total length."""
RUN_MAX = 16 << 20
"""The maximum total length of a run's reports in characters; one response contains all of them."""


class HeartbeatWrite(msgspec.Struct, frozen=True):
    """The command to record a heartbeat of a run's process, with its progress and the durations of phases."""

    actor: RunReporter
    progress: str | None
    phases: str | None = None


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report on a step. A field that is None does not change the stored value of the same attempt, except `ended_at`
    and `message`, which are always replaced.
    """

    name: str
    state: str
    rows: int | None = None
    bytes: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    message: str | None = None
    outputs: str | None = None
    inputs: str | None = None
    findings: tuple[RuleFinding, ...] | None = None
    phases: str | None = None


class StepReportPut(msgspec.Struct, frozen=True):
    """The command to store a report on a step, with pins of the snapshots that the step wrote."""

    actor: RunReporter
    step: StepReport
    pins: PinnedSnapshots | None = None
    """The snapshots that the step wrote; None if the report does not name them."""


class RunStatus(NamedTuple):
    """The state and newest attempt of a run, as the response to a heartbeat. The process must stop unless the state is
    `running`.
    """

    state: str
    attempt: int


async def run_beat(
    ctx: Context, *, metalake: str, uuid: str, attempt: int, progress: str | None, phases: str | None = None
) -> RunStatus:
    """Record a heartbeat of a run's process, and return the run's state.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        uuid: The run's id.
        attempt: The attempt of the process.
        progress: The progress that the process reports.
        phases: The time that the attempt spent on each phase. It is recorded even after the run's end.

    Raises:
        AttemptSuperseded: Another attempt has begun.
        NotFound: The run is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The run belongs to another user.
    """
    actor = await ctx.read(RequestScope(metalake), lambda request_view: _actor(request_view, uuid, attempt=attempt))
    permit = upkeep_permit(actor.user).about(HeartbeatWrite(actor, progress, phases))
    result = await ctx.submit(permit, run_note)
    if result is not None:
        return RunStatus(*result)
    run = await _rejection_reason(ctx, metalake, actor=actor)
    return RunStatus(run.state, run.attempt)


def _actor(request_view: RequestView, uuid: str, *, attempt: int) -> RunReporter:
    request_view.require_in_metalake_use()
    user, user_id = run_access.caller_identity(request_view)
    return RunReporter(metalake_id=request_view.metalake.id, uuid=uuid, user=user, user_id=user_id, attempt=attempt)


def run_note(tx: Tx, permit: Permit[HeartbeatWrite]) -> tuple[str, int] | None:
    """Write the heartbeat. Returns the run's state and attempt; None if the run does not accept the heartbeat."""
    if permit.command.phases is not None:
        tx.runs.phases_set(permit.command.actor, permit.command.phases)
    return tx.runs.beat(permit.command.actor, progress=permit.command.progress)


async def _rejection_reason(ctx: Context, metalake: str, *, actor: RunReporter) -> PipelineRun:
    """Raise the error for a rejected heartbeat or report: the run is hidden, belongs to another user, or has a newer
    attempt.

    Returns the run if it has ended.
    """
    run = await run_access.run_look_up(ctx, metalake, uuid=actor.uuid)

    def look(request_view: RequestView) -> PipelineRun:
        pipeline_run = run_access.run_authorize(request_view, run, uuid=actor.uuid, action=Action.JOB_LOAD).run
        if (pipeline_run.user, pipeline_run.user_id) != run_access.caller_identity(request_view):
            raise run_access.not_own_error(pipeline_run)
        run_access.require_attempt(pipeline_run, actor.attempt)
        return pipeline_run

    return await ctx.read(RequestScope(metalake), look)


async def step_put(ctx: Context, *, metalake: str, uuid: str, attempt: int, report: StepReport) -> RunStepState:
    """Store a report on a step. The call is idempotent.

    Raises AttemptSuperseded, RunConflict if the run has ended, NotFound, BadRequest for a malformed report, NotInUse,
    PermissionDenied.
    """
    if report.state not in STEP_STATES:
        raise BadRequest(f"'{report.state[:50]}' is not a state of a step: use one of {', '.join(STEP_STATES)}")
    if report.findings is not None and len(report.findings) > FINDINGS_MAX:
        raise BadRequest(f"A step may have at most {FINDINGS_MAX} findings, not {len(report.findings)}")
    if any(len(each.body) > FINDING_MAX for each in report.findings or ()):
        raise BadRequest(
            f"A finding may have at most {FINDING_MAX} characters as JSON: shorten its sample or its message"
        )
    actor = await ctx.read(RequestScope(metalake), lambda request_view: _actor(request_view, uuid, attempt=attempt))
    pins = None if report.outputs is None else await pins_of_outputs(ctx, metalake, outputs=report.outputs)
    run_step_state = await ctx.submit(upkeep_permit(actor.user).about(StepReportPut(actor, report, pins)), step_note)
    if run_step_state is None:
        run = await _rejection_reason(ctx, metalake, actor=actor)
        raise run_access.state_conflict_error(run, "accepting reports", now_ms=ctx.services.store.time.now_ms())
    return run_step_state


def step_note(tx: Tx, permit: Permit[StepReportPut]) -> RunStepState | None:
    """Store the report, its pins and its findings, and record a heartbeat. Returns None if the run does not accept
    reports from this process.

    Raises NotFound if the run has no such step, BadRequest if the reports of the run are too long.
    """
    command = permit.command
    run = tx.runs.touch(command.actor)
    if run is None:
        return None
    run_id, pipeline_id = run
    former_state = tx.runs.step(run_id, command.step.name)
    if former_state is None:
        raise NotFound(
            f"Step {command.step.name[:200]} is not one of the steps that the run was started with", kind="step"
        )
    step = _merge_step(former_state, command.step, attempt=command.actor.attempt)
    tx.runs.step_set(run_id, step)
    if command.pins is not None:
        tx.snapshot_pins.run_set(run_id, step.name, pins=command.pins.by_table, keep_ms=command.pins.keep_ms)
    findings = command.step.findings
    if findings is not None or former_state.attempt not in (0, step.attempt):
        tx.runs.findings_set(run_id, pipeline_id, step=step.name, findings=findings or ())
    if _length(command.step) > LITTLE_MAX and tx.runs.reported_length(run_id) > RUN_MAX:
        raise BadRequest(
            f"More than {RUN_MAX} characters are reported about the steps of run {command.actor.uuid}: report less"
            " about each"
        )
    return step


def _length(report: StepReport) -> int:
    texts = (report.message, report.outputs, report.inputs, *(each.body for each in report.findings or ()))
    return sum(len(each) for each in texts if each is not None)


def _merge_step(before: RunStepState, report: StepReport, *, attempt: int) -> RunStepState:
    """Return the stored step with the report applied; another attempt starts from empty fields."""
    if before.attempt != attempt:
        before = RunStepState(
            name=before.name, reads=before.reads, output=before.output, state=report.state, attempt=attempt
        )
    entry = ("rows", "bytes", "started_at", "outputs", "inputs", "phases")
    entries = {name: value for name in entry if (value := getattr(report, name)) is not None}
    return msgspec.structs.replace(
        before, state=report.state, attempt=attempt, ended_at=report.ended_at, message=report.message, **entries
    )
