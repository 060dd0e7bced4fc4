"""The dataverse `Metadata`: what there is, as datasets that queries read, filtered by what the caller may see.

May import the rooms below. Knows no wire format. Names of dataverses stand in it in their canonical form, as AsterixDB has them. Fields that
say nothing here (node groups, compaction, pending operations) have the value that AsterixDB gives to what is at rest.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.names import canonical
from limnos.services.pages import EVERY, page_of
from limnos.services.sqlpp_metadata_records import (
    FORMAT,
    dataset_record,
    datatype_records,
    external_record,
    function_records,
    index_records,
    own_datasets,
    own_types,
    synonym_record,
    view_record,
)
from limnos.services.sqlpp_names import DEFAULT, METADATA, scope_of
from limnos.services.sqlpp_resources import resource_rows
from limnos.sqlpp.chores import source_key
from limnos.sqlpp.errors import compilation
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limnos.model.decisions import Chain
    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene
    from limnos.sqlpp.values.model import Value

ROWS_MAX: Final = 100_000
"""How many namespaces and objects one query of the metadata looks at."""


class Dataverse(NamedTuple):
    """A dataverse that the caller sees: its node and the links from it up, None for what is built in and nowhere yet."""

    path: Levels
    node: Node | None
    chain: Chain


class Object(NamedTuple):
    """Something in a dataverse that the caller sees."""

    path: Levels
    node: Node


class Look:
    """What one query of the metadata has looked at."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.count = 0
        self.dataverses = self._dataverses()

    def objects(self, kind: Kind) -> list[Object]:
        """All objects of a kind that the caller sees. Raises SqlppError, Cold."""
        there = [each for each in self.dataverses if each.node is not None]
        return [each for lot in for_each(there, lambda dataverse: self._in(dataverse, kind)) for each in lot]

    def _in(self, dataverse: Dataverse, kind: Kind) -> list[Object]:
        listing = Action(f"{kind.word}_list")
        if not self.scene.decide(listing, dataverse.chain).allowed:
            return []
        names = page_of(self.scene, listing, kind=kind, chain=dataverse.chain, asked=EVERY).texts()
        self._look(len(names))
        found = for_each(names, lambda name: self.scene.find((*dataverse.path, name), kind)[0])
        return [Object((*dataverse.path, node.name), node) for node in found if node is not None]

    def _look(self, count: int) -> None:
        self.count += count
        if self.count > ROWS_MAX:
            raise compilation(f"There are over {ROWS_MAX} namespaces and objects: this query would look at too much")

    def _dataverses(self) -> list[Dataverse]:
        found: dict[Levels, Dataverse] = {each: Dataverse(each, None, ()) for each in (DEFAULT, METADATA)}
        level: list[tuple[Levels, Chain]] = []
        if self.scene.decide(Action.NAMESPACE_LIST, self.scene.settled.outer).allowed:
            level = [((), self.scene.settled.outer)]
        while level:
            below = [each for lot in for_each(level, lambda at: self._below(at[0], chain=at[1])) for each in lot]
            self._look(len(below))
            for each in below:
                if each.node is not None and not each.node.implicit and each.path != METADATA:
                    found[each.path] = each
            level = [(each.path, each.chain) for each in below]
        return list(found.values())

    def _below(self, path: Levels, *, chain: Chain) -> list[Dataverse]:
        names = page_of(self.scene, Action.NAMESPACE_LIST, kind=Kind.NAMESPACE, chain=chain, asked=EVERY).texts()
        found = for_each(names, lambda name: self.scene.find((*path, name), Kind.NAMESPACE))
        return [Dataverse((*path, name), *each) for name, each in zip(names, found, strict=True) if each[0] is not None]


async def metadata_rows(ctx: Context, sources: tuple[tuple[Levels, str], ...]) -> dict[str, tuple[Value, ...]]:
    """Return the rows of datasets of the metadata, by `source_key`, all of one moment. Raises SqlppError, Forbidden."""

    def read(scene: Scene) -> dict[str, tuple[Value, ...]]:
        scene.require_in_use()
        look = Look(scene) if any(dataverse == METADATA for dataverse, _ in sources) else None
        return {source_key(*each): _rows_of(scene, look, source=each) for each in sources}

    return await ctx.read(scope_of(ctx), read)


def _rows_of(scene: Scene, look: Look | None, *, source: tuple[Levels, str]) -> tuple[Value, ...]:
    dataverse, name = source
    if look is not None and dataverse == METADATA:
        return tuple(_ROWS[name](look))
    _, function, *parts = dataverse
    return resource_rows(scene, function, path=(*parts, name))


def _dataverses(look: Look) -> Iterator[Value]:
    for each in look.dataverses:
        yield {
            "DataverseName": canonical.encode(each.path),
            "DataFormat": FORMAT,
            "Timestamp": _date(0 if each.node is None else each.node.created_at),
            "PendingOp": 0,
        }


def _date(ms: int) -> str:
    """A time as Java spells it: `Fri Nov 21 06:12:04 UTC 2026`."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(ms / 1000))


def _datasets(look: Look) -> Iterator[Value]:
    yield from own_datasets()
    for path, node in look.objects(Kind.TABLE):
        yield dataset_record(path, node, at=_date(node.created_at))
    for path, node in look.objects(Kind.EXTERNAL_DATASET):
        yield external_record(path, node, at=_date(node.created_at))
    views = look.objects(Kind.VIEW)
    documents = for_each(views, lambda view: look.scene.document(view.node.id))
    for (path, node), document in zip(views, documents, strict=True):
        yield view_record(path, node, at=_date(node.created_at), document=document)


def _datatypes(look: Look) -> Iterator[Value]:
    yield from own_types()
    for kind in (Kind.DATATYPE, Kind.TABLE, Kind.EXTERNAL_DATASET):
        for path, node in look.objects(kind):
            yield from datatype_records(path, node, at=_date(node.created_at))


def _indexes(look: Look) -> Iterator[Value]:
    for path, node in look.objects(Kind.TABLE):
        yield from index_records(path, node, at=_date(node.created_at))


def _functions(look: Look) -> Iterator[Value]:
    for path, node in look.objects(Kind.FUNCTION):
        yield from function_records(path, node)


def _synonyms(look: Look) -> Iterator[Value]:
    for path, node in look.objects(Kind.SYNONYM):
        yield synonym_record(path, node)


def _libraries(_look: Look) -> Iterator[Value]:
    """Nothing: functions are written in SQL++ here."""
    return iter(())


_ROWS: Final[dict[str, Callable[[Look], Iterator[Value]]]] = {
    "Dataverse": _dataverses,
    "Dataset": _datasets,
    "Datatype": _datatypes,
    "Index": _indexes,
    "Function": _functions,
    "Synonym": _synonyms,
    "Library": _libraries,
}
