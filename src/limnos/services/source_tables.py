"""Tables of outside systems: list, load, make, alter, rename, drop, by rights that hang on names of the tree.

May import the rooms below, `formats` for the shapes of requests, and `sources` for capabilities. Each function decides first, on one scene, and
then asks the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.model.errors import Unsupported
from limnos.model.kinds import Kind
from limnos.names.path import check_gravitino_name
from limnos.services.shadows import seek, shadow_make
from limnos.services.source_schemas import Seen, container_chain, refuse_protected, seen_in, shadow_drop
from limnos.services.sources import ask, origin_of
from limnos.sources.connectors.capabilities import with_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.gravitino.tables import Asked, TableChange
    from limnos.model.decisions import Chain, Decision
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene, Scope
    from limnos.services.shadows import Sought
    from limnos.services.sources import Origin
    from limnos.sources.connectors.capabilities import TableTold
    from limnos.store.tx import Tx


class Loaded(NamedTuple):
    """A table, and what stands for it."""

    told: TableTold
    node: Node | None
    catalog: Node


def tables_seen(scene: Scene, schema: Levels) -> Seen:
    """Decide on listing the tables of a schema. Raises Forbidden."""
    scene.require_in_use()
    chain = container_chain(scene, schema)
    scene.require(Action.TABLE_LIST, chain)
    return seen_in(scene, schema, chain=chain, kind=Kind.TABLE, action=Action.TABLE_LIST)


async def tables_list(ctx: Context, seen: Seen) -> list[str]:
    """Return the tables that the source has in a schema and the caller sees. Raises NotFound for the schema."""
    return seen.of(await ask(ctx, seen.origin, of=with_tables, question=lambda found: found.table_names(seen.path[0])))


async def table_load(ctx: Context, sought: Sought) -> Loaded:
    """Return a table that was decided on. Raises NotFound."""
    schema, name = sought.path
    told = await ask(ctx, sought.origin, of=with_tables, question=lambda found: found.table_load(schema, name))
    return Loaded(told, sought.node, sought.origin.catalog)


async def table_create(ctx: Context, scope: Scope, *, path: Levels, asked: Asked) -> Loaded:
    """Make a table in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (schema), BadRequest, Forbidden."""
    schema, name = path
    check_gravitino_name(name)

    def may(scene: Scene, _chain: Chain) -> Decision:
        return scene.require(Action.TABLE_CREATE, container_chain(scene, path[:-1]))

    def decide(scene: Scene) -> Origin:
        scene.require_in_use()
        may(scene, ())
        return origin_of(scene)

    origin = await ctx.read(scope, decide)
    await ask(
        ctx, origin, of=with_tables, question=lambda found: found.table_create(schema, name, asked=asked), changes=True
    )
    node = await shadow_make(ctx, scope, kind=Kind.TABLE, path=path, allowed=may, made_here=True)
    told = await ask(ctx, origin, of=with_tables, question=lambda found: found.table_load(schema, name))
    return Loaded(told, node, origin.catalog)


async def table_alter(ctx: Context, scope: Scope, *, path: Levels, changes: Sequence[TableChange]) -> Loaded:
    """Change a table in the source, all at once. Raises NotFound, BadRequest, Unsupported, Forbidden."""
    schema, name = path
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.TABLE, path=path, action=Action.TABLE_ALTER))
    await ask(
        ctx,
        sought.origin,
        of=with_tables,
        question=lambda found: found.table_alter(schema, name, changes=changes),
        changes=True,
    )
    return await table_load(ctx, sought)


async def table_rename(ctx: Context, scope: Scope, *, path: Levels, name: str) -> Loaded:
    """Give a table another name in its schema, and what stands for it. Raises NotFound, AlreadyExists, Forbidden."""
    schema, old = path
    check_gravitino_name(name)
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.TABLE, path=path, action=Action.TABLE_RENAME))
    await ask(
        ctx,
        sought.origin,
        of=with_tables,
        question=lambda found: found.table_rename(schema, old, name=name),
        changes=True,
    )
    if sought.node is not None:
        await _follow(ctx, scope, node=sought.node, path=path, name=name)
    return await table_load(ctx, sought._replace(path=(schema, name)))


async def _follow(ctx: Context, scope: Scope, *, node: Node, path: Levels, name: str) -> None:
    """Give what stands for a table its new name; what stood for a predecessor of that name goes."""

    def decide(scene: Scene) -> Permit[tuple[Node, str]]:
        sought = seek(scene, Kind.TABLE, path=path, action=Action.TABLE_RENAME)
        return scene.permit((sought.node or node, name), sought.decision, zone=scene.catalog.id)

    await ctx.write(scope, decide, _rename)


def _rename(tx: Tx, permit: Permit[tuple[Node, str]]) -> None:
    node, name = permit.command
    held = tx.nodes.confirm(node)
    stale = tx.nodes.find(held.parent_id, held.name_space, name)
    if stale is not None and stale.id != held.id:
        tx.nodes.drop(stale)
    tx.nodes.move(held, parent_id=held.parent_id, name=name, moves_access=True)


async def table_drop(ctx: Context, scope: Scope, *, path: Levels, purge: bool) -> None:
    """Drop a table in the source with its rows, and what stands for it. Raises NotFound, Protected, Unsupported, Forbidden.

    A purge is refused, as upstream refuses it: there are no files of which this server would know.
    """
    schema, name = path
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.TABLE, path=path, action=Action.TABLE_DROP))
    if purge:
        raise Unsupported("Tables of this source have no files to purge: drop the table, which takes its rows away")
    await refuse_protected(ctx, sought, kind=Kind.TABLE)
    await ask(ctx, sought.origin, of=with_tables, question=lambda found: found.table_drop(schema, name), changes=True)
    await shadow_drop(ctx, scope, sought=sought, action=Action.TABLE_DROP)
