# SPDX-License-Identifier: Apache-2.0
"""Namespace objects: the common operations of filesets, models and functions.

Must not know any wire format, nor what distinguishes the kinds: each kind has a module for that. For a missing object,
a caller who could perform the action on an existing object gets NotFound, any other caller PermissionDenied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from limnos.access.actions import Action, kind_action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import NodeRecord, ObjectRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels, check_gravitino_name
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, page_of
from limnos.services.request.property_edits import PropertyEdits, object_edit
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import refuse_sourced, require_containable
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each


class NamespaceObjectCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a namespace object: a fileset, model or function."""

    namespace: Node
    kind: Kind
    name: str
    space: str
    record: NodeRecord
    owner_id: int | None


class NamespaceObjectAlter(msgspec.Struct, frozen=True):
    """The command to change an object's name within its namespace, its comment, properties or declared `fields`."""

    node: Node
    edits: PropertyEdits
    fields: Mapping[str, object] = msgspec.field(default_factory=dict)


class NamespaceObjectDrop(msgspec.Struct, frozen=True):
    """The command to drop an object; it can be restored for `keep_ms` milliseconds."""

    node: Node
    keep_ms: int


def namespace_object_find(
    request_view: RequestView, path: Levels, *, kind: Kind, action: Action
) -> AuthorizedObject[Node]:
    """Find an object for a caller who may perform the action on it.

    Raises NotFound if it does not exist, NotInUse if the metalake or catalog is disabled, PermissionDenied without the
    right, UnsupportedOperation if the catalog's source is an external system.
    """
    request_view.require_in_use()
    refuse_sourced(request_view, kind, levels=path, action=action)
    return request_view.look_up(kind, path, action)


def namespace_object_load(request_view: RequestView, path: Levels, *, kind: Kind) -> Node:
    """Return an object, for a caller who may load it. Raises the errors of `namespace_object_find`."""
    return namespace_object_find(request_view, path, kind=kind, action=kind_action(kind, "load")).entity


def namespace_object_names(request_view: RequestView, namespace: Levels, *, kind: Kind) -> list[str]:
    """Return the names of a namespace's objects of a kind that are visible to the caller.

    Raises NotFound if the namespace does not exist, NotInUse if the metalake or catalog is disabled, PermissionDenied
    without the right to list, UnsupportedOperation if the catalog's source is an external system.
    """
    request_view.require_in_use()
    action = kind_action(kind, "list")
    refuse_sourced(request_view, Kind.NAMESPACE, levels=namespace, action=action)
    result = request_view.look_up(Kind.NAMESPACE, namespace, action)
    return page_of(request_view, action, kind=kind, chain=result.chain, page_request=ALL_NAMES).texts()


def namespace_objects_list(request_view: RequestView, namespace: Levels, *, kind: Kind) -> list[Node]:
    """Return the objects of a kind in a namespace that are visible to the caller, by name.

    Raises the errors of `namespace_object_names`.
    """
    nodes = for_each(
        namespace_object_names(request_view, namespace, kind=kind),
        lambda name: request_view.find((*namespace, name), kind)[0],
    )
    return [node for node in nodes if node is not None]


async def namespace_object_create(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    kind: Kind,
    record: Callable[[RequestView], NodeRecord],
    insert: Callable[[Tx, Permit[NamespaceObjectCreate]], Node] | None = None,
) -> Node:
    """Create an object; the caller owns it.

    Args:
        ctx: The request.
        scope: The catalog.
        path: The path of the object.
        kind: The kind of the object.
        record: A function that builds the object's record during the access decision.
        insert: The mutation; None for `namespace_object_insert`.

    Raises:
        AlreadyExists: The name is taken.
        NotFound: The namespace is missing.
        InvalidName: The name is not allowed.
        UnsupportedOperation: The catalog cannot contain objects of this kind, or its source is an external system.
        NotInUse: The metalake or catalog is disabled.
        PermissionDenied: The caller may not create it.
    """
    check_gravitino_name(path[-1], kind=kind.word.upper())

    def decide(request_view: RequestView) -> Permit[NamespaceObjectCreate]:
        request_view.require_in_use()
        action = kind_action(kind, "create")
        refuse_sourced(request_view, Kind.NAMESPACE, levels=path[:-1], action=action)
        namespace, _, decision = request_view.look_up(Kind.NAMESPACE, path[:-1], action)
        require_containable(request_view, kind)
        if request_view.is_taken(namespace.id, kind, path[-1]):
            raise namespace_object_exists_error(path, kind)
        command = NamespaceObjectCreate(
            namespace=namespace,
            kind=kind,
            name=path[-1],
            space=request_view.space(kind),
            record=record(request_view),
            owner_id=request_view.maker_id,
        )
        return request_view.permit(command, decision)

    try:
        return await ctx.write(scope, decide, insert or namespace_object_insert)
    except AlreadyExists:
        raise namespace_object_exists_error(path, kind) from None


