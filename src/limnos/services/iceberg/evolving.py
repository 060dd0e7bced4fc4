"""Changes of an Iceberg table that are made of what is there: read, build the commit, and again when another commit came first.

May import the rooms below. Knows no wire format: what is asked is a function of the stored document. The commit is one as any client's, so
there is one place for its checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.entities import Document, Node
from limnos.model.errors import CommitConflict
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.commits import lost_race_pause, table_commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope

TRIES_MAX: Final = 50
"""How often a change is built anew: others would have had to commit each time between two looks."""


class Evolved(NamedTuple):
    """A table as a change left it."""

    node: Node
    document: Document


async def table_evolve(
    ctx: Context, scope: Scope, *, path: Levels, build: Callable[[Document], tuple[list[object], list[object]]]
) -> Evolved:
    """Commit the requirements and updates that `build` makes of the stored document. Raises NotFound, Forbidden, CommitConflict."""

    def look(scene: Scene) -> Evolved:
        node = table_find(scene, path[:-1], path[-1], Action.TABLE_ALTER).entity
        return Evolved(node, scene.document(node.id))

    for attempt in range(TRIES_MAX):
        found = await ctx.read(scope, look)
        requirements, updates = build(found.document)
        if not updates:
            return found
        mine: list[object] = [{"type": "assert-table-uuid", "uuid": found.document.uuid}, *requirements]
        try:
            document, _ = await table_commit(
                ctx, scope, namespace=path[:-1], name=path[-1], requirements=mine, updates=updates
            )
        except CommitConflict:
            await lost_race_pause(attempt)
            continue
        return Evolved(found.node, document)
    raise CommitConflict("Too many commits to this table at once: read it again and retry")
