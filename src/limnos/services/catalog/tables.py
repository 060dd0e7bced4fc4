# SPDX-License-Identifier: Apache-2.0
"""Tables of any format: find, load, list, decide on creation, drop, rename, move and unregister.

Must not know any wire format or table format: `services.iceberg.tables` creates Iceberg tables. For a missing table, a
caller who could load it if it existed, or who may use tables or views of its namespace, gets NotFound. Other callers
get PermissionDenied.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_conflict, name_taken_error
from limnos.model.permits import Permit
from limnos.model.records import BLANK_TABLE, TableRecord
from limnos.model.storage_locations import LocationKind
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.services.lookup.definer_rights import LoadTarget, ViewChain, look_up_through
from limnos.services.request import table_formats
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, EMPTY_PAGE, NamePage, PageRequest, page_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import (
    location_claim,
    location_stage,
    locations_claim,
    locations_leave,
    locations_lock,
    locations_mark_deleting,
    locations_release,
)
from limnos.services.storage.namespace_locations import inherited_location
from limnos.services.storage.purges import PURGE
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each

_TABLE, _MAY_PROBE = Kind.TABLE, Action.TABLE_MAY_PROBE
_EXISTS, _LOAD = Action.TABLE_EXISTS, Action.TABLE_LOAD
"""Module constants: reading an enum member costs a tenth of a microsecond, and these are used most."""


class TableCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a table with its document."""

    namespace: Node
    name: str
    space: str
    document: MetadataDocument
    owner_id: int | None
    record: TableRecord = BLANK_TABLE
    data_paths: tuple[str, ...] = ()
    """Locations outside its own to which its properties send writers."""
    had_files: bool = False
    """Whether its location has files of nobody, for which clients get no credentials."""
    adopts: bool = False
    """Whether the table existed before, at this location, and is registered."""


class StagedLocation(msgspec.Struct, frozen=True):
    """The command to claim the location of a staged create until a time, in milliseconds since 1970."""

    namespace: Node
    location: str
    keys_until: int
    had_files: bool


class TableDrop(msgspec.Struct, frozen=True):
    """The command to drop a table."""

    table: Node
    purge: str | None
    keep_ms: int = 0


class TableMove(msgspec.Struct, frozen=True):
    """The command to rename a table, or to move it to another namespace."""

    table: Node
    into: Node
    name: str
    frees: bool = False
    """Whether the caller may end its protection. If not, a protected table keeps its namespace."""


def table_find(
    request_view: RequestView,
    namespace: Levels,
    name: str,
    action: Action,
    *,
    required_format: str | None = table_formats.ICEBERG,
) -> AuthorizedObject[Node]:
    """Find a table for a caller who may do the action on it.

    Args:
        request_view: The request view of the catalog.
        namespace: The levels of the table's namespace.
        name: The table's name.
        action: The action on the table.
        required_format: The format that the table must have; None for any.

    Raises:
        NotFound: The table is missing or has another format, and the caller may know that.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not do the action.
        UnsupportedOperation: The catalog is federated.
    """
    request_view.require_in_use()
    try:
        result = request_view.look_up(_TABLE, (*namespace, name), action, probe=_MAY_PROBE)
    except NotFound:
        table_formats.refuse_federated(request_view)
        raise
    if required_format is not None and result.entity.format != required_format:
        table_formats.refuse_federated(request_view)
        raise table_formats.other_format_error((*namespace, name), result.entity.format)
    return result


def table_exists(request_view: RequestView, namespace: Levels, name: str) -> None:
    """Check that the table exists. Raises as `table_find`."""
    table_find(request_view, namespace, name, _EXISTS)


def table_load(request_view: RequestView, namespace: Levels, name: str, through: ViewChain = ()) -> MetadataDocument:
    """Return a table's document to a caller with the right to load it, directly or by the definer's rights of the views
    in `through`.

    Raises as `table_find`.
    """
    return request_view.document(
        table_find_through_views(request_view, (*namespace, name), action=_LOAD, through=through).id
    )


def table_find_through_views(request_view: RequestView, path: Levels, *, action: Action, through: ViewChain) -> Node:
    """Find an Iceberg table for a caller who may do the action on it, directly or by the definer's rights of views.

    `through` are the views through which the table is read, the outermost first; empty for none. Raises as
    `table_find`.
    """
    if not through:
        return table_find(request_view, path[:-1], path[-1], action).entity
    thing = LoadTarget(_TABLE, path, action, _MAY_PROBE)
    try:
        node = look_up_through(request_view, thing, through).entity
    except NotFound:
        table_formats.refuse_federated(request_view)
        raise
    if node.format != table_formats.ICEBERG:
        table_formats.refuse_federated(request_view)
        raise table_formats.other_format_error(path, node.format)
    return node


