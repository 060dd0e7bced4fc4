# SPDX-License-Identifier: Apache-2.0
"""Transaction view: a request view that includes the effects of a transaction's earlier operations.

Writes nothing: it records the effects of each operation, so that the next operation is decided as if they were separate
sequential requests. A created object has a temporary id until the store gives it an id.
"""

from __future__ import annotations

from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import BLANK_TABLE, NodeRecord
from limnos.names.path import Levels
from limnos.services.request.caller_view import CallerView
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import ABSENT, name_key, node_key, path_key

NEW_ID = 1 << 62
"""The first temporary id of objects that a transaction creates; stores never assign ids this large."""


def is_new(node_id: int) -> bool:
    """Return whether an id is temporary: the transaction itself creates the object."""
    return node_id >= NEW_ID


class TransactionView(RequestView):
    """A request view of the same snapshot and caller, with the recorded effects of the transaction's earlier
    operations.
    """

    __slots__ = ("_changed", "_names", "_next_id", "_nodes", "_registered")

    def __init__(self, request_view: RequestView, *, first_id: int = NEW_ID) -> None:
        # no super: copies the whole state of the other request view
        for slot in (*CallerView.__slots__, *RequestView.__slots__):
            setattr(self, slot, getattr(request_view, slot))
        self._names: dict[tuple[int, str, str], int | None] = {}
        self._nodes: dict[int, Node] = {}
        self._changed: set[int] = set()
        self._registered: set[int] = set()
        self._next_id = first_id

    def find(self, levels: Levels, kind: Kind) -> tuple[Node | None, SecurableChain]:
        """Resolve the name of an object of the catalog, with the recorded effects applied."""
        if not self._names or self._missing is not None:
            return super().find(levels, kind)
        namespace, last = self.space(Kind.NAMESPACE), len(levels) - 1
        steps = tuple((namespace if i < last else self.space(kind), name) for i, name in enumerate(levels))
        parent = self.catalog.id
        links: list[ChainLink] = []
        for i, (space, name) in enumerate(steps):
            node_id = self._id_of(parent, space, name)
            if node_id is ABSENT:
                raise CacheMiss({path_key(parent, steps[i:]): self.zone})
            if node_id is None or ((i < last or kind is Kind.NAMESPACE) and self._is_leaf(cast("int", node_id), space)):
                links += [ChainLink.absent(Kind.NAMESPACE, missing) for missing in levels[i:last]]
                return None, (*reversed(links), *self.settled.outer)
            parent = cast("int", node_id)
            links.append(ChainLink(parent, kind if i == last else Kind.NAMESPACE, name))
        return self.node(parent), (*reversed(links), *self.settled.outer)

    def _id_of(self, parent: int, space: str, name: str) -> object:
        noted = self._names.get((parent, space, name), ABSENT)
        if noted is not ABSENT:
            return noted
        return None if is_new(parent) else self.view.get(name_key(parent, space, name))

    def is_taken(self, parent_id: int, kind: Kind, name: str) -> bool:
        """Return whether a name is taken after the recorded effects. A name that is not cached counts as free."""
        return isinstance(self._id_of(parent_id, self.space(kind), name), int)

    def holder_of(self, parent_id: int, kind: Kind, name: str) -> Kind | None:
        """Return the kind of the object that has a name after the recorded effects; None if it is free or not
        cached.
        """
        node_id = self._id_of(parent_id, self.space(kind), name)
        if not isinstance(node_id, int):
            return None
        node = self._nodes.get(node_id) or self.view.get(node_key(node_id))
        return node.kind if isinstance(node, Node) else None

    def node(self, node_id: int) -> Node:
        """Return a node by its id, with the recorded effects applied."""
        node = self._nodes.get(node_id)
        return super().node(node_id) if node is None else node

    def owner_of(self, link: ChainLink) -> int | None:
        """Return the id of an object's owner. The caller owns objects that the transaction creates."""
        return self.maker_id if is_new(link.id) else super().owner_of(link)

    def decide(self, action: Action, chain: SecurableChain) -> Decision:
        """Decide on an action. After the first recorded effect the cache is bypassed, because cached decisions ignore
        effects.
        """
        if not self._names:
            return super().decide(action, chain)
        return self.decide_for(self.user, action, chain)

    def note_made(
        self, kind: Kind, *, parent_id: int, name: str, record: NodeRecord = BLANK_TABLE, table_format: str = ICEBERG
    ) -> Node:
        """Record that an object is created, and return its node under a temporary id."""
        node_id = self._next_id
        self._next_id += 1
        space = self.space(kind)
        node_format = "" if kind is Kind.NAMESPACE else table_format
        node = Node(
            id=node_id,
            zone=self.zone,
            parent_id=parent_id,
            kind=kind,
            name_space=space,
            name=name,
            format=node_format,
            implicit=False,
            created_by=self.user,
            created_at=0,
            modified_by=None,
            modified_at=None,
            revision=0,
            record=record,
        )
        self._nodes[node_id] = node
        self._names[parent_id, space, name] = node_id
        return node

    def note_changed(self, node: Node) -> None:
        """Record that a table or view gets new metadata."""
        self._changed.add(node.id)

    def is_touched(self, node: Node) -> bool:
        """Return whether the transaction creates the object, or changes its metadata."""
        return is_new(node.id) or node.id in self._changed

    def note_registered(self, node: Node) -> None:
        """Record that a table is created from an existing metadata file."""
        self._registered.add(node.id)

    def is_registered(self, node: Node) -> bool:
        """Return whether the transaction creates the table from an existing metadata file."""
        return node.id in self._registered

    def note_dropped(self, node: Node) -> None:
        """Record that an object is dropped, which frees its name."""
        self._names[node.parent_id, node.name_space, node.name] = None

    def note_moved(self, node: Node, *, parent_id: int, name: str) -> None:
        """Record that an object moves, with all objects in it."""
        self.note_dropped(node)
        self._nodes[node.id] = msgspec.structs.replace(node, parent_id=parent_id, name=name)
        self._names[parent_id, node.name_space, name] = node.id
