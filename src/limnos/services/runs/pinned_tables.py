# SPDX-License-Identifier: Apache-2.0
"""Tables that a run pins: their owner may stop the run or discard it, also without a right on its pipeline.

Must not know any wire format. The owner learns the run's id from refused commits and from the explanation of the
table's maintenance.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.runs import PipelineRun
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.runs.run_access import AuthorizedRun, pipeline_of, run_missing_error
from limnos.store.activity.maintenance import ancestors_read
from limnos.store.ancestry import path_of
from limnos.store.objects.snapshot_pins import pinned_tables_read


class PinnedTable(NamedTuple):
    """A table of which a run pins snapshots: the scope of its catalog, its path below it, and its id."""

    scope: RequestScope
    path: Levels
    table_id: int


async def owned_pinned_table(ctx: Context, metalake: str, *, run: PipelineRun | None) -> PinnedTable | None:
    """Return a table that the run pins and the caller owns, itself or by an object above it; None if there is none."""
    if run is None:
        return None
    now_ms = ctx.services.store.time.now_ms()
    table_ids = await ctx.look_up(partial(pinned_tables_read, run.id, now_ms=now_ms))
    ancestry = await ctx.look_up(partial(ancestors_read, table_ids))
    for table_id in table_ids:
        path = path_of(table_id, ancestry)
        if path is not None:
            table = PinnedTable(RequestScope(metalake, path[0]), path[1:], table_id)
            with suppress(NotFound, PermissionDenied):
                await ctx.read(table.scope, partial(pinned_run_authorize, run=run, table=table))
                return table
    return None


def pinned_run_authorize(
    request_view: RequestView, *, run: PipelineRun, table: PinnedTable
) -> AuthorizedRun[PipelineRun]:
    """Authorize the owner of a pinned table to stop or discard the run that pins it.

    Raises NotFound, PermissionDenied if the caller does not own the table.
    """
    node, chain = request_view.find(table.path, Kind.TABLE)
    pipeline = pipeline_of(request_view, run)
    if node is None or node.id != table.table_id or pipeline is None:
        raise run_missing_error(request_view, run.uuid)
    return AuthorizedRun(run, pipeline, request_view.require(Action.OWNER_SET, chain))
