"""Schemas of outside systems: list, load, make, drop, by rights that hang on names of the tree.

May import the rooms below, and `sources` for capabilities. Each function decides first, on one scene, and then asks the source; what a caller may
not know of is refused in the same words whether the source has it or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.services.federation.objects import Seen, dropped_in_source, made_in_source, seen_in
from limnos.services.federation.shadows import seek, stand_in
from limnos.services.federation.sources import ask
from limnos.services.request.browsing import listing_require
from limnos.sources.connectors.capabilities import with_schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.federation.shadows import Sought
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope
    from limnos.sources.connectors.capabilities import SchemaTold


class Loaded(NamedTuple):
    """A schema, and what stands for it."""

    told: SchemaTold
    node: Node | None
    catalog: Node


def schemas_seen(scene: Scene, parent: Levels = ()) -> Seen:
    """Decide on listing schemas, those in another one or the outermost. Raises Forbidden."""
    scene.require_in_use()
    listing_require(scene, parent)
    chain = stand_in(scene, Kind.NAMESPACE, path=parent)[1] if parent else scene.settled.outer
    return seen_in(scene, parent, chain=chain, kind=Kind.NAMESPACE, action=Action.NAMESPACE_LIST)


async def schemas_list(ctx: Context, seen: Seen) -> list[str]:
    """Return the schemas that the source has and the caller sees."""
    return seen.of(await ask(ctx, seen.origin, of=with_schemas, question=lambda found: found.schema_names(seen.path)))


async def schema_load(ctx: Context, sought: Sought) -> Loaded:
    """Return a schema that was decided on. Raises NotFound."""
    told = await ask(ctx, sought.origin, of=with_schemas, question=lambda found: found.schema_load(sought.path))
    return Loaded(told, sought.node, sought.origin.catalog)


async def schema_create(
    ctx: Context, scope: Scope, *, path: Levels, comment: str | None, properties: dict[str, str]
) -> Loaded:
    """Make a schema in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (parent), Forbidden, Unsupported."""
    origin, node = await made_in_source(
        ctx, scope, kind=Kind.NAMESPACE, path=path, action=Action.NAMESPACE_CREATE, of=with_schemas,
        question=lambda found: found.schema_create(path, comment=comment, properties=properties),
    )  # fmt: skip
    told = await ask(ctx, origin, of=with_schemas, question=lambda found: found.schema_load(path))
    return Loaded(told, node, origin.catalog)


async def schema_alter(
    ctx: Context, scope: Scope, *, path: Levels, sets: dict[str, str], removes: Sequence[str]
) -> Loaded:
    """Set and remove properties of a schema. Raises Unsupported where it has none, NotFound, Forbidden."""
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.NAMESPACE, path=path, action=Action.NAMESPACE_ALTER))
    await ask(
        ctx,
        sought.origin,
        of=with_schemas,
        question=lambda found: found.schema_alter(path, sets=sets, removes=removes),
        changes=True,
    )
    return await schema_load(ctx, sought)


async def schema_drop(ctx: Context, scope: Scope, *, path: Levels) -> None:
    """Drop an empty schema in the source, and what stands for it. Raises NotFound, NotEmpty, Protected, Forbidden."""
    await dropped_in_source(
        ctx, scope, kind=Kind.NAMESPACE, path=path, action=Action.NAMESPACE_DROP, of=with_schemas,
        question=lambda found: found.schema_drop(path),
    )  # fmt: skip
