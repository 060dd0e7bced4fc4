"""The dataverse `Metadata`: what there is, as datasets that queries read, filtered by what the caller may see.

May import the rooms below. Knows no wire format. Names of dataverses stand in it in their canonical form, as AsterixDB has them. Fields that
say nothing here (node groups, compaction, pending operations) have the value that AsterixDB gives to what is at rest.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.names import canonical
from limnos.services.pages import EVERY, page_of
from limnos.services.sqlpp_names import DEFAULT, METADATA, scope_of
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
FORMAT: Final = "org.apache.asterix.runtime.formats.NonTaggedDataFormat"


class Dataverse(NamedTuple):
    """A dataverse that the caller sees: its node and the links from it up, None for what is built in and nowhere yet."""

    path: Levels
    node: Node | None
    chain: Chain


async def metadata_rows(ctx: Context, names: tuple[str, ...]) -> dict[str, tuple[Value, ...]]:
    """Return the rows of datasets of the metadata, by name, all of one moment. Raises SqlppError, Forbidden."""
    found: dict[str, tuple[Value, ...]] = await ctx.read(scope_of(ctx), lambda scene: _read(scene, names))
    return found


def _read(scene: Scene, names: tuple[str, ...]) -> dict[str, tuple[Value, ...]]:
    scene.require_in_use()
    dataverses = dataverses_seen(scene)
    return {name: tuple(_ROWS[name](scene, dataverses)) for name in names}


def dataverses_seen(scene: Scene) -> list[Dataverse]:
    """Return all dataverses that the caller sees, those that are built in first."""
    if not scene.decide(Action.NAMESPACE_LIST, scene.settled.outer).allowed:
        return [Dataverse(DEFAULT, None, ()), Dataverse(METADATA, None, ())]
    found: dict[Levels, Dataverse] = {each: Dataverse(each, None, ()) for each in (DEFAULT, METADATA)}
    level: list[tuple[Levels, Chain]] = [((), scene.settled.outer)]
    looked = 0
    while level:
        below = [each for lot in for_each(level, lambda at: _namespaces_in(scene, at[0], chain=at[1])) for each in lot]
        looked += len(below)
        if looked > ROWS_MAX:
            raise compilation(f"There are over {ROWS_MAX} namespaces: this query would look at too much")
        for path, node, chain in below:
            if not node.implicit and path != METADATA:
                found[path] = Dataverse(path, node, chain)
        level = [(path, chain) for path, _, chain in below]
    return list(found.values())


def _namespaces_in(scene: Scene, path: Levels, *, chain: Chain) -> list[tuple[Levels, Node, Chain]]:
    names = page_of(scene, Action.NAMESPACE_LIST, kind=Kind.NAMESPACE, chain=chain, asked=EVERY).texts()
    return for_each(names, lambda name: _at(scene, (*path, name), kind=Kind.NAMESPACE))


def _at(scene: Scene, path: Levels, *, kind: Kind) -> tuple[Levels, Node, Chain]:
    node, chain = scene.find(path, kind)
    if node is None:
        raise NotFound(f"{kind.word} is gone", kind=kind.word)
    return path, node, chain


def canonical_of(path: Levels) -> str:
    """The name of a dataverse as the metadata has it."""
    return canonical.encode(path)


def date_of(ms: int) -> str:
    """A time as Java spells it: `Fri Nov 21 06:12:04 UTC 2026`."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(ms / 1000))


def _dataverse_rows(_scene: Scene, dataverses: list[Dataverse]) -> Iterator[Value]:
    for each in dataverses:
        yield {
            "DataverseName": canonical_of(each.path),
            "DataFormat": FORMAT,
            "Timestamp": date_of(0 if each.node is None else each.node.created_at),
            "PendingOp": 0,
        }


def _nothing(_scene: Scene, _dataverses: list[Dataverse]) -> Iterator[Value]:
    """Nothing: there are no libraries here."""
    return iter(())


_ROWS: Final[dict[str, Callable[[Scene, list[Dataverse]], Iterator[Value]]]] = {
    "Dataverse": _dataverse_rows,
    "Dataset": _nothing,
    "Datatype": _nothing,
    "Index": _nothing,
    "Function": _nothing,
    "Synonym": _nothing,
    "Library": _nothing,
}
