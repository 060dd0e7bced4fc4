# SPDX-License-Identifier: Apache-2.0
"""Namespaces: create with missing parents, load, list, alter, drop, and move with the whole subtree.

Must not know any wire format. For a missing namespace, a caller who may list namespaces gets NotFound. Other callers
get PermissionDenied, which does not reveal whether the namespace exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, UnsupportedOperation
from limnos.model.kinds import TABLE_FORMATS, Kind
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE, NamespaceRecord
from limnos.names.dataverse import METADATA_NAME
from limnos.names.iceberg import render
from limnos.names.path import PARTS_MAX, Levels, check_part
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.browsing import listing_require
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.catalog_traits import NESTED
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.name_pages import ALL_NAMES, EMPTY_PAGE, NamePage, PageRequest, page_of
from limnos.services.request.property_edits import PropertyEdits, check_properties
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced, refuse_create, refuse_federated, refuse_sourced
from limnos.services.storage.namespace_locations import check_new_location, namespace_base_location, namespace_location
from limnos.store.tx import Tx


class NamespaceCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a namespace below `parent`, with its missing parents.

    `names` are the names of the missing parents and, last, of the namespace. Implicit parents are no dataverses of
    SQL++ until an object is put in them.
    """

    parent: Node
    names: Levels
    space: str
    record: NamespaceRecord
    owner_id: int | None
    has_implicit_parents: bool = False


class NamespaceAlter(msgspec.Struct, frozen=True):
    """The command to replace a namespace's record.

    `edit` computes the new record from the stored one; `place` is the catalog's storage, which limits the location.
    """

    namespace: Node
    edit: Callable[[NamespaceRecord], NamespaceRecord]
    place: CatalogStorage


class NamespaceDrop(msgspec.Struct, frozen=True):
    """The command to drop an empty namespace, which can be restored for `keep_ms` milliseconds."""

    namespace: Node
    keep_ms: int = 0
    named: str = ""
    """Its full name in error messages."""


class NamespaceMove(msgspec.Struct, frozen=True, kw_only=True):
    """The command to rename a namespace, move it to another parent, or both, with its subtree.

    `room` is the maximum depth of its subtree at the target, in levels; None if the namespace does not move deeper.
    """

    namespace: Node
    into: Node
    name: str
    room: int | None
    frees: bool = False
    """Whether the caller may end its protection. If not, a protected namespace keeps its parent."""


def already_exists(levels: Levels, holder: str = "namespace") -> AlreadyExists:
    """Return the error for a taken namespace name; `holder` is the kind of the object with that name, such as a Lance
    table.
    """
    words = f"{holder.capitalize()} already exists: {render(levels)}"
    if holder != Kind.NAMESPACE.word:
        words += f", and a namespace cannot have the name of a {holder} in the same place: choose another one"
    return AlreadyExists(words, kind="namespace")


def namespace_find(request_view: RequestView, levels: Levels, action: Action) -> AuthorizedObject[Node]:
    """Find a namespace for a caller who may do the action on it. Raises NotFound, NotInUse, PermissionDenied."""
    request_view.require_in_use()
    refuse_sourced(request_view, Kind.NAMESPACE, levels=levels, action=action)
    return request_view.look_up(Kind.NAMESPACE, levels, action)


def namespace_load(request_view: RequestView, levels: Levels, *, action: Action = Action.NAMESPACE_LOAD) -> Node:
    """Return a namespace. Raises NotFound, NotInUse, PermissionDenied."""
    return namespace_find(request_view, levels, action).entity


def namespace_load_home(request_view: RequestView, levels: Levels, *, action: Action) -> tuple[Node, str | None]:
    """Return a namespace, and the location below which clients place new tables; None in a catalog without tables.

    Raises as `namespace_find`.
    """
    node, chain, _ = namespace_find(request_view, levels, action)
    return node, namespace_location(node, namespace_base_location(request_view, chain[1:]))