def tables_list(request_view: RequestView, namespace: Levels, page_request: PageRequest = ALL_NAMES) -> NamePage:
    """Return a page of the Iceberg tables of a namespace that are visible to the caller; empty for a catalog of another
    format. Raises NotFound, NotInUse, PermissionDenied, UnsupportedOperation for a federated catalog.
    """
    request_view.require_in_use()
    try:
        result = request_view.look_up(Kind.NAMESPACE, namespace, Action.TABLE_LIST)
    except NotFound:
        table_formats.refuse_federated(request_view)
        raise
    table_formats.refuse_federated(request_view)
    if table_formats.format_of(request_view) != table_formats.ICEBERG:
        return EMPTY_PAGE
    return page_of(request_view, Action.TABLE_LIST, kind=Kind.TABLE, chain=result.chain, page_request=page_request)


def require_free(request_view: RequestView, parent_id: int, path: Levels, *, kind: Kind) -> None:
    """Raise AlreadyExists if the request view shows that a name is taken; the mutation checks again."""
    holder = request_view.holder_of(parent_id, kind, path[-1])
    if holder is not None:
        raise name_taken_error(path, kind=kind, holder=holder.word)


class NewTable(NamedTuple):
    """The decision on a new table: the permit, and the storage for its files."""

    permit: Permit[None]
    namespace: Node
    space: str
    owner_id: int | None
    place: CatalogStorage
    home: str | None
    """The location set on its namespace; None if it has none."""

    def command(
        self,
        name: str,
        document: MetadataDocument,
        *,
        data_paths: tuple[str, ...] = (),
        had_files: bool = False,
        adopts: bool = False,
    ) -> Permit[TableCreate]:
        """Return the permit to create the table with this name and document."""
        return self.permit.about(
            TableCreate(
                namespace=self.namespace,
                name=name,
                space=self.space,
                document=document,
                owner_id=self.owner_id,
                data_paths=data_paths,
                had_files=had_files,
                adopts=adopts,
            )
        )

    def own_location(self, table_uuid: str) -> str:
        """Return the default location of the table, a directory named after its UUID."""
        if self.home is None:
            return self.place.own_location(table_uuid)
        return f"{self.home}/{table_uuid.replace('-', '')}"


def new_table_of(request_view: RequestView, namespace: Levels, name: str, action: Action) -> NewTable:
    """Decide on creating a table, and return the decision with the storage for its files.

    Raises NotFound (the namespace), AlreadyExists (a table or view has the name), InvalidName, BadRequest (an invalid
    location, a catalog of another format), UnsupportedOperation (a catalog of an external system), NotInUse,
    PermissionDenied.
    """
    request_view.require_in_use()
    check_levels((*namespace, name))
    try:
        node, chain, decision = request_view.look_up(Kind.NAMESPACE, namespace, action)
    except NotFound:
        table_formats.refuse_federated(request_view)
        raise
    table_formats.require_format(request_view, table_formats.ICEBERG)
    require_free(request_view, node.id, (*namespace, name), kind=Kind.TABLE)
    permit = request_view.permit(None, decision)
    return NewTable(
        permit=permit,
        namespace=node,
        space=request_view.space(Kind.TABLE),
        owner_id=request_view.maker_id,
        place=catalog_storage_of(request_view),
        home=inherited_location(request_view, chain),
    )


