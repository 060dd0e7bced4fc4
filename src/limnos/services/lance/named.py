"""The tags and branches of a Lance table as they are read: of a managed one those that are about versions of the store's.

May import the rooms below. Writes nothing, and knows no wire format.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from limnos.services.lance.versions import latest
from limnos.services.lance.work import answer, errand_of, options_of
from limnos.sources.lance.questions import Referenced, References
from limnos.store.lance_versions import lance_branches_read

if TYPE_CHECKING:
    from limnos.services.lance.tables import LanceTable
    from limnos.services.request.context import Context


async def references_of(ctx: Context, table: LanceTable) -> Referenced:
    """Return the tags and branches of a table; of a managed one those that are about versions of the store's."""
    if table.record.managed and await latest(ctx, table, branch="") is None:
        return Referenced({}, {})
    found = await answer(
        ctx,
        errand_of(ctx, References(table.location, options_of(table.place.catalog.properties)), quick=True),
        shape=Referenced,
    )
    if not table.record.managed:
        return found
    known = set(await ctx.look_up(partial(lance_branches_read, table.node.id)))
    tags = {name: tag for name, tag in found.tags.items() if (tag.branch or "") in known}
    return Referenced(tags, {name: branch for name, branch in found.branches.items() if name in known})
