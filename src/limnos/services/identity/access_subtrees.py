# SPDX-License-Identifier: Apache-2.0
"""Objects below an object with the facts that access decisions need: owners, grants and read restrictions.

Must not know any wire format. Objects are read in batches, and other requests run between two batches, so a large
subtree is not read from one snapshot. `OBJECTS_MAX` bounds the walk. Afterwards the facts of containers are read again,
so that an object is decided only by facts that are not older than the object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import CONTAINERS
from limnos.model.restrictions import Restriction
from limnos.services.request.context import Context
from limnos.store.identity.access_facts import (
    RuleRow,
    children_read,
    owners_read,
    parents_read,
    restrictions_on_read,
    rules_on_read,
)
from limnos.store.sql import Load

OBJECTS_MAX: Final = 100_000
AT_ONCE: Final = 200
"""The number of objects in one read."""
STATEMENTS_MAX: Final = 50


class SubtreeObject(NamedTuple):
    """An object of a subtree: the object followed by its ancestors up to the metalake, and the id of the object's
    owner.
    """

    chain: SecurableChain
    owner_id: int | None


class _OpenContainer(NamedTuple):
    """A container whose children are not all read: `after` is the name space and name of the last child read."""

    chain: SecurableChain
    after: tuple[str, str] = ("", "")


class SubtreeFacts:
    """Objects of one or more subtrees, with the facts of these objects and of their ancestors.

    `rules` are the grants by object, which are read only if requested. `is_bounded` is true if the walk ended at
    `OBJECTS_MAX`.
    """

    def __init__(self, *, with_rules: bool) -> None:
        self.with_rules = with_rules
        self.objects: list[SubtreeObject] = []
        self.owners: dict[int, int] = {}
        self.rules: dict[int, list[RuleRow]] = {}
        self.restrictions: dict[int, tuple[Restriction, ...]] = {}
        self.is_bounded = False
        self._parents: dict[int, int | None] = {}
        """The parents of the containers at the time of the walk, by id; None for a metalake."""

    def owner_of(self, link: ChainLink) -> int | None:
        """Return the principal id of an object's owner; None if the object has no owner."""
        return self.owners.get(link.id)

    async def walk(self, ctx: Context, roots: Iterable[SecurableChain], *, objects_max: int = OBJECTS_MAX) -> None:
        """Read the root objects and all objects below them, up to `objects_max`, and then the facts of containers
        again.
        """
        await self._walk_down(ctx, list(roots), objects_max=objects_max)
        await self._containers_confirm(ctx)

    async def _walk_down(self, ctx: Context, entry: list[SecurableChain], *, objects_max: int) -> None:
        for chain in entry:
            for depth in range(len(chain)):
                self._add_container(chain[depth:])
        for start in range(0, len(entry), AT_ONCE):
            part = entry[start : start + AT_ONCE]
            await ctx.look_up(partial(self._facts_read, {link.id for chain in part for link in chain if link.id > 0}))
            self.objects += [SubtreeObject(chain, self.owners.get(chain[0].id)) for chain in part]
            await asyncio.sleep(0)
        open_containers = [_OpenContainer(chain) for chain in reversed(entry) if _may_hold(chain[0])]
        while open_containers:
            if len(self.objects) >= objects_max:
                self.is_bounded = True
                return
            await ctx.look_up(partial(self._children_batch_read, open_containers), aside=True)
            await asyncio.sleep(0)

    def _add_container(self, chain: SecurableChain) -> None:
        if _may_hold(chain[0]):
            self._parents[chain[0].id] = chain[1].id if len(chain) > 1 else None

    async def _containers_confirm(self, ctx: Context) -> None:
        """Read the facts of all containers again, and remove the objects below containers that were moved or dropped.

        The containers were read before their children: a container may have had another owner, or another place, when
        a child was created.
        """
        ids, vanished_ids = list(self._parents), set[int]()
        for start in range(0, len(ids), AT_ONCE):
            vanished_ids |= await ctx.look_up(partial(self._containers_read, ids[start : start + AT_ONCE]), aside=True)
            await asyncio.sleep(0)
        if vanished_ids:
            self.objects = [each for each in self.objects if vanished_ids.isdisjoint([link.id for link in each.chain])]

    def _containers_read(self, ids: list[int]) -> Load[set[int]]:
        """Read the facts of containers in place of those that were read before. Returns the ids of containers that were
        moved or dropped.
        """
        current = yield from parents_read(ids)
        for each in ids:
            self.owners.pop(each, None)
            self.restrictions.pop(each, None)
        yield from self._facts_read(ids)
        return {each for each in ids if each not in current or self._parents[each] not in (None, current[each])}

    def _facts_read(self, ids: Collection[int]) -> Load[None]:
        for row in (yield from owners_read(ids)):
            self.owners[row.object_id] = row.principal_id
        yield from self._rules_read(ids)

    def _rules_read(self, ids: Collection[int]) -> Load[None]:
        """Read the restrictions of objects and, if requested, the grants on them, in place of grants that were read
        before.
        """
        self.restrictions |= yield from restrictions_on_read(ids)
        if self.with_rules:
            for each in ids:
                self.rules.pop(each, None)
            for row in (yield from rules_on_read(ids)):
                self.rules.setdefault(row.object_id, []).append(row)

    def _children_batch_read(self, opened: list[_OpenContainer]) -> Load[None]:
        """Read the next batch of children of open containers, about `AT_ONCE` children."""
        children: list[SubtreeObject] = []
        statements = 0
        while opened and len(children) < AT_ONCE and statements < STATEMENTS_MAX:
            position = opened.pop()
            limit = AT_ONCE - len(children)
            rows = yield from children_read(position.chain[0].id, after=position.after, limit=limit)
            statements += 1
            if len(rows) == limit:
                opened.append(_OpenContainer(position.chain, (rows[-1].space, rows[-1].name)))
            for row in rows:
                chain = (ChainLink(row.id, row.kind, row.name), *position.chain)
                children.append(SubtreeObject(chain, row.owner_id))
                if row.owner_id is not None:
                    self.owners[row.id] = row.owner_id
                if _may_hold(chain[0]):
                    opened.append(_OpenContainer(chain))
                    self._add_container(chain)
        if children:
            yield from self._rules_read({each.chain[0].id for each in children})
        self.objects += children


def _may_hold(link: ChainLink) -> bool:
    return link.id > 0 and link.kind in CONTAINERS


def object_path(chain: SecurableChain) -> tuple[str, ...]:
    """Return the path of an object below its metalake, the catalog first; empty for a metalake."""
    return tuple(link.name for link in reversed(chain[:-1]))
