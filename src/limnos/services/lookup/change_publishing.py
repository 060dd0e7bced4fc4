# SPDX-License-Identifier: Apache-2.0
"""Change publishing: selects the changes of a zone that are visible to a caller, and their names, by the facts of a
current request view, or by those of another reader.

A change is visible to a caller who may load its object at its current path, or, for a dropped object, at its last path.
The old and the new path of a move are each visible to callers who may load the object there. So no caller learns the
name of a hidden container, and callers who saw the object at its old path learn that it moved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, SecurableChain, path_of
from limnos.model.entities import ChangeRow
from limnos.model.kinds import Kind
from limnos.services.request.request_view import RequestView
from limnos.store.activity.feed import FeedEntry, NodePosition
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import ABSENT, node_key, nodes_key

ChangePath = tuple[str, ...]
"""Names from the catalog down; a metalake object (user, group, role or tag) has only its own name."""


class PublishedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change, reduced to the parts visible to a caller; `at` is in milliseconds since 1970.

    `path` is the current path of the object, or its last one before its drop. `old` and `new` are its paths before and
    after the change. Each is None if it is hidden from the caller.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: Kind
    id: int
    path: ChangePath | None
    old: ChangePath | None
    new: ChangePath | None
    actor: str
    request_id: str
    at: int


class ChangesOutdated(Exception):
    """An object was dropped or restored between the read of the changes and the access decisions, so they must be read
    again.
    """


def publish_changes(
    request_view: RequestView, entries: Iterable[FeedEntry], node_positions: Mapping[int, NodePosition]
) -> list[PublishedChange]:
    """Return the changes of a zone that are visible to the caller.

    Raises CacheMiss if a fact is not cached, ChangesOutdated if an object was dropped or restored since `entries` were
    read.
    """
    publisher = _CurrentPublisher(request_view, node_positions)
    cached = tuple(entries)
    publisher.gather(cached)
    return [change for entry in cached if (change := publisher.publish(entry)) is not None]


def publish_dropped_catalog_changes(
    request_view: RequestView, entries: Iterable[FeedEntry], node_positions: Mapping[int, NodePosition]
) -> list[PublishedChange]:
    """Return the changes of a dropped catalog, which are visible only to callers who may alter the metalake.

    The request view is the metalake's, because the catalog no longer exists. Raises CacheMiss if a fact is not cached.
    """
    if not request_view.decide(Action.METALAKE_ALTER, request_view.settled.outer).allowed:
        return []
    return dropped_catalog_changes(entries, node_positions)


def dropped_catalog_changes(
    entries: Iterable[FeedEntry], node_positions: Mapping[int, NodePosition]
) -> list[PublishedChange]:
    """Return the changes of a dropped catalog, for a caller who may alter the metalake."""
    return [
        _published_change(entry, path=_former_parent(entry.change.node_id, node_positions), old=None, new=None)
        for entry in entries
    ]


def _former_parent(node_id: int, node_positions: Mapping[int, NodePosition]) -> ChangePath | None:
    """Return the path that a node had when its catalog was dropped; None if it is unknown."""
    names: list[str] = []
    while (node_position := node_positions.get(node_id)) is not None and node_position.kind is not Kind.METALAKE:
        names.append(node_position.name)
        node_id = node_position.parent_id
    return tuple(reversed(names)) or None


def _published_change(
    entry: FeedEntry, *, path: ChangePath | None, old: ChangePath | None, new: ChangePath | None
) -> PublishedChange:
    change = entry.change
    return PublishedChange(
        zone=change.zone,
        revision=change.revision,
        ordinal=change.ordinal,
        operation=change.operation,
        kind=change.kind,
        id=change.node_id,
        path=path,
        old=old,
        new=new,
        actor=entry.actor,
        request_id=entry.request_id,
        at=entry.at,
    )


class ChangePublisher(ABC):
    """Selects the changes of one zone that are visible to one caller, by the facts that a subclass reads.

    Caches the access decision of each object. Must get the ancestors of the zone: the chain of the catalog or metalake.
    """

    def __init__(self, outer: SecurableChain, node_positions: Mapping[int, NodePosition]) -> None:
        self.node_positions = node_positions
        self.chains: dict[int, SecurableChain | None] = {outer[0].id: outer, outer[-1].id: outer[-1:]}
        self._metalake = outer[-1:]
        self._seen: dict[int, bool] = {}

    @abstractmethod
    def chain(self, node_id: int) -> SecurableChain | None:
        """Return the chain of a node and its ancestors: the current chain, or for a dropped node its last one.

        None if an ancestor is not in the store any more.
        """

    @abstractmethod
    def may_load(self, chain: SecurableChain) -> bool:
        """Return whether the caller may load the first object of `chain` at its current path."""

    @abstractmethod
    def may_load_at(self, chain: SecurableChain) -> bool:
        """Return whether the caller may load an object at an old or new path, which may differ from its current one."""

    @abstractmethod
    def pipeline_of(self, change: ChangeRow) -> tuple[ChainLink, ...]:
        """Return the link to a run's pipeline, whose owner may see its runs; empty if the pipeline was dropped."""

    def publish(self, entry: FeedEntry) -> PublishedChange | None:
        """Return the parts of a change that are visible to the caller; None if all parts are hidden."""
        change = entry.change
        if not change.kind.is_node:
            return self._publish_without_node(entry)
        chain = self.chain(change.node_id)
        old = self._end(change, change.old_parent, name=change.old_name)
        new = self._end(change, change.new_parent, name=change.new_name)
        is_reported = chain is not None and self._is_visible(chain)
        was = old is not None and change.new_name is not None and self._is_visible_at(old, chain)
        if chain is None and old is not None and change.old_name is not None:
            was = self._is_visible_at(old, chain)
        if not is_reported and not was:
            return None
        return _published_change(
            entry,
            path=path_of(chain) if is_reported and chain is not None else None,
            old=path_of(old) if old is not None and self._is_visible_at(old, chain) else None,
            new=path_of(new) if new is not None and is_reported and self._is_visible_at(new, chain) else None,
        )

    def _publish_without_node(self, entry: FeedEntry) -> PublishedChange | None:
        """Return a change of an object without a node (user, group, role or run), whose name never changes; None if it
        is hidden from the caller.
        """
        change = entry.change
        name = change.only_name
        above = self.pipeline_of(change) if change.kind is Kind.JOB else ()
        if not self._is_visible((ChainLink(change.node_id, change.kind, name or ""), *above, *self._metalake)):
            return None
        return _published_change(entry, path=None if name is None else (name,), old=None, new=None)

    def _end(self, change: ChangeRow, parent_id: int | None, *, name: str | None) -> SecurableChain | None:
        """Return the chain of a changed object at its old or its new path; None if the change has no such path, or an
        ancestor is not in the store any more.
        """
        if parent_id is None or name is None:
            return None
        above = self.chain(parent_id)
        return None if above is None else (ChainLink(change.node_id, change.kind, name), *above)

    def _is_visible(self, chain: SecurableChain) -> bool:
        """Return whether the caller may load the first object of `chain` at its current path. Cached by object."""
        is_found = self._seen.get(chain[0].id)
        if is_found is None:
            is_found = self._seen[chain[0].id] = self.may_load(chain)
        return is_found

    def _is_visible_at(self, end: SecurableChain, chain: SecurableChain | None) -> bool:
        return self._is_visible(end) if end == chain else self.may_load_at(end)


