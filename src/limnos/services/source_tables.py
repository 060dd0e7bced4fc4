"""Tables of outside systems: list, load, make, alter, rename, drop, by rights that hang on names of the tree.

May import the rooms below, `formats` for the shapes of requests, and `sources` for capabilities. Each function decides first, on one scene, and
then asks the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_NAMESPACE
from limnos.names.path import check_gravitino_name
from limnos.services.shadows import seek, steps_of
from limnos.services.source_objects import Seen, above_of, dropped_in_source, leaves_seen, made_in_source
from limnos.services.sources import ask
from limnos.sources.connectors.capabilities import with_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.gravitino.tables import Asked, TableChange
    from limnos.model.decisions import Decision
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene, Scope
    from limnos.services.shadows import Sought
    from limnos.sources.connectors.capabilities import TableTold
    from limnos.store.tx import Tx


_MOVES: Final = {
    Kind.TABLE: (Action.TABLE_RENAME, Action.TABLE_MOVE, Action.TABLE_CREATE),
    Kind.VIEW: (Action.VIEW_RENAME, Action.VIEW_MOVE, Action.VIEW_CREATE),
}
"""What another name takes, another namespace, and making something there."""


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
    sought = await ctx.read(scope, lambda scene: moving(scene, Kind.TABLE, source=path, target=target).sought)
    await ask(
        ctx,
        sought.origin,
        of=with_tables,
        question=lambda found: found.table_rename(path[:-1], path[-1], target=target),
        changes=True,
    )
    await shadow_follow(ctx, scope, kind=Kind.TABLE, source=path, target=target)
    return await table_load(ctx, sought._replace(path=target))


class Moving(NamedTuple):
    """A table or view that the caller may put elsewhere, and the decisions that say so."""

    sought: Sought
    decisions: tuple[Decision, ...]


def moving(scene: Scene, kind: Kind, *, source: Levels, target: Levels) -> Moving:
    """Decide on another name or schema of a table or view. Raises Forbidden, BadRequest."""
    if min(len(source), len(target)) < 2:
        raise BadRequest(f"A {kind.word} lies in a namespace: name at least two levels")
    stays = source[:-1] == target[:-1]
    rename, move, make = _MOVES[kind]
    sought = seek(scene, kind, path=source, action=rename if stays else move)
    if stays:
        return Moving(sought, (sought.decision,))
    return Moving(sought, (sought.decision, scene.require(make, above_of(scene, target))))


class ShadowMove(msgspec.Struct, frozen=True):
    """Let what stands for an object follow it: kinds, name spaces and names on its new path; without a `node` what stood there goes."""

    node: Node | None
    catalog: Node
    steps: tuple[tuple[Kind, str, str], ...]


async def shadow_follow(ctx: Context, scope: Scope, *, kind: Kind, source: Levels, target: Levels) -> None:
    """Give what stands for a table or view its new place; what stood for a predecessor of that name goes."""

    def decide(scene: Scene) -> Permit[ShadowMove]:
        found = moving(scene, kind, source=source, target=target)
        command = ShadowMove(found.sought.node, scene.catalog, steps_of(scene, kind, path=target))
        return scene.permit(command, *found.decisions, zone=scene.catalog.id)

    await ctx.write(scope, decide, shadow_move)


def shadow_move(tx: Tx, permit: Permit[ShadowMove]) -> None:
    """Move a node to where its object is now, with what has to stand above it."""
    command = permit.command
    at = tx.nodes.confirm(command.catalog)
    held = None if command.node is None else tx.nodes.confirm(command.node)
    for kind, space, name in command.steps[:-1]:
        found = tx.nodes.find(at.id, space, name)
        if found is None and held is None:
            return  # nothing stands where it goes, nor for it
        at = found or tx.nodes.create(
            kind=kind, space=space, name=name, parent_id=at.id, zone=permit.zone, record=BLANK_NAMESPACE, owner_id=None
        )
    _, space, name = command.steps[-1]
    stale = tx.nodes.find(at.id, space, name)
    if stale is not None and (held is None or stale.id != held.id):
        tx.nodes.drop(stale)
    if held is not None:
        tx.nodes.move(held, parent_id=at.id, name=name, moves_access=True)


async def table_drop(ctx: Context, scope: Scope, *, path: Levels, purge: bool) -> None:
    """Drop a table in the source with its rows, and what stands for it. Raises NotFound, Protected, Unsupported, Forbidden.

    A purge takes the files away, where the source has some.
    """
    await dropped_in_source(
        ctx, scope, kind=Kind.TABLE, path=path, action=Action.TABLE_DROP, of=with_tables,
        question=lambda found: found.table_drop(path[:-1], path[-1], purge=purge),
    )  # fmt: skip