def namespaces_list(request_view: RequestView, parent: Levels, page_request: PageRequest = ALL_NAMES) -> NamePage:
    """Return a page of the child namespaces visible to the caller; those of the catalog if `parent` is empty.

    A namespace is listed by name if the caller may use something below it. Raises NotInUse, NotFound for a missing
    parent, UnsupportedOperation for a federated catalog. Raises PermissionDenied for a catalog that the caller may not
    use, unless a name in it is visible to the caller.
    """
    request_view.require_in_use()
    listing_require(request_view, parent)
    chain = request_view.settled.outer
    refuse_federated(request_view)
    if is_sourced(request_view):
        return EMPTY_PAGE
    if parent:
        node, chain = request_view.find(parent, Kind.NAMESPACE)
        if node is None:
            raise request_view.missing(Kind.NAMESPACE, parent)
    return page_of(request_view, Action.NAMESPACE_LIST, kind=Kind.NAMESPACE, chain=chain, page_request=page_request)


async def namespace_create(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    comment: str | None = None,
    properties: dict[str, str],
    check: Callable[[str], object] = check_part,
    parents: bool = True,
) -> tuple[Node, str | None]:
    """Create a namespace and its missing parents in one transaction; the caller owns all of them.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the namespace's name.
        comment: The comment of the namespace, not of its parents.
        properties: The properties of the namespace, not of its parents.
        check: A protocol's stricter rule for the names of created namespaces, not of existing parents.
        parents: Whether missing parents are created.

    Returns:
        The namespace, and its location; None for one that cannot contain tables and has no location of its own.

    Raises:
        InvalidName: A part is not allowed, or contains the separator.
        BadRequest: The name is reserved, or a property or the location is invalid.
        OutsideRoots: The location is outside of the catalog's roots.
        AlreadyExists: The name is taken.
        UnsupportedOperation: The catalog is flat and the namespace is nested, or the namespaces are not the server's
            own.
        NotInUse: The catalog or metalake is disabled.
        NotFound: A parent is missing and `parents` is false.
        PermissionDenied: The caller lacks CREATE_SCHEMA on the nearest existing parent or one of its ancestors.
    """
    above: str | None = None

    def decide(request_view: RequestView) -> Permit[NamespaceCreate]:
        nonlocal above
        record = NamespaceRecord(comment=comment, properties=properties)
        permit, above = namespace_create_of(request_view, levels, record, check=check, parents=parents)
        return permit

    try:
        node = await ctx.write(scope, decide, namespace_insert)
    except AlreadyExists as error:
        raise already_exists(levels, error.kind) from None
    return node, namespace_location(node, above)


def namespace_create_of(
    request_view: RequestView,
    levels: Levels,
    record: NamespaceRecord,
    *,
    check: Callable[[str], object] = check_part,
    parents: bool = True,
    has_implicit_parents: bool = False,
) -> tuple[Permit[NamespaceCreate], str | None]:
    """Decide on creating a namespace, with missing parents that are implicit or not.

    Returns the permit and the parent's location. Raises as `namespace_create` does.
    """
    request_view.require_in_use()
    _check_parts(request_view, levels)
    nearest, missing_levels, chain = None, levels, request_view.settled.outer
    for size in range(len(levels) - 1, 0, -1):
        node, links = request_view.find(levels[:size], Kind.NAMESPACE)
        if node is not None:
            nearest, missing_levels, chain = node, levels[size:], links
            break
    absent_links = [ChainLink.absent(Kind.NAMESPACE, name) for name in reversed(missing_levels[:-1])]
    # Absent parents are part of the chain, so that the refusal does not reveal which parents exist.
    decision = request_view.require(Action.NAMESPACE_CREATE, (*absent_links, *chain))
    refuse_create(request_view)
    _refuse_nesting(request_view, levels)
    _refuse_reserved(request_view, levels)
    parent = request_view.catalog if nearest is None else nearest
    if len(missing_levels) > 1 and not parents:
        raise request_view.missing(Kind.NAMESPACE, levels[:-1])
    if not missing_levels or (
        len(missing_levels) == 1 and request_view.is_taken(parent.id, Kind.NAMESPACE, missing_levels[0])
    ):
        holder = request_view.holder_of(parent.id, Kind.NAMESPACE, missing_levels[0]) if missing_levels else None
        raise already_exists(levels, (holder or Kind.NAMESPACE).word)
    for name in missing_levels:
        check(name)
    check_properties(record.properties, before={})
    location = check_new_location(None, record, catalog_storage_of(request_view))
    command = NamespaceCreate(
        parent=parent,
        names=missing_levels,
        space=request_view.space(Kind.NAMESPACE),
        record=location,
        owner_id=request_view.maker_id,
        has_implicit_parents=has_implicit_parents,
    )
    return request_view.permit(command, decision), namespace_base_location(request_view, chain)


