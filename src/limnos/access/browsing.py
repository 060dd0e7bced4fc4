# SPDX-License-Identifier: Apache-2.0
"""Browse paths: the namespaces and catalogs that a list shows because the caller may use something below them.

Decides no access to the objects themselves (decision record 0132). An *entry* is a namespace, or the namespace of an
object, that the caller owns or may see. A caller may see it if a role allows a privilege that makes objects visible in
lists, and no role denies it above. The browse paths of a catalog are its entries, all namespaces above them, and the
catalog. They are cached with the facts of the catalog's zone until a change touches one of their nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from limnos.access.actions import actions_named
from limnos.access.policy import ITEMS, POLICY
from limnos.access.rules import PrivilegeRule
from limnos.model.decisions import SecurableChain
from limnos.model.entities import ChangeRow
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.model.principals import MergedRules, Subject
from limnos.model.privileges import Privilege
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import ABSENT, Key, containers_key, node_key, nodes_key, owned_key, zones_of_key
from limnos.view.view import StoreView, ZoneState

LISTED_IN_CATALOGS: Final = tuple(
    action for action in actions_named("list", Kind.NAMESPACE, *NAMESPACE_OBJECTS).values() if action in ITEMS
)
SHOWING: Final = tuple(
    sorted(
        {
            leaf.privilege
            for action in LISTED_IN_CATALOGS
            if ITEMS[action] in POLICY  # if a rule is missing, tests/house/test_kinds.py fails and names the action
            for leaf in POLICY[ITEMS[action]].leaves()
            if isinstance(leaf, PrivilegeRule)
        }
    )
)
"""Privileges that make an object visible in the lists of a catalog."""
READ_MAX: Final = 1_000
"""The maximum number of nodes per read. Other requests run between two reads."""
WORK_MAX: Final = 5_000
"""The number of objects with grants that are examined before other requests run: a few milliseconds of work."""
ZONES_MAX: Final = 1_000_000
"""The maximum number of objects with grants whose zones are cached per metalake."""
_NONE: Final[frozenset[Privilege]] = frozenset()
_stamps = itertools.count(1)


class BrowsePaths:
    """The namespaces of a catalog whose names are visible to a subject. Unless empty, `ids` includes the id of the
    catalog.

    Two values with different `ids` have different `stamp`s.
    """

    def __init__(self, ids: frozenset[int] = frozenset(), *, stamp: int = 0) -> None:
        self.ids = ids
        self.stamp = stamp


NO_PATHS: Final = BrowsePaths()


def browse_paths(view: StoreView, subject: Subject, *, outer: SecurableChain, narrowed: bool = False) -> BrowsePaths:
    """Return the browse paths of a catalog for a subject.

    Args:
        view: Must be up to date in the zones of the catalog and its metalake.
        subject: The user who lists.
        outer: The catalog, then its metalake.
        narrowed: Whether only some of the subject's roles are active in this request.

    Raises:
        CacheMiss: Facts are not cached, or the work is paused so that other requests can run.
    """
    denied = subject.deny_ids.get(Privilege.USE_CATALOG, frozenset())
    if not subject.member or outer[0].id <= 0 or any(link.id in denied for link in outer):
        return NO_PATHS
    catalog_id, metalake_id = outer[0].id, outer[-1].id
    derived = view.derived_values(catalog_id)
    key = ("paths", subject.user_id, narrowed)
    builder: _BrowsePathBuilder | None = derived.get(key)
    if builder is None or not builder.holds(view.zones[catalog_id], subject):
        if builder is None:
            require_containers(view, subject, metalake_id=metalake_id, narrowed=narrowed)
        objects = _objects_in(view, subject, metalake_id=metalake_id, narrowed=narrowed).get(catalog_id, [])
        before = NO_PATHS if builder is None else builder.paths or builder.before
        builder = derived[key] = _BrowsePathBuilder(
            view.zones[catalog_id], subject, outer=outer, objects=objects, before=before
        )
    return builder.build(view)


def require_containers(view: StoreView, subject: Subject, *, metalake_id: int, narrowed: bool) -> None:
    """Raise CacheMiss unless the facts for the browse paths of all catalogs were loaded for a subject.

    One statement reads them all. Later changes, and what is too much for one statement, are read fact by fact.
    """
    objects = _rule_objects(view, subject, metalake_id=metalake_id, narrowed=narrowed)
    key = objects.containers_key(subject, metalake_id)
    if key is not None and view.get(key) is ABSENT:
        raise CacheMiss({key: metalake_id})


def _rule_objects(view: StoreView, subject: Subject, *, metalake_id: int, narrowed: bool) -> _RuleObjects:
    """Return the objects on which a subject's roles allow a privilege, as far as they are assigned to zones."""
    derived = view.derived_values(metalake_id)
    key = ("objects of rules", subject.user_id, narrowed)
    objects: _RuleObjects | None = derived.get(key)
    if objects is None or objects.merged is not subject.merged:
        objects = derived[key] = _RuleObjects(subject)
    return objects


