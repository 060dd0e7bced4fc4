"""Datasets of OpenLineage found among our objects: by the name in a catalog of ours first, by the location second.

May import the rooms below. A name counts where the producer's address of the catalog is this server's, or where it is spelled
`limnos://<metalake>`. A location belongs to one table at most, so it outranks a name that a producer's session gave to a catalog.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from limnos.access.actions import Action
from limnos.files.locations import normalise
from limnos.model.errors import BadRequest, Forbidden, NotFound, Unavailable
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.services.lookup.sights import ATTEMPTS_MAX, body_of, catalogs_of, chain_of, gather, home_of
from limnos.services.lookup.telling import Outrun
from limnos.services.request.scene import Scope
from limnos.services.request.together import read_together
from limnos.store.feed import zones_read
from limnos.store.lineage import places_read
from limnos.store.locations import above
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from limnos.formats.openlineage import Dataset
    from limnos.model.decisions import Chain
    from limnos.services.lookup.sights import Home
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.store.feed import Lot

OWN_SCHEME: Final = "limnos"
Key = tuple[str, str]
Path = tuple[str, ...]


class Found(NamedTuple):
    """What a dataset is: an object of ours (in a catalog), hidden or not; one that should be ours and is lost; or outside."""

    dataset: Dataset
    node_id: int | None = None
    catalog: str | None = None
    catalog_id: int | None = None
    is_seen: bool = False
    is_lost: bool = False
    body: bytes | None = None
    """The document of an object that is seen, where it was asked for."""

    @property
    def is_hidden(self) -> bool:
        """Say whether the caller does not see it, be it there or not."""
        return self.is_lost or (self.node_id is not None and not self.is_seen)

    @property
    def outside(self) -> Key:
        """The name that it goes by outside: the logical one, if it has one."""
        return self.dataset.aliases[0] if self.dataset.aliases else self.dataset.key


class _Clue(NamedTuple):
    """What leads to a dataset: paths that it may have, and the object at its location with its catalog's id (0: dropped)."""

    dataset: Dataset
    paths: tuple[Path, ...]
    is_ours: bool
    at: tuple[int, int] | None


async def datasets_find(
    ctx: Context, metalake: str, *, home: Home, datasets: Iterable[Dataset], authority: str, linked: Collection[Key]
) -> dict[Key, Found]:
    """Find datasets among the objects of a metalake, as the caller sees them; with the documents of `linked` ones."""
    merged: dict[Key, Dataset] = {}
    for each in datasets:
        known = merged.get(each.key)
        if known is None or len(each.aliases) > len(known.aliases):
            merged[each.key] = each
    for _ in range(ATTEMPTS_MAX):
        clues = await _clues(ctx, metalake, home=home, datasets=tuple(merged.values()), authority=authority)
        try:
            return await _settle(ctx, metalake, home=home, clues=clues, linked=linked)
        except (NotFound, Forbidden, Outrun):
            home = await ctx.read(Scope(metalake), home_of)  # a catalog was dropped or renamed, or rights have changed
    raise Unavailable("What the event names was moved about faster than it could be found: send it again")


async def _clues(
    ctx: Context, metalake: str, *, home: Home, datasets: Sequence[Dataset], authority: str
) -> list[_Clue]:
    places = {each.key: _places(each) for each in datasets}
    holders = await ctx.look_up(partial(places_read, {place for found in places.values() for place in found}))
    lots = await ctx.look_up(partial(zones_read, set(holders.values())))
    homes = catalogs_of(holders.values(), lots, metalake_id=home.metalake_id)
    clues = []
    for each in datasets:
        holder = next((holders[place] for place in places[each.key] if place in holders), None)
        is_own = holder is not None and _is_of(holder, lots, metalake_id=home.metalake_id)
        at = (holder, homes.get(holder, 0)) if holder is not None and is_own else None
        is_ours, paths = _paths(each, metalake, authority=authority)
        clues.append(_Clue(each, paths, is_ours or at is not None, at))
    return clues


def _is_of(node_id: int, lots: Mapping[int, Lot], *, metalake_id: int) -> bool:
    """Say whether a node lies in a metalake, or lay there."""
    while node_id in lots:
        if node_id == metalake_id:
            return True
        node_id = lots[node_id].parent_id
    return False


