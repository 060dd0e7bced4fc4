# SPDX-License-Identifier: Apache-2.0
"""Runs of pipelines: start, list, load, heartbeats, steps, resume, finish, cancel.

Has no business rules. A runner's reports are checked against types here, and stored as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import ID_MAX, Attempt, number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.model.runs import PipelineRun, RuleFinding, RunAttempt, RunStepState
from limnos.rooms.pipelines.services import run_attempts, runners
from limnos.services.request.context import Context
from limnos.services.runs import run_lists, runs
from limnos.services.runs.run_access import RunView

_LAKE = "/api/limnos/v1/metalakes/{m}"
_RUN = f"{_LAKE}/runs/{{id}}"
LEASE_S = 30.0
LIMIT = 100
Count = Annotated[int, msgspec.Meta(ge=0, le=ID_MAX)]
Time = datetime | Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_000)]
"""A time in ISO-8601 with a zone, or in milliseconds since 1970, up to the year 9999."""
Phases = Annotated[
    dict[Annotated[str, msgspec.Meta(min_length=1, max_length=40)], Annotated[float, msgspec.Meta(ge=0, le=1e9)]],
    msgspec.Meta(max_length=20),
]
"""The seconds spent in each phase; the runner chooses the names of phases."""


class StepBegin(AdminRequestBody, frozen=True):
    """A step of the run: its inputs, and the table that it creates."""

    name: str
    reads: tuple[str, ...] = ()
    output: str = ""


class RunStart(AdminRequestBody, frozen=True, kw_only=True):
    """A run to start. `version` is the version of the pipeline's declaration, by default the newest."""

    id: str
    holder: str
    lease_s: float = LEASE_S
    parameters: dict[str, object] = msgspec.field(default_factory=dict)
    options: dict[str, object] = msgspec.field(default_factory=dict)
    steps: tuple[StepBegin, ...] = ()
    version: Count | None = None


class RunBeat(AdminRequestBody, frozen=True):
    """A heartbeat. `progress` describes each running step in the runner's own format.

    `phases_s` are the seconds that the attempt spent in each phase, accepted after the run's end, too.
    """

    attempt: Attempt
    progress: dict[str, dict[str, object]] | None = None
    phases_s: Phases | None = None


class RunResume(AdminRequestBody, frozen=True):
    """The body of a request to begin the next attempt of a run.

    `after` is the number of the previous attempt, so that a repeated request does not begin another one.
    """

    holder: str
    lease_s: float = LEASE_S
    after: Attempt | None = None


class RunFinish(AdminRequestBody, frozen=True):
    """The outcome of a run, reported by an attempt: `state` is `failed`, `cancelled`, `held` or `discarded`."""

    attempt: Attempt
    state: str
    message: str | None = None


class StagedVersionReport(AdminRequestBody, frozen=True, kw_only=True):
    """A version of a Lance table whose manifest is written and not committed."""

    version: Count
    manifest_path: str
    manifest_size: Count | None = None
    e_tag: str | None = None


class StepOutputReport(AdminRequestBody, frozen=True, kw_only=True):
    """A table that the step wrote on a branch: `base` is the snapshot of `main` before the step, `head` the branch's
    snapshot after it.
    """

    table: list[str]
    catalog: str | None = None
    branch: str | None = None
    base: int | None = None
    head: int | None = None
    uuid: str | None = None
    schema_id: int | None = None
    is_new: bool = False
    columns_to_drop: tuple[str, ...] = ()
    lineage: dict[str, object] | None = None
    """The lineage of the step's rows, in the runner's format. The publisher of the run reports it."""
    digest: str | None = None
    """The digest of the declaration that made the rows, with which a resume compares the step. Only the first output of
    a step has it.
    """
    state: str | None = None
    """The digests of that declaration's text, code and sources, by which later runs find changed steps."""
    staged: list[StagedVersionReport] | None = None
    """The versions of a Lance table that publishing commits."""


class StepInputReport(AdminRequestBody, frozen=True, kw_only=True):
    """An input of the step: a table at a snapshot, or a source. For an incremental read it has the snapshot from which
    changes were read, else the reason for a full read.
    """

    table: list[str] | None = None
    source: str | None = None
    snapshot: int | None = None
    branch: str | None = None
    fingerprint: str | None = None
    from_snapshot: int | None = None
    whole_because: str | None = None


class RuleFindingReport(AdminRequestBody, frozen=True, kw_only=True):
    """The result of one expectation of the step."""

    rule: str
    kind: str
    action: str
    broken: Count
    checked: Count
    tolerated: float = 0.0
    held: bool = True
    sample: str | None = None
    message: str = ""


class StepPut(AdminRequestBody, frozen=True, kw_only=True):
    """The report of a step. Omitted fields keep the values reported earlier under this attempt."""

    attempt: Attempt
    state: str
    rows: Count | None = None
    bytes: Count | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    message: str | None = None
    outputs: list[StepOutputReport] | None = None
    inputs: list[StepInputReport] | None = None
    findings: list[RuleFindingReport] | None = None
    phases_s: Phases | None = None


