# SPDX-License-Identifier: Apache-2.0
"""Access to runs: decides on a run or job by its pipeline or job template, and builds the errors for refused callers.

Must not know any wire format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import AttemptSuperseded, NotFound, PermissionDenied, RunConflict
from limnos.model.kinds import Kind
from limnos.model.runs import PipelineRun, RuleFinding, RunStepState
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.runs import run_read
from limnos.view.cache_miss import require_fact
from limnos.view.keys import node_key


class RunView(NamedTuple):
    """A run with the name of its pipeline and the current time; with steps and findings if requested."""

    run: PipelineRun
    pipeline: str
    now_ms: int
    steps: Sequence[RunStepState] = ()
    findings: Sequence[RuleFinding] = ()

    @property
    def state(self) -> str:
        """The run's state at `now_ms`: a live run whose lease has ended is `lost`."""
        return self.run.display_state(self.now_ms)


class RunOrJob(Protocol):
    """The common fields of a pipeline run and a job, which access decisions need."""

    @property
    def id(self) -> int:
        """The integer id of the run or job in the store."""

    @property
    def uuid(self) -> str:
        """The UUID of the run or job, by which protocols identify it."""

    @property
    def metalake_id(self) -> int:
        """The id of the metalake of the run or job."""

    @property
    def template_id(self) -> int:
        """The id of the template or pipeline that was started."""

    @property
    def owner_id(self) -> int | None:
        """The id of the user or group that owns the run or job; None without an owner."""


C = TypeVar("C", bound=RunOrJob)


class AuthorizedRun(NamedTuple, Generic[C]):
    """A run, its pipeline, and the decision that allows the caller's action on it."""

    run: C
    pipeline: Node
    decision: Decision


def caller_identity(request_view: RequestView) -> tuple[str, int]:
    """Return the caller's name and user id for the record of a run; the id is 0 if the caller is not a user of the
    metalake.
    """
    return request_view.user, request_view.subject.user_id or 0


def run_authorize(request_view: RequestView, run: C | None, *, uuid: str, action: Action) -> AuthorizedRun[C]:
    """Authorize an action on a run. If the run is not visible to the caller, the error is the same as for a missing
    run.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    request_view.require_in_metalake_use()
    absent_chain = (ChainLink.absent(Kind.JOB, uuid), *request_view.settled.outer[-1:])
    pipeline = None if run is None else pipeline_of(request_view, run)
    if run is not None and pipeline is not None:
        decision = request_view.decide(action, chain_of(request_view, run, pipeline=pipeline))
        if decision.allowed:
            return AuthorizedRun(run, pipeline, decision)
    request_view.require(action, absent_chain)
    raise run_missing_error(request_view, uuid)


def run_missing_error(request_view: RequestView, uuid: str) -> NotFound:
    """Return NotFound for a missing run, or for a run that is not visible to the caller."""
    return NotFound(
        f"Run {uuid[:50]} does not exist in metalake {request_view.metalake.name}: see 'limnos list runs'",
        kind=Kind.JOB.word,
    )


def pipeline_of(request_view: RequestView, run: RunOrJob) -> Node | None:
    """Return a run's pipeline; None if it was dropped.

    Also None if the metalake of the run was renamed after the run was read, and another one now has its name.
    """
    if run.metalake_id != request_view.metalake.id:
        return None
    return require_fact(request_view.view, node_key(run.template_id), zone=request_view.metalake.id)


def chain_of(request_view: RequestView, run: RunOrJob, *, pipeline: Node) -> SecurableChain:
    """Return a run followed by its ancestors: its pipeline and the metalake."""
    link = ChainLink(pipeline.id, Kind.JOB_TEMPLATE, pipeline.name)
    return (ChainLink(run.id, Kind.JOB, run.uuid), link, *request_view.settled.outer[-1:])


def require_own(request_view: RequestView, run: PipelineRun) -> None:
    """Raise PermissionDenied unless the caller is the run's user, because the run acts with that user's rights."""
    if (run.user, run.user_id) != caller_identity(request_view):
        raise not_own_error(run)


def not_own_error(run: PipelineRun) -> PermissionDenied:
    """Return the PermissionDenied for a caller who continues another user's run."""
    return PermissionDenied(
        f"Run {run.uuid} acts with the rights of user {run.user}, who started it: other users cannot continue it. Start"
        " your own run"
    )


async def run_look_up(ctx: Context, metalake: str, *, uuid: str) -> PipelineRun | None:
    """Read a run before any access decision; None if it does not exist."""
    metalake_id = await ctx.read(RequestScope(metalake), lambda request_view: request_view.metalake.id)
    return await ctx.look_up(lambda: run_read(metalake_id, uuid))


def is_run_visible(request_view: RequestView, run: RunOrJob, *, pipeline: Node) -> bool:
    """Return whether a run is listed for the caller: its owner, and the owners of its pipeline and metalake see it."""
    if not request_view.rules.access_enabled:
        return True
    above = chain_of(request_view, run, pipeline=pipeline)[1:]
    return bool(
        list_filter(request_view.subject, Action.JOB_LIST, above, request_view.owner_of).positions(
            [run.id], [run.owner_id]
        )
    )


def now_ms_of(ctx: Context) -> int:
    """Return the time of the store's clock, in milliseconds since 1970."""
    return ctx.services.store.time.now_ms()


def require_attempt(run: PipelineRun, attempt: int) -> None:
    """Raise AttemptSuperseded unless `attempt` is the run's newest attempt."""
    if attempt != run.attempt:
        raise AttemptSuperseded(
            f"Attempt {attempt} of run {run.uuid} is not the newest, which is {run.attempt}, held by {run.holder}: this"
            f" process stops; see 'limnos show run {run.uuid}'",
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
    """Return the error for an invalid state transition of a run. Its message states what to do instead."""
    text = run.display_state(now_ms)
    return RunConflict(f"Run {run.uuid} is {text}, so it is not {state}: {_ADVICE[text].format(run.uuid)}")
