"""Schemas of outside systems: list, load, make, drop, by rights that hang on names of the tree.

May import the rooms below, and `sources` for capabilities. Each function decides first, on one scene, and then asks the source; what a caller may
not know of is refused in the same words whether the source has it or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.access.policy import ITEMS
from limnos.model.decisions import Link
from limnos.model.errors import Protected
from limnos.model.kinds import Kind
from limnos.names.path import check_gravitino_name
from limnos.services.pages import EVERY, NO_PAGE, every_name, page_of
from limnos.services.shadows import seek, shadow_make, stand_in
from limnos.services.sources import ask, origin_of
from limnos.sources.connectors.capabilities import with_schemas
from limnos.store.protection import protection_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.decisions import Chain, Decision
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene, Scope
    from limnos.services.shadows import Sought
    from limnos.services.sources import Origin
    from limnos.sources.connectors.capabilities import SchemaTold
    from limnos.store.tx import Tx


class Seen(NamedTuple):
    """Which names of a list the caller sees: those of `shown`, and of those that nothing stands for all or none."""

    origin: Origin
    path: Levels
    shown: frozenset[str]
    others: bool
    known: frozenset[str]

    def of(self, names: list[str]) -> list[str]:
        """Return the names that are seen, in their order."""
        return [name for name in names if (name in self.shown if name in self.known else self.others)]


class Loaded(NamedTuple):
    """A schema, and what stands for it."""

    told: SchemaTold
    node: Node | None
    catalog: Node


def seen_in(scene: Scene, path: Levels, *, chain: Chain, kind: Kind, action: Action) -> Seen:
    """Return which names of a kind in a container the caller sees, whatever the source will list."""
    listed = page_of(scene, action, kind=kind, chain=chain, asked=EVERY) if chain[0].id > 0 else NO_PAGE
    known = every_name(scene, kind=kind, chain=chain) if chain[0].id > 0 else ()
    others = scene.decide(ITEMS[action], (Link.absent(kind, "…"), *chain)).allowed
    return Seen(origin_of(scene), path, frozenset(listed.texts()), others, frozenset(known))


def schemas_seen(scene: Scene, parent: Levels = ()) -> Seen:
    """Decide on listing schemas, those in another one or the outermost. Raises Forbidden."""
    scene.require_in_use()
    scene.require(Action.NAMESPACE_LIST, scene.settled.outer)
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
    check_gravitino_name(path[-1])

    def may(scene: Scene, _chain: Chain = ()) -> Decision:
        return scene.require(Action.NAMESPACE_CREATE, above_of(scene, path))

    def decide(scene: Scene) -> Origin:
        scene.require_in_use()
        may(scene)
        return origin_of(scene)

    origin = await ctx.read(scope, decide)
    await ask(ctx, origin, of=with_schemas, question=lambda found: found.schema_create(path, comment=comment, properties=properties),
        changes=True,
    )  # fmt: skip
    node = await shadow_make(ctx, scope, kind=Kind.NAMESPACE, path=path, allowed=may, made_here=True)
    told = await ask(ctx, origin, of=with_schemas, question=lambda found: found.schema_load(path))
    return Loaded(told, node, origin.catalog)


def above_of(scene: Scene, path: Levels) -> Chain:
    """Return the chain of what an object lies in, as far as anything stands for that."""
    return stand_in(scene, Kind.NAMESPACE, path=path[:-1])[1] if path[:-1] else scene.settled.outer


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
    sought = await ctx.read(scope, lambda scene: seek(scene, Kind.NAMESPACE, path=path, action=Action.NAMESPACE_DROP))
    await refuse_protected(ctx, sought)
    await ask(ctx, sought.origin, of=with_schemas, question=lambda found: found.schema_drop(path), changes=True)
    await shadow_drop(ctx, scope, sought=sought, action=Action.NAMESPACE_DROP)


async def refuse_protected(ctx: Context, sought: Sought) -> None:
    """Refuse to drop what lies in something that is protected with all that is below. Raises Protected."""
    found = await ctx.look_up(lambda: protection_read(sought.nearest))
    if found is not None and (found.below or (sought.node is not None and found.node_id == sought.node.id)):
        raise Protected(
            f"{sought.path[-1]} lies in what is protected with all that is below: end that protection first",
            kind=sought.kind.word,
        )


async def shadow_drop(ctx: Context, scope: Scope, *, sought: Sought, action: Action) -> None:
    """Drop what stood for an object that the source has no longer. Nothing has to stand for it, and nobody has to be let in again."""
    node = sought.node
    if node is None:
        return

    def decide(scene: Scene) -> Permit[Node]:
        decision = seek(scene, node.kind, path=sought.path, action=action).decision
        return scene.permit(node, decision, zone=scene.catalog.id)

    await ctx.write(scope, decide, _drop)


def _drop(tx: Tx, permit: Permit[Node]) -> None:
    held = tx.nodes.live(permit.command.id)
    if held is not None:
        tx.nodes.drop(held)