async def run_start(request: Request, ctx: Context) -> Response:
    """Start a run, unless another run of the pipeline is in progress. A repeated request with the same id returns the
    same run.
    """
    metalake, pipeline = names_of(request)
    body = Request.decode(await request.body(), RunStart)
    steps = [
        RunStepState(name=each.name, reads=_text(each.reads), output=each.output, state="waiting", attempt=0)
        for each in body.steps
    ]
    begin = run_attempts.RunBegin(
        uuid=body.id,
        holder=body.holder,
        lease_ms=_lease_ms(body.lease_s),
        parameters=_text(body.parameters),
        options=_text(body.options),
        steps=tuple(steps),
        version=body.version,
    )
    return json_response(_encode(await run_attempts.run_start(ctx, metalake=metalake, pipeline=pipeline, begin=begin)))


def _lease_ms(lease_s: float) -> int:
    return round(min(max(lease_s, 0.0), 1e6) * 1000)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def runs_list(request: Request, ctx: Context) -> Response:
    """Return a page of the runs visible to the caller, newest first; optionally of one `pipeline` or `state`.

    A page has at most `limit` runs; `page` is the page token that the previous page returned as `next`.
    """
    (metalake,) = names_of(request)
    before, limit = parse_page(request)
    views, following = await run_lists.runs_list(
        ctx,
        metalake=metalake,
        pipeline=request.query("pipeline"),
        state=request.query("state") or "",
        before=before,
        limit=limit,
    )
    entries = [_encode(each, whole=False) for each in views]
    return json_response({"runs": entries, "next": None if following is None else str(following)})


def parse_page(request: Request) -> tuple[int, int]:
    """Parse the page token and the page size. Raises BadRequest if either is invalid."""
    page, limit = request.query("page"), request.query("limit")
    before = ID_MAX if not page else number_of(page)
    count = LIMIT if not limit else number_of(limit, run_lists.PAGE_MAX)
    if before is None:
        raise BadRequest(f"'{page[:50] if page else ''}' is not a page token: send the 'next' of the previous page")
    if not count:
        raise BadRequest(f"Query parameter limit must be a number from 1 to {run_lists.PAGE_MAX}")
    return before, count


async def run_load(request: Request, ctx: Context) -> Response:
    """Return a run with its steps and findings."""
    metalake, uuid = names_of(request)
    return json_response(_encode(await runs.run_load(ctx, metalake=metalake, uuid=uuid)))


async def run_beat(request: Request, ctx: Context) -> Response:
    """Record a heartbeat of a run's process: renew the lease, and store the progress and the times of phases.

    Returns the run's state. The runner must stop if it is not `running`.
    """
    metalake, uuid = names_of(request)
    body = Request.decode(await request.body(), RunBeat)
    status = await runners.run_beat(
        ctx,
        metalake=metalake,
        uuid=uuid,
        attempt=body.attempt,
        progress=_json(body.progress),
        phases=_json(body.phases_s),
    )
    return json_response({"state": status.state, "attempt": status.attempt})


async def step_put(request: Request, ctx: Context) -> Response:
    """Store the report of a step, and return the step."""
    metalake, uuid, name = names_of(request)
    body = Request.decode(await request.body(), StepPut)
    report = runners.StepReport(
        name=name,
        state=body.state,
        rows=body.rows,
        bytes=body.bytes,
        started_at=_parse_time_ms(body.started_at),
        ended_at=_parse_time_ms(body.ended_at),
        message=body.message,
        outputs=_json(body.outputs),
        inputs=_json(body.inputs),
        findings=None if body.findings is None else tuple(map(_finding, body.findings)),
        phases=_json(body.phases_s),
    )
    run_step_state = await runners.step_put(ctx, metalake=metalake, uuid=uuid, attempt=body.attempt, report=report)
    return json_response(_encode_step(run_step_state, {}))


def _finding(report: RuleFindingReport) -> RuleFinding:
    return RuleFinding(step="", rule=report.rule, body=_text(report))


def _json(value: Sequence[AdminRequestBody] | Mapping[str, object] | None) -> str | None:
    return None if value is None else _text(value)


def _parse_time_ms(time: Time | None) -> int | None:
    """Convert a time to milliseconds since 1970; None for None. Raises BadRequest for a time without a time zone."""
    if time is None or isinstance(time, int):
        return time
    if time.tzinfo is None:
        raise BadRequest(f"The time {time.isoformat()} has no time zone: write it as 2024-05-17T08:30:00Z")
    return int(time.astimezone(UTC).timestamp() * 1000)


