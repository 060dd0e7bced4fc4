# SPDX-License-Identifier: Apache-2.0
"""Dataverse objects: creates and drops the objects that SQL++ makes in dataverses, regardless of their kind.

Must not know any wire format. If another object depends on an object, the mutation's error contains the dependent
object. Whether the caller may know its name is decided afterwards, outside of the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import msgspec

from limnos.access.actions import Action, kind_action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, InUse, NotFound
from limnos.model.kind_table import KIND_TABLE
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import SqlppObjectRecord, TableRecord, ViewRecord
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.declarations import declarations_of, record_of
from limnos.rooms.sqlpp.language.definitions import arity_of, signature
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.services.requests.errors import (
    NO_DATAVERSE,
    check_object,
    in_use,
    invalid_operation,
    no_dataverse,
    object_exists,
    unknown_object,
)
from limnos.rooms.sqlpp.services.requests.names import dataverse_find, is_builtin, scope_of
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, require_format
from limnos.services.storage.location_claims import locations_mark_deleting, locations_release
from limnos.services.storage.purges import purge_later
from limnos.store.objects.dependencies import ObjectDependency
from limnos.store.tx import Tx

MADE_HERE: Final = "sqlpp"
"""The property of a view's record that marks it as created by SQL++."""
WORDS: Final = {kind: row.sqlpp for kind, row in KIND_TABLE.items() if row.sqlpp}
"""The SQL++ word for each kind."""


class ObjectInUse(InUse):
    """Raised if another object depends on this one, and must be dropped first."""

    code = "still-used"

    def __init__(self, use: ObjectDependency) -> None:
        super().__init__("Another object needs it", kind=use.used[0].word)
        self.use = use


class SqlppObjectCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create an object from a name and its statements; `used` are the ids of the objects that it depends
    on.
    """

    namespace: Node
    kind: Kind
    name: str
    space: str
    record: SqlppObjectRecord
    owner_id: int | None
    used: tuple[int, ...]


class SqlppObjectDrop(msgspec.Struct, frozen=True):
    """The command to drop an object on which no object depends; it can be restored for `keep_ms`."""

    node: Node
    keep_ms: int


def dataverse_of(request_view: RequestView, levels: Levels, *, action: Action) -> tuple[Node, Permit[None]]:
    """Decide whether the caller may create an object in a dataverse. Returns the namespace and the permit.

    Raises NotFound (also for a namespace that was only created implicitly), PermissionDenied, BadRequest.
    """
    request_view.require_in_use()
    node, _, decision = request_view.look_up(Kind.NAMESPACE, levels, action)
    require_format(request_view, ICEBERG)
    if node.implicit:
        raise NotFound(f"{display_name(levels)} is not a dataverse", kind="namespace")
    return node, request_view.permit(None, decision)


def object_create_of(
    request_view: RequestView, path: Levels, *, kind: Kind, statement: tree.Statement, used: tuple[int, ...] = ()
) -> Permit[SqlppObjectCreate]:
    """Decide whether the caller may create an object. Returns the permit with the command.

    Raises NotFound, PermissionDenied and BadRequest, as `dataverse_of`.
    """
    namespace, permit = dataverse_of(request_view, path[:-1], action=kind_action(kind, "create"))
    command = SqlppObjectCreate(
        namespace=namespace,
        kind=kind,
        name=path[-1],
        space=request_view.space(kind),
        record=record_of(statement),
        owner_id=request_view.maker_id,
        used=used,
    )
    return permit.about(command)


def object_insert(tx: Tx, permit: Permit[SqlppObjectCreate]) -> Node:
    """Insert the object, its owner and its dependencies."""
    command = permit.command
    node = tx.nodes.create(
        kind=command.kind,
        space=command.space,
        name=command.name,
        parent_id=command.namespace.id,
        zone=permit.zone,
        record=command.record,
        owner_id=command.owner_id,
        under=command.namespace,
    )
    tx.dependencies.replace(node.id, command.used)
    return node


async def object_make(
    ctx: Context,
    kind: Kind,
    *,
    decide: Callable[[RequestView], Permit[SqlppObjectCreate]],
    name: tree.DottedName,
    path: Levels,
    quiet: bool,
) -> None:
    """Create an object.

    Args:
        ctx: The request.
        kind: The kind of the object.
        decide: Returns the permit, or raises the error of a refusal.
        name: The name in the statement, for errors.
        path: The path of the object.
        quiet: Whether an existing object is not an error (IF NOT EXISTS).

    Raises:
        SqlppError: The name is not allowed or taken, or the dataverse is missing.
        PermissionDenied: The caller may not create the object.
    """
    check_object(name)
    check_not_builtin(path[:-1], kind, at=name.at)
    try:
        await ctx.write(scope_of(ctx), decide, object_insert)
    except NotFound as error:
        raise statement_missing_error(error, path[:-1], at=name.at) from None
    except AlreadyExists:
        if not quiet:
            raise object_exists(WORDS[kind], path, at=name.at) from None


def statement_missing_error(error: NotFound, dataverse: Levels, *, at: TextPosition | None) -> Exception:
    """Return the error of a statement for a NotFound: that of the dataverse if the dataverse is missing, else
    `error`.
    """
    return no_dataverse(dataverse, at) if error.kind == "namespace" else error


def check_not_builtin(dataverse: Levels, kind: Kind, *, at: TextPosition | None) -> None:
    """Check that an object is not created in the dataverse Metadata. Raises SqlppError."""
    if dataverse == METADATA:
        raise invalid_operation(
            f"Cannot create a {WORDS[kind]} belonging to the dataverse: {display_name(METADATA)}", at
        )


async def object_drop(
    ctx: Context, kinds: tuple[Kind, ...], *, name: tree.DottedName, path: Levels, quiet: bool
) -> list[SqlppError]:
    """Drop an object.

    Args:
        ctx: The request.
        kinds: The kinds of objects that may be dropped.
        name: The name in the statement, for errors.
        path: The path of the object.
        quiet: Whether a missing object is not an error (IF EXISTS); a missing dataverse is then a warning.

    Returns:
        The warnings.

    Raises:
        SqlppError: The object is missing, or another object depends on it.
        PermissionDenied: The caller may not drop it.
        ProtectedObject: It is protected.
    """
    word = WORDS[kinds[0]]
    try:
        await ctx.write(
            scope_of(ctx), lambda request_view: object_drop_of(request_view, path, kinds=kinds), object_delete
        )
    except NotFound:
        failure = await object_missing_error(ctx, word, path=path, at=name.at)
        if not quiet:
            raise failure from None
        return [failure] if failure.number == NO_DATAVERSE else []
    except ObjectInUse as error:
        raise in_use(word, display_name(path), by=await describe_user(ctx, error), at=name.at) from None
    ctx.services.wake_worker()
    return []


async def object_missing_error(ctx: Context, word: str, *, path: Levels, at: TextPosition | None) -> SqlppError:
    """Return the error for a missing object, or for its dataverse if that is missing."""

    def dataverse_exists(request_view: RequestView) -> bool:
        return is_builtin(path[:-1]) or dataverse_find(request_view, path[:-1]) is not None

    if not await ctx.read(scope_of(ctx), dataverse_exists):
        return no_dataverse(path[:-1], at)
    return unknown_object(word, path, at=at)


def object_drop_of(request_view: RequestView, path: Levels, *, kinds: tuple[Kind, ...]) -> Permit[SqlppObjectDrop]:
    """Decide whether the caller may drop an object. Returns the permit with the command.

    An object of another kind with that name counts as missing.
    """
    request_view.require_in_use()
    node, _ = request_view.find(path, kinds[0])
    kind = node.kind if node is not None and node.kind in kinds else kinds[0]
    result = request_view.look_up(kind, path, kind_action(kind, "drop"))
    return request_view.permit(SqlppObjectDrop(result.entity, request_view.defaults.keep_dropped_ms), result.decision)


def object_delete(tx: Tx, permit: Permit[SqlppObjectDrop]) -> None:
    """Drop the object. Raises ObjectInUse if another object depends on it."""
    node = tx.nodes.confirm(permit.command.node)
    refuse_used(tx, node)
    drop_confirmed(tx, node, keep_ms=permit.command.keep_ms)


def is_made_here(node: Node) -> bool:
    """Return whether SQL++ created an object. Such objects are dropped with their dataverse."""
    if node.kind is Kind.TABLE:
        return bool(cast("TableRecord", node.record).statements)
    if node.kind is Kind.VIEW:
        return MADE_HERE in cast("ViewRecord", node.record).properties
    return isinstance(node.record, SqlppObjectRecord) and bool(node.record.statements)


async def describe_user(ctx: Context, error: ObjectInUse) -> str:
    """Return the kind and name of a dependent object for an error message; without the name if the caller may not see
    it.
    """
    kind, path = error.use.user

    def name_seen(request_view: RequestView) -> str | None:
        node, chain = request_view.find(path, kind)
        if node is None or not request_view.decide(kind_action(kind, "load"), chain).allowed:
            return None
        name = display_name(path)
        return signature(name, _user_arity(node, error)) if kind is Kind.FUNCTION else name

    name = await ctx.read(scope_of(ctx), name_seen)
    return f"a {WORDS[kind]} that you may not see" if name is None else f"{WORDS[kind]} {name}"


def _user_arity(node: Node, error: ObjectInUse) -> int:
    """Return the arity of the function that depends on an object."""
    texts = cast("SqlppObjectRecord", node.record).dependencies
    declared = declarations_of(node, tree.CreateFunction)
    quoted_name = msgspec.json.encode(error.use.used[1]).decode()
    at = next((at for at, text in enumerate(texts) if quoted_name in text), 0)
    return arity_of(declared[at])


def refuse_used(tx: Tx, node: Node) -> None:
    """Check that no object depends on an object that is to be dropped. Raises ObjectInUse."""
    use = tx.dependencies.user_of(node.id)
    if use is not None:
        raise ObjectInUse(use)


def drop_confirmed(tx: Tx, node: Node, *, keep_ms: int) -> None:
    """Drop an object whose preconditions are checked. It can be restored for `keep_ms`; then the files of a dataset
    that SQL++ created are deleted.
    """
    purges = node.kind is Kind.TABLE and is_made_here(node)
    if not keep_ms and node.kind in (Kind.TABLE, Kind.VIEW):
        document = tx.documents.read(node.id) if purges else None
        if document is not None:
            purge_later(tx, catalog=node.zone, metadata_location=document.metadata_location, location=document.location)
        tx.documents.delete(node.id)
        if purges:
            locations_mark_deleting(tx, node.id)
        else:
            locations_release(tx, node.id)
    tx.nodes.drop(node, keep_ms=keep_ms, purges=purges)
