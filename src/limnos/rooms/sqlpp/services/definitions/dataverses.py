# SPDX-License-Identifier: Apache-2.0
"""Dataverses: namespaces that were created explicitly. Creates and drops them, and sets the active dataverse.

Must not know any wire format. A namespace that CREATE DATAVERSE made as the parent of another is not a dataverse;
creating it, or an object in it, marks it as explicit. Parents that other protocols make are dataverses. Dropping a
dataverse that contains other namespaces drops its objects, and only removes the mark of the namespace. `Default` is
created with the first object in it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import (
    ObjectInUse,
    describe_user,
    drop_confirmed,
    is_made_here,
)
from limnos.rooms.sqlpp.services.locks.exclusive_access import dataverse_exclude_writers
from limnos.rooms.sqlpp.services.requests.errors import (
    RESERVED,
    check_dataverse,
    dataverse_exists,
    dataverse_in_use,
    invalid_operation,
    no_dataverse,
)
from limnos.rooms.sqlpp.services.requests.names import DEFAULT, dataverse_find, is_builtin, scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.catalog.namespaces import NamespaceCreate, namespace_create, namespace_create_of, namespace_insert
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

OBJECTS_MAX: Final = 10_000
"""The maximum number of objects that one statement drops."""


class DataverseCreate(msgspec.Struct, frozen=True):
    """The command to create a namespace, or to mark an existing one as explicitly created."""

    make: NamespaceCreate | None
    mark: Node | None


class DataverseDrop(msgspec.Struct, frozen=True, kw_only=True):
    """The command to drop the SQL++ objects in a namespace, then the namespace itself.

    If other namespaces lie below it, the namespace itself stays, without the mark of an explicit creation. `parents`
    are the implicit parents, nearest first, that are dropped too if they become empty.
    """

    namespace: Node
    path: Levels
    parents: tuple[Node, ...]
    keep_ms: int
    at: TextPosition | None


async def dataverse_use(session: StatementSession, statement: tree.Use) -> None:
    """Execute USE: set the dataverse for unqualified names. Raises SqlppError if the dataverse does not exist,
    PermissionDenied.
    """
    ctx = session.ctx
    parts = statement.name.parts
    if (
        not is_builtin(parts)
        and await ctx.read(scope_of(ctx), lambda request_view: dataverse_find(request_view, parts)) is None
    ):
        raise no_dataverse(parts, statement.name.at)
    session.dataverse = parts


async def dataverse_create(session: StatementSession, statement: tree.CreateDataverse) -> None:
    """Execute CREATE DATAVERSE. Raises SqlppError if it exists (without IF NOT EXISTS), PermissionDenied."""
    ctx = session.ctx
    parts, at = statement.name.parts, statement.name.at
    check_dataverse(parts, at)
    if parts[:1] == METADATA or (parts[0] in RESERVED and len(parts) == 1):
        raise invalid_operation(f"Cannot create dataverse: {display_name(parts)}", at)
    try:
        await ctx.write(scope_of(ctx), lambda request_view: _create_of(request_view, parts), dataverse_insert)
    except AlreadyExists:
        if not statement.if_not_exists:
            raise dataverse_exists(parts, at) from None


def _create_of(request_view: RequestView, parts: Levels) -> Permit[DataverseCreate]:
    """Decide whether the caller may create a dataverse. Returns the permit with the command.

    The caller needs the right to create a namespace there, even if the namespace exists.
    """
    request_view.require_in_use()
    node, chain = request_view.find(parts, Kind.NAMESPACE)
    if node is not None and node.implicit:
        decision = request_view.require(Action.NAMESPACE_CREATE, chain[1:])
        return request_view.permit(DataverseCreate(None, node), decision)
    permit, _ = namespace_create_of(request_view, parts, BLANK_NAMESPACE, has_implicit_parents=True)
    return permit.about(DataverseCreate(permit.command, None))


def dataverse_insert(tx: Tx, permit: Permit[DataverseCreate]) -> Node:
    """Insert the namespace with its missing parents, or mark an existing one as explicit. Raises AlreadyExists."""
    command = permit.command
    if command.mark is None:
        return namespace_insert(tx, permit.about(cast("NamespaceCreate", command.make)))
    node = tx.nodes.confirm(command.mark)
    if not node.implicit:
        raise AlreadyExists("Another request created the namespace explicitly", kind="namespace")
    tx.nodes.mark(node, implicit=False)
    return tx.nodes.by_id(node.id)


async def default_dataverse_make(ctx: Context, dataverse: Levels) -> None:
    """Create the dataverse `Default` if an object is about to be created in it and it does not exist.

    Raises PermissionDenied if the caller may not create it.
    """
    if dataverse != DEFAULT:
        return
    exists = await ctx.read(
        scope_of(ctx), lambda request_view: request_view.find(DEFAULT, Kind.NAMESPACE)[0] is not None
    )
    if not exists:
        with suppress(AlreadyExists):
            await namespace_create(ctx, scope_of(ctx), levels=DEFAULT, properties={})


async def dataverse_drop(session: StatementSession, statement: tree.Drop) -> None:
    """Execute DROP DATAVERSE. Waits for the statements that write there.

    Raises SqlppError if it is missing or in use, PermissionDenied, ProtectedObject, LockTimeout, ServiceUnavailable.
    """
    ctx = session.ctx
    parts, at = statement.name.parts, statement.name.at
    if parts in (DEFAULT, METADATA):
        raise invalid_operation(f"Cannot drop dataverse: {display_name(parts)}", at)

    def decide(request_view: RequestView) -> Permit[DataverseDrop]:
        return _drop_of(request_view, parts, at=at)

    try:
        async with dataverse_exclude_writers(session, parts, may=decide):
            await ctx.write(scope_of(ctx), decide, dataverse_delete)
    except NotFound:
        if not statement.if_exists:
            raise no_dataverse(parts, at) from None
    except ObjectInUse as error:
        what = f"{error.kind} {display_name((*parts, error.use.used[1]))}"
        raise dataverse_in_use(parts, what=what, by=await describe_user(ctx, error), at=at) from None
    else:
        ctx.services.wake_worker()
    if session.dataverse == parts:
        session.dataverse = DEFAULT


def _drop_of(request_view: RequestView, parts: Levels, *, at: TextPosition | None) -> Permit[DataverseDrop]:
    """Decide whether the caller may drop a dataverse. Returns the permit with the command.

    The right on the dataverse is enough, because its owner also owns the objects in it. Raises NotFound for a namespace
    that was only created implicitly.
    """
    request_view.require_in_use()
    node, _, decision = request_view.look_up(Kind.NAMESPACE, parts, Action.NAMESPACE_DROP)
    if node.implicit:
        raise NotFound(f"{display_name(parts)} is not a dataverse", kind="namespace")
    parents = []
    for size in range(len(parts) - 1, 0, -1):
        parent, chain = request_view.find(parts[:size], Kind.NAMESPACE)
        if parent is None or not parent.implicit or not request_view.decide(Action.NAMESPACE_DROP, chain).allowed:
            break
        parents.append(parent)
    command = DataverseDrop(
        namespace=node, path=parts, parents=tuple(parents), keep_ms=request_view.defaults.keep_dropped_ms, at=at
    )
    return request_view.permit(command, decision)


def dataverse_delete(tx: Tx, permit: Permit[DataverseDrop]) -> None:
    """Drop the objects, then the namespace and its empty implicit parents. A namespace with other namespaces in it
    stays, marked as implicit.

    Raises SqlppError or ObjectInUse if an object cannot be dropped or there are too many, ProtectedObject if one is
    protected.
    """
    command = permit.command
    node = tx.nodes.confirm(command.namespace)
    children = tx.nodes.children(node.id, limit=OBJECTS_MAX + 1)
    if len(children) > OBJECTS_MAX:
        raise invalid_operation(
            f"Cannot drop dataverse: {display_name(command.path)}: it contains more than {OBJECTS_MAX} objects",
            command.at,
        )
    objects = [each for each in children if each.kind is not Kind.NAMESPACE]
    _refuse_others(tx, command, objects=objects)
    tx.protection.refuse_within(node)
    for each in objects:
        drop_confirmed(tx, each, keep_ms=command.keep_ms)
    if len(objects) < len(children):
        tx.protection.refuse(node)
        tx.nodes.mark(node, implicit=True)
        return
    tx.nodes.drop(node, keep_ms=command.keep_ms)
    for parent in command.parents:
        now = tx.nodes.confirm(parent)
        if not now.implicit or tx.nodes.children(now.id, limit=1):
            return
        tx.nodes.drop(now, keep_ms=command.keep_ms)


def _refuse_others(tx: Tx, command: DataverseDrop, *, objects: list[Node]) -> None:
    """Check that SQL++ created all objects of a dataverse, and that no object outside depends on one of them.

    Raises SqlppError, ObjectInUse.
    """
    for each in objects:
        if not is_made_here(each):
            text = f"{each.kind.word} {display_name((*command.path, each.name))}"
            raise dataverse_in_use(
                command.path,
                what=text,
                by="its creator: it was not created by SQL++, drop or move it with the protocol that created it",
                at=command.at,
            )
    use = tx.dependencies.user_outside(command.namespace.id)
    if use is not None:
        raise ObjectInUse(use)
