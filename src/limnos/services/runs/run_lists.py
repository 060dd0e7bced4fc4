# SPDX-License-Identifier: Apache-2.0
"""Lists of runs that the caller may see.

Must not know any wire format.
"""

from __future__ import annotations

from typing import Final

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.runs import STATES, PipelineRun
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.pipelines import pipeline_find
from limnos.services.runs.run_access import RunView, is_run_visible, now_ms_of, pipeline_of
from limnos.store.activity.runs import RunViewer, runs_read

PAGE_MAX: Final = 1000


def caller_of(request_view: RequestView) -> RunViewer:
    """Return the filter for the runs that are visible to the caller: all runs if the caller may load every job of the
    metalake, else runs by owner.

    Raises NotInUse, PermissionDenied.
    """
    request_view.require_in_metalake_use()
    outer = request_view.settled.outer[-1:]
    request_view.require(Action.JOB_LIST, outer)
    everything = request_view.decide(Action.JOB_LOAD, (ChainLink.absent(Kind.JOB, ""), *outer)).allowed
    return RunViewer(everything, tuple(sorted(request_view.subject.principal_ids)))


async def runs_list(
    ctx: Context, *, metalake: str, pipeline: str | None, state: str, before: int, limit: int
) -> tuple[list[RunView], int | None]:
    """Return the runs that the caller may see, newest first.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        pipeline: The name of a pipeline; None for all pipelines.
        state: The state of the runs; empty for all states.
        before: The cursor, the integer id of a run; only runs with smaller ids are returned.
        limit: The maximum number of runs.

    Returns:
        The runs, and the cursor of the next page; None on the last page.

    Raises:
        BadRequest: There is no such state.
        NotFound: The metalake or the pipeline is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The caller may not list runs.
    """
    if state and state not in STATES:
        raise BadRequest(f"'{state[:50]}' is not a state of a run: use one of {', '.join(STATES)}")

    def look(request_view: RequestView) -> tuple[int, RunViewer]:
        of = request_view.metalake.id if pipeline is None else pipeline_find(request_view, pipeline).node.id
        return of, caller_of(request_view)

    (of, caller), count, now_ms = (
        await ctx.read(RequestScope(metalake), look),
        max(1, min(limit, PAGE_MAX)),
        now_ms_of(ctx),
    )
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
    """Return the visible runs among the rows. The SQL query filtered by owner; an owner may have changed since, so
    access to each run is decided again.
    """
    views: list[RunView] = []
    for run in rows:
        pipeline = pipeline_of(request_view, run)
        if pipeline is not None and is_run_visible(request_view, run, pipeline=pipeline):
            views.append(RunView(run=run, pipeline=pipeline.name, now_ms=now_ms))
    return views
