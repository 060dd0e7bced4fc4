"""Runs of pipelines: start, resume, finish, cancel, and who sees them.

`services.runs.runners` takes a runner's reports.

May import the rooms below. Must not know any wire format, and runs nothing. A run is visible to its owner, who started
it, and to the owners of its pipeline and metalake. Only its own user may continue it, since it acts with that user's
rights. A caller who sees it may stop it or discard its results. Starting, resuming and publishing need the right to run
the pipeline. Changes of runs belong to the metalake's zone, so two starts of one pipeline come one after the other,
whatever their nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, AttemptSuperseded, BadRequest, NotFound, PermissionDenied, RunConflict
from limnos.model.kinds import Kind
from limnos.model.runs import (
    CANCELLED,
    CANCELLING,
    DISCARDED,
    FINISHES,
    LIVE,
    RUNNING,
    STATES,
    PipelineRun,
    RuleFinding,
    RunStepState,
)
from limnos.services.iceberg.snapshot_pins import pins_of_options
from limnos.services.request.request_scope import RequestScope
from limnos.services.runs.job_templates import refuse_busy
from limnos.services.runs.pipelines import pipeline_find, require_pipeline_type
from limnos.store.activity.pipelines import declaration_read
from limnos.store.activity.runs import RunViewer, findings_read, run_read, run_whole_read, runs_read
from limnos.view.cache_miss import require_fact
from limnos.view.keys import node_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.decisions import Decision, SecurableChain
    from limnos.model.permits import Permit
    from limnos.services.iceberg.snapshot_pins import PinnedSnapshots
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.store.tx import Tx

LEASE_S_MIN: Final = 2
LEASE_S_MAX: Final = 3600
STEPS_MAX: Final = 1000
PAGE_MAX: Final = 1000
HOLDER_MAX: Final = 200
PARAMETERS_MAX: Final = 16 << 10
"""The maximum length of a run's parameters as JSON, in characters; a page shows those of a thousand runs."""
MESSAGE_MAX: Final = 10_000
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOST = "Its process gave no sign of life, and another run of the pipeline was started"


class RunView(NamedTuple):
    """A run with the name of its pipeline and the present time; with steps and findings if requested."""

    run: PipelineRun
    pipeline: str
    now_ms: int
    steps: Sequence[RunStepState] = ()
    findings: Sequence[RuleFinding] = ()

    @property
    def state(self) -> str:
        """The state for responses."""
        return self.run.shown(self.now_ms)


class RunBegin(msgspec.Struct, frozen=True):
    """A runner's request to start a run: its unique id, the process that holds it, its lease, and its steps.

    `version` is the version of the declaration that it runs; None for the newest.
    """

    uuid: str
    holder: str
    lease_ms: int
    parameters: str
    options: str
    steps: tuple[RunStepState, ...]
    version: int | None = None


class RunStart(msgspec.Struct, frozen=True):
    """Start a run of a pipeline."""

    pipeline: Node
    begin: RunBegin
    user: str
    user_id: int
    owner_id: int | None
    pins: PinnedSnapshots
    """The snapshots that it reads."""


class RunChange(msgspec.Struct, frozen=True):
    """Change a run's state, under an attempt if its process reports it."""

    run_id: int
    pipeline: Node
    user: str
    user_id: int
    state: str = ""
    attempt: int = 0
    message: str | None = None


class RunResume(msgspec.Struct, frozen=True):
    """Begin a run's next attempt; `after` is the attempt before it, so that a repeated request begins no further
    one.
    """

    run_id: int
    pipeline: Node
    holder: str
    lease_ms: int
    after: int | None


class RunOrJob(Protocol):
    """A run of a pipeline or a job, as decisions need it."""

    @property
    def id(self) -> int:
        """Its number."""
        ...

    @property
    def uuid(self) -> str:
        """Its id in protocols."""
        ...

    @property
    def template_id(self) -> int:
        """The id of its template."""
        ...

    @property
    def owner_id(self) -> int | None:
        """The id of its owner."""
        ...