def namespace_object_exists_error(path: Levels, kind: Kind) -> AlreadyExists:
    """Return the error for the name of an existing object of this kind in the namespace."""
    return AlreadyExists(f"{kind.word.capitalize()} already exists: {render(path)}", kind=kind.word)


def namespace_object_insert(tx: Tx, permit: Permit[NamespaceObjectCreate]) -> Node:
    """Insert an object in its namespace, and make the caller its owner."""
    command = permit.command
    return tx.nodes.create(
        kind=command.kind,
        space=command.space,
        name=command.name,
        parent_id=command.namespace.id,
        zone=permit.zone,
        record=command.record,
        owner_id=command.owner_id,
        under=command.namespace,
    )


async def namespace_object_alter(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    kind: Kind,
    edits: PropertyEdits,
    fields: Mapping[str, object] | None = None,
) -> Node:
    """Rename an object within its namespace, or change its comment, properties and, of a declared kind, own `fields`.

    Raises the errors of `namespace_object_find`, AlreadyExists if the new name is taken, InvalidName if it is not
    allowed.
    """
    if edits.name is not None:
        check_gravitino_name(edits.name, kind=kind.word.upper())

    def decide(request_view: RequestView) -> Permit[NamespaceObjectAlter]:
        namespace_object = namespace_object_find(request_view, path, kind=kind, action=kind_action(kind, "alter"))
        return request_view.permit(
            NamespaceObjectAlter(namespace_object.entity, edits, fields or {}), namespace_object.decision
        )

    try:
        return await ctx.write(scope, decide, namespace_object_update)
    except AlreadyExists:
        raise namespace_object_exists_error((*path[:-1], edits.name or path[-1]), kind) from None


def namespace_object_update(tx: Tx, permit: Permit[NamespaceObjectAlter]) -> Node:
    """Write the edited record, then the new name."""
    command = permit.command
    node = tx.nodes.confirm(command.node)
    if isinstance(node.record, ObjectRecord):
        node = msgspec.structs.replace(node, record=node.record.with_fields(command.fields))
    return object_edit(tx, node, edits=command.edits)


async def namespace_object_drop(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    kind: Kind,
    delete: Callable[[Tx, Permit[NamespaceObjectDrop]], None] | None = None,
) -> None:
    """Drop an object; it stays in the trash for the configured time.

    `delete` replaces the mutation `namespace_object_delete`. Raises the errors of `namespace_object_find`, and
    ProtectedObject if it is protected from drops.
    """

    def decide(request_view: RequestView) -> Permit[NamespaceObjectDrop]:
        namespace_object = namespace_object_find(request_view, path, kind=kind, action=kind_action(kind, "drop"))
        return request_view.permit(
            NamespaceObjectDrop(namespace_object.entity, request_view.defaults.keep_dropped_ms),
            namespace_object.decision,
        )

    await ctx.write(scope, decide, delete or namespace_object_delete)


def namespace_object_delete(tx: Tx, permit: Permit[NamespaceObjectDrop]) -> None:
    """Drop an object of a namespace. It stays in the trash for `keep_ms` milliseconds."""
    node = tx.nodes.confirm(permit.command.node)
    tx.nodes.drop(node, keep_ms=permit.command.keep_ms)
