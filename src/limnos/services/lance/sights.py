"""A catalog that shows a directory: what lies in it is listed and described as it is now, under the rights that the catalog gives.

May import the rooms below, and `sources` for the shapes of questions. Nothing of a directory is a node of the tree: rights are those on the catalog and above, and
nothing is made, moved or dropped there by this server; rows are read as those of any table. Decision record 0054.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.access.actions import Action
from limnos.files import is_local, leads_within
from limnos.model.errors import InvalidTable, NotFound, OutsideRoots
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.services.lance.tables import LanceTable, has_data, lance_load
from limnos.services.lance.work import answer, errand_of, options_of
from limnos.services.request.places import DIRECTORY, place_of
from limnos.sources.lance.questions import Contents, Lain, Listed

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.pages import Asked
    from limnos.services.request.places import Place
    from limnos.services.request.scene import Scene, Scope


class Sight(NamedTuple):
    """A directory that a catalog shows, and the catalog's place, which knows what the server may read."""

    catalog: Node
    location: str
    place: Place


class Shown(NamedTuple):
    """A page of names, and the one to go on after."""

    names: list[str]
    last: str | None


def sight_of(scene: Scene, action: Action) -> Sight | None:
    """Return the directory that the scene's catalog shows, for who may do the action to all that is in the catalog; None for other catalogs.

    Raises Forbidden, NotInUse.
    """
    location = None if scene.settled.catalog is None else scene.catalog_record.properties.get(DIRECTORY)
    if not location:
        return None
    scene.require_in_use()
    scene.require(action, scene.settled.outer)
    scene.defaults.place_conflicts.refuse(scene.catalog.id, what="directory")
    return Sight(scene.catalog, location.rstrip("/"), place_of(scene))


async def contents(ctx: Context, sight: Sight) -> Listed:
    """List what lies in a directory. Raises OutsideRoots where the server may not read it any more, StorageFailed, InvalidTable."""
    allowed, properties = sight.place.allowed, sight.place.catalog.properties
    allowed.check_root(sight.location)
    allowed.check_use(properties)
    _require_within(sight, sight.location)
    question = Contents(sight.location, options_of(properties))
    return await answer(ctx, errand_of(ctx, question, quick=True), shape=Listed)


def _require_within(sight: Sight, location: str) -> None:
    """Refuse a place from which links lead to where the server may not read."""
    allowed = sight.place.allowed
    if is_local(location) and not leads_within(location, allowed.roots, allowed=allowed):
        raise OutsideRoots(
            f"{location} leads to where this server may not read: put the files themselves there", location=location
        )


def spaces_in(found: Listed, levels: Levels, *, asked: Asked) -> Shown:
    """Return a page of the namespaces directly in one. Raises NotFound."""
    properties_in(found, levels)
    names = [each.path[-1] for each in found.namespaces if each.path[:-1] == levels]
    return _page(names, asked)


def tables_in(found: Listed, levels: Levels, *, asked: Asked, declared: bool) -> Shown:
    """Return a page of the tables directly in a namespace; without `declared` only those with data. Raises NotFound (of the namespace)."""
    properties_in(found, levels)
    tables = [each for each in found.tables if each.path[:-1] == levels and (declared or not each.declared)]
    return _page([each.path[-1] for each in tables], asked)


def properties_in(found: Listed, levels: Levels) -> dict[str, str]:
    """Return a namespace's properties. Raises NotFound."""
    if not levels:
        return {}
    for each in found.namespaces:
        if each.path == levels:
            return each.properties
    raise NotFound(f"Namespace does not exist: {render(levels)}", kind="namespace")


def _page(names: list[str], asked: Asked) -> Shown:
    left = sorted(name for name in names if name > asked.after)
    shown = left if asked.size is None else left[: asked.size]
    return Shown(shown, shown[-1] if shown and len(shown) < len(left) else None)


async def table_in(ctx: Context, sight: Sight, *, levels: Levels) -> tuple[LanceTable, Lain]:
    """Find a table of a directory. Raises NotFound (of its namespace, or of itself)."""
    found = await contents(ctx, sight)
    properties_in(found, levels[:-1])
    for each in found.tables:
        if each.path == levels:
            _require_within(sight, each.location)
            record = TableRecord(None, each.properties, declared=each.declared)
            place = sight.place._replace(roots=(sight.location, *sight.place.allowed.roots))
            return LanceTable(sight.catalog, record, each.location, place), each
    raise NotFound(f"Table does not exist: {render(levels)}", kind="table")


async def readable(ctx: Context, scope: Scope, *, levels: Levels, action: Action = Action.TABLE_LOAD) -> LanceTable:
    """Find a table to read, for who may do the action to it: a node of the tree, or what lies in a directory that the catalog shows.

    Raises NotFound, InvalidTable for a folder that is no table, Forbidden.
    """
    found = await ctx.read(scope, lambda scene: sight_of(scene, action) or lance_load(scene, levels, action=action))
    if not isinstance(found, Sight):
        return found
    table, lain = await table_in(ctx, found, levels=levels)
    if not lain.declared and not await has_data(ctx, table.location, place=table.place):
        raise no_table(table)
    return table


def no_table(table: LanceTable) -> InvalidTable:
    """Say that a folder is no table."""
    return InvalidTable(
        f"The folder {table.location} does not comply with the Lance table format: no table was written there"
    )
