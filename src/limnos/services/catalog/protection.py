# SPDX-License-Identifier: Apache-2.0
"""Protection: a protected object cannot be dropped over any protocol until the owner of one of its ancestors removes
the protection.

Must not know any wire format. `store.protection` checks each drop of a node; this module decides who may protect an
object, and who may remove the protection.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import SecurableChain, display_names
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.services.federation.placeholder_nodes import MissingPlaceholder, read_attached_rows
from limnos.services.lookup.securables import scope_for, target_require
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced
from limnos.store.objects.protection import protection_read
from limnos.store.tx import Tx

_ELSEWHERE = (
    "Objects of an external system can be dropped there, so they cannot be protected one by one: protect the catalog"
    " with all objects below it, which refuses drops over this server"
)


class ProtectionSet(msgspec.Struct, frozen=True):
    """The command to protect an object; with `below` also all objects below it."""

    node: Node
    below: bool


class ProtectionRemove(msgspec.Struct, frozen=True):
    """The command to remove an object's own protection."""

    node: Node


class ProtectionView(NamedTuple):
    """The protection of an object.

    `by` is the kind and path of the protected object, the object itself or an ancestor; None if it is not protected.
    """

    by: tuple[Kind, str] | None
    below: bool = False
    set_by: str = ""
    set_at: int = 0


async def protection_load(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> ProtectionView:
    """Return the protection of an object that the caller may load. Raises NotFound, NotInUse, PermissionDenied."""

    def read(request_view: RequestView) -> tuple[SecurableChain, int]:
        request_view.require_in_metalake_use()
        target = target_require(request_view, kind, full_name, codec_of(request_view), Action.METADATA_LOAD)
        return target.chain, target.id

    scope = scope_for(metalake, kind, full_name)
    (chain, node_id), protection = await read_attached_rows(
        ctx,
        scope,
        reader=read,
        otherwise=lambda request_view, chain: (chain, request_view.catalog.id),
        work=lambda target: ctx.look_up(lambda: protection_read(target[1])),
        identity=lambda target: ([link.id for link in target[0]], target[1]),
    )
    links = {link.id: (link.kind, name) for link, name in zip(chain, display_names(chain), strict=True)}
    if protection is None or protection.node_id not in links:
        return ProtectionView(None)
    # the catalog's protection does not cover objects of its external system
    if chain[0].id != node_id and not protection.below:
        return ProtectionView(None)
    return ProtectionView(links[protection.node_id], protection.below, protection.set_by, protection.set_at)


async def protection_set(ctx: Context, *, metalake: str, kind: Kind, full_name: str, below: bool) -> None:
    """Protect an object that the caller may drop.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        kind: The kind of the object.
        full_name: The full name of the object.
        below: Whether to protect also all objects below it.

    Raises:
        NotFound: The object is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The caller may not drop it.
        BadRequest: Objects of its kind cannot be protected.
        UnsupportedOperation: It is an external object.
    """

    def decide(request_view: RequestView) -> Permit[ProtectionSet]:
        node, permit = _decide_protection(request_view, kind, full_name, Action.PROTECT)
        return permit.about(ProtectionSet(node, below))

    await ctx.write(scope_for(metalake, kind, full_name), decide, protection_put)


async def protection_remove(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> bool:
    """Remove an object's own protection; the caller must own an ancestor of it. Returns whether it was protected.
    Raises as `protection_set`.
    """

    def decide(request_view: RequestView) -> Permit[ProtectionRemove]:
        node, permit = _decide_protection(request_view, kind, full_name, Action.UNPROTECT)
        return permit.about(ProtectionRemove(node))

    return await ctx.write(scope_for(metalake, kind, full_name), decide, protection_delete)


def _decide_protection(
    request_view: RequestView, kind: Kind, full_name: str, action: Action
) -> tuple[Node, Permit[None]]:
    if kind not in action.kinds:
        raise BadRequest(
            f"A {kind.word.replace('_', ' ')} cannot be protected: a catalog, namespace, table or view can"
        )
    request_view.require_in_metalake_use()
    try:
        target = target_require(request_view, kind, full_name, codec_of(request_view), action)
    except MissingPlaceholder:
        raise UnsupportedOperation(_ELSEWHERE) from None
    if kind is not Kind.CATALOG and is_sourced(request_view):
        raise UnsupportedOperation(_ELSEWHERE)
    if target.node is None:
        raise BadRequest(f"A {kind.word} cannot be protected")
    decision = request_view.require(action, target.chain)
    return target.node, request_view.permit(None, decision, zone=request_view.zone_of(kind))


def protection_put(tx: Tx, permit: Permit[ProtectionSet]) -> None:
    """Write the protection if the object still exists."""
    tx.protection.set(tx.nodes.confirm(permit.command.node), below=permit.command.below)


def protection_delete(tx: Tx, permit: Permit[ProtectionRemove]) -> bool:
    """Remove the object's own protection. Returns whether it was protected."""
    return tx.protection.clear(tx.nodes.confirm(permit.command.node))
