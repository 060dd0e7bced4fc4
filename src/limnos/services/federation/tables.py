"""Tables of outside systems: list, load, make, alter, rename, drop, by rights that hang on names of the tree.

May import the rooms below, `formats` for the shapes of requests, and `sources` for capabilities. Each function decides first, on one scene, and
then asks the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.names.path import check_gravitino_name
from limnos.services.federation.moves import following, shadow_followed
from limnos.services.federation.objects import Seen, dropped_in_source, leaves_seen, made_in_source
from limnos.services.federation.shadows import seek
from limnos.services.federation.sources import ask
from limnos.sources.connectors.capabilities import with_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.gravitino.tables import Asked, TableChange
    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.federation.shadows import Sought
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope
    from limnos.sources.connectors.capabilities import TableTold


class Loaded(NamedTuple):
    """A table, and what stands for it."""

    told: TableTold
    node: Node | None
    catalog: Node


def tables_seen(scene: Scene, schema: Levels) -> Seen:
    """Decide on listing the tables of a schema. Raises Forbidden."""
    return leaves_seen(scene, schema, kind=Kind.TABLE, action=Action.TABLE_LIST)


async def tables_list(ctx: Context, seen: Seen) -> list[str]:
    """Return the tables that the source has in a schema and the caller sees. Raises NotFound for the schema."""
    return seen.of(await ask(ctx, seen.origin, of=with_tables, question=lambda found: found.table_names(seen.path)))


async def table_load(ctx: Context, sought: Sought) -> Loaded:
    """Return a table that was decided on. Raises NotFound."""
    schema, name = sought.path[:-1], sought.path[-1]
    told = await ask(ctx, sought.origin, of=with_tables, question=lambda found: found.table_load(schema, name))
    return Loaded(told, sought.node, sought.origin.catalog)


async def table_create(ctx: Context, scope: Scope, *, path: Levels, asked: Asked) -> Loaded:
    """Make a table in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (schema), BadRequest, Forbidden."""
    schema, name = path[:-1], path[-1]
    origin, node = await made_in_source(
        ctx, scope, kind=Kind.TABLE, path=path, action=Action.TABLE_CREATE, of=with_tables,
        question=lambda found: found.table_create(schema, name, asked=asked),
    )  # fmt: skip
    told = await ask(ctx, origin, of=with_tables, question=lambda found: found.table_load(schema, name))
    return Loaded(told, node, origin.catalog)


async def table_alter(ctx: Context, scope: Scope, *, path: Levels, changes: Sequence[TableChange]) -> Loaded:
    """Change a table in the source, all at once. Raises NotFound, BadRequest, Unsupported, Forbidden."""
    schema, name = path[:-1], path[-1]
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.TABLE, path=path, action=Action.TABLE_ALTER))
    await ask(
        ctx,
        sought.origin,
        of=with_tables,
        question=lambda found: found.table_alter(schema, name, changes=changes),
        changes=True,
    )
    return await table_load(ctx, sought)


async def table_rename(ctx: Context, scope: Scope, *, path: Levels, target: Levels) -> Loaded:
    """Give a table another name or schema, and what stands for it. Raises NotFound, AlreadyExists, Unsupported, Forbidden."""
    check_gravitino_name(target[-1], kind="TABLE")
    sought, permit = await ctx.read(scope, lambda scene: following(scene, Kind.TABLE, source=path, target=target))
    await ask(
        ctx,
        sought.origin,
        of=with_tables,
        question=lambda found: found.table_rename(path[:-1], path[-1], target=target),
        changes=True,
    )
    await shadow_followed(ctx, permit)
    return await table_load(ctx, sought._replace(path=target))


async def table_drop(ctx: Context, scope: Scope, *, path: Levels, purge: bool) -> None:
    """Drop a table in the source with its rows, and what stands for it. Raises NotFound, Protected, Unsupported, Forbidden.

    A purge takes the files away, where the source has some.
    """
    await dropped_in_source(
        ctx, scope, kind=Kind.TABLE, path=path, action=Action.TABLE_DROP, of=with_tables,
        question=lambda found: found.table_drop(path[:-1], path[-1], purge=purge),
    )  # fmt: skip
