# SPDX-License-Identifier: Apache-2.0
"""Lance table lists: the visible tables of a namespace or of a metalake, optionally only those with data.

A page has as many visible names as requested, regardless of hidden names between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import directory_open
from limnos.rooms.lance.services.namespaces import lance_namespace_properties
from limnos.rooms.lance.services.table_data import has_table_data
from limnos.services.catalog.namespaces import namespaces_list
from limnos.services.lance.directories import (
    CatalogDirectory,
    catalog_directory_of,
    namespaces_in,
    properties_in,
    tables_in,
)
from limnos.services.lance.tables import LanceTable, tables_page
from limnos.services.request.browsing import catalog_names
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, EMPTY_PAGE, NamePage, PageRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, ExternalCatalogError, format_of
from limnos.view.cache_miss import for_each

PAGE = 1000


class TableNamesPage(NamedTuple):
    """A page of names, and the name after which the next page begins; None at the end."""

    names: list[str]
    last: str | None


class _TablesPage(NamedTuple):
    """A page of tables, and those of them that were declared, which may have no data."""

    page: NamePage
    declared: dict[str, LanceTable]


async def tables_list(
    ctx: Context, scope: RequestScope, *, levels: Levels, page_request: PageRequest, declared: bool
) -> TableNamesPage:
    """List the tables of a namespace; without `declared` only those with data. Raises as `tables_page`."""
    first = await ctx.read(
        scope,
        lambda request_view: (
            catalog_directory_of(request_view, Action.TABLE_LIST)
            or tables_page(request_view, levels, page_request=page_request)
        ),
    )
    if isinstance(first, CatalogDirectory):
        page = tables_in(await directory_open(ctx, first), levels, page_request=page_request, declared=declared)
        return TableNamesPage(page.names, page.last)
    if declared:
        return TableNamesPage(first.texts(), first.last)
    entries: list[str] = []
    after: str | None = page_request.after
    while after is not None:
        part = PageRequest(after, None if page_request.size is None else page_request.size - len(entries))
        names, after = await _with_data(ctx, scope, levels=levels, page_request=part)
        entries += names
        if page_request.size is not None and len(entries) >= page_request.size:
            break
    return TableNamesPage(entries, after)


async def lance_namespaces_list(
    ctx: Context, scope: RequestScope, *, levels: Levels, page_request: PageRequest
) -> TableNamesPage:
    """Return a page of the namespaces directly in a namespace, or in the catalog if `levels` is empty.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    result = await ctx.read(
        scope,
        lambda request_view: (
            catalog_directory_of(request_view, Action.TABLE_LIST)
            or _tree_namespaces(request_view, levels, page_request=page_request)
        ),
    )
    if isinstance(result, CatalogDirectory):
        page = namespaces_in(await directory_open(ctx, result), levels, page_request=page_request)
        return TableNamesPage(page.names, page.last)
    return TableNamesPage(result.texts(), result.last)


def _tree_namespaces(request_view: RequestView, levels: Levels, *, page_request: PageRequest) -> NamePage:
    """List the namespaces in the server's own tree; none for a catalog of an external system."""
    try:
        return namespaces_list(request_view, levels, page_request)
    except ExternalCatalogError:
        return EMPTY_PAGE


async def lance_namespace_load(ctx: Context, scope: RequestScope, *, levels: Levels) -> dict[str, str]:
    """Return the properties of a namespace, or of the catalog if `levels` is empty.

    Raises NotFound, NotInUse, PermissionDenied.
    """

    def read(request_view: RequestView) -> CatalogDirectory | dict[str, str]:
        visible_object = catalog_directory_of(request_view, Action.TABLE_LIST) if levels else None
        return visible_object or lance_namespace_properties(request_view, levels)

    result = await ctx.read(scope, read)
    return properties_in(await directory_open(ctx, result), levels) if isinstance(result, CatalogDirectory) else result


