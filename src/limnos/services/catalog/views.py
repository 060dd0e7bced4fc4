"""Views, whatever their format: find, load, list, decide on a new one, drop, rename and move.

May import the rooms below. Knows no wire format and no view format: how Iceberg makes and replaces one is in
`services.iceberg.views`, what a view lends to its readers in `services.lookup.lending`. A missing view answers NotFound to whoever
could load it if it were there, or works with tables beside it; Forbidden to everyone else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Document, Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.places import PlaceKind
from limnos.model.records import ViewRecord
from limnos.names.parts import check_levels
from limnos.services.catalog.namespaces import parent_of
from limnos.services.catalog.tables import NewTable, in_the_way, require_free
from limnos.services.lookup.lending import Thing, look_up_through
from limnos.services.request.pages import EVERY, Asked, Page, page_of
from limnos.services.request.places import place_of
from limnos.services.request.table_formats import ICEBERG, refuse_federated, refuse_sourced, require_format
from limnos.services.storage.homes import given
from limnos.services.storage.place_claims import place_take, places_release

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.lookup.lending import Through
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Found, Scene, Scope
    from limnos.store.tx import Tx

NOBODY = 0
"""The writer of a view that was made while access control was off."""


class Held(NamedTuple):
    """A view as a mutation left it."""

    node: Node
    document: Document


class ViewCreate(msgspec.Struct, frozen=True):
    """Make a view with its document."""

    namespace: Node
    name: str
    space: str
    document: Document
    owner_id: int | None
    record: ViewRecord


class ViewDrop(msgspec.Struct, frozen=True):
    """Drop a view; it can be brought back for `keep_ms`."""

    view: Node
    keep_ms: int = 0


class ViewMove(msgspec.Struct, frozen=True):
    """Give a view another name, or another namespace."""

    view: Node
    into: Node
    name: str
    frees: bool = False
    """Whether who moves it may end its protection; else it stays in what it lies in while it is protected."""


def view_find(scene: Scene, namespace: Levels, name: str, action: Action) -> Found[Node]:
    """Find a view for who may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_use()
    refuse_sourced(scene, Kind.VIEW, levels=(*namespace, name), action=action, probe=Action.VIEW_MAY_PROBE)
    return scene.look_up(Kind.VIEW, (*namespace, name), action, probe=Action.VIEW_MAY_PROBE)


def view_exists(scene: Scene, namespace: Levels, name: str) -> None:
    """Return if the view exists. Raises NotFound, Forbidden."""
    view_find(scene, namespace, name, Action.VIEW_EXISTS)


def view_load(scene: Scene, namespace: Levels, name: str, through: Through = ()) -> Document:
    """Return a view's document, also by a right that views lend. Raises NotFound, Forbidden."""
    if through:
        refuse_federated(scene)
        thing = Thing(Kind.VIEW, (*namespace, name), Action.VIEW_LOAD, Action.VIEW_MAY_PROBE)
        return scene.document(look_up_through(scene, thing, through).entity.id)
    return scene.document(view_find(scene, namespace, name, Action.VIEW_LOAD).entity.id)


def views_list(scene: Scene, namespace: Levels, asked: Asked = EVERY) -> Page:
    """Return a page of what the caller sees of a namespace's views."""
    scene.require_in_use()
    refuse_sourced(scene, Kind.NAMESPACE, levels=namespace, action=Action.VIEW_LIST)
    found = scene.look_up(Kind.NAMESPACE, namespace, Action.VIEW_LIST)
    return page_of(scene, Action.VIEW_LIST, kind=Kind.VIEW, chain=found.chain, asked=asked)


def writer_of(scene: Scene) -> int:
    """Return whom a text that the caller writes now is by."""
    return scene.subject.user_id or NOBODY


