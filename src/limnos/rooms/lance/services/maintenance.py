# SPDX-License-Identifier: Apache-2.0
"""Maintenance of Lance tables by worker processes: read a table's state, and change its files on behalf of a user.

Must not know policies or operations. Removing versions of a managed table also deletes their rows in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.formats.lance_table_state import LanceTableState, MaintenanceResult
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.lance.services.deletions import SPANS_MAX, VersionSpan, versions_prune
from limnos.rooms.lance.services.row_operations import ask_files, change_files
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.workers import WORKERS, WorkerTask, storage_options_of
from limnos.rooms.lance.sources.maintenance_questions import CleanUp, Compact, ReadState, RefreshIndexes
from limnos.services.lance.maintained_tables import MaintainedLanceTable, maintained_lance_table
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.store.objects.lance_versions import lance_top_read

_NEWEST: Final = VersionReference()


def spans_of(versions: Sequence[int]) -> list[VersionSpan]:
    """Return ascending version numbers as spans without gaps."""
    if not versions:
        return []
    ends = [number for number, after in pairwise(versions) if after != number + 1]
    starts = [after for number, after in pairwise(versions) if after != number + 1]
    return [
        VersionSpan(start, end + 1) for start, end in zip([versions[0], *starts], [*ends, versions[-1]], strict=True)
    ]


class LanceTableMaintenance:
    """Maintenance of Lance tables by worker processes."""

    async def table_state(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> LanceTableState:
        """Read the state of a table, for a caller who may maintain it. Raises as `ask_files`."""
        return await ask_files(
            ctx,
            scope,
            levels=levels,
            at=_NEWEST,
            question=ReadState(location="", options={}),
            shape=LanceTableState,
            action=Action.TABLE_MAINTAIN,
        )

    async def stored_table_state(self, services: NodeServices, table: MaintainedLanceTable) -> LanceTableState:
        """Read the state of a table for the server's own maintenance, without a caller. Raises NotFound for a table
        without data, StorageFailed.
        """
        place, location, version = table.place, table.document.location, None
        place.check(location)
        place.allowed.check_use(place.catalog.properties)
        if isinstance(table.node.record, TableRecord) and table.node.record.managed:
            top = await services.gate.look_up(partial(lance_top_read, table.node.id, ""))
            version = None if top is None else top.version
        question = ReadState(location=location, options=storage_options_of(place.catalog.properties), version=version)
        data = await WORKERS.of(services).ask(WorkerTask(question, caller=""))
        return msgspec.json.decode(data, type=LanceTableState)

    async def table_compact(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Merge a table's small fragments. Raises as `change_files`."""
        return await change_files(
            ctx, scope, levels=levels, at=_NEWEST, question=Compact(location="", options={}), shape=MaintenanceResult
        )

    async def indexes_refresh(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> MaintenanceResult:
        """Add to a table's indexes the rows that they do not cover. Raises as `change_files`."""
        return await change_files(
            ctx,
            scope,
            levels=levels,
            at=_NEWEST,
            question=RefreshIndexes(location="", options={}),
            shape=MaintenanceResult,
        )

    async def versions_clean_up(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, versions: Sequence[int]
    ) -> MaintenanceResult:
        """Remove versions of a table with the files that only they refer to. Raises as `change_files`.

        A version with a tag, or at which a branch begins, is kept.
        """
        question = CleanUp(location="", options={}, versions=list(versions))
        result = await change_files(ctx, scope, levels=levels, at=_NEWEST, question=question, shape=MaintenanceResult)
        table = await ctx.read(scope, lambda request_view: maintained_lance_table(request_view, levels).entity)
        if isinstance(table.record, TableRecord) and table.record.managed:
            spans = spans_of(result.removed)
            for first in range(0, len(spans), SPANS_MAX):
                await versions_prune(ctx, scope, levels=levels, branch="", spans=spans[first : first + SPANS_MAX])
        return result