def _objects_in(view: StoreView, subject: Subject, *, metalake_id: int, narrowed: bool) -> dict[int, list[int]]:
    """Return the ids of the objects on which a subject's roles allow a privilege, by zone.

    Raises CacheMiss for one part of the objects at a time.
    """
    derived = view.derived_values(metalake_id)
    objects = _rule_objects(view, subject, metalake_id=metalake_id, narrowed=narrowed)
    zones: dict[int, int] = derived.setdefault("zones of objects", {})
    if len(zones) > ZONES_MAX:
        zones.clear()
    return objects.sort(view, zones, metalake_id=metalake_id)


class _RuleObjects:
    """Objects on which a subject's roles allow a privilege, assigned to their zones in steps."""

    def __init__(self, subject: Subject) -> None:
        sets = [subject.allow_ids[each] for each in SHOWING if each in subject.allow_ids]
        self.merged: MergedRules | None = subject.merged
        self._ids = sorted(frozenset().union(*sets))
        self._place = 0
        self._by_zone: dict[int, list[int]] = {}

    def containers_key(self, subject: Subject, metalake_id: int) -> Key[bool] | None:
        """Return the key of the request for all catalogs with these objects; None if they are too many for one."""
        if len(self._ids) > READ_MAX:
            return None
        return containers_key(metalake_id, tuple(sorted(subject.principal_ids)), node_ids=tuple(self._ids))

    def sort(self, view: StoreView, zones: dict[int, int], *, metalake_id: int) -> dict[int, list[int]]:
        """Assign the next objects to their zones; return all ids by zone once no object is left.

        A node never changes its zone, so all users of the metalake share `zones`. Zone 0 stands for an object that is
        not a node. Raises CacheMiss if the zones of further objects must be loaded.
        """
        while self._place < len(self._ids):
            part = self._ids[self._place : self._place + READ_MAX]
            unknown_ids = tuple([object_id for object_id in part if object_id not in zones])
            if unknown_ids:
                key = zones_of_key(unknown_ids)
                results = view.get(key)
                if results is ABSENT:
                    raise CacheMiss({key: metalake_id}, goes_on=self._place + READ_MAX < len(self._ids))
                for object_id in unknown_ids:
                    zones[object_id] = results.get(object_id, 0)
            for object_id in part:
                self._by_zone.setdefault(zones[object_id], []).append(object_id)
            self._place += len(part)
        return self._by_zone