async def run_resume(request: Request, ctx: Context) -> Response:
    """Begin the next attempt of a run, unless a process is executing this run or another run of the pipeline."""
    metalake, uuid = names_of(request)
    body = Request.decode(await request.body(), RunResume)
    lease_ms = _lease_ms(body.lease_s)
    view = await run_attempts.run_resume(
        ctx, metalake=metalake, uuid=uuid, holder=body.holder, lease_ms=lease_ms, after=body.after
    )
    return json_response(_encode(view, whole=False))


async def run_finish(request: Request, ctx: Context) -> Response:
    """Set the outcome of a run: `failed`, `cancelled`, `held` or `discarded`."""
    metalake, uuid = names_of(request)
    body = Request.decode(await request.body(), RunFinish)
    view = await run_attempts.run_finish(
        ctx, metalake=metalake, uuid=uuid, attempt=body.attempt, state=body.state, message=body.message
    )
    return json_response(_encode(view, whole=False))


async def run_cancel(request: Request, ctx: Context) -> Response:
    """Request that a run's process stops. A run without a process is cancelled immediately."""
    metalake, uuid = names_of(request)
    return json_response(_encode(await runs.run_cancel(ctx, metalake=metalake, uuid=uuid), whole=False))


def _encode(view: RunView, *, whole: bool = True) -> dict[str, object]:
    run = view.run
    fields: dict[str, object] = {
        "id": run.uuid,
        "pipeline": view.pipeline,
        "version": run.version,
        "state": view.state,
        "attempt": run.attempt,
        "user": run.user,
        "holder": run.holder,
        "lease_s": run.lease_ms / 1000,
        "beat_at": instant(run.beat_at),
        "started_at": instant(run.started_at),
        "resumed_at": instant(run.resumed_at),
        "ended_at": instant(run.ended_at),
        "message": run.message,
        "revision": run.revision,
        "phases_s": _raw_json(run.phases or "{}"),
        "parameters": _raw_json(run.parameters),
        "options": _raw_json(run.options),
    }
    return fields | (_encode_parts(run, view) if whole else {})


def _encode_parts(run: PipelineRun, view: RunView) -> dict[str, object]:
    """Encode a run's earlier attempts, its steps with their progress, and its findings, as JSON."""
    progress = msgspec.json.decode(run.progress or "{}", type=dict[str, msgspec.Raw])
    return {
        "steps": [_encode_step(step, progress) for step in view.steps],
        "findings": [encode_finding(each) for each in view.findings],
        "earlier_attempts": [_encode_attempt(each) for each in run.earlier_attempts],
    }


def _encode_attempt(attempt: RunAttempt) -> dict[str, object]:
    return {
        "attempt": attempt.attempt,
        "state": attempt.state,
        "holder": attempt.holder,
        "started_at": instant(attempt.started_at),
        "ended_at": instant(attempt.ended_at),
        "message": attempt.message,
        "phases_s": _raw_json(attempt.phases or "{}"),
    }


def _encode_step(step: RunStepState, progress: dict[str, msgspec.Raw]) -> dict[str, object]:
    return {
        "name": step.name,
        "reads": _raw_json(step.reads),
        "output": step.output,
        "state": step.state,
        "attempt": step.attempt,
        "rows": step.rows,
        "bytes": step.bytes,
        "started_at": instant(step.started_at),
        "ended_at": instant(step.ended_at),
        "message": step.message,
        "progress": progress.get(step.name),
        "outputs": _raw_json(step.outputs),
        "inputs": _raw_json(step.inputs),
        "phases_s": _raw_json(step.phases or "{}"),
    }


def encode_finding(finding: RuleFinding) -> dict[str, object]:
    """Encode the finding of an expectation as JSON, with its step and time."""
    fields = msgspec.json.decode(finding.body, type=dict[str, object])
    return {"step": finding.step, **fields, "at": instant(finding.at)}


def _raw_json(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


_RUNNERS = (Action.JOB_RUN, Action.JOB_LOAD)
"""The actions of which a caller needs the right to at least one, to send a long report of a step."""
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path=f"{_LAKE}/pipelines/{{p}}/runs",
        handler=run_start,
        operation="start-run",
        asks=(Action.JOB_RUN,),
    ),
    Route(
        method="GET",
        path=f"{_LAKE}/runs",
        handler=runs_list,
        operation="list-runs",
        query=("pipeline", "state", "page", "limit"),
    ),
    Route(method="GET", path=_RUN, handler=run_load, operation="load-run"),
    Route(method="POST", path=f"{_RUN}/beat", handler=run_beat, operation="beat-run"),
    Route(method="POST", path=f"{_RUN}/resume", handler=run_resume, operation="resume-run"),
    Route(method="PUT", path=f"{_RUN}/steps/{{step}}", handler=step_put, operation="put-step", asks=_RUNNERS),
    Route(method="POST", path=f"{_RUN}/finish", handler=run_finish, operation="finish-run"),
    Route(method="POST", path=f"{_RUN}/cancel", handler=run_cancel, operation="cancel-run"),
)
