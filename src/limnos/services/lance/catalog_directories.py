# SPDX-License-Identifier: Apache-2.0
"""Catalog directories: a catalog that shows a directory lists and describes the directory's current content, under the
rights on the catalog.

Objects in such a directory are not nodes of the tree: only rights on the catalog and the metalake apply. This server
creates, moves and drops nothing there; rows are read as those of any table. Decision record 0054.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeVar

from limnos.access.actions import Action
from limnos.files import is_local, leads_within
from limnos.model.entities import Node
from limnos.model.errors import InvalidTable, NotFound, OutsideRoots, ServiceUnavailable
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.lance.tables import LanceTable, has_data, lance_load
from limnos.services.lance.workers import answer_question, storage_options_of, worker_task_of
from limnos.services.request.catalog_storage import DIRECTORY, CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import PageRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.lance.questions import Contents, DirectoryContents, DirectoryTableEntry

T = TypeVar("T")


class CatalogDirectory(NamedTuple):
    """The directory of a `lance-directory` catalog, and the catalog's storage. The storage limits the files that the
    server may read.

    `scope` is the catalog's, and `action` what the caller may do; both are needed to decide again.
    """

    catalog: Node
    location: str
    place: CatalogStorage
    scope: RequestScope
    action: Action


class DirectoryPage(NamedTuple):
    """A page of names, and the last of them, after which the next page begins; None at the end."""

    names: list[str]
    last: str | None


def catalog_directory_of(request_view: RequestView, action: Action) -> CatalogDirectory | None:
    """Return the directory of the request's catalog, for a caller who may do the action on everything in the catalog.

    Returns None for other catalogs. Raises PermissionDenied, NotInUse.
    """
    location = None if request_view.settled.catalog is None else request_view.catalog_record.properties.get(DIRECTORY)
    if not location:
        return None
    request_view.require_in_use()
    request_view.require(action, request_view.settled.outer)
    request_view.defaults.location_conflicts.refuse(request_view.catalog.id, what="directory")
    return CatalogDirectory(
        catalog=request_view.catalog,
        location=location.rstrip("/"),
        place=catalog_storage_of(request_view),
        scope=request_view.scope,
        action=action,
    )


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
    allowed, properties = visible_object.place.allowed, visible_object.place.catalog.properties
    allowed.check_root(visible_object.location)
    allowed.check_use(properties)
    _require_within(visible_object, visible_object.location)
    question = Contents(location=visible_object.location, options=storage_options_of(properties))
    return await answer_question(ctx, worker_task_of(ctx, question, quick=True), shape=DirectoryContents)


def _require_within(visible_object: CatalogDirectory, location: str) -> None:
    """Refuse a location whose symbolic links lead outside the allowed directories. Raises OutsideRoots."""
    allowed = visible_object.place.allowed
    if is_local(location) and not leads_within(location, allowed.roots, allowed=allowed):
        raise OutsideRoots(
            f"{location} is a link to a location that this server may not read: replace it by the files",
            location=location,
        )


def namespaces_in(contents: DirectoryContents, levels: Levels, *, page_request: PageRequest) -> DirectoryPage:
    """Return a page of the namespaces directly in a namespace. Raises NotFound."""
    properties_in(contents, levels)
    names = [each.path[-1] for each in contents.namespaces if each.path[:-1] == levels]
    return _page(names, page_request)


def tables_in(
    contents: DirectoryContents, levels: Levels, *, page_request: PageRequest, declared: bool
) -> DirectoryPage:
    """Return a page of the tables directly in a namespace; without `declared` only those with data.

    Raises NotFound (the namespace).
    """
    properties_in(contents, levels)
    tables = [each for each in contents.tables if each.path[:-1] == levels and (declared or not each.declared)]
    return _page([each.path[-1] for each in tables], page_request)


def properties_in(contents: DirectoryContents, levels: Levels) -> dict[str, str]:
    """Return a namespace's properties. Raises NotFound."""
    if not levels:
        return {}
    for each in contents.namespaces:
        if each.path == levels:
            return each.properties
    raise NotFound(f"Namespace does not exist: {render(levels)}", kind="namespace")


def _page(names: list[str], request: PageRequest) -> DirectoryPage:
    left = sorted(name for name in names if name > request.after)
    texts = left if request.size is None else left[: request.size]
    return DirectoryPage(texts, texts[-1] if texts and len(texts) < len(left) else None)


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
        table, lain = await table_in(ctx, decided, levels=levels)
        if not lain.declared and not await has_data(ctx, table.location, place=table.place):
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
