# SPDX-License-Identifier: Apache-2.0
"""Lance tables as nodes of the tree: find, list, drop, deregister, rename.

Must not know any wire format, and never reads a table's files: the room of Lance does that (`table_files`). So tables
can be listed, moved and dropped on a server without the room. The document of such a table contains only its location;
its directory contains everything else. A table may lie directly in its catalog; then the catalog's node is its parent.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.services.catalog.tables import TableMove, table_find, table_move_of, table_reparent
from limnos.services.lance.purge_tasks import LANCE_PURGE, lance_purge_of
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import EMPTY_PAGE, NamePage, PageRequest, page_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of, refuse_directory_request
from limnos.services.storage.location_claims import locations_leave, locations_mark_deleting
from limnos.store.tx import Tx


class LanceTable(NamedTuple):
    """A Lance table: its node, its record, its location, and its catalog's storage."""

    node: Node
    record: TableRecord
    location: str
    place: CatalogStorage


class LanceDrop(msgspec.Struct, frozen=True):
    """The command to drop a table. It can be restored for `keep_ms` milliseconds; then its files are deleted.

    Without `purges` its files are kept, and it cannot be restored.
    """

    table: Node
    keep_ms: int
    purges: bool


def lance_find(request_view: RequestView, levels: Levels, *, action: Action) -> AuthorizedObject[Node]:
    """Find a Lance table for a caller who may do the action on it.

    Raises NotFound (for the namespace, if it is missing and the caller may know that), NotInUse, PermissionDenied,
    UnsupportedOperation in a catalog of a directory.
    """
    if not levels:
        raise NotFound(f"Table does not exist: {request_view.scope.catalog} names a catalog", kind="table")
    refuse_directory_request(request_view, action)
    try:
        return table_find(request_view, levels[:-1], levels[-1], action, required_format=LANCE)
    except NotFound as error:
        raise _missing_namespace_error(request_view, levels, error=error) from None


def _missing_namespace_error(request_view: RequestView, levels: Levels, *, error: NotFound) -> NotFound:
    """Return NotFound for the namespace if it is missing, too; else the given error."""
    if error.kind == "table" and len(levels) > 1 and request_view.find(levels[:-1], Kind.NAMESPACE)[0] is None:
        return request_view.missing(Kind.NAMESPACE, levels[:-1])
    return error


def lance_load(request_view: RequestView, levels: Levels, *, action: Action) -> LanceTable:
    """Return a table, for a caller who may do the action on it. Raises as `lance_find`."""
    return _load_table(request_view, lance_find(request_view, levels, action=action).entity)


def _load_table(request_view: RequestView, node: Node) -> LanceTable:
    return LanceTable(
        node,
        cast("TableRecord", node.record),
        request_view.document(node.id).location,
        catalog_storage_of(request_view),
    )


async def table_drop(ctx: Context, scope: RequestScope, *, levels: Levels, purges: bool = True) -> LanceTable:
    """Drop a table with its files; without `purges` only remove it from the catalog. Returns the dropped table.

    Raises NotFound, PermissionDenied, ProtectedObject.
    """
    dropped_tables: list[LanceTable] = []

    def decide(request_view: RequestView) -> Permit[LanceDrop]:
        node, _, decision = lance_find(request_view, levels, action=Action.TABLE_DROP)
        dropped_tables.append(_load_table(request_view, node))
        keep_ms = request_view.defaults.keep_dropped_ms if purges else 0
        return request_view.permit(LanceDrop(node, keep_ms, purges), decision)

    await ctx.write(scope, decide, lance_delete)
    if purges:
        ctx.services.wake_worker()
    return dropped_tables[-1]


def lance_delete(tx: Tx, permit: Permit[LanceDrop]) -> None:
    """Drop the table; unless the command keeps its files, they are deleted when it can no longer be restored."""
    command = permit.command
    lance_drop_confirmed(tx, tx.nodes.confirm(command.table), keep_ms=command.keep_ms, purges=command.purges)


def lance_drop_confirmed(tx: Tx, node: Node, *, keep_ms: int, purges: bool) -> None:
    """Drop a current table. With `keep_ms` 0 it cannot be restored, and `purges` creates a task to delete its files."""
    if not keep_ms:
        document = tx.documents.read(node.id)
        if not purges:
            locations_leave(tx, node.id)  # the files stay, and other tables may use the location
        elif document is not None:
            tx.tasks.create(LANCE_PURGE, lance_purge_of(node.zone, document.location))
            locations_mark_deleting(tx, node.id)
        tx.documents.delete(node.id)
        tx.lance_versions.delete_all(node.id)
    tx.nodes.drop(node, keep_ms=keep_ms)


async def table_rename(ctx: Context, scope: RequestScope, *, source: Levels, target: Levels) -> None:
    """Rename a table, or move it to another namespace.

    Raises NotFound (a namespace, the table), AlreadyExists, UnsupportedOperation, ProtectedObject, PermissionDenied.
    """

    def decide(request_view: RequestView) -> Permit[TableMove]:
        refuse_directory_request(request_view, Action.TABLE_RENAME)
        try:
            return table_move_of(request_view, source, target, required_format=LANCE)
        except NotFound as error:
            raise _missing_namespace_error(request_view, source, error=error) from None

    await ctx.write(scope, decide, table_reparent)


def tables_page(request_view: RequestView, levels: Levels, *, page_request: PageRequest) -> NamePage:
    """Return a page of the visible Lance tables in a namespace, or directly in the catalog.

    Raises NotFound, NotInUse, PermissionDenied, UnsupportedOperation in a catalog of a directory.
    """
    request_view.require_in_use()
    refuse_directory_request(request_view, Action.TABLE_LIST)
    if levels:
        chain = request_view.look_up(Kind.NAMESPACE, levels, Action.TABLE_LIST).chain
    else:
        chain = request_view.settled.outer
        request_view.require(Action.TABLE_LIST, chain)
    if format_of(request_view) != LANCE:
        return EMPTY_PAGE
    return page_of(request_view, Action.TABLE_LIST, kind=Kind.TABLE, chain=chain, page_request=page_request)