def new_view_of(scene: Scene, namespace: Levels, name: str) -> NewTable:
    """Decide on making a view. Raises NotFound (namespace), AlreadyExists (a view or table has the name)."""
    scene.require_in_use()
    check_levels((*namespace, name))
    refuse_sourced(scene, Kind.NAMESPACE, levels=namespace, action=Action.VIEW_CREATE)
    node, chain, decision = scene.look_up(Kind.NAMESPACE, namespace, Action.VIEW_CREATE)
    require_format(scene, ICEBERG)
    require_free(scene, node.id, (*namespace, name), wanted=Kind.VIEW)
    permit = scene.permit(None, decision)
    return NewTable(permit, node, scene.space(Kind.VIEW), scene.maker_id, place_of(scene), given(scene, chain))


def view_insert(tx: Tx, permit: Permit[ViewCreate]) -> Held:
    """Insert the view, its owner and its document."""
    command = permit.command
    node = tx.nodes.create(
        kind=Kind.VIEW, space=command.space, name=command.name, parent_id=command.namespace.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id, node_format="iceberg", under=command.namespace,
    )  # fmt: skip
    document = msgspec.structs.replace(command.document, node_id=node.id)
    tx.documents.lock(document)
    place_take(tx, PlaceKind.VIEW, owner_id=node.id, catalog_id=permit.zone, location=document.location)
    tx.documents.insert(document)
    return Held(node, document)


async def view_drop(ctx: Context, scope: Scope, *, namespace: Levels, name: str) -> None:
    """Drop a view; its metadata files stay, as nothing says that nobody else reads them."""
    await ctx.write(scope, lambda scene: view_drop_of(scene, namespace, name), view_delete)


def view_drop_of(scene: Scene, namespace: Levels, name: str) -> Permit[ViewDrop]:
    """Decide on dropping a view. Raises NotFound, Forbidden."""
    node, _, decision = view_find(scene, namespace, name, Action.VIEW_DROP)
    return scene.permit(ViewDrop(node, scene.defaults.keep_dropped_ms), decision)


def view_delete(tx: Tx, permit: Permit[ViewDrop]) -> None:
    """Drop the view; its document stays while it can be brought back."""
    held = tx.nodes.confirm(permit.command.view)
    if not permit.command.keep_ms:
        tx.documents.delete(held.id)
        places_release(tx, held.id)
    tx.nodes.drop(held, keep_ms=permit.command.keep_ms)


async def view_move(ctx: Context, scope: Scope, *, source: Levels, target: Levels) -> Held:
    """Rename a view, or move it to another namespace of its catalog. Raises NotFound, AlreadyExists, Forbidden."""
    return await ctx.write(scope, lambda scene: view_move_of(scene, source, target), view_reparent)


def view_move_of(scene: Scene, source: Levels, target: Levels) -> Permit[ViewMove]:
    """Decide on renaming or moving a view. Raises NotFound, AlreadyExists, Forbidden, BadRequest."""
    if len(source) < 2 or len(target) < 2:
        raise BadRequest("A view lies in a namespace: name at least two levels")
    check_levels(target)
    stays = source[:-1] == target[:-1]
    action = Action.VIEW_RENAME if stays else Action.VIEW_MOVE
    node, chain, decision = view_find(scene, source[:-1], source[-1], action)
    into, above = parent_of(scene, target)
    decisions = [decision]
    if not stays:
        decisions.append(scene.require(Action.VIEW_CREATE, above))
    taken, _ = scene.find(target, Kind.VIEW)
    if taken is not None and taken.id != node.id:
        raise in_the_way(source, target, holder=taken.kind)
    frees = stays or scene.decide(Action.UNPROTECT, chain).allowed
    return scene.permit(ViewMove(node, into, target[-1], frees), *decisions)


def view_reparent(tx: Tx, permit: Permit[ViewMove]) -> Held:
    """Put the view where it goes. Grants hang on its id and move with it; what is above it changes who may."""
    held = tx.nodes.confirm(permit.command.view)
    into = tx.nodes.confirm(permit.command.into)
    if held.parent_id != into.id and not permit.command.frees:
        tx.protection.refuse_move(held)
    tx.nodes.move(held, parent_id=into.id, name=permit.command.name, moves_access=held.parent_id != into.id)
    document = tx.documents.read(held.id)
    if document is None:
        tx.stale()
    return Held(tx.nodes.by_id(held.id), document)
