# SPDX-License-Identifier: Apache-2.0
"""Results of a pipeline's expectations, in runs that the caller may see.

Must not know any wire format.
"""

from __future__ import annotations

from limnos.model.runs import RuleFinding
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.pipelines import pipeline_find
from limnos.services.runs.run_access import caller_identity
from limnos.services.runs.run_lists import PAGE_MAX, caller_of
from limnos.store.activity.runs import RunViewer, findings_read


async def findings_list(
    ctx: Context, *, metalake: str, pipeline: str, rule: str, step: str, before: int, limit: int
) -> tuple[list[RuleFinding], int | None]:
    """Return the results of a pipeline's expectations in runs that the caller may see, newest first, and the cursor of
    the next page. Results of other users' runs have no samples of rows.

    `rule` and `step` select an expectation and a step; empty for all. Raises NotFound for a missing pipeline, and
    NotInUse, PermissionDenied.
    """

    def look(request_view: RequestView) -> tuple[int, RunViewer, tuple[str, int]]:
        return (
            pipeline_find(request_view, pipeline).node.id,
            caller_of(request_view),
            caller_identity(request_view),
        )

    async def read(decided: tuple[int, RunViewer, tuple[str, int]]) -> list[RuleFinding]:
        pipeline_id, viewer, _ = decided
        return await ctx.look_up(
            lambda: findings_read(pipeline_id, viewer, rule=rule, step=step, before=before, limit=count)
        )

    count = max(1, min(limit, PAGE_MAX))
    (_, _, identity), rows = await ctx.read_confirmed(RequestScope(metalake), look, work=read)
    return [each.visible_to(*identity) for each in rows], rows[-1].id if len(rows) == count else None
