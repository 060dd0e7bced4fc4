"""Lists of Lance tables: of a namespace, or of all that the caller sees; only those with data, where that is asked for.

May import the rooms below. A page holds what the caller may see, so many as were asked for, however much is hidden in between.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.errors import Forbidden, NotFound
from limnos.model.kinds import Kind
from limnos.model.records import TableRecord
from limnos.services.catalog.namespaces import namespaces_list
from limnos.services.lance.namespaces import namespace_shown
from limnos.services.lance.sights import Sight, contents, properties_in, sight_of, spaces_in, tables_in
from limnos.services.lance.tables import LanceTable, holds_data
from limnos.services.request.browsing import catalog_names
from limnos.services.request.pages import EVERY, NO_PAGE, Asked, Page, page_of
from limnos.services.request.places import place_of
from limnos.services.request.scene import Scope
from limnos.services.request.table_formats import LANCE, Elsewhere, format_of, refuse_work
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene

PAGE = 1000


class Names(NamedTuple):
    """A page of names, and the one to go on after; None when nothing follows."""

    names: list[str]
    last: str | None


class _Seen(NamedTuple):
    """A page of tables, and those of them that were made without data."""

    page: Page
    declared: dict[str, LanceTable]


def tables_of(scene: Scene, levels: Levels, *, asked: Asked) -> Page:
    """Return a page of what the caller sees of the Lance tables in a namespace, or directly in the catalog."""
    scene.require_in_use()
    refuse_work(scene, Action.TABLE_LIST)
    if levels:
        chain = scene.look_up(Kind.NAMESPACE, levels, Action.TABLE_LIST).chain
    else:
        chain = scene.settled.outer
        scene.require(Action.TABLE_LIST, chain)
    if format_of(scene) != LANCE:
        return NO_PAGE
    return page_of(scene, Action.TABLE_LIST, kind=Kind.TABLE, chain=chain, asked=asked)


async def tables_list(ctx: Context, scope: Scope, *, levels: Levels, asked: Asked, declared: bool) -> Names:
    """List the tables of a namespace; without `declared` only those that hold data."""
    first = await ctx.read(
        scope, lambda scene: sight_of(scene, Action.TABLE_LIST) or tables_of(scene, levels, asked=asked)
    )
    if isinstance(first, Sight):
        shown = tables_in(await contents(ctx, first), levels, asked=asked, declared=declared)
        return Names(shown.names, shown.last)
    if declared:
        return Names(first.texts(), first.last)
    found: list[str] = []
    after: str | None = asked.after
    while after is not None:
        part = Asked(after, None if asked.size is None else asked.size - len(found))
        names, after = await _with_data(ctx, scope, levels=levels, asked=part)
        found += names
        if asked.size is not None and len(found) >= asked.size:
            break
    return Names(found, after)


async def spaces_list(ctx: Context, scope: Scope, *, levels: Levels, asked: Asked) -> Names:
    """List the namespaces directly in one, or in the catalog."""
    found = await ctx.read(
        scope, lambda scene: sight_of(scene, Action.TABLE_LIST) or _spaces_of(scene, levels, asked=asked)
    )
    if isinstance(found, Sight):
        shown = spaces_in(await contents(ctx, found), levels, asked=asked)
        return Names(shown.names, shown.last)
    return Names(found.texts(), found.last)


def _spaces_of(scene: Scene, levels: Levels, *, asked: Asked) -> Page:
    """List the tree's namespaces; what another system has is no affair of Lance's."""
    try:
        return namespaces_list(scene, levels, asked)
    except Elsewhere:
        return NO_PAGE


async def space_shown(ctx: Context, scope: Scope, *, levels: Levels) -> dict[str, str]:
    """Return the properties of a namespace, or of the catalog."""

    def read(scene: Scene) -> Sight | dict[str, str]:
        sight = sight_of(scene, Action.TABLE_LIST) if levels else None
        return sight or namespace_shown(scene, levels)

    found = await ctx.read(scope, read)
    return properties_in(await contents(ctx, found), levels) if isinstance(found, Sight) else found


async def _with_data(ctx: Context, scope: Scope, *, levels: Levels, asked: Asked) -> Names:
    def read(scene: Scene) -> _Seen:
        page = tables_of(scene, levels, asked=asked)
        found = for_each(page.texts(), lambda name: _declared(scene, (*levels, name)))
        return _Seen(page, {name: each for name, each in zip(page.texts(), found, strict=True) if each is not None})

    seen = await ctx.read(scope, read)
    empty = [name for name, table in seen.declared.items() if not await holds_data(ctx, table)]
    return Names([name for name in seen.page.texts() if name not in empty], seen.page.last)


def _declared(scene: Scene, levels: Levels) -> LanceTable | None:
    """Return a table that was made without data; None for others."""
    node, _ = scene.find(levels, Kind.TABLE)
    if node is None or not cast("TableRecord", node.record).declared:
        return None
    return LanceTable(node, cast("TableRecord", node.record), scene.document(node.id).location, place_of(scene))


async def all_tables(
    ctx: Context, *, metalake: str, catalogs: tuple[str, ...] | None, after: Levels | None, declared: bool
) -> AsyncIterator[Levels]:
    """Go through every table that the caller sees, catalog first: those of a namespace by name, then those below it."""
    if catalogs is None:
        catalogs = tuple(await catalog_names(ctx, metalake))
    for catalog in catalogs:
        if after is not None and catalog < after[0]:
            continue
        rest = after[1:] if after is not None and after[0] == catalog else None
        async for levels in _below(ctx, Scope(metalake, catalog), levels=(), after=rest, declared=declared):
            yield (catalog, *levels)


async def _below(
    ctx: Context, scope: Scope, *, levels: Levels, after: Levels | None, declared: bool
) -> AsyncIterator[Levels]:  # fmt: skip
    """Go through a namespace, after a table in it: by its path from here."""
    with suppress(Forbidden, NotFound):  # what is closed to the caller, or gone by now, adds nothing
        if after is None or len(after) == 1:
            async for name in _tables(ctx, scope, levels=levels, after=after[0] if after else "", declared=declared):
                yield (*levels, name)
    try:
        children = await _children(ctx, scope, levels=levels)
    except (Forbidden, NotFound):
        return
    first = after[0] if after is not None and len(after) > 1 else None
    for child in children:
        if first is None or child >= first:
            rest = cast("Levels", after)[1:] if child == first else None
            async for found in _below(ctx, scope, levels=(*levels, child), after=rest, declared=declared):
                yield found


async def _tables(ctx: Context, scope: Scope, *, levels: Levels, after: str, declared: bool) -> AsyncIterator[str]:
    last: str | None = after
    while last is not None:
        names, last = await tables_list(ctx, scope, levels=levels, asked=Asked(last, PAGE), declared=declared)
        for name in names:
            yield name


async def _children(ctx: Context, scope: Scope, *, levels: Levels) -> list[str]:
    if await ctx.read(scope, format_of) != LANCE:
        return []
    return (await spaces_list(ctx, scope, levels=levels, asked=EVERY)).names