async def _with_data(ctx: Context, scope: RequestScope, *, levels: Levels, page_request: PageRequest) -> TableNamesPage:
    """Return a page of the tables with data. A table that was declared is in it only if it is still visible after its
    data was found.
    """
    filled: dict[tuple[int, str], bool] = {}

    def read(request_view: RequestView) -> _TablesPage:
        page = tables_page(request_view, levels, page_request=page_request)
        tables = for_each(page.texts(), lambda name: _find_declared(request_view, (*levels, name)))
        return _TablesPage(
            page, {name: each for name, each in zip(page.texts(), tables, strict=True) if each is not None}
        )

    async def fill(seen: _TablesPage) -> None:
        for table in seen.declared.values():
            if _key_of(table) not in filled:
                filled[_key_of(table)] = await has_table_data(ctx, table)

    def is_filled(seen: _TablesPage) -> bool:
        return all(_key_of(table) in filled for table in seen.declared.values())

    visible_tables = await ctx.read(scope, read)
    if visible_tables.declared:
        visible_tables, _ = await ctx.read_confirmed(scope, read, work=fill, identity=is_filled, first=visible_tables)
    empty = {name for name, table in visible_tables.declared.items() if not filled[_key_of(table)]}
    return TableNamesPage([name for name in visible_tables.page.texts() if name not in empty], visible_tables.page.last)


def _key_of(table: LanceTable) -> tuple[int, str]:
    return table.node.id, table.location


def _find_declared(request_view: RequestView, levels: Levels) -> LanceTable | None:
    """Return a table that was declared, and so may have no data; None for any other table."""
    node, _ = request_view.find(levels, Kind.TABLE)
    if node is None or not cast("TableRecord", node.record).declared:
        return None
    return LanceTable(
        node,
        cast("TableRecord", node.record),
        request_view.document(node.id).location,
        catalog_storage_of(request_view),
    )


async def all_tables(
    ctx: Context, *, metalake: str, catalogs: tuple[str, ...] | None, after: Levels | None, declared: bool
) -> AsyncIterator[Levels]:
    """Yield the path of every visible table, the catalog first: a namespace's tables by name, then those below it."""
    if catalogs is None:
        catalogs = tuple(await catalog_names(ctx, metalake))
    for catalog in catalogs:
        if after is not None and catalog < after[0]:
            continue
        rest = after[1:] if after is not None and after[0] == catalog else None
        async for levels in _walk_namespace(
            ctx, RequestScope(metalake, catalog), levels=(), after=rest, declared=declared
        ):
            yield (catalog, *levels)


async def _walk_namespace(
    ctx: Context, scope: RequestScope, *, levels: Levels, after: Levels | None, declared: bool
) -> AsyncIterator[Levels]:
    """Yield the tables of a namespace after `after`, which is a path relative to it."""
    with suppress(PermissionDenied, NotFound):  # not visible to the caller, or dropped concurrently: skip it
        if after is None or len(after) == 1:
            async for name in _tables(ctx, scope, levels=levels, after=after[0] if after else "", declared=declared):
                yield (*levels, name)
    try:
        children = await _child_namespaces(ctx, scope, levels=levels)
    except (PermissionDenied, NotFound):
        return
    first = after[0] if after is not None and len(after) > 1 else None
    for child in children:
        if first is None or child >= first:
            rest = cast("Levels", after)[1:] if child == first else None
            async for path in _walk_namespace(ctx, scope, levels=(*levels, child), after=rest, declared=declared):
                yield path


async def _tables(
    ctx: Context, scope: RequestScope, *, levels: Levels, after: str, declared: bool
) -> AsyncIterator[str]:
    last: str | None = after
    while last is not None:
        names, last = await tables_list(
            ctx, scope, levels=levels, page_request=PageRequest(last, PAGE), declared=declared
        )
        for name in names:
            yield name


async def _child_namespaces(ctx: Context, scope: RequestScope, *, levels: Levels) -> list[str]:
    if await ctx.read(scope, format_of) != LANCE:
        return []
    return (await lance_namespaces_list(ctx, scope, levels=levels, page_request=ALL_NAMES)).names