C = TypeVar("C", bound=RunOrJob)


class AuthorizedRun(NamedTuple, Generic[C]):
    """A run, its pipeline, and the decision that allows the caller's action on it."""

    run: C
    pipeline: Node
    decision: Decision


# ------------------------------------------------------------------------------------------------ decisions


def caller_identity(request_view: RequestView) -> tuple[str, int]:
    """Return the caller as runs record it: the name, and the user's id, 0 if the caller is no user."""
    return request_view.user, request_view.subject.user_id or 0


def run_authorize(request_view: RequestView, run: C | None, *, uuid: str, action: Action) -> AuthorizedRun[C]:
    """Decide on a run. A caller who may not see it is refused in the same words whether it exists or not.

    Raises NotFound, PermissionDenied.
    """
    request_view.require_in_metalake_use()
    absent = (ChainLink.absent(Kind.JOB, uuid), *request_view.settled.outer[-1:])
    pipeline = None if run is None else pipeline_of(request_view, run)
    if run is not None and pipeline is not None:
        decision = request_view.decide(action, chain_of(request_view, run, pipeline=pipeline))
        if decision.allowed:
            return AuthorizedRun(run, pipeline, decision)
    request_view.require(action, absent)
    raise run_missing_error(request_view, uuid)


def run_missing_error(request_view: RequestView, uuid: str) -> NotFound:
    """Return the error for a run that does not exist."""
    return NotFound(
        f"Run {uuid[:50]} does not exist in metalake {request_view.metalake.name}: see 'limnos pipeline runs'",
        kind=Kind.JOB.word,
    )


def pipeline_of(request_view: RequestView, run: RunOrJob) -> Node | None:
    """Return a run's pipeline; None if it was dropped."""
    return require_fact(request_view.view, node_key(run.template_id), zone=request_view.metalake.id)


def chain_of(request_view: RequestView, run: RunOrJob, *, pipeline: Node) -> SecurableChain:
    """Return the chain of links from a run up to the metalake."""
    link = ChainLink(pipeline.id, Kind.JOB_TEMPLATE, pipeline.name)
    return (ChainLink(run.id, Kind.JOB, run.uuid), link, *request_view.settled.outer[-1:])


def require_own(request_view: RequestView, run: PipelineRun) -> None:
    """Refuse a caller who is not the run's user: it acts with that user's rights. Raises PermissionDenied."""
    if (run.user, run.user_id) != caller_identity(request_view):
        raise not_own_error(run)


def not_own_error(run: PipelineRun) -> PermissionDenied:
    """Return the error for another user's run."""
    return PermissionDenied(
        f"Run {run.uuid} acts with the rights of user {run.user}, who started it: nobody else goes on with it. Start a run of your own"
    )


async def run_look_up(ctx: Context, metalake: str, *, uuid: str) -> PipelineRun | None:
    """Read a run before it is decided whether the caller may see it; None if it does not exist."""
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    return await ctx.look_up(lambda: run_read(metalake_id, uuid))


# ------------------------------------------------------------------------------------------------ start


def begin_check(begin: RunBegin) -> None:
    """Check the fields of a run's start. Raises BadRequest."""
    if not _UUID.fullmatch(begin.uuid):
        raise BadRequest(f"'{begin.uuid[:50]}' is no id for a run: choose a fresh UUID, in lower case")
    if len(begin.steps) > STEPS_MAX:
        raise BadRequest(f"A run has at most {STEPS_MAX} steps, not {len(begin.steps)}")
    names = [step.name for step in begin.steps]
    if len(set(names)) < len(names) or "" in names:
        raise BadRequest("Each step of a run has a name of its own")
    if len(begin.parameters) > PARAMETERS_MAX:
        raise BadRequest(
            f"Field 'parameters' has at most {PARAMETERS_MAX} characters as JSON: name a file or a table that holds the rest"
        )
    lease_check(begin.holder, begin.lease_ms)


