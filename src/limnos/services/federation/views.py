"""Views of another Iceberg catalog that one of ours shows: list, load, make, alter, rename, drop, by rights that hang on names of the tree.

May import the rooms below, and `sources` for capabilities. Each function decides first, on one scene, and then asks the source. What stands for views is
treated as what stands for tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.services.federation.moves import following, shadow_followed
from limnos.services.federation.objects import dropped_in_source, leaves_seen, made_in_source
from limnos.services.federation.shadows import require_there, seek
from limnos.services.federation.sources import ask
from limnos.sources.connectors.capabilities import with_views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.gravitino.views import ViewAsked, ViewTold
    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.federation.objects import Seen
    from limnos.services.federation.shadows import Sought
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope


class Loaded(NamedTuple):
    """A view, and what stands for it."""

    told: ViewTold
    node: Node | None
    catalog: Node


def views_seen(scene: Scene, schema: Levels) -> Seen:
    """Decide on listing the views of a schema. Raises Forbidden."""
    return leaves_seen(scene, schema, kind=Kind.VIEW, action=Action.VIEW_LIST)


async def views_list(ctx: Context, seen: Seen) -> list[str]:
    """Return the views that the source has in a schema and the caller sees. Raises NotFound for the schema."""
    return seen.of(await ask(ctx, seen.origin, of=with_views, question=lambda found: found.view_names(seen.path)))


def view_seek(scene: Scene, path: Levels, *, action: Action) -> Sought:
    """Decide on a view; who works with tables beside it may learn that it is missing. Raises Forbidden."""
    return seek(scene, Kind.VIEW, path=path, action=action, probe=Action.VIEW_MAY_PROBE)


async def view_load(ctx: Context, sought: Sought) -> Loaded:
    """Return a view that was decided on. Raises NotFound, Forbidden."""
    await require_there(ctx, sought)
    schema, name = sought.path[:-1], sought.path[-1]
    told = await ask(ctx, sought.origin, of=with_views, question=lambda found: found.view_load(schema, name))
    return Loaded(told, sought.node, sought.origin.catalog)


async def view_create(ctx: Context, scope: Scope, *, path: Levels, asked: ViewAsked) -> Loaded:
    """Make a view in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (schema), BadRequest, Forbidden."""
    schema, name = path[:-1], path[-1]
    origin, node = await made_in_source(
        ctx, scope, kind=Kind.VIEW, path=path, action=Action.VIEW_CREATE, of=with_views,
        question=lambda found: found.view_create(schema, name, asked=asked),
    )  # fmt: skip
    told = await ask(ctx, origin, of=with_views, question=lambda found: found.view_load(schema, name))
    return Loaded(told, node, origin.catalog)


async def view_alter(ctx: Context, scope: Scope, *, path: Levels, updates: Sequence[object]) -> Loaded:
    """Change a view in the source, all at once. Raises NotFound, BadRequest, Forbidden."""
    schema, name = path[:-1], path[-1]
    sought = await ctx.read(scope, lambda scene: view_seek(scene, path, action=Action.VIEW_ALTER))
    await require_there(ctx, sought)
    await ask(
        ctx,
        sought.origin,
        of=with_views,
        question=lambda found: found.view_alter(schema, name, updates=updates),
        changes=True,
    )
    return await view_load(ctx, sought)


async def view_rename(ctx: Context, scope: Scope, *, path: Levels, target: Levels) -> Loaded:
    """Give a view another name, and what stands for it. Raises NotFound, AlreadyExists, Forbidden."""
    sought, permit = await ctx.read(scope, lambda scene: following(scene, Kind.VIEW, source=path, target=target))
    await ask(
        ctx,
        sought.origin,
        of=with_views,
        question=lambda found: found.view_rename(path[:-1], path[-1], target=target),
        changes=True,
    )
    await shadow_followed(ctx, permit)
    return await view_load(ctx, sought._replace(path=target))


async def view_drop(ctx: Context, scope: Scope, *, path: Levels) -> None:
    """Drop a view in the source, and what stands for it. Raises NotFound, Protected, Forbidden."""
    await dropped_in_source(
        ctx, scope, kind=Kind.VIEW, path=path, action=Action.VIEW_DROP, of=with_views,
        question=lambda found: found.view_drop(path[:-1], path[-1]),
    )  # fmt: skip
