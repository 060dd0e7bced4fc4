# SPDX-License-Identifier: Apache-2.0
"""Catalog directories: a catalog that shows a directory lists and describes the directory's current content, under the
rights on the catalog.

Objects in such a directory are not nodes of the tree: only rights on the catalog and the metalake apply. This server
creates, moves and drops nothing there; rows are read as those of any table. Decision record 0054.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from limnos.access.actions import Action
from limnos.files import is_local, leads_within
from limnos.formats.lance_contents import DirectoryContents, DirectoryTableEntry
from limnos.model.errors import InvalidTable, NotFound, OutsideRoots, ServiceUnavailable
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.rooms.lance.services.table_data import has_data
from limnos.rooms.lance.services.workers import answer_question, storage_options_of, worker_task_of
from limnos.rooms.lance.sources.questions import Contents
from limnos.services.lance.directories import CatalogDirectory, catalog_directory_of, properties_in
from limnos.services.lance.tables import LanceTable, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

T = TypeVar("T")


async def directory_open(ctx: Context, visible_object: CatalogDirectory) -> DirectoryContents:
    """List the content of a directory, for a caller who after that still may do the action.

    Raises OutsideRoots, BadRequest or StorageMisconfigured if the settings no longer allow it, StorageFailed,
    InvalidTable, PermissionDenied, NotInUse.
    """

    def decide(request_view: RequestView) -> CatalogDirectory:
        directory = catalog_directory_of(request_view, visible_object.action)
        if directory is None:
            raise ServiceUnavailable(
                "The catalog was changed while its directory was being read: try again", retry_after_s=1
            )
        return directory

    _, contents = await ctx.read_confirmed(
        visible_object.scope, decide, work=partial(_content_of, ctx), identity=readable_identity, first=visible_object
    )
    return contents


async def _content_of(ctx: Context, visible_object: CatalogDirectory) -> DirectoryContents:
    """List the content of a directory, without a second decision. Raises as `directory_open`."""
    allowed_storage, properties = visible_object.place.allowed, visible_object.place.catalog.properties
    allowed_storage.check_root(visible_object.location)
    allowed_storage.check_use(properties)
    _require_within(visible_object, visible_object.location)
    question = Contents(location=visible_object.location, options=storage_options_of(properties))
    return await answer_question(ctx, worker_task_of(ctx, question, quick=True), shape=DirectoryContents)


def _require_within(visible_object: CatalogDirectory, location: str) -> None:
    """Refuse a location whose symbolic links lead outside the allowed directories. Raises OutsideRoots."""
    allowed_storage = visible_object.place.allowed
    if is_local(location) and not leads_within(location, allowed_storage.roots, allowed=allowed_storage):
        raise OutsideRoots(
            f"{location} is a link to a location that this server may not read: replace it by the files",
            location=location,
        )


async def table_in(
    ctx: Context, visible_object: CatalogDirectory, *, levels: Levels
) -> tuple[LanceTable, DirectoryTableEntry]:
    """Find a table of a directory, without a second decision, which the caller makes after it has read the table.

    Raises NotFound for a missing namespace or table, OutsideRoots if its location is not allowed, and as
    `directory_open`.
    """
    contents = await _content_of(ctx, visible_object)
    properties_in(contents, levels[:-1])
    for each in contents.tables:
        if each.path == levels:
            _require_within(visible_object, each.location)
            record = TableRecord(comment=None, properties=each.properties, declared=each.declared)
            place = visible_object.place._replace(roots=(visible_object.location, *visible_object.place.allowed.roots))
            return LanceTable(visible_object.catalog, record, each.location, place), each
    raise NotFound(f"Table does not exist: {render(levels)}", kind="table")


def readable_table_of(request_view: RequestView, levels: Levels, *, action: Action) -> CatalogDirectory | LanceTable:
    """Return a table of the tree, or the directory that has the table, for a caller who may do the action.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    return catalog_directory_of(request_view, action) or lance_load(request_view, levels, action=action)


def readable_identity(decided: CatalogDirectory | LanceTable) -> tuple[int, str]:
    """Return what must be unchanged after the files were read: the id of the table or the catalog, and the location."""
    node = decided.catalog if isinstance(decided, CatalogDirectory) else decided.node
    return node.id, decided.location


async def table_read_confirmed(
    ctx: Context,
    scope: RequestScope,
    *,
    levels: Levels,
    work: Callable[[LanceTable], Awaitable[T]],
    action: Action = Action.TABLE_LOAD,
) -> T:
    """Find a table, read data of it, and decide again, so that no data from after a revoke are returned.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the name of the table: a node of the tree, or a table in a catalog's directory.
        work: Reads the data. It may run several times.
        action: What the caller must be allowed to do, before and after the data are read.

    Raises:
        NotFound: The table is missing.
        InvalidTable: The directory is not a table.
        OutsideRoots: The location is not allowed.
        StorageFailed: The storage does not respond.
        PermissionDenied: The caller may not do the action. The errors of `work` are raised, too.
    """

    async def read(decided: CatalogDirectory | LanceTable) -> T:
        if not isinstance(decided, CatalogDirectory):
            return await work(decided)
        table, entry = await table_in(ctx, decided, levels=levels)
        if not entry.declared and not await has_data(ctx, table.location, place=table.place):
            raise not_a_table_error(table)
        return await work(table)

    _, result = await ctx.read_confirmed(
        scope,
        lambda request_view: readable_table_of(request_view, levels, action=action),
        work=read,
        identity=readable_identity,
    )
    return result


def not_a_table_error(table: LanceTable) -> InvalidTable:
    """Return the error for a directory that is not a Lance table."""
    return InvalidTable(
        f"The folder {table.location} does not comply with the Lance table format: no table was written there"
    )