def table_insert(tx: Tx, permit: Permit[TableCreate]) -> MetadataDocument:
    """Insert the table with its owner, its document and its locations."""
    command = permit.command
    node = tx.nodes.create(
        kind=Kind.TABLE,
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
    documents = tx.documents
    locations_lock(tx, documents=(document,), locations=command.data_paths)
    location_claim(
        tx,
        LocationKind.TABLE,
        owner_id=node.id,
        catalog_id=permit.zone,
        location=document.location,
        had_files=command.had_files,
        adopts=command.adopts,
        namespace_id=command.namespace.id,
    )
    documents.insert(document)
    if command.data_paths:
        locations_claim(
            tx,
            LocationKind.DATA_PATH,
            owner_id=node.id,
            catalog_id=permit.zone,
            locations=command.data_paths,
            adopts=command.adopts,
        )
    return document


def table_stage_claim(tx: Tx, permit: Permit[StagedLocation]) -> None:
    """Register the location of a staged create. Raises BadRequest if a location rule forbids it."""
    command = permit.command
    location_stage(
        tx,
        catalog_id=permit.zone,
        namespace_id=command.namespace.id,
        location=command.location,
        keys_until=command.keys_until,
        had_files=command.had_files,
    )


async def table_drop(ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, purge: bool) -> None:
    """Drop a table; with `purge` also its files, by a task that commits with the drop.

    Raises as `table_find`, and ProtectedObject.
    """
    await ctx.write(scope, lambda request_view: table_drop_of(request_view, namespace, name, purge=purge), table_delete)
    if purge:
        ctx.services.wake_worker()


def table_drop_of(request_view: RequestView, namespace: Levels, name: str, *, purge: bool) -> Permit[TableDrop]:
    """Decide on dropping a table, and return the permit. Raises as `table_find`."""
    node, _, decision = table_find(request_view, namespace, name, Action.TABLE_DROP)
    task = None
    if purge:
        document = request_view.document(node.id)
        catalog_storage = catalog_storage_of(request_view)
        payload = {
            "metadata-location": document.metadata_location,
            "location": document.location,
            "roots": catalog_storage.roots,
            "catalog": request_view.catalog.id,
        }
        task = msgspec.json.encode(payload).decode()
    return request_view.permit(TableDrop(node, task, 0 if purge else request_view.defaults.keep_dropped_ms), decision)


def table_delete(tx: Tx, permit: Permit[TableDrop]) -> None:
    """Drop the table, and create the purge task if there is one. The document stays while the table can be restored."""
    command = permit.command
    node = tx.nodes.confirm(command.table)
    if command.purge is not None:
        document = tx.documents.read(node.id)
        stated = msgspec.json.decode(command.purge)
        if document is not None and document.metadata_location != stated["metadata-location"]:
            tx.stale()  # another commit came first: decide again, so that its files are purged too
        tx.tasks.create(PURGE, command.purge)
    if not command.keep_ms:
        tx.documents.delete(node.id)
        if command.purge is None:
            locations_release(tx, node.id)
        else:
            locations_mark_deleting(tx, node.id)
    tx.nodes.drop(node, keep_ms=command.keep_ms, has_purge=command.purge is not None)


class TableUnregister(msgspec.Struct, frozen=True):
    """The command to remove a table without deleting its files; the mutation appends its last document to
    `documents`.
    """

    table: Node
    documents: list[MetadataDocument]


async def table_unregister(
    ctx: Context, scope: RequestScope, *, namespace: Levels, name: str, documents: list[MetadataDocument]
) -> MetadataDocument:
    """Remove a table permanently without deleting its files, and return its last document.

    The document is also appended to `documents`.

    The table cannot be restored, and its location is free, once its credentials have expired, so that its files can be
    registered elsewhere; until then only the caller can register them. Raises as
    `table_find`, and ProtectedObject.
    """

    def decide(request_view: RequestView) -> Permit[TableUnregister]:
        node, _, decision = table_find(request_view, namespace, name, Action.TABLE_DROP)
        return request_view.permit(TableUnregister(node, documents), decision)

    await ctx.write(scope, decide, table_unregister_write)
    return documents[-1]


def table_unregister_write(tx: Tx, permit: Permit[TableUnregister]) -> None:
    """Drop the table permanently, and append its last document to the command. No commit to it can follow."""
    node = tx.nodes.confirm(permit.command.table)
    document = tx.documents.read(node.id)
    if document is None:
        tx.stale()
    tx.documents.delete(node.id)
    locations_leave(tx, node.id)
    tx.nodes.drop(node)
    permit.command.documents.append(document)


async def table_move(
    ctx: Context, scope: RequestScope, *, source: Levels, target: Levels, required_format: str | None = None
) -> None:
    """Rename a table, or move it to another namespace of its catalog.

    `required_format` is the only format that may be moved, None for any. Raises NotFound (the table, also one of
    another format, or the target's namespace), AlreadyExists, BadRequest (a path without a namespace), InvalidName,
    NotInUse, UnsupportedOperation (a catalog of an external system), PermissionDenied, ProtectedObject.
    """
    await ctx.write(
        scope,
        lambda request_view: table_move_of(request_view, source, target, required_format=required_format),
        table_reparent,
    )


def table_move_of(
    request_view: RequestView, source: Levels, target: Levels, *, required_format: str | None = None
) -> Permit[TableMove]:
    """Decide on renaming or moving a table, and return the permit. Raises as `table_move`."""
    if min(len(source), len(target)) < table_formats.least_levels(request_view):
        raise BadRequest("A table must be in a namespace: give at least two levels")
    check_levels(target)
    stays = source[:-1] == target[:-1]
    action = Action.TABLE_RENAME if stays else Action.TABLE_MOVE
    table_formats.refuse_sourced(request_view, Kind.TABLE, levels=source, action=action)
    _, (other, _) = for_each(
        (source, target), lambda path: request_view.find(path, _TABLE)
    )  # load all missing facts at once
    node, chain, decision = table_find(request_view, source[:-1], source[-1], action, required_format=required_format)
    into, above = request_view.find_parent(target)
    decisions = [decision]
    if not stays:
        decisions.append(request_view.require(Action.TABLE_CREATE, above))
    if other is not None and other.id != node.id:
        if other.kind is Kind.TABLE:
            raise name_taken_error(target, kind=Kind.TABLE, holder=other.kind.word)
        raise name_conflict(source, target, holder=other.kind)
    frees = stays or request_view.decide(Action.UNPROTECT, chain).allowed
    return request_view.permit(TableMove(node, into, target[-1], frees), *decisions)


def table_reparent(tx: Tx, permit: Permit[TableMove]) -> None:
    """Move the table to its new namespace and name.

    Its grants belong to its id and move with it; a new parent changes who has rights by inheritance.
    """
    nodes = tx.nodes
    node = nodes.confirm(permit.command.table)
    into = nodes.confirm(permit.command.into)
    if node.parent_id != into.id and not permit.command.frees:
        tx.protection.refuse_move(node)
    nodes.move(node, parent_id=into.id, name=permit.command.name, moves_access=node.parent_id != into.id)
    nodes.make_explicit(into, child=node.kind)