def may_create_namespace(request_view: RequestView, parent: Levels) -> bool:
    """Return whether the caller may create a namespace in a visible parent, and its catalog can contain one there.

    `parent` is empty for the catalog. No refusal is recorded in the audit.
    """
    chain = request_view.find(parent, Kind.NAMESPACE)[1] if parent else request_view.settled.outer
    try:
        refuse_create(request_view)
        _refuse_nesting(request_view, (*parent, ""))
    except UnsupportedOperation:
        return False
    return request_view.decide(Action.NAMESPACE_CREATE, chain).allowed


def _check_parts(request_view: RequestView, levels: Levels) -> None:
    """Refuse names that contain the separator: Gravitino's clients would read two names. Raises InvalidName."""
    codec = codec_of(request_view)
    for part in levels:
        codec.check_namespace_part(part)


def _refuse_nesting(request_view: RequestView, levels: Levels) -> None:
    """Refuse a nested namespace in a flat catalog. Raises UnsupportedOperation."""
    if len(levels) > 1 and not codec_of(request_view).nested:
        record = request_view.catalog_record
        why = (
            f"its property {NESTED} is false"
            if record.provider in TABLE_FORMATS
            else f"its provider is {record.provider}"
        )
        raise UnsupportedOperation(
            f"Schemas of catalog {request_view.catalog.name} do not nest, because {why}: {levels[0]} cannot contain"
            " schemas"
        )


def _refuse_reserved(request_view: RequestView, levels: Levels) -> None:
    """Refuse `Metadata` and namespaces in it in the catalog of SQL++, which reads its metadata by that name.

    Raises BadRequest.
    """
    metalake, defaults = request_view.settled.metalake, request_view.defaults
    is_sqlpp = metalake is not None and (metalake.name, request_view.catalog.name) == (
        defaults.metalake,
        defaults.sqlpp_catalog,
    )
    if is_sqlpp and levels[0] == METADATA_NAME:
        raise BadRequest(
            f"Namespace {'.'.join(levels)} cannot be created in catalog {request_view.catalog.name}: SQL++ reserves"
            f" {METADATA_NAME} there for its metadata. Choose another name"
        )


def namespace_insert(tx: Tx, permit: Permit[NamespaceCreate]) -> Node:
    """Insert the missing parents, outermost first, then the namespace itself."""
    command = permit.command
    parent = tx.nodes.confirm(command.parent)
    for position, name in enumerate(command.names, 1):
        last = position == len(command.names)
        node = None if last else tx.nodes.find(parent.id, command.space, name)
        if node is not None and node.kind is Kind.NAMESPACE:
            tx.stale()  # a parent was created concurrently: decide on it
        parent = tx.nodes.create(
            kind=Kind.NAMESPACE,
            space=command.space,
            name=name,
            parent_id=parent.id,
            zone=permit.zone,
            record=command.record if last else BLANK_NAMESPACE,
            implicit=not last and command.has_implicit_parents,
            owner_id=command.owner_id,
        )
    return parent


async def namespace_alter(ctx: Context, scope: RequestScope, *, levels: Levels, edits: PropertyEdits) -> Node:
    """Change a namespace's comment and properties; its children are not changed. Raises as `namespace_edit`."""

    def edit(record: NamespaceRecord) -> NamespaceRecord:
        return replace(record, comment=edits.edited_comment(record.comment), properties=edits.over(record.properties))

    return await namespace_edit(ctx, scope, levels=levels, edit=edit)


async def namespace_edit(
    ctx: Context, scope: RequestScope, *, levels: Levels, edit: Callable[[NamespaceRecord], NamespaceRecord]
) -> Node:
    """Change a namespace's record by a function of the stored record.

    Raises NotFound, NotInUse, PermissionDenied, BadRequest for an invalid property or location, and OutsideRoots for a
    location outside of the catalog's roots.
    """

    def decide(request_view: RequestView) -> Permit[NamespaceAlter]:
        node, _, decision = namespace_find(request_view, levels, Action.NAMESPACE_ALTER)
        return request_view.permit(NamespaceAlter(node, edit, catalog_storage_of(request_view)), decision)

    return await ctx.write(scope, decide, namespace_update)