def lease_check(holder: str, lease_ms: int) -> None:
    """Check the name of a run's holder, and the length of its lease. Raises BadRequest."""
    if not holder or len(holder) > HOLDER_MAX:
        raise BadRequest(f"Field 'holder' says which process it is, as host:pid, in at most {HOLDER_MAX} characters")
    if not LEASE_S_MIN * 1000 <= lease_ms <= LEASE_S_MAX * 1000:
        raise BadRequest(f"Field 'lease_s' is from {LEASE_S_MIN} to {LEASE_S_MAX} seconds")


async def run_start(ctx: Context, *, metalake: str, pipeline: str, begin: RunBegin) -> RunView:
    """Start a run, which the caller owns; repeating an id returns the same run.

    Raises PipelineBusy, AlreadyExists, NotFound, BadRequest, PermissionDenied.
    """
    begin_check(begin)
    await _require_version(ctx, metalake, pipeline=pipeline, version=begin.version)
    pins = await pins_of_options(ctx, metalake, options=begin.options)

    def decide(request_view: RequestView) -> Permit[RunStart]:
        request_view.require_in_metalake_use()
        result = request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN)
        require_pipeline_type(result.entity)
        return request_view.permit(
            RunStart(result.entity, begin, *caller_identity(request_view), request_view.maker_id, pins), result.decision
        )

    run, steps = await ctx.write(RequestScope(metalake), decide, run_insert)
    return RunView(run, pipeline, _now(ctx), steps)


async def _require_version(ctx: Context, metalake: str, *, pipeline: str, version: int | None) -> None:
    if version is None:
        return

    def find(request_view: RequestView) -> int:
        return request_view.look_up(Kind.JOB_TEMPLATE, (pipeline,), Action.JOB_RUN).entity.id

    node_id = await ctx.read(RequestScope(metalake), find)
    if await ctx.look_up(lambda: declaration_read(node_id, version)) is None:
        raise BadRequest(f"Pipeline {pipeline} has no version {version}: declare it first, or leave out 'version'")


def run_insert(tx: Tx, permit: Permit[RunStart]) -> tuple[PipelineRun, list[RunStepState]]:
    """Insert the run with its steps, if no other run of the pipeline is held.

    Marks a run whose lease has ended as failed.
    """
    command = permit.command
    begin, pipeline = command.begin, tx.nodes.confirm(command.pipeline)
    known = tx.runs.find(pipeline.parent_id, begin.uuid)
    if known is not None:
        if (known.pipeline_id, known.user, known.user_id) != (pipeline.id, command.user, command.user_id):
            raise AlreadyExists(f"The id {begin.uuid} is another run's: choose a fresh UUID", kind=Kind.JOB.word)
        return known, tx.runs.steps(known.id)
    tx.runs.lose(pipeline.id, but=0, message=_LOST)
    refuse_busy(tx.runs.live_of(pipeline.id), pipeline.name, now_ms=tx.now_ms)
    version = begin.version or pipeline.record.declared  # type: ignore[union-attr]
    run = tx.runs.create(_new_run(tx, command, pipeline=pipeline, version=version), begin.steps)
    if command.pins:
        tx.snapshot_pins.run_set(run.id, "", pins=command.pins)
    return run, tx.runs.steps(run.id)


