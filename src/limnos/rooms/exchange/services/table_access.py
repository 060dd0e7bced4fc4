# SPDX-License-Identifier: Apache-2.0
"""Access of a caller to rows of system tables: decisions on objects of one snapshot, by the facts of that snapshot.

Must not know columns or wire formats. Objects with the same facts share one decision. The ancestors of objects are read
when they are needed, and a bounded number of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from json import dumps
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.decide import is_allowed
from limnos.access.restrictions import binding_restrictions, deny_inherited_on
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node
from limnos.model.kinds import KINDS, Kind
from limnos.model.principals import Subject
from limnos.model.records import CatalogRecord
from limnos.model.restrictions import Restriction
from limnos.rooms.exchange.services.held_snapshots import HeldSnapshot
from limnos.services.identity.access_reach import decisions_for
from limnos.store.exchange import system_tables as statements
from limnos.store.identity.restrictions import OF_ZONES, restriction_of
from limnos.store.objects.node_reads import node_of

CONTAINERS_MAX: Final = 50_000
"""The maximum number of containers whose ancestors are kept."""
RESTRICTIONS_MAX: Final = 2**31 - 1


class Caller(NamedTuple):
    """The caller of a read: the rights in the metalake, the active roles (None for all), whether access control is on,
    and whether the caller may read the audit records of all users.
    """

    metalake: Node
    owner_id: int | None
    subject: Subject
    active: frozenset[str] | None
    is_enforced: bool
    is_auditor: bool


class SnapshotObject(NamedTuple):
    """A node of the snapshot, followed by its ancestors; and the id of its owner."""

    chain: SecurableChain
    owner_id: int | None

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the catalog down; of a metalake object its own name, and of the metalake its name."""
        return tuple([link.name for link in reversed(self.chain[:-1])]) or (self.chain[0].name,)


LevelReader = Callable[[SnapshotObject], tuple[tuple[str, ...], bool]]


class CatalogFacts(NamedTuple):
    """The live catalogs of a metalake in a snapshot, the ids of disabled ones, and restrictions by object."""

    zones: frozenset[int]
    disabled: frozenset[int]
    restrictions: Mapping[int, tuple[Restriction, ...]]


async def catalog_facts(snapshot: HeldSnapshot) -> CatalogFacts:
    """Read the catalogs of a snapshot and all restrictions in them."""
    rows = await snapshot.rows((statements.CATALOGS, {"metalake": snapshot.metalake_id}))
    catalogs = [node_of(row) for row in rows]
    zones = frozenset({snapshot.metalake_id, *(each.id for each in catalogs)})
    disabled = frozenset(
        each.id for each in catalogs if isinstance(each.record, CatalogRecord) and not each.record.in_use
    )
    restrictions: dict[int, tuple[Restriction, ...]] = {}
    for row in await snapshot.rows((OF_ZONES, {"zones": dumps(sorted(zones)), "limit": RESTRICTIONS_MAX})):
        restrictions[row[1]] = (*restrictions.get(row[1], ()), restriction_of(row[1:]))
    return CatalogFacts(zones, disabled, restrictions)