def namespace_update(tx: Tx, permit: Permit[NamespaceAlter]) -> Node:
    """Write the namespace's edited record, if it differs from the stored one. Raises BadRequest, OutsideRoots."""
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    former_record = cast("NamespaceRecord", node.record)
    after = command.edit(former_record)
    if after == former_record:
        return node
    check_properties(after.properties, before=former_record.properties)
    tx.nodes.write_record(node, check_new_location(former_record, after, command.place))
    return tx.nodes.by_id(node.id)


async def namespace_drop(ctx: Context, scope: RequestScope, *, levels: Levels, named: str = "") -> None:
    """Drop an empty namespace; `named` is its name as the protocol spells it, for messages.

    Raises NotFound, NotEmpty, NotInUse, PermissionDenied, ProtectedObject.
    """
    await ctx.write(scope, lambda request_view: namespace_drop_of(request_view, levels, named=named), namespace_delete)


def namespace_drop_of(request_view: RequestView, levels: Levels, *, named: str = "") -> Permit[NamespaceDrop]:
    """Decide on dropping a namespace, and return the permit. Raises as `namespace_find`."""
    node, _, decision = namespace_find(request_view, levels, Action.NAMESPACE_DROP)
    return request_view.permit(
        NamespaceDrop(node, request_view.defaults.keep_dropped_ms, named or render(levels)), decision
    )


def namespace_delete(tx: Tx, permit: Permit[NamespaceDrop]) -> None:
    """Drop the namespace if it is empty. Raises NotEmpty if it is not."""
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    tx.nodes.require_empty(node, named=command.named)
    tx.nodes.drop(node, keep_ms=command.keep_ms)


async def namespace_move(ctx: Context, scope: RequestScope, *, source: Levels, target: Levels) -> None:
    """Rename or move a namespace within its catalog, with its subtree; this writes one row.

    Raises NotFound (source, or the target's parent), NotInUse, AlreadyExists, InvalidName, PermissionDenied,
    ProtectedObject, UnsupportedOperation (a nested target in a flat catalog), and BadRequest for a move into itself,
    beyond the maximum depth, or to a reserved name.
    """
    await ctx.write(scope, lambda request_view: namespace_move_of(request_view, source, target), namespace_reparent)


def namespace_move_of(request_view: RequestView, source: Levels, target: Levels) -> Permit[NamespaceMove]:
    """Decide on renaming or moving a namespace, and return the permit. Raises as `namespace_move`."""
    _check_parts(request_view, target)
    node, chain, decision = namespace_find(request_view, source, Action.NAMESPACE_MOVE)
    _refuse_nesting(request_view, target)
    if source[0] != METADATA_NAME:  # namespaces in it from before the name was reserved may be renamed
        _refuse_reserved(request_view, target)
    into, above = request_view.find_parent(target)
    decisions = [decision]
    stays = into.id == node.parent_id
    if not stays:
        decisions.append(request_view.require(Action.NAMESPACE_CREATE, above))
    room = PARTS_MAX - len(target) if len(target) > len(source) else None
    frees = stays or request_view.decide(Action.UNPROTECT, chain).allowed
    return request_view.permit(
        NamespaceMove(namespace=node, into=into, name=target[-1], room=room, frees=frees), *decisions
    )


def namespace_reparent(tx: Tx, permit: Permit[NamespaceMove]) -> None:
    """Move the namespace to its new parent and name. Raises BadRequest, AlreadyExists, ProtectedObject."""
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    into = tx.nodes.confirm(command.into)
    if tx.nodes.is_below(into.id, node.id):
        raise BadRequest(f"Namespace {node.name} cannot be moved into itself or below itself: choose another target")
    if node.parent_id != into.id and not command.frees:
        tx.protection.refuse_move(node)
    if command.room is not None and tx.nodes.height(node.id) > command.room:
        raise BadRequest(f"This move would put objects of namespace {node.name} deeper than {PARTS_MAX} levels")
    tx.nodes.move(node, parent_id=into.id, name=command.name, moves_access=True)
