# SPDX-License-Identifier: Apache-2.0
"""Reference reads: the tags and branches of a Lance table; of a managed table only those of versions in the store.

Writes nothing, and must not know any wire format.
"""

from __future__ import annotations

from functools import partial

from limnos.rooms.lance.services.versions import latest_version
from limnos.rooms.lance.services.workers import answer_question, storage_options_of, worker_task_of
from limnos.rooms.lance.sources.questions import References, TableReferences
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.store.objects.lance_versions import lance_branches_read


async def references_of(ctx: Context, table: LanceTable) -> TableReferences:
    """Return the tags and branches of a table; of a managed table only those of versions in the store.

    Raises InvalidTable, ServiceUnavailable.
    """
    if table.record.managed and await latest_version(ctx, table, branch="") is None:
        return TableReferences({}, {})
    references = await answer_question(
        ctx,
        worker_task_of(
            ctx,
            References(location=table.location, options=storage_options_of(table.place.catalog.properties)),
            quick=True,
        ),
        shape=TableReferences,
    )
    if not table.record.managed:
        return references
    branch_names = set(await ctx.look_up(partial(lance_branches_read, table.node.id)))
    tags = {name: tag for name, tag in references.tags.items() if (tag.branch or "") in branch_names}
    return TableReferences(tags, {name: branch for name, branch in references.branches.items() if name in branch_names})