class _CurrentPublisher(ChangePublisher):
    """Selects changes by the facts of a current request view, for its caller."""

    def __init__(self, request_view: RequestView, node_positions: Mapping[int, NodePosition]) -> None:
        super().__init__(request_view.settled.outer, node_positions)
        self.request_view = request_view

    def gather(self, entries: tuple[FeedEntry, ...]) -> None:
        """Raise one CacheMiss for all nodes that the view lacks, so that one statement reads them."""
        zone, requested = self.request_view.zone, set[int]()
        for entry in entries:
            change = entry.change
            ids = (change.node_id, change.old_parent, change.new_parent) if change.kind.is_node else ()
            requested.update(
                i for i in ids if i is not None and i in self.node_positions and self.node_positions[i].zone == zone
            )
        missing = [i for i in requested - self.chains.keys() if self.request_view.view.get(node_key(i)) is ABSENT]
        if missing:
            raise CacheMiss({nodes_key(zone, tuple(sorted(missing))): zone})

    def pipeline_of(self, change: ChangeRow) -> tuple[ChainLink, ...]:
        """Return the link to a run's pipeline; empty if the pipeline was dropped. Raises CacheMiss."""
        pipeline = require_fact(self.request_view.view, node_key(change.object_id), zone=self.request_view.metalake.id)
        return () if pipeline is None else (ChainLink(pipeline.id, Kind.JOB_TEMPLATE, pipeline.name),)

    def chain(self, node_id: int) -> SecurableChain | None:
        """Return the chain of a node. Raises CacheMiss, and ChangesOutdated if the object was dropped or restored since
        its position was read.
        """
        if node_id in self.chains:
            return self.chains[node_id]
        node_position, result = self.node_positions.get(node_id), self.request_view.view.get(node_key(node_id))
        if node_position is not None and node_position.zone != self.request_view.zone:
            return None
        if node_position is not None and not node_position.alive:
            if result is not ABSENT and result is not None:
                raise ChangesOutdated
            above, link = (
                self.chain(node_position.parent_id),
                ChainLink(node_id, node_position.kind, node_position.name),
            )
        elif result is ABSENT:
            raise CacheMiss({node_key(node_id): self.request_view.zone})
        elif result is None:
            if node_position is not None:
                raise ChangesOutdated
            return None
        else:
            above, link = self.chain(result.parent_id), ChainLink(node_id, result.kind, result.name)
        self.chains[node_id] = chain = None if above is None else (link, *above)
        return chain

    def may_load(self, chain: SecurableChain) -> bool:
        """Decide for the caller. The request view caches the decision."""
        return self.request_view.decide(Action.METADATA_LOAD, chain).allowed

    def may_load_at(self, chain: SecurableChain) -> bool:
        """Decide for the caller, without caching: the cache is by object, and the object may be elsewhere now."""
        return self.request_view.decide_for(self.request_view.user, Action.METADATA_LOAD, chain).allowed
