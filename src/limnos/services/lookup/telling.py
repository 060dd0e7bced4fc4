"""Which changes of a zone a caller may be told of, and with which names: decided on a scene, by what is true now.

May import the rooms below. A change is told to whoever may load what it is about where it is now, or where it lay when it
was dropped. A move is told at each end to those who may see that end, so that nobody learns a name of a place that is
hidden from them, and those who saw it where it was learn that it has gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Link
from limnos.model.kinds import Home, Kind
from limnos.view.cold import Cold, need
from limnos.view.keys import ABSENT, node_key, nodes_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from limnos.model.decisions import Chain
    from limnos.model.entities import Change
    from limnos.services.request.scene import Scene
    from limnos.store.feed import Entry, Lot

Path = tuple[str, ...]
"""Names from the catalog down; a principal, a role or a tag has its own name alone."""


class Told(msgspec.Struct, frozen=True):
    """A change as a caller may see it; `at` is milliseconds since 1970.

    `path` is where the object is now, or lay when it was dropped; `old` and `new` are the ends of what the change did to
    its place. Each is None where the caller may not see it.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: Kind
    id: int
    path: Path | None
    old: Path | None
    new: Path | None
    actor: str
    request_id: str
    at: int


class Outrun(Exception):
    """Something was dropped or brought back between the reading of the changes and the decision: read them again."""


def tell(scene: Scene, entries: Iterable[Entry], lots: Mapping[int, Lot]) -> list[Told]:
    """Return those of a zone's changes that the caller may be told of. Raises Cold, Outrun."""
    teller = _Teller(scene, lots)
    kept = tuple(entries)
    teller.gather(kept)
    return [told for entry in kept if (told := teller.tell(entry)) is not None]


def tell_gone(scene: Scene, entries: Iterable[Entry], lots: Mapping[int, Lot]) -> list[Told]:
    """Return the changes of a catalog that was dropped: nothing is left above them but the metalake, whose owner may know.

    The scene is the metalake's. Raises Cold.
    """
    if not scene.decide(Action.METALAKE_ALTER, scene.settled.outer).allowed:
        return []
    return [_told(entry, path=_lain(entry.change.node_id, lots), old=None, new=None) for entry in entries]


def _lain(node_id: int, lots: Mapping[int, Lot]) -> Path | None:
    """Return where a node lay when its catalog was dropped."""
    names: list[str] = []
    while (lot := lots.get(node_id)) is not None and lot.kind is not Kind.METALAKE:
        names.append(lot.name)
        node_id = lot.parent_id
    return tuple(reversed(names)) or None


def _told(entry: Entry, *, path: Path | None, old: Path | None, new: Path | None) -> Told:
    change = entry.change
    return Told(
        change.zone, change.revision, change.ordinal, change.operation, change.kind, change.node_id, path, old, new,
        entry.actor, entry.request_id, entry.at,
    )  # fmt: skip


class _Teller:
    """The changes of one zone for one caller: chains and decisions are worked out once for each object."""

    def __init__(self, scene: Scene, lots: Mapping[int, Lot]) -> None:
        self.scene = scene
        self.lots = lots
        outer = scene.settled.outer
        self.chains: dict[int, Chain | None] = {outer[0].id: outer, outer[-1].id: outer[-1:]}
        self.seen: dict[int, bool] = {}

    def gather(self, entries: tuple[Entry, ...]) -> None:
        """Raise Cold for all nodes that the view lacks, so that they are read by one statement."""
        zone, wanted = self.scene.zone, set[int]()
        for entry in entries:
            change = entry.change
            ids = (change.node_id, change.old_parent, change.new_parent) if change.kind.is_node else ()
            wanted.update(i for i in ids if i is not None and i in self.lots and self.lots[i].zone == zone)
        missing = [i for i in wanted - self.chains.keys() if self.scene.view.get(node_key(i)) is ABSENT]
        if missing:
            raise Cold({nodes_key(zone, tuple(sorted(missing))): zone})

    def tell(self, entry: Entry) -> Told | None:
        """Tell of one change, if anything of it may be told."""
        change = entry.change
        if not change.kind.is_node:
            return self._tell_apart(entry)
        chain = self.chain(change.node_id)
        old = self._end(change, change.old_parent, change.old_name)
        new = self._end(change, change.new_parent, change.new_name)
        told = chain is not None and self._sees(chain)
        was = old is not None and change.new_name is not None and self._sees_at(old, chain)
        if chain is None and old is not None and change.old_name is not None:
            was = self._sees_at(old, chain)
        if not told and not was:
            return None
        return _told(
            entry,
            path=path_of(chain) if told and chain is not None else None,
            old=path_of(old) if old is not None and self._sees_at(old, chain) else None,
            new=path_of(new) if new is not None and told and self._sees_at(new, chain) else None,
        )

    def _tell_apart(self, entry: Entry) -> Told | None:
        """Tell of a user, a group, a role or a run: they lie in the metalake, under a name that never changes."""
        change = entry.change
        name = change.only_name
        above = self._pipeline_of(change) if change.kind is Kind.JOB else ()
        if not self._sees((Link(change.node_id, change.kind, name or ""), *above, *self.scene.settled.outer[-1:])):
            return None
        return _told(entry, path=None if name is None else (name,), old=None, new=None)

    def _pipeline_of(self, change: Change) -> tuple[Link, ...]:
        """Return the link to a run's pipeline, whose owner sees its runs; nothing where it was dropped."""
        pipeline = need(self.scene.view, node_key(change.object_id), zone=self.scene.metalake.id)
        return () if pipeline is None else (Link(pipeline.id, Kind.JOB_TEMPLATE, pipeline.name),)

    def chain(self, node_id: int) -> Chain | None:
        """Return the links from a node up, as they are or as they were left; None when nobody knows any longer."""
        if node_id in self.chains:
            return self.chains[node_id]
        lot, found = self.lots.get(node_id), self.scene.view.get(node_key(node_id))
        if lot is not None and lot.zone != self.scene.zone:
            return None
        if lot is not None and not lot.alive:
            if found is not ABSENT and found is not None:
                raise Outrun
            above, link = self.chain(lot.parent_id), Link(node_id, lot.kind, lot.name)
        elif found is ABSENT:
            raise Cold({node_key(node_id): self.scene.zone})
        elif found is None:
            if lot is not None:
                raise Outrun
            return None
        else:
            above, link = self.chain(found.parent_id), Link(node_id, found.kind, found.name)
        self.chains[node_id] = chain = None if above is None else (link, *above)
        return chain

    def _end(self, change: Change, parent_id: int | None, name: str | None) -> Chain | None:
        """Return the links from one end of a change up; None where it does not tell one."""
        if parent_id is None or name is None:
            return None
        above = self.chain(parent_id)
        return None if above is None else (Link(change.node_id, change.kind, name), *above)

    def _sees(self, chain: Chain) -> bool:
        """Say whether the caller may load what the chain begins with, where it is; asked once for each object."""
        found = self.seen.get(chain[0].id)
        if found is None:
            found = self.seen[chain[0].id] = self.scene.decide(Action.METADATA_LOAD, chain).allowed
        return found

    def _sees_at(self, end: Chain, chain: Chain | None) -> bool:
        """The same for another place than the one where it is."""
        if end == chain:
            return self._sees(end)
        return self.scene.decide_for(self.scene.user, Action.METADATA_LOAD, end).allowed


def path_of(chain: Chain) -> Path:
    """Return the names of a chain from the catalog down."""
    names = tuple([link.name for link in reversed(chain) if link.kind is not Kind.METALAKE])
    return names[-1:] if chain[0].kind.home is Home.METALAKE else names