class _BrowsePathBuilder:
    """Computes browse paths in steps, and then checks which changes invalidate them."""

    def __init__(
        self, zone: ZoneState, subject: Subject, *, outer: SecurableChain, objects: list[int], before: BrowsePaths
    ) -> None:
        self.zone = zone
        self.revision = zone.revision
        self.subject = subject
        self.catalog_id, self.metalake_id = outer[0].id, outer[-1].id
        self.objects = objects
        self.known = frozenset(objects)
        self.before = before
        self.paths: BrowsePaths | None = None
        self.parents: frozenset[int] | None = None
        """Parents of owned objects that are not namespaces; None until they are read."""
        self.namespaces: frozenset[int] = frozenset()
        """Owned namespaces."""
        self._place = 0
        self._entries: set[int] = set()
        self._above: dict[int, int] = {}
        self._barring = tuple([each for each in SHOWING if each in subject.deny_ids])
        outer_denials = self._denials_on([link.id for link in outer], _NONE)
        self._denied: dict[int, frozenset[Privilege] | None] = {self.catalog_id: outer_denials}
        """For each namespace: the privileges denied on it or above it; None if the namespace does not exist."""

    # -- validity --------------------------------------------------------------------------------------------

    def holds(self, zone: ZoneState, subject: Subject) -> bool:
        """Return whether the paths are valid at the zone's revision, and record that revision if they are."""
        if (
            zone is not self.zone
            or subject.merged is not self.subject.merged
            or subject.principal_ids != self.subject.principal_ids
        ):
            return False
        if zone.revision == self.revision:
            return True
        later = list(itertools.takewhile(lambda entry: entry[0] > self.revision, reversed(zone.ring)))
        if len(later) != zone.revision - self.revision:
            return False
        if any(self._is_touched(change) for _, rows, _ in later for change in rows):
            return False
        self.revision = zone.revision
        return True

    def _is_touched(self, change: ChangeRow) -> bool:
        operation, kind = change.operation, change.kind
        if operation not in ("create", "drop", "move", "own", "undrop") or not kind.is_node:
            return False
        parents: frozenset[int] = self.parents or frozenset()
        if change.owner_id in self.subject.principal_ids:
            return kind is Kind.NAMESPACE or operation != "create" or change.new_parent not in parents
        if operation != "create" and change.old_parent != change.new_parent:
            node_id = change.node_id
            if node_id in self.known or node_id in self._denied or node_id in self.namespaces:
                return True
            return kind is not Kind.NAMESPACE and change.old_parent in parents
        return False

    # -- computation -----------------------------------------------------------------------------------------

    def build(self, view: StoreView) -> BrowsePaths:
        """Compute the next part of the browse paths; return them once complete. Raises CacheMiss if facts must be
        loaded.
        """
        if self.paths is None:
            if self.parents is None:
                self._read_owned(view)
            self._add_objects(view)
            self._add_owned(view)
            ids = self._with_ancestors()
            self.paths = self.before if ids == self.before.ids else BrowsePaths(ids, stamp=next(_stamps))
            self.before = NO_PATHS
        return self.paths

    def _read_owned(self, view: StoreView) -> None:
        parents: set[int] = set()
        namespaces: set[int] = set()
        requested: dict[Key, int] = {}
        goes_on = False
        for principal_id in self.subject.principal_ids:
            after: int | None = 0
            while after is not None:
                key = owned_key(self.catalog_id, principal_id, after=after)
                part = view.get(key)
                if part is ABSENT:
                    requested[key] = self.catalog_id
                    break
                goes_on = True  # what is read already is one part of a long read
                parents |= part.parents
                namespaces |= part.namespaces
                after = part.last
        if requested:
            raise CacheMiss(requested, goes_on=goes_on)
        self.parents, self.namespaces = frozenset(parents), frozenset(namespaces)

    def _add_objects(self, view: StoreView) -> None:
        done = 0
        while self._place < len(self.objects):
            if done >= WORK_MAX:
                raise CacheMiss({zones_of_key(()): self.metalake_id}, goes_on=True)
            part = self.objects[self._place : self._place + READ_MAX]
            self._gather(view, part, goes_on=self._place + READ_MAX < len(self.objects))
            for object_id in part:
                self._add_entry_of(view, object_id)
            self._place += len(part)
            done += len(part)

    def _add_entry_of(self, view: StoreView, object_id: int) -> None:
        node = require_fact(view, node_key(object_id), zone=self.catalog_id)
        if node is None:
            return
        entry = object_id if node.kind is Kind.NAMESPACE else node.parent_id
        denied = self._denials_at(view, entry)
        if denied is None or Privilege.USE_SCHEMA in denied:
            return
        allow, deny = self.subject.allow_ids, self.subject.deny_ids
        if any(
            object_id in allow.get(each, ()) and object_id not in deny.get(each, ())
            for each in SHOWING
            if each not in denied
        ):
            self._entries.add(entry)

    def _add_owned(self, view: StoreView) -> None:
        namespace_ids = sorted(self.namespaces.union(self.parents or ()) - {self.catalog_id})
        for begin in range(0, len(namespace_ids), READ_MAX):
            self._gather(view, namespace_ids[begin : begin + READ_MAX], goes_on=begin + READ_MAX < len(namespace_ids))
        for namespace_id in self.namespaces:
            if self._denials_at(view, namespace_id) is not None:
                self._entries.add(namespace_id)
        for parent_id in self.parents or ():
            denied = self._denials_at(view, parent_id)
            if denied is not None and Privilege.USE_SCHEMA not in denied:
                self._entries.add(parent_id)

    def _gather(self, view: StoreView, ids: Iterable[int], *, goes_on: bool) -> None:
        absent_ids = [each for each in ids if each not in self._denied and view.get(node_key(each)) is ABSENT]
        if absent_ids:
            raise CacheMiss({nodes_key(self.catalog_id, tuple(absent_ids)): self.catalog_id}, goes_on=goes_on)

    def _denials_at(self, view: StoreView, namespace_id: int) -> frozenset[Privilege] | None:
        """Return the privileges denied on a namespace or its ancestors; None if the namespace does not exist.

        Raises CacheMiss if an ancestor is not cached.
        """
        steps: list[int] = []
        at = namespace_id
        while at not in self._denied:
            node = view.get(node_key(at))
            if node is ABSENT:
                raise CacheMiss({nodes_key(self.catalog_id, (at,)): self.catalog_id})
            if node is None:
                self._denied[at] = None
                break
            steps.append(at)
            self._above[at] = node.parent_id
            at = node.parent_id
        denied = self._denied[at]
        for step in reversed(steps):
            self._denied[step] = denied = None if denied is None else self._denials_on((step,), denied)
        return denied

    def _denials_on(self, ids: Iterable[int], denied: frozenset[Privilege]) -> frozenset[Privilege]:
        if not self._barring:
            return denied
        deny = self.subject.deny_ids
        return denied.union(each for each in self._barring if not deny[each].isdisjoint(ids))

    def _with_ancestors(self) -> frozenset[int]:
        """Return the ids of the entries and their ancestors, up to the catalog."""
        results: set[int] = set()
        for entry in self._entries:
            at = entry
            while at not in results:
                results.add(at)
                if at == self.catalog_id:
                    break
                at = self._above[at]
        return frozenset(results)