def _places(dataset: Dataset) -> tuple[str, ...]:
    """List the location that a dataset's own name spells, and those it lies in, innermost first; none where it is no location."""
    namespace, name = dataset.key
    if namespace == "file" or namespace.startswith("file:"):
        text = name if name.startswith("/") else f"/{name}"
    elif "://" in namespace:
        text = f"{namespace.rstrip('/')}/{name.lstrip('/')}"
    else:
        return ()
    try:
        location = normalise(text)
    except BadRequest:
        return ()
    return (location, *reversed(above(location)))


def _paths(dataset: Dataset, metalake: str, *, authority: str) -> tuple[bool, tuple[Path, ...]]:
    """Say whether a dataset names an object of ours, and which paths that may be."""
    paths: list[Path] = []
    is_ours = False
    for namespace, name in (*dataset.aliases, dataset.key):
        parts = _split(namespace) if "://" in namespace else None
        if parts is None:
            continue
        if parts.scheme == OWN_SCHEME:
            is_ours = True
            if parts.netloc == metalake:
                paths += _parsed(name)
        elif parts.scheme in {"http", "https"} and parts.netloc.lower() == authority.lower():
            is_ours = True
            if dataset.catalog is not None:
                paths += _checked((dataset.catalog, *name.split(".")))
    return is_ours, tuple([path for path in dict.fromkeys(paths) if len(path) > 2])


def _split(namespace: str) -> SplitResult | None:
    """Take an address apart; what only looks like one is a name like any other."""
    try:
        return urlsplit(namespace)
    except ValueError:
        return None


def _parsed(text: str) -> list[Path]:
    try:
        return [tuple(display.parse(text))]
    except InvalidName:
        return []


def _checked(parts: Path) -> list[Path]:
    try:
        return [tuple(check_levels(parts))]
    except InvalidName:
        return []


async def _settle(
    ctx: Context, metalake: str, *, home: Home, clues: Sequence[_Clue], linked: Collection[Key]
) -> dict[Key, Found]:
    """Look at all clues at one moment."""
    ids = {name: catalog_id for catalog_id, name in home.catalogs.items()}
    wanted = {path[0] for clue in clues for path in clue.paths if path[0] in ids}
    wanted |= {home.catalogs[clue.at[1]] for clue in clues if clue.at is not None and clue.at[1] in home.catalogs}
    catalogs = tuple(sorted(wanted))

    def read(scenes: tuple[Scene, ...]) -> list[Found]:
        by_name = dict(zip(catalogs, scenes, strict=True))
        for name, scene in by_name.items():
            if scene.settled.catalog is None or scene.catalog.id != ids[name]:
                raise Outrun
            gather(scene, [clue.at[0] for clue in clues if clue.at is not None and clue.at[1] == scene.catalog.id])
        return for_each(clues, lambda clue: _look(by_name, home, clue=clue, with_document=clue.dataset.key in linked))

    found = await read_together(ctx, tuple(Scope(metalake, name) for name in catalogs), read)
    return {each.dataset.key: each for each in found}


def _look(scenes: dict[str, Scene], home: Home, *, clue: _Clue, with_document: bool) -> Found:
    if clue.at is not None:
        node_id, catalog_id = clue.at
        name = home.catalogs.get(catalog_id)
        chain = None if name is None else chain_of(scenes[name], node_id)
        if name is None or chain is None:
            return Found(clue.dataset, is_lost=True)
        return _found(scenes[name], clue.dataset, chain=chain, with_document=with_document)
    for path in clue.paths:
        scene = scenes.get(path[0])
        node, chain = (None, ()) if scene is None else scene.find(path[1:], Kind.TABLE)
        if scene is not None and node is not None:
            own = chain_of(scene, node.id)
            if own is not None:
                return _found(scene, clue.dataset, chain=own, with_document=with_document)
    return Found(clue.dataset, is_lost=clue.is_ours)


def _found(scene: Scene, dataset: Dataset, *, chain: Chain, with_document: bool) -> Found:
    node_id, kind = chain[0].id, chain[0].kind
    seen = scene.settled.in_use and scene.decide(Action.METADATA_LOAD, chain).allowed
    body = body_of(scene, node_id) if seen and with_document and kind is Kind.TABLE else None
    return Found(dataset, node_id, scene.catalog.name, scene.catalog.id, seen, body=body)
