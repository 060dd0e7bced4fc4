# SPDX-License-Identifier: Apache-2.0
"""Views of any format: find, load, list, decide on creation, drop, rename and move.

Must not know any wire format or view format: `services.iceberg.views` creates and replaces Iceberg views, and
`services.lookup.definer_rights` decides on the rights that views give to their readers. For a missing view, a caller
who could load it if it existed, or who may use tables of its namespace, gets NotFound. Other callers get
PermissionDenied.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_conflict
from limnos.model.permits import Permit
from limnos.model.records import ViewRecord
from limnos.model.storage_locations import LocationKind
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.services.catalog.tables import NewTable, require_free
from limnos.services.lookup.definer_rights import LoadTarget, ViewChain, look_up_through
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, NamePage, PageRequest, page_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, refuse_federated, refuse_sourced, require_format
from limnos.services.storage.location_claims import location_claim, locations_lock, locations_release
from limnos.services.storage.namespace_locations import inherited_location
from limnos.store.tx import Tx

NOBODY = 0
"""The writer's id of a view that was created while access control was off."""


class ViewState(NamedTuple):
    """A view's node and document after a mutation."""

    node: Node
    document: MetadataDocument


class ViewCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a view with its document."""

    namespace: Node
    name: str
    space: str
    document: MetadataDocument
    owner_id: int | None
    record: ViewRecord


class ViewDrop(msgspec.Struct, frozen=True):
    """The command to drop a view, which can be restored for `keep_ms` milliseconds."""

    view: Node
    keep_ms: int = 0


class ViewMove(msgspec.Struct, frozen=True):
    """The command to rename a view, or to move it to another namespace."""

    view: Node
    into: Node
    name: str
    frees: bool = False
    """Whether the caller may end its protection. If not, a protected view keeps its namespace."""


def view_find(request_view: RequestView, namespace: Levels, name: str, action: Action) -> AuthorizedObject[Node]:
    """Find a view for a caller who may do the action on it. Raises NotFound, NotInUse, PermissionDenied,
    UnsupportedOperation for a catalog of an external system.
    """
    request_view.require_in_use()
    refuse_sourced(request_view, Kind.VIEW, levels=(*namespace, name), action=action, probe=Action.VIEW_MAY_PROBE)
    return request_view.look_up(Kind.VIEW, (*namespace, name), action, probe=Action.VIEW_MAY_PROBE)


def view_exists(request_view: RequestView, namespace: Levels, name: str) -> None:
    """Check that the view exists. Raises as `view_find`."""
    view_find(request_view, namespace, name, Action.VIEW_EXISTS)


def view_load(request_view: RequestView, namespace: Levels, name: str, through: ViewChain = ()) -> MetadataDocument:
    """Return a view's document to a caller with the right to load it, directly or by the definer's rights of the views
    in `through`.

    Raises as `view_find`.
    """
    if through:
        refuse_federated(request_view)
        thing = LoadTarget(Kind.VIEW, (*namespace, name), Action.VIEW_LOAD, Action.VIEW_MAY_PROBE)
        return request_view.document(look_up_through(request_view, thing, through).entity.id)
    return request_view.document(view_find(request_view, namespace, name, Action.VIEW_LOAD).entity.id)


def views_list(request_view: RequestView, namespace: Levels, request: PageRequest = ALL_NAMES) -> NamePage:
    """Return a page of the views of a namespace that are visible to the caller. Raises as `view_find`."""
    request_view.require_in_use()
    refuse_sourced(request_view, Kind.NAMESPACE, levels=namespace, action=Action.VIEW_LIST)
    result = request_view.look_up(Kind.NAMESPACE, namespace, Action.VIEW_LIST)
    return page_of(request_view, Action.VIEW_LIST, kind=Kind.VIEW, chain=result.chain, page_request=request)


def writer_of(request_view: RequestView) -> int:
    """Return the id of the user to record as the definer of a view: the caller, or `NOBODY` without access control."""
    return request_view.subject.user_id or NOBODY


def new_view_of(request_view: RequestView, namespace: Levels, name: str) -> NewTable:
    """Decide on creating a view, and return the decision with the storage for its files.

    Raises NotFound (the namespace), AlreadyExists (a view or table has the name), InvalidName, BadRequest (a catalog of
    another format), UnsupportedOperation (a catalog of an external system), NotInUse, PermissionDenied.
    """
    request_view.require_in_use()
    check_levels((*namespace, name))
    refuse_sourced(request_view, Kind.NAMESPACE, levels=namespace, action=Action.VIEW_CREATE)
    node, chain, decision = request_view.look_up(Kind.NAMESPACE, namespace, Action.VIEW_CREATE)
    require_format(request_view, ICEBERG)
    require_free(request_view, node.id, (*namespace, name), kind=Kind.VIEW)
    permit = request_view.permit(None, decision)
    return NewTable(
        permit=permit,
        namespace=node,
        space=request_view.space(Kind.VIEW),
        owner_id=request_view.maker_id,
        place=catalog_storage_of(request_view),
        home=inherited_location(request_view, chain),
    )


def view_insert(tx: Tx, permit: Permit[ViewCreate]) -> ViewState:
    """Insert the view with its owner, its document and its location."""
    command = permit.command
    node = tx.nodes.create(
        kind=Kind.VIEW,
        space=command.space,
        name=command.name,
        parent_id=command.namespace.id,
        zone=permit.zone,
        record=command.record,
        owner_id=command.owner_id,
        node_format="iceberg",
        under=command.namespace,
    )
    document = msgspec.structs.replace(command.document, node_id=node.id)
    locations_lock(tx, documents=(document,))
    location_claim(
        tx,
        LocationKind.VIEW,
        owner_id=node.id,
        catalog_id=permit.zone,
        location=document.location,
        namespace_id=command.namespace.id,
    )
    tx.documents.insert(document)
    return ViewState(node, document)


async def view_drop(ctx: Context, scope: RequestScope, *, namespace: Levels, name: str) -> None:
    """Drop a view; its metadata files stay, since other systems may read them.

    Raises as `view_find`, and ProtectedObject.
    """
    await ctx.write(scope, lambda request_view: view_drop_of(request_view, namespace, name), view_delete)


def view_drop_of(request_view: RequestView, namespace: Levels, name: str) -> Permit[ViewDrop]:
    """Decide on dropping a view, and return the permit. Raises as `view_find`."""
    node, _, decision = view_find(request_view, namespace, name, Action.VIEW_DROP)
    return request_view.permit(ViewDrop(node, request_view.defaults.keep_dropped_ms), decision)


def view_delete(tx: Tx, permit: Permit[ViewDrop]) -> None:
    """Drop the view; its document stays while it can be restored."""
    node = tx.nodes.confirm(permit.command.view)
    if not permit.command.keep_ms:
        tx.documents.delete(node.id)
        locations_release(tx, node.id)
    tx.nodes.drop(node, keep_ms=permit.command.keep_ms)


async def view_move(ctx: Context, scope: RequestScope, *, source: Levels, target: Levels) -> ViewState:
    """Rename a view, or move it to another namespace of its catalog.

    Raises NotFound (the view, or the target's namespace), AlreadyExists, BadRequest (a path without a namespace),
    InvalidName, NotInUse, UnsupportedOperation (a catalog of an external system), PermissionDenied, ProtectedObject.
    """
    return await ctx.write(scope, lambda request_view: view_move_of(request_view, source, target), view_reparent)


def view_move_of(request_view: RequestView, source: Levels, target: Levels) -> Permit[ViewMove]:
    """Decide on renaming or moving a view, and return the permit. Raises as `view_move`."""
    if len(source) < 2 or len(target) < 2:
        raise BadRequest("A view must be in a namespace: give at least two levels")
    check_levels(target)
    stays = source[:-1] == target[:-1]
    action = Action.VIEW_RENAME if stays else Action.VIEW_MOVE
    node, chain, decision = view_find(request_view, source[:-1], source[-1], action)
    into, above = request_view.find_parent(target)
    decisions = [decision]
    if not stays:
        decisions.append(request_view.require(Action.VIEW_CREATE, above))
    used, _ = request_view.find(target, Kind.VIEW)
    if used is not None and used.id != node.id:
        raise name_conflict(source, target, holder=used.kind)
    frees = stays or request_view.decide(Action.UNPROTECT, chain).allowed
    return request_view.permit(ViewMove(node, into, target[-1], frees), *decisions)


def view_reparent(tx: Tx, permit: Permit[ViewMove]) -> ViewState:
    """Move the view to its new namespace and name.

    Its grants belong to its id and move with it; a new parent changes who has rights by inheritance.
    """
    node = tx.nodes.confirm(permit.command.view)
    into = tx.nodes.confirm(permit.command.into)
    if node.parent_id != into.id and not permit.command.frees:
        tx.protection.refuse_move(node)
    tx.nodes.move(node, parent_id=into.id, name=permit.command.name, moves_access=node.parent_id != into.id)
    tx.nodes.make_explicit(into, child=node.kind)
    document = tx.documents.read(node.id)
    if document is None:
        tx.stale()
    return ViewState(tx.nodes.by_id(node.id), document)
