"""The view: cached facts, what is known of each zone's clock, and the ring of recent changes.

May import `store` and `model`. Synchronous throughout. Changes are applied forward only; a loaded fact enters only if
the ring has every change since its revision and none touches it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from limnos.model.entities import Listing
from limnos.model.errors import LimnosError
from limnos.model.kinds import SCOPES
from limnos.store.changes import NO_CHANGES, UNKNOWN
from limnos.view.facts import OWNED_BY, RANGE_FACTS, WIDE, Value, size_of, touched_keys, touches_value
from limnos.view.keys import ABSENT
from limnos.view.listings import BlockIndex, names_touched, patch_block

if TYPE_CHECKING:
    from limnos.model.entities import ChangeRow, ClockRow
    from limnos.store.changes import GateResult
    from limnos.view.keys import AbsentType, Key, Space

V = TypeVar("V")
DerivedValues = dict[object, Any]
"""What was derived from facts, under keys of whoever derived it, who alone knows its type."""
RING_MAX: Final = 1024
MEMO_MAX: Final = 100_000
"""Entries that a memo may have before it begins afresh."""
OFFERED_MAX: Final = 256
"""Facts of its own that a zone keeps until its gate gets to their revisions."""


class BrokenFeed(LimnosError):
    """A clock moved without the change rows that must come with it: the store was written by something else."""

    code = "broken-feed"


class ZoneState(msgspec.Struct):
    """What the view knows of one clock.

    `outer_revisions` are the revisions of the server's and the metalake's clocks read in the same snapshot (rule 2).
    `paths` remembers what names resolved to until a name is taken away; `memo` remembers what was derived from access
    facts until access moves in this zone or one above it;
    `derived` remembers what was made of single facts, beside those facts: it holds while the view has the very same values;
    `offered` are facts that this node wrote itself, by the revision that wrote them.
    """

    revision: int = UNKNOWN
    access_revision: int = UNKNOWN
    outer_revisions: tuple[int, ...] = ()
    ring: deque[tuple[int, list[ChangeRow], list[Key]]] = msgspec.field(default_factory=deque)
    paths: DerivedValues = msgspec.field(default_factory=dict)
    memo: DerivedValues = msgspec.field(default_factory=dict)
    derived: DerivedValues = msgspec.field(default_factory=dict)
    offered: dict[int, dict[Key, Value]] = msgspec.field(default_factory=dict)


class StoreView:
    """Facts at the known revisions of their zones.

    `bytes_max` bounds what is kept, absences included. Two generations make the least-recently-used order without
    bookkeeping on a hit: when the young one is half the budget it becomes the old one, and what is asked for in the
    old one moves to the young.
    """

    def __init__(self, *, bytes_max: int = 256 << 20) -> None:
        self.bytes_max = bytes_max
        self.epoch = UNKNOWN
        self.zones: dict[int, ZoneState] = {}
        self.scopes: DerivedValues = {}
        """What was derived from metalakes and catalogs alone, until one of them changes."""
        self.generation = 0
        self._young: dict[Key, Any] = {}
        self._old: dict[Key, Any] = {}
        self._young_bytes = 0
        self._wide: set[Key] = set()
        self._owned: dict[int, set[Key]] = {}
        """Facts of where principals own something, by zone."""
        self.shelves = BlockIndex()
        self._turn = 0
        self._leases: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key[V]) -> V | AbsentType:
        """Return a fact, or ABSENT when it is not cached."""
        found: V | AbsentType = self._young.get(key, ABSENT)
        if found is ABSENT and (found := self._old.pop(key, ABSENT)) is not ABSENT:
            self._put(key, found)
        return found

    def items(self) -> dict[Key, Value]:
        """Return all cached facts, for tests that compare them with the store."""
        return {**self._old, **self._young}

    def known(self, zones: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return (zone, known revision) pairs to ask the gate with."""
        found = self.zones
        return tuple([(zone, found[zone].revision if zone in found else UNKNOWN) for zone in zones])

    def advance(self, moved: GateResult, asked: tuple[tuple[int, int], ...]) -> None:
        """Apply what a gate read found for the zones that were asked for, all of one snapshot."""
        if moved is not NO_CHANGES and moved.epoch != self.epoch:
            self.reset(moved.epoch)
        clocks = {clock.zone: clock for clock in moved.clocks}
        zones, revisions = [], []
        for zone, known in asked:
            if zone in clocks:
                self._advance_zone(clocks[zone], moved.changes)
            zones.append(zone)
            revisions.append(clocks[zone].revision if zone in clocks else known)
        self._pair(tuple(zones), tuple(revisions))

    def _pair(self, zones: tuple[int, ...], revisions: tuple[int, ...]) -> None:
        """Remember, for each zone, the revisions of the zones above it in the same snapshot; forward only."""
        for place in range(1, len(zones)):
            zone = self.zones.get(zones[place])
            if zone is None or revisions[place] < zone.revision:
                continue
            above = revisions[:place]
            zone.outer_revisions = above if len(zone.outer_revisions) != place else max(zone.outer_revisions, above)

    def is_paired(self, zones: tuple[int, ...]) -> bool:
        """Say whether everything known of these zones was seen in one snapshot (rule 2)."""
        known = self.zones
        try:
            if len(zones) == 3:
                server, metalake = known[zones[0]].revision, known[zones[1]]
                return known[zones[2]].outer_revisions == (server, metalake.revision) and metalake.outer_revisions == (
                    server,
                )
            return zones[0] in known and all(
                known[zones[place]].outer_revisions == tuple(known[zone].revision for zone in zones[:place])
                for place in range(1, len(zones))
            )
        except KeyError:
            return False

    def memo(self, zone_id: int) -> DerivedValues:
        """Return what was derived from access facts of this zone and those above, and still holds."""
        memo = self.zones[zone_id].memo
        if len(memo) > MEMO_MAX:
            memo.clear()
        return memo

    def derived(self, zone_id: int) -> DerivedValues:
        """Return what was made of single facts of a zone. Whoever keeps something here keeps the facts too, and compares them by identity."""
        derived = self.zones[zone_id].derived
        if len(derived) > MEMO_MAX:
            derived.clear()
        return derived

    def paths(self, zone_id: int) -> DerivedValues:
        """Return what names of a zone resolved to, as far as no name was taken away since."""
        paths = self.zones[zone_id].paths
        if len(paths) > MEMO_MAX:
            paths.clear()
        return paths

    def access_stamps(self, zones: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return (zone, access revision) pairs as they are known now."""
        known = self.zones
        return tuple([(zone, known[zone].access_revision) for zone in zones])

    def _advance_zone(self, clock: ClockRow, changes: tuple[ChangeRow, ...]) -> None:
        zone = self.zones.get(clock.zone)
        if zone is None:
            zone = self.zones[clock.zone] = ZoneState()
        if clock.revision <= zone.revision:
            return  # an older result that lands late changes nothing (rule 1)
        if zone.revision == UNKNOWN:
            zone.revision, zone.access_revision = clock.revision, clock.access_revision
            return
        if zone.revision < clock.pruned_to:
            self._start_afresh(clock)
            return
        self._apply(zone, clock, [change for change in changes if change.zone == clock.zone])

    def _apply(self, zone: ZoneState, clock: ClockRow, changes: list[ChangeRow]) -> None:
        by_revision: dict[int, list[ChangeRow]] = {}
        for change in changes:
            if change.revision > zone.revision:
                by_revision.setdefault(change.revision, []).append(change)
        if len(by_revision) != clock.revision - zone.revision:
            raise BrokenFeed(
                f"Zone {clock.zone} is at revision {clock.revision}, but its feed has gaps: restart the node"
            )
        for revision, rows in sorted(by_revision.items()):
            keys = touched_keys(rows[0]) if len(rows) == 1 else [key for change in rows for key in touched_keys(change)]
            self._drop(keys, rows)
            if zone.offered:
                self._take_offered(zone, revision)
            for change in rows:
                if change.old_name is not None:
                    zone.paths.clear()
                    zone.memo.clear()  # a refusal that is remembered holds the old name in its words
                if change.kind in SCOPES:
                    self.scopes.clear()
            zone.ring.append((revision, rows, keys))
        while len(zone.ring) > RING_MAX:
            zone.ring.popleft()
        if zone.access_revision != clock.access_revision:
            self._forget_memos(zone)
        zone.revision, zone.access_revision = clock.revision, clock.access_revision

    def _forget_memos(self, zone: ZoneState) -> None:
        """Access moved in a zone: forget what was derived there, and below it unless it is a catalog."""
        is_catalog = len(zone.outer_revisions) == 2
        for each in (zone,) if is_catalog else self.zones.values():
            each.memo.clear()

    def _take_offered(self, zone: ZoneState, revision: int) -> None:
        """Keep what this node wrote with the very revision that has just come; a later one that touches it drops it again."""
        found = zone.offered.pop(revision, None)
        if found is not None:
            for key, value in found.items():
                self._put(key, value)

    def _drop(self, keys: list[Key], rows: list[ChangeRow]) -> None:
        young, old = self._young, self._old
        for key in keys:
            if key[0] == "listing":
                self._follow(key[1:], rows)
            if key in young or key in old:
                self._forget(key)
        if self._wide and (people := [change for change in rows if not change.kind.is_node]):
            for key in tuple(self._wide):
                value = self._young.get(key, self._old.get(key, ABSENT))
                if value is ABSENT or any(touches_value(change, key, value) for change in people):
                    self._forget(key)
        if self._owned:
            self._drop_owned(rows)

    def _drop_owned(self, rows: list[ChangeRow]) -> None:
        """Forget where principals own something, as far as changes of nodes touch that."""
        moved = [change for change in rows if change.operation in OWNED_BY and change.zone in self._owned]
        for key in tuple(self._owned.get(moved[0].zone, ())) if moved else ():
            value = self._young.get(key, self._old.get(key, ABSENT))
            if value is ABSENT or any(touches_value(change, key, value) for change in moved):
                self._forget(key)

    def _follow(self, space: Space, rows: list[ChangeRow]) -> None:
        """Let the held blocks of a listing follow what happened in one revision."""
        if space not in self.shelves:
            return
        for change in rows:
            names = names_touched(change, space)
            keys = self.shelves.keys(space) if names is None else [self.shelves.holding(space, name) for name in names]
            for key in keys:
                if key is not None and not (len(rows) == 1 and self._patch(key, change)):
                    self._forget(key)

    def _forget(self, key: Key) -> None:
        if self._young.pop(key, ABSENT) is ABSENT:
            self._old.pop(key, ABSENT)
        self._wide.discard(key)
        if key[0] == "block":
            self.shelves.remove(key)
        elif key[0] == "owned" and key[1] in self._owned:
            self._owned[key[1]].discard(key)

    def _patch(self, key: Key, change: ChangeRow) -> bool:
        """Let a block follow one change; says whether it could."""
        facts = self._young if key in self._young else self._old
        block = facts.get(key)
        after = patch_block(block, change, key[1]) if isinstance(block, Listing) else None
        if after is None:
            return False
        facts[key] = after
        return True

    def _start_afresh(self, clock: ClockRow) -> None:
        """The feed was pruned past what is known: forget every fact, of every zone, and begin at this revision."""
        self.reset(self.epoch)
        self.zones[clock.zone] = ZoneState(clock.revision, clock.access_revision)

    def reset(self, epoch: int) -> None:
        """Forget everything: another epoch of the store, or a feed that was pruned."""
        self.epoch = epoch
        self.generation += 1
        self.zones = {}
        self.scopes = {}
        self._young, self._old, self._young_bytes = {}, {}, 0
        self._wide = set()
        self._owned = {}
        self.shelves = BlockIndex()

    def merge(self, facts: dict[Key, Value], *, zone_of: dict[Key, int], at: dict[int, int]) -> bool:
        """Take loaded facts, each read at its zone's revision `at`; says whether all of them were current.

        A fact whose zone has moved since enters only if the ring has every change since and none touches it
        (rule 3); otherwise it is left out, and whoever wants it reads it again.
        """
        complete = True
        for key, value in facts.items():
            zone = self.zones.get(zone_of[key])
            if zone is None or not self._is_current(zone, key, value, at[zone_of[key]]):
                complete = False
                continue
            self._put(key, value)
        return complete

    def offer(self, key: Key, value: Value, *, zone: int, revision: int, epoch: int) -> None:
        """Take a fact that this node wrote with that revision: now if the zone is known so far, else when its gate gets there.

        `epoch` is the store's when the write was decided on: revisions of another one say nothing here.
        """
        found = self.zones.get(zone)
        if found is None or epoch != self.epoch:
            return
        if found.revision >= revision:
            self.merge({key: value}, zone_of={key: zone}, at={zone: revision})
            return
        if len(found.offered) >= OFFERED_MAX:
            found.offered.clear()
        of_revision = found.offered.get(revision)
        if of_revision is None:
            found.offered[revision] = {key: value}
        else:
            of_revision[key] = value

    @staticmethod
    def _is_current(zone: ZoneState, key: Key, value: Value, revision: int) -> bool:
        if zone.revision == revision:
            return True
        if zone.revision < revision:
            return False
        later = [entry for entry in zone.ring if entry[0] > revision]
        if len(later) != zone.revision - revision:
            return False
        return not any(
            key in keys or (key[0] in RANGE_FACTS and any(touches_value(change, key, value) for change in rows))
            for _, rows, keys in later
        )

    def _put(self, key: Key, value: Value) -> None:
        self._young[key] = value
        self._old.pop(key, ABSENT)  # a load may bring along what is there; what is stale must not stay in the other
        if key[0] in WIDE:
            self._wide.add(key)
        elif key[0] == "block":
            for other in self.shelves.add(key):
                self._forget(other)
        elif key[0] == "owned":
            self._owned.setdefault(key[1], set()).add(key)
        self._young_bytes += size_of(key, value)
        if self._young_bytes > self.bytes_max // 2:
            self._turn_over()

    def _turn_over(self) -> None:
        """Let go of the old generation, unless somebody who is gathering facts may have put some of them there."""
        if self._leases and min(self._leases) < self._turn:
            return
        for key in self._old:
            if key[0] == "block":
                self.shelves.remove(key)
        self._old, self._young, self._young_bytes = self._young, {}, 0
        for zone in self.zones.values():
            zone.derived.clear()  # it holds facts that may not be kept any more
        self._turn += 1

    def lease(self) -> int:
        """Keep every fact that comes from now on until `release`, though it be over the budget: for a request that gathers."""
        self._leases[self._turn] = self._leases.get(self._turn, 0) + 1
        return self._turn

    def release(self, lease: int) -> None:
        """End a lease."""
        self._leases[lease] -= 1
        if not self._leases[lease]:
            del self._leases[lease]