def _new_run(tx: Tx, command: RunStart, *, pipeline: Node, version: int) -> PipelineRun:
    begin = command.begin
    return PipelineRun(
        id=0, metalake_id=pipeline.parent_id, pipeline_id=pipeline.id, version=version, uuid=begin.uuid, user=command.user,
        user_id=command.user_id, state=RUNNING, attempt=1, holder=begin.holder, beat_at=tx.now_ms, lease_ms=begin.lease_ms,
        parameters=begin.parameters, options=begin.options, progress=None, message=None, catalog_id=None, revision=None,
        started_at=tx.now_ms, resumed_at=None, ended_at=None, phases=None, owner_id=command.owner_id,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ read


async def run_load(ctx: Context, *, metalake: str, uuid: str) -> RunView:
    """Return a run with its steps and findings. Raises NotFound, PermissionDenied."""
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    result = await ctx.look_up(lambda: run_whole_read(metalake_id, uuid))
    run = None if result is None else result[0]
    decision = await ctx.read(
        RequestScope(metalake), lambda request_view: run_authorize(request_view, run, uuid=uuid, action=Action.JOB_LOAD)
    )
    return RunView(decision.run, decision.pipeline.name, _now(ctx), *(result or (None, (), ()))[1:])


def caller_of(request_view: RequestView) -> RunViewer:
    """Return which runs the caller sees. Raises NotInUse, PermissionDenied."""
    request_view.require_in_metalake_use()
    outer = request_view.settled.outer[-1:]
    request_view.require(Action.JOB_LIST, outer)
    everything = request_view.decide(Action.JOB_LOAD, (ChainLink.absent(Kind.JOB, ""), *outer)).allowed
    return RunViewer(everything, tuple(sorted(request_view.subject.principal_ids)))


async def runs_list(
    ctx: Context, *, metalake: str, pipeline: str | None, state: str, before: int, limit: int
) -> tuple[list[RunView], int | None]:
    """Return runs that the caller sees, newest first.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        pipeline: The name of a pipeline; None for all.
        state: A state that the runs have; empty for any.
        before: A number; only runs with a smaller one are returned.
        limit: How many runs to return at most.

    Returns:
        The runs, and the number to continue with; None at the end.

    Raises:
        BadRequest: There is no such state.
        NotFound: The pipeline is missing.
        PermissionDenied: The caller may not list runs.
    """
    if state and state not in STATES:
        raise BadRequest(f"'{state[:50]}' is no state of a run: use one of {', '.join(STATES)}")

    def look(request_view: RequestView) -> tuple[int, RunViewer]:
        of = request_view.metalake.id if pipeline is None else pipeline_find(request_view, pipeline).node.id
        return of, caller_of(request_view)

    (of, caller), count, now_ms = await ctx.read(RequestScope(metalake), look), max(1, min(limit, PAGE_MAX)), _now(ctx)
    rows = await ctx.look_up(
        lambda: runs_read(
            of, caller, of_pipeline=pipeline is not None, state=state, now_ms=now_ms, before=before, limit=count
        )
    )
    views = await ctx.read(
        RequestScope(metalake), lambda request_view: _visible_runs(request_view, rows, now_ms=now_ms)
    )
    return views, rows[-1].id if len(rows) == count else None


def _visible_runs(request_view: RequestView, rows: list[PipelineRun], *, now_ms: int) -> list[RunView]:
    """Decide on each run again: the rows were selected by earlier owners."""
    views: list[RunView] = []
    for run in rows:
        pipeline = pipeline_of(request_view, run)
        if pipeline is not None and is_run_visible(request_view, run, pipeline=pipeline):
            views.append(RunView(run, pipeline.name, now_ms))
    return views


def is_run_visible(request_view: RequestView, run: RunOrJob, *, pipeline: Node) -> bool:
    """Return whether the caller sees a run in a list."""
    if not request_view.rules.access_enabled:
        return True
    above = chain_of(request_view, run, pipeline=pipeline)[1:]
    return bool(
        list_filter(request_view.subject, Action.JOB_LIST, above, request_view.owner_of).positions(
            [run.id], [run.owner_id]
        )
    )


async def findings_list(
    ctx: Context, *, metalake: str, pipeline: str, rule: str, step: str, before: int, limit: int
) -> tuple[list[RuleFinding], int | None]:
    """Return the findings of a pipeline's rules in runs that the caller sees, newest first, and the number to continue
    with.
    """

    def look(request_view: RequestView) -> tuple[int, RunViewer]:
        return pipeline_find(request_view, pipeline).node.id, caller_of(request_view)

    (node_id, caller), count = await ctx.read(RequestScope(metalake), look), max(1, min(limit, PAGE_MAX))
    rows = await ctx.look_up(lambda: findings_read(node_id, caller, rule=rule, step=step, before=before, limit=count))
    return rows, rows[-1].id if len(rows) == count else None


def _now(ctx: Context) -> int:
    return ctx.services.store.time.now_ms()


# ------------------------------------------------------------------------------------------------ finish and cancel


async def run_finish(
    ctx: Context, *, metalake: str, uuid: str, attempt: int, state: str, message: str | None
) -> RunView:  # fmt: skip
    """Finish a run in a state.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        uuid: The run's id.
        attempt: The attempt that finishes it.
        state: The final state.
        message: A message to keep with it.

    Raises:
        BadRequest: `state` is not a final state.
        NotFound: The run is missing.
        PermissionDenied: The caller is not the run's user. A caller who may cancel a run may still discard it while no
            process holds it.
        AttemptSuperseded: Another attempt has begun.
        RunConflict: The state transition from the run's present state is not allowed.
    """
    if state not in FINISHES:
        raise BadRequest(f"A run does not finish as '{state[:50]}': use one of {', '.join(FINISHES)}")
    pipeline_run = await run_look_up(ctx, metalake, uuid=uuid)

    def decide(request_view: RequestView) -> Permit[RunChange]:
        decision = run_authorize(request_view, pipeline_run, uuid=uuid, action=Action.JOB_CANCEL)
        if state != DISCARDED or decision.run.is_held(_now(ctx)):
            require_own(request_view, decision.run)
        command = RunChange(
            decision.run.id,
            decision.pipeline,
            *caller_identity(request_view),
            state,
            attempt,
            _shorten_message(message),
        )
        return request_view.permit(command, decision.decision)

    return RunView(*await ctx.write(RequestScope(metalake), decide, run_end), _now(ctx))


def _shorten_message(message: str | None) -> str | None:
    return None if message is None else message[:MESSAGE_MAX]


def run_end(tx: Tx, permit: Permit[RunChange]) -> tuple[PipelineRun, str]:
    """Set the run's state, unless it is in that state already."""
    command = permit.command
    run, pipeline = _reread_run(tx, command.run_id, pipeline=command.pipeline)
    require_attempt(run, command.attempt)
    own = (run.user, run.user_id) == (command.user, command.user_id)
    if run.is_held(tx.now_ms) and not own:
        raise not_own_error(run)
    if run.state == command.state:
        return run, pipeline.name
    if not tx.runs.finish(run, command.state, attempt=command.attempt, message=command.message):
        raise _state_conflict(tx, run, state=command.state)
    return _reread_run(tx, run.id, pipeline=pipeline)[0], pipeline.name


def _reread_run(tx: Tx, run_id: int, *, pipeline: Node) -> tuple[PipelineRun, Node]:
    """Read the run and its pipeline again. Raises StalePermit if one of them is gone."""
    run = tx.runs.by_id(run_id)
    if run is None:
        tx.stale()
    return run, tx.nodes.confirm(pipeline)


def require_attempt(run: PipelineRun, attempt: int) -> None:
    """Refuse a process whose run another attempt has taken over. Raises AttemptSuperseded."""
    if attempt != run.attempt:
        raise AttemptSuperseded(
            f"Attempt {attempt} of run {run.uuid} is not the newest, which is {run.attempt}, held by {run.holder}: this process stops; "
            f"see 'limnos pipeline show {run.uuid}'",
            run=run.uuid,
        )


_ADVICE = {
    "published": "start another one to change its tables",
    "discarded": "start another one",
    "held": "publish or discard it",
    "failed": "resume or discard it",
    "cancelled": "resume or discard it",
    "cancelling": "wait until its process has stopped",
    "running": "wait for it, or stop it with 'limnos pipeline cancel {0}'",
    "lost": "resume or discard it",
}


def state_conflict_error(run: PipelineRun, state: str, *, now_ms: int) -> RunConflict:
    """Return the error for a change of state that is not possible, with advice."""
    text = run.shown(now_ms)
    return RunConflict(f"Run {run.uuid} is {text}, so it is not {state}: {_ADVICE[text].format(run.uuid)}")


def _state_conflict(tx: Tx, run: PipelineRun, *, state: str) -> RunConflict:
    return state_conflict_error(tx.runs.by_id(run.id) or run, state, now_ms=tx.now_ms)


async def run_cancel(ctx: Context, *, metalake: str, uuid: str) -> RunView:
    """Ask a run's process to stop; a run that no process holds is cancelled at once.

    Raises NotFound, PermissionDenied, RunConflict.
    """
    pipeline_run = await run_look_up(ctx, metalake, uuid=uuid)

    def decide(request_view: RequestView) -> Permit[RunChange]:
        decision = run_authorize(request_view, pipeline_run, uuid=uuid, action=Action.JOB_CANCEL)
        return request_view.permit(
            RunChange(decision.run.id, decision.pipeline, *caller_identity(request_view)), decision.decision
        )

    return RunView(*await ctx.write(RequestScope(metalake), decide, run_stop), _now(ctx))


def run_stop(tx: Tx, permit: Permit[RunChange]) -> tuple[PipelineRun, str]:
    """Set the run to cancelling, or to cancelled if its lease has ended."""
    run, pipeline = _reread_run(tx, permit.command.run_id, pipeline=permit.command.pipeline)
    if run.state in LIVE and not run.is_held(tx.now_ms):
        tx.runs.finish(
            run, CANCELLED, attempt=run.attempt, message=f"Cancelled by {tx.actor}; nobody held it any longer"
        )
    elif run.state not in (CANCELLING, CANCELLED) and not tx.runs.cancel(run):
        raise _state_conflict(tx, run, state=CANCELLED)
    return _reread_run(tx, run.id, pipeline=pipeline)[0], pipeline.name


async def run_resume(
    ctx: Context, *, metalake: str, uuid: str, holder: str, lease_ms: int, after: int | None
) -> RunView:  # fmt: skip
    """Begin the next attempt of a run that failed, was cancelled, is held for a review or was lost.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        uuid: The run's id.
        holder: The process that will work on the run, as `host:pid`.
        lease_ms: The lease of the attempt, in milliseconds.
        after: The attempt before it; a repeat by the same holder then begins no further one. None resumes any attempt.

    Raises:
        AttemptSuperseded: Another attempt has begun.
        RunConflict: The run is in another state.
        PipelineBusy: A process holds another run of the pipeline.
        NotFound: The run is missing.
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
        command = RunResume(decision.run.id, decision.pipeline, holder, lease_ms, after)
        return request_view.permit(command, decision.decision, runs)

    return RunView(*await ctx.write(RequestScope(metalake), decide, run_revive), _now(ctx))


def run_revive(tx: Tx, permit: Permit[RunResume]) -> tuple[PipelineRun, str]:
    """Increase the attempt, if no process holds this run or another one of the pipeline."""
    command = permit.command
    run, pipeline = _reread_run(tx, command.run_id, pipeline=command.pipeline)
    if command.after is not None and run.attempt != command.after:
        if run.attempt == command.after + 1 and run.holder == command.holder and run.is_held(tx.now_ms):
            return run, pipeline.name
        require_attempt(run, command.after)
    tx.runs.lose(pipeline.id, but=run.id, message=_LOST)
    refuse_busy(tx.runs.live_of(pipeline.id), pipeline.name, now_ms=tx.now_ms)
    if not tx.runs.resume(run, holder=command.holder, lease_ms=command.lease_ms):
        raise _state_conflict(tx, run, state="resumed")
    return _reread_run(tx, run.id, pipeline=pipeline)[0], pipeline.name
