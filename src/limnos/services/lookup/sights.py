"""What a caller sees of objects that are known by their ids alone, in whatever catalogs of a metalake they lie.

May import the rooms below. An object is seen by whoever may load it; of one that is hidden nothing is told but that it is there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.decisions import Link
from limnos.model.errors import Forbidden, NotFound, Unavailable
from limnos.model.kinds import Kind
from limnos.services.lookup.telling import Outrun, path_of
from limnos.services.request.scene import Scope
from limnos.services.request.together import read_together
from limnos.store.feed import zones_read
from limnos.view.cold import Cold, for_each, need
from limnos.view.keys import ABSENT, document_key, listing_key, node_key, nodes_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from limnos.model.decisions import Chain
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.feed import Lot

ATTEMPTS_MAX: Final = 20


class Home(NamedTuple):
    """A metalake, and the catalogs of it that the caller may use, by id."""

    metalake_id: int
    catalogs: dict[int, str]


class Sight(NamedTuple):
    """An object that the caller sees: its kind, its path from the catalog down, and what was read of it."""

    kind: Kind
    path: tuple[str, ...]
    body: bytes | None = None
    """Its document, where that was asked for."""


Sights = dict[int, Sight | None]
"""By id: what the caller sees, None for what is there and hidden. What is not there is not in it."""


def home_of(scene: Scene) -> Home:
    """Return the scope's metalake for a user of it. Raises Forbidden, NotInUse."""
    outer = scene.settled.outer[-1:]
    scene.require(Action.METALAKE_LOAD, outer)
    scene.require_in_metalake_use()
    metalake_id = scene.metalake.id
    found = need(scene.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id)
    shown: Iterable[int] = range(len(found.ids))
    if scene.rules.access_enabled:
        shown = list_filter(scene.subject, Action.CATALOG_LIST, outer, scene.owner_of).positions(
            found.ids, found.owners
        )
    return Home(metalake_id, {found.ids[at]: found.names[at] for at in shown})


def gather(scene: Scene, ids: Iterable[int]) -> None:
    """Raise Cold for all nodes of the scene's catalog that the view lacks, so that one statement reads them."""
    missing = [node_id for node_id in ids if scene.view.get(node_key(node_id)) is ABSENT]
    if missing:
        raise Cold({nodes_key(scene.zone, tuple(sorted(missing))): scene.zone})


def chain_of(scene: Scene, node_id: int) -> Chain | None:
    """Return the links from a node of the scene's catalog up; None when it is not there."""
    links: list[Link] = []
    at = node_id
    while at != scene.catalog.id:
        node = scene.view.get(node_key(at))
        if node is ABSENT:
            raise Cold({nodes_key(scene.zone, (at,)): scene.zone})
        if node is None:
            return None
        links.append(Link(at, node.kind, node.name))
        at = node.parent_id
    return (*links, *scene.settled.outer)


def catalogs_of(ids: Iterable[int], lots: Mapping[int, Lot], *, metalake_id: int) -> dict[int, int]:
    """Return the catalogs of those nodes that are there, all that lies above them too, in a metalake."""
    found: dict[int, int] = {}
    for node_id in ids:
        at, lot = node_id, lots.get(node_id)
        zone = 0 if lot is None else lot.zone
        while lot is not None and lot.alive and at != metalake_id:
            at, lot = lot.parent_id, lots.get(lot.parent_id)
        if lot is not None and lot.alive and at == metalake_id and zone in lots:
            found[node_id] = zone
    return found


async def sights_of(
    ctx: Context, metalake: str, *, ids: Collection[int], with_documents: Callable[[int], bool] = lambda _: False
) -> Sights:
    """Return what the caller sees of objects, all at one moment after this call."""
    for _ in range(ATTEMPTS_MAX):
        home = await ctx.read(Scope(metalake), home_of)
        lots = await ctx.look_up(partial(zones_read, ids))
        homes = catalogs_of(ids, lots, metalake_id=home.metalake_id)
        by_catalog: dict[int, list[int]] = {}
        for node_id, zone in homes.items():
            if zone in home.catalogs:
                by_catalog.setdefault(zone, []).append(node_id)
        scopes = tuple(Scope(metalake, home.catalogs[zone]) for zone in by_catalog)
        try:
            seen = await read_together(
                ctx, scopes, partial(_seen, by_catalog=by_catalog, with_documents=with_documents)
            )
        except (NotFound, Forbidden, Outrun):
            continue  # a catalog was dropped or renamed, or the caller may not use it any longer
        hidden: Sights = {node_id: None for node_id, zone in homes.items() if zone not in home.catalogs}
        return hidden | seen
    raise Unavailable("What was asked for was moved about faster than it could be told: try again")


def _seen(
    scenes: tuple[Scene, ...], *, by_catalog: dict[int, list[int]], with_documents: Callable[[int], bool]
) -> Sights:
    pairs = zip(scenes, by_catalog.items(), strict=True)
    found: Sights = {}
    for part in for_each(
        pairs, lambda pair: _seen_in(pair[0], pair[1][0], ids=pair[1][1], with_documents=with_documents)
    ):
        found |= part
    return found


def _seen_in(scene: Scene, catalog_id: int, *, ids: list[int], with_documents: Callable[[int], bool]) -> Sights:
    if scene.settled.catalog is None or scene.catalog.id != catalog_id:
        raise Outrun
    gather(scene, ids)
    sights = for_each(ids, lambda node_id: sight_of(scene, node_id, with_document=with_documents(node_id)))
    return {node_id: sight for node_id, (there, sight) in zip(ids, sights, strict=True) if there}


def sight_of(scene: Scene, node_id: int, *, with_document: bool) -> tuple[bool, Sight | None]:
    """Say whether a node of the scene's catalog is there, and what the caller sees of it."""
    chain = chain_of(scene, node_id)
    if chain is None:
        return False, None
    if not scene.settled.in_use or not scene.decide(Action.METADATA_LOAD, chain).allowed:
        return True, None
    body = body_of(scene, node_id) if with_document and chain[0].kind is Kind.TABLE else None
    return True, Sight(chain[0].kind, path_of(chain), body)


def body_of(scene: Scene, table_id: int) -> bytes | None:
    """Return a table's Iceberg metadata, None for a table of another format."""
    found = need(scene.view, document_key(table_id), zone=scene.zone)
    return None if found is None else found.body
