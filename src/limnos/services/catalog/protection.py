"""Protection: an object that may not be dropped, by anybody over any protocol, until somebody above its owner ends that.

May import the rooms below. Knows no wire format. That nothing protected is dropped is checked where nodes are dropped
(`store.protection`); here it is said who may protect, and who may end it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import display_names
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, Unsupported
from limnos.model.kinds import Kind
from limnos.services.federation.shadows import Unshadowed, seen
from limnos.services.lookup.objects import codec_of, scope_for, target_require
from limnos.services.request.table_formats import is_sourced
from limnos.store.protection import protection_read

if TYPE_CHECKING:
    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.tx import Tx

_ELSEWHERE = (
    "What another system has can be dropped there by others, so nothing of it is protected by itself: protect the catalog with all that is below, "
    "which keeps it from being dropped over this server"
)


class Protect(msgspec.Struct, frozen=True):
    """Protect something, with `below` everything below it, too."""

    node: Node
    below: bool


class Unprotect(msgspec.Struct, frozen=True):
    """End the protection of something."""

    node: Node


class Shown(NamedTuple):
    """What protects an object: `by` is the kind and the path of itself or of what is above it; None when nothing does."""

    by: tuple[Kind, str] | None
    below: bool = False
    set_by: str = ""
    set_at: int = 0


async def protection_load(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> Shown:
    """Return what protects an object, to whoever may load it. Raises NotFound, Forbidden."""

    def read(scene: Scene) -> tuple[Chain, int]:
        scene.require_in_metalake_use()
        target = target_require(scene, kind, full_name, codec_of(scene), Action.METADATA_LOAD)
        return target.chain, target.id

    scope = scope_for(metalake, kind, full_name)
    chain, node_id = await seen(ctx, scope, reader=read, otherwise=lambda scene, chain: (chain, scene.catalog.id))
    links = {link.id: (link.kind, name) for link, name in zip(chain, display_names(chain), strict=True)}
    found = await ctx.look_up(lambda: protection_read(node_id))
    if found is None or found.node_id not in links:
        return Shown(None)
    if chain[0].id != node_id and not found.below:  # of an object of a source: what protects its catalog alone
        return Shown(None)
    return Shown(links[found.node_id], found.below, found.set_by, found.set_at)


async def protect(ctx: Context, *, metalake: str, kind: Kind, full_name: str, below: bool) -> None:
    """Protect an object, for whoever may drop it. Raises NotFound, Forbidden, BadRequest (a kind that can't be protected)."""

    def decide(scene: Scene) -> Permit[Protect]:
        node, permit = _decided(scene, kind, full_name, Action.PROTECT)
        return permit.about(Protect(node, below))

    await ctx.write(scope_for(metalake, kind, full_name), decide, protect_run)


async def unprotect(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> bool:
    """End an object's own protection, for whoever owns something above it; says whether there was one."""

    def decide(scene: Scene) -> Permit[Unprotect]:
        node, permit = _decided(scene, kind, full_name, Action.UNPROTECT)
        return permit.about(Unprotect(node))

    return await ctx.write(scope_for(metalake, kind, full_name), decide, unprotect_run)


def _decided(scene: Scene, kind: Kind, full_name: str, action: Action) -> tuple[Node, Permit[None]]:
    if kind not in action.kinds:
        raise BadRequest(
            f"A {kind.word.replace('_', ' ')} cannot be protected: a catalog, namespace, table or view can"
        )
    scene.require_in_metalake_use()
    try:
        target = target_require(scene, kind, full_name, codec_of(scene), action)
    except Unshadowed:
        raise Unsupported(_ELSEWHERE) from None
    if kind is not Kind.CATALOG and is_sourced(scene):
        raise Unsupported(_ELSEWHERE)
    if target.node is None:
        raise BadRequest(f"A {kind.word} cannot be protected")
    decision = scene.require(action, target.chain)
    return target.node, scene.permit(None, decision, zone=scene.zone_of(kind))


def protect_run(tx: Tx, permit: Permit[Protect]) -> None:
    """Write the protection, if the object is still there."""
    tx.protection.set(tx.nodes.confirm(permit.command.node), below=permit.command.below)


def unprotect_run(tx: Tx, permit: Permit[Unprotect]) -> bool:
    """End it."""
    return tx.protection.clear(tx.nodes.confirm(permit.command.node))
