# SPDX-License-Identifier: Apache-2.0
"""Table evolution: changes an Iceberg table by a function of its document, and retries after a commit conflict.

Must not know any wire format. The commit is the same as any client's, so its checks are in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import CommitConflict
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.commits import lost_race_pause, table_commit
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

TRIES_MAX: Final = 50
"""The maximum number of attempts to commit a change. Each further attempt means that another commit came between
reading and committing.
"""


class EvolvedTable(NamedTuple):
    """The result of `table_evolve`: the table's node, and its document after the change."""

    node: Node
    document: MetadataDocument


async def table_evolve(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    build: Callable[[MetadataDocument], tuple[list[object], list[object]]],
) -> EvolvedTable:
    """Commit the requirements and updates that `build` makes from the stored document.

    Raises NotFound, PermissionDenied, CommitConflict, and the errors of `table_commit`.
    """

    def look(request_view: RequestView) -> EvolvedTable:
        node = table_find(request_view, path[:-1], path[-1], Action.TABLE_ALTER).entity
        return EvolvedTable(node, request_view.document(node.id))

    for attempt in range(TRIES_MAX):
        table = await ctx.read(scope, look)
        requirements, updates = build(table.document)
        if not updates:
            return table
        mine: list[object] = [{"type": "assert-table-uuid", "uuid": table.document.uuid}, *requirements]
        try:
            document, _ = await table_commit(
                ctx, scope, namespace=path[:-1], name=path[-1], requirements=mine, updates=updates
            )
        except CommitConflict:
            await lost_race_pause(attempt)
            continue
        return EvolvedTable(table.node, document)
    raise CommitConflict("Too many commits to this table at once: read it again and retry")