class TableAccess:
    """Decisions for one caller on the objects of one snapshot."""

    def __init__(self, snapshot: HeldSnapshot, caller: Caller, *, catalogs: CatalogFacts) -> None:
        self.snapshot, self.caller, self.catalogs = snapshot, caller, catalogs
        self._restrictions = catalogs.restrictions
        metalake = caller.metalake
        self._top: SecurableChain = (ChainLink(metalake.id, Kind.METALAKE, metalake.name),)
        self._containers: dict[int, SecurableChain] = {}
        self.owners: dict[int, int] = {}
        """The owners of known containers."""
        self.generation = 0
        """The number of times that the known containers were forgotten, and the decisions with them."""
        self._forget()

    def _forget(self) -> None:
        self.generation += 1
        self._containers = {self._top[0].id: self._top}
        self.owners = {} if self.caller.owner_id is None else {self._top[0].id: self.caller.owner_id}
        self._decisions = decisions_for(self.caller.subject, owners=self.owners, restrictions=self._restrictions)
        self._allowed: dict[tuple[Action, object], bool] = {}

    async def objects(self, ids: Collection[int]) -> dict[int, SnapshotObject]:
        """Read live nodes of the metalake by id. Ids of other objects, and of objects below dropped ones, have no
        entry.
        """
        if not ids:
            return {}
        rows = await self.snapshot.rows((statements.OBJECTS, {"ids": dumps(sorted(ids))}))
        return await self.resolve([(row[0], row[1], KINDS[row[2]], row[3], row[4]) for row in rows])

    async def resolve(self, rows: Iterable[tuple[int, int, Kind, str, int | None]]) -> dict[int, SnapshotObject]:
        """Return nodes with their ancestors, from rows of id, parent id, kind, name and owner id."""
        rows = list(rows)
        if len(self._containers) > CONTAINERS_MAX:
            self._forget()
        await self._read_containers({row[1] for row in rows if row[0] != self._top[0].id})
        objects: dict[int, SnapshotObject] = {}
        for node_id, parent_id, kind, name, owner_id in rows:
            if node_id == self._top[0].id:
                objects[node_id] = SnapshotObject(self._top, owner_id)
                continue
            above = self._containers.get(parent_id)
            if above is not None:
                objects[node_id] = SnapshotObject((ChainLink(node_id, kind, name), *above), owner_id)
        return objects

    async def learn_owners(self, ids: Collection[int]) -> dict[int, int]:
        """Read the owners of objects, also of dropped ones, and use them in decisions on objects below.

        Must be called before the decisions on a page: it may forget the owners of earlier pages.
        """
        if len(self.owners) > CONTAINERS_MAX:
            self._forget()
        owners: dict[int, int] = dict(await self.snapshot.rows((statements.OWNERS_AMONG, {"ids": dumps(sorted(ids))})))
        self.owners.update(owners)
        return owners

    async def _read_containers(self, ids: set[int]) -> None:
        """Read containers, and their ancestors level by level, until all are known or missing."""
        rows: dict[int, tuple[int, Kind, str, int | None]] = {}
        missing = {each for each in ids if each not in self._containers}
        while missing:
            part = await self.snapshot.rows((statements.OBJECTS, {"ids": dumps(sorted(missing))}))
            rows |= {row[0]: (row[1], KINDS[row[2]], row[3], row[4]) for row in part}
            missing = {row[1] for row in part if row[1] not in self._containers and row[1] not in rows}
        for each in rows:
            self._add_container(each, rows)

    def _add_container(self, node_id: int, rows: Mapping[int, tuple[int, Kind, str, int | None]]) -> None:
        steps: list[int] = []
        while node_id not in self._containers and node_id in rows and len(steps) <= len(rows):
            steps.append(node_id)
            node_id = rows[node_id][0]
        above = self._containers.get(node_id)
        if above is None:
            return
        for step in reversed(steps):
            _, kind, name, owner_id = rows[step]
            above = self._containers[step] = (ChainLink(step, kind, name), *above)
            if owner_id is not None:
                self.owners[step] = owner_id

    def is_visible(self, target: SnapshotObject) -> bool:
        """Return whether the caller may load a node. Nodes in a disabled catalog are hidden, as in lists."""
        chain = target.chain
        if len(chain) > 2 and chain[-2].id in self.catalogs.disabled:
            return False
        return self.may(Action.METADATA_LOAD, target)

    def may(self, action: Action, target: SnapshotObject) -> bool:
        """Return whether the caller may take an action, which no restriction refuses, on a node."""
        if not self.caller.is_enforced:
            return True
        chain = target.chain
        key = (action, self._decisions.class_of(target))
        cached_decision = self._allowed.get(key)
        if cached_decision is None:
            subject = deny_inherited_on(self.caller.subject, chain, by_object=self._restrictions)
            cached_decision = self._allowed[key] = self._is_allowed(subject, action, target=target)
        return cached_decision

    def _is_allowed(self, subject: Subject, action: Action, *, target: SnapshotObject) -> bool:
        return is_allowed(subject, action, chain=target.chain, owner_of=self._owner_of(target))

    def _owner_of(self, target: SnapshotObject) -> OwnerReader:
        return OwnerReader(self.owners, target)

    def levels_reader(self, subject: Subject) -> LevelReader:
        """Return the function that returns a user's access levels on an object, and whether a restriction applies.

        It is valid as long as `generation` is the same, and the owner of the object must be among `owners`.
        """
        return decisions_for(subject, owners=self.owners, restrictions=self._restrictions).levels

    def is_restricted(self, target: SnapshotObject) -> bool:
        """Return whether a read restriction on a table applies to the caller."""
        if not self.caller.is_enforced or not self._restrictions:
            return False
        owner_of = self._owner_of(target)
        return bool(
            binding_restrictions(
                self.caller.subject,
                target.chain,
                by_object=self._restrictions,
                owner_of=owner_of,
                active=self.caller.active,
            )
        )

    def may_load(self, kind: Kind, object_id: int, *, name: str, owner_id: int | None = None) -> bool:
        """Return whether the caller may load a user, group, role, tag or policy of the metalake."""
        return self.may_load_at((ChainLink(object_id, kind, name), *self._top), owner_id=owner_id)

    def may_load_at(self, chain: SecurableChain, *, owner_id: int | None) -> bool:
        """Return whether the caller may load an object at a path, also at a former one.

        The owners of its ancestors must be known: `learn_owners`.
        """
        target = SnapshotObject(chain, owner_id)
        if chain[0].kind.is_node:
            return self.may(Action.METADATA_LOAD, target)
        # the caller's own groups and roles are known by their ids, so equal facts are not enough for a shared decision
        return not self.caller.is_enforced or self._is_allowed(self.caller.subject, Action.METADATA_LOAD, target=target)


class OwnerReader:
    """The owners of a node and of the containers above it."""

    __slots__ = ("_containers", "_target")

    def __init__(self, containers: Mapping[int, int], target: SnapshotObject) -> None:
        self._containers, self._target = containers, target

    def __call__(self, link: ChainLink) -> int | None:
        """Return the id of the owner of a link's object; None if it has none."""
        return self._target.owner_id if link.id == self._target.chain[0].id else self._containers.get(link.id)
