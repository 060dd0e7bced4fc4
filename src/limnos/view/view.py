# SPDX-License-Identifier: Apache-2.0
"""`StoreView`: cached facts, the known revision of each zone, and a ring buffer of recent changes.

Must not know policies or I/O; every method is synchronous. Revisions only advance. A loaded fact is cached only if the
ring buffer has every change since its revision and none of them affects it (rule 3).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from limnos.model.entities import ChangeRow, ClockRow, Listing
from limnos.model.errors import LimnosError
from limnos.model.kinds import SCOPES
from limnos.store.changes import NO_CHANGES, UNKNOWN, GateResult
from limnos.view.facts import OWNED_BY, RANGE_FACTS, WIDE, Value, size_of, touched_keys, touches_value
from limnos.view.keys import ABSENT, AbsentType, Key, Space
from limnos.view.listings import BlockIndex, names_touched, patch_block

V = TypeVar("V")
DerivedValues = dict[object, Any]
"""Values derived from facts. Each key belongs to the code that derived the value, and only that code knows its type."""
RING_MAX: Final = 1024
MEMO_MAX: Final = 100_000
"""The maximum number of entries of a memo. A memo that exceeds it is cleared."""
OFFERED_MAX: Final = 256
"""The maximum number of revisions per zone whose own writes wait until the gate reaches them."""


class BrokenFeed(LimnosError):
    """Raised if a zone's revision advanced without change rows: a program other than this server wrote to the store."""

    code = "broken-feed"


class ZoneState(msgspec.Struct, kw_only=True):
    """The known state of one zone's clock.

    - `outer_revisions`: revisions of the server's and the metalake's clocks, read in the same snapshot (rule 2).
    - `ring`: recent revisions, each with its change rows and the keys that the rows affect.
    - `paths`: resolved names, valid until a name in the zone is removed or changed.
    - `memo`: values derived from access facts, valid until the access revision of this zone or a zone above it changes,
      or a name in this zone is removed or changed.
    - `derived`: values derived from single facts, valid while the view caches the identical facts.
    - `offered`: facts that this node wrote itself, by the revision that wrote them.
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
    """Facts at the known revisions of their zones, within a memory budget.

    `bytes_max` bounds the cached facts, including cached absences. Two generations approximate least-recently-used
    eviction without bookkeeping on a hit. When the young generation reaches half the budget it becomes the old
    generation; a fact that is read from the old generation moves to the young one.
    """

    def __init__(self, *, bytes_max: int = 256 << 20) -> None:
        self.bytes_max = bytes_max
        self.epoch = UNKNOWN
        self.zones: dict[int, ZoneState] = {}
        self.scopes: DerivedValues = {}
        """Values derived only from metalakes and catalogs, valid until one of them changes."""
        self.generation = 0
        self.advances = 0
        """The number of changes of any known revision, those by `reset` included."""
        self._young: dict[Key, Any] = {}
        self._old: dict[Key, Any] = {}
        self._young_bytes = 0
        self._wide: set[Key] = set()
        self._owned: dict[int, set[Key]] = {}
        """Keys of `owned` facts, by zone."""
        self.block_index = BlockIndex()
        self._turn = 0
        self._leases: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key[V]) -> V | AbsentType:
        """Return a fact, or ABSENT if it is not cached."""
        result: V | AbsentType = self._young.get(key, ABSENT)
        if result is ABSENT and (result := self._old.pop(key, ABSENT)) is not ABSENT:
            self._put(key, result)
        return result

    def items(self) -> dict[Key, Value]:
        """Return all cached facts, for tests that compare them with the store."""
        return {**self._old, **self._young}

    def known_revisions(self, zones: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return pairs of a zone and its known revision, in the form of the freshness gate's statement parameters."""
        states = self.zones
        return tuple([(zone, states[zone].revision if zone in states else UNKNOWN) for zone in zones])

    def advance(self, moved: GateResult, read_zones: tuple[tuple[int, int], ...]) -> None:
        """Apply the result of a gate read. `read_zones` has pairs of a zone and its known revision before the read.

        Raises BrokenFeed if change rows are missing.
        """
        if moved is not NO_CHANGES and moved.epoch != self.epoch:
            self.reset(moved.epoch)
        clocks = {clock.zone: clock for clock in moved.clocks}
        zones, revisions = [], []
        for zone, known in read_zones:
            if zone in clocks:
                self._advance_zone(clocks[zone], moved.changes)
            zones.append(zone)
            revisions.append(clocks[zone].revision if zone in clocks else known)
        self._pair(tuple(zones), tuple(revisions))

    def _pair(self, zones: tuple[int, ...], revisions: tuple[int, ...]) -> None:
        """Record, for each zone, the revisions of the zones above it in the same snapshot. Never replaces them by older
        revisions.
        """
        for index in range(1, len(zones)):
            zone = self.zones.get(zones[index])
            if zone is None or revisions[index] < zone.revision:
                continue
            above = revisions[:index]
            zone.outer_revisions = above if len(zone.outer_revisions) != index else max(zone.outer_revisions, above)

    def is_paired(self, zones: tuple[int, ...]) -> bool:
        """Return whether the known revisions of these zones were read in one snapshot (rule 2)."""
        zone_states = self.zones
        try:
            if len(zones) == 3:
                server, metalake = zone_states[zones[0]].revision, zone_states[zones[1]]
                return zone_states[zones[2]].outer_revisions == (
                    server,
                    metalake.revision,
                ) and metalake.outer_revisions == (server,)
            return zones[0] in zone_states and all(
                zone_states[zones[index]].outer_revisions == tuple(zone_states[zone].revision for zone in zones[:index])
                for index in range(1, len(zones))
            )
        except KeyError:
            return False

    def memo(self, zone_id: int) -> DerivedValues:
        """Return the cache of values that are derived from access facts of this zone and the zones above it."""
        memo = self.zones[zone_id].memo
        if len(memo) > MEMO_MAX:
            memo.clear()
        return memo

    def derived_values(self, zone_id: int) -> DerivedValues:
        """Return the cache of values that are derived from single facts of a zone.

        A caller that stores a value here stores its facts too, and compares them by identity before use.
        """
        derived = self.zones[zone_id].derived
        if len(derived) > MEMO_MAX:
            derived.clear()
        return derived

    def paths(self, zone_id: int) -> DerivedValues:
        """Return the cache of a zone's resolved names. It is cleared when a name in the zone is removed or changed."""
        paths = self.zones[zone_id].paths
        if len(paths) > MEMO_MAX:
            paths.clear()
        return paths

    def access_stamps(self, zones: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return pairs of a zone and its known access revision, which identify the policy version of a decision."""
        zone_states = self.zones
        return tuple([(zone, zone_states[zone].access_revision) for zone in zones])

    def _advance_zone(self, clock: ClockRow, changes: tuple[ChangeRow, ...]) -> None:
        zone = self.zones.get(clock.zone)
        if zone is None:
            zone = self.zones[clock.zone] = ZoneState()
        if clock.revision <= zone.revision:
            return  # a late response with older changes is ignored (rule 1)
        self.advances += 1
        if zone.revision == UNKNOWN:
            zone.revision, zone.access_revision = clock.revision, clock.access_revision
            return
        if zone.revision < clock.pruned_to:
            self._restart_at_clock(clock)
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
                    zone.memo.clear()  # the text of a cached refusal contains the old name
                if change.kind in SCOPES:
                    self.scopes.clear()
            zone.ring.append((revision, rows, keys))
        while len(zone.ring) > RING_MAX:
            zone.ring.popleft()
        if zone.access_revision != clock.access_revision:
            self._forget_memos(zone)
        zone.revision, zone.access_revision = clock.revision, clock.access_revision

    def _forget_memos(self, zone: ZoneState) -> None:
        """Clear the derived values of a zone whose access revision changed; for the server or a metalake, those of all
        zones.
        """
        is_catalog = len(zone.outer_revisions) == 2
        for each in (zone,) if is_catalog else self.zones.values():
            each.memo.clear()

    def _take_offered(self, zone: ZoneState, revision: int) -> None:
        """Cache the facts that this node wrote with the revision just applied.

        A later revision that affects them removes them again.
        """
        results = zone.offered.pop(revision, None)
        if results is not None:
            for key, value in results.items():
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
        """Remove the `owned` facts that changes of nodes invalidate."""
        changes = [change for change in rows if change.operation in OWNED_BY and change.zone in self._owned]
        for key in tuple(self._owned.get(changes[0].zone, ())) if changes else ():
            value = self._young.get(key, self._old.get(key, ABSENT))
            if value is ABSENT or any(touches_value(change, key, value) for change in changes):
                self._forget(key)

    def _follow(self, space: Space, rows: list[ChangeRow]) -> None:
        """Apply the changes of one revision to the cached blocks of a listing, in order."""
        if space not in self.block_index:
            return
        for change in rows:
            names = names_touched(change, space)
            keys = (
                self.block_index.keys(space)
                if names is None
                else [self.block_index.find_block(space, name) for name in names]
            )
            for key in keys:
                if key is not None and not (len(rows) == 1 and self._patch(key, change)):
                    self._forget(key)

    def _forget(self, key: Key) -> None:
        if self._young.pop(key, ABSENT) is ABSENT:
            self._old.pop(key, ABSENT)
        self._wide.discard(key)
        if key[0] == "block":
            self.block_index.remove(key)
        elif key[0] == "owned" and key[1] in self._owned:
            self._owned[key[1]].discard(key)

    def _patch(self, key: Key, change: ChangeRow) -> bool:
        """Apply one change to a cached block. Returns False if the block must be read again."""
        facts = self._young if key in self._young else self._old
        block = facts.get(key)
        after = patch_block(block, change, key[1]) if isinstance(block, Listing) else None
        if after is None:
            return False
        facts[key] = after
        return True

    def _restart_at_clock(self, clock: ClockRow) -> None:
        """Remove every fact of every zone and continue from the clock's revision, because change rows that the view
        needs were pruned.
        """
        self.reset(self.epoch)
        self.zones[clock.zone] = ZoneState(revision=clock.revision, access_revision=clock.access_revision)

    def reset(self, epoch: int) -> None:
        """Remove all facts and known revisions: the store has another epoch, or the feed was pruned."""
        self.epoch = epoch
        self.generation += 1
        self.advances += 1
        self.zones = {}
        self.scopes = {}
        self._young, self._old, self._young_bytes = {}, {}, 0
        self._wide = set()
        self._owned = {}
        self.block_index = BlockIndex()

    def merge(self, facts: dict[Key, Value], *, zone_of: dict[Key, int], at: dict[int, int]) -> bool:
        """Add loaded facts, each read at revision `at` of its zone. Returns whether all of them were current.

        If a zone has advanced since, its fact is cached only if the ring buffer has every change since and none affects
        the fact (rule 3). Otherwise it is left out, and a request that needs it loads it again.

        Args:
            facts: The loaded values by key.
            zone_of: The zone of each key.
            at: The revision of each zone in the snapshot of the load.
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
        """Add a fact that this node wrote: immediately if the zone's known revision is at least its revision, else once
        it is.

        Args:
            key: The key of the fact.
            value: The value as written.
            zone: The zone of the write.
            revision: The revision that the write got.
            epoch: The store's epoch when the write was decided. If the epoch has changed, or the zone is not
                known, the call has no effect.
        """
        zone_state = self.zones.get(zone)
        if zone_state is None or epoch != self.epoch:
            return
        if zone_state.revision >= revision:
            self.merge({key: value}, zone_of={key: zone}, at={zone: revision})
            return
        if len(zone_state.offered) >= OFFERED_MAX:
            zone_state.offered.clear()
        of_revision = zone_state.offered.get(revision)
        if of_revision is None:
            zone_state.offered[revision] = {key: value}
        else:
            of_revision[key] = value

    @staticmethod
    def _is_current(zone: ZoneState, key: Key, value: Value, revision: int) -> bool:
        if zone.revision == revision:
            return True
        if zone.revision < revision:
            return False
        later = list(islice(reversed(zone.ring), zone.revision - revision))  # the ring has no gaps, and may be long
        if len(later) != zone.revision - revision:
            return False
        return not any(
            key in keys or (key[0] in RANGE_FACTS and any(touches_value(change, key, value) for change in rows))
            for _, rows, keys in later
        )

    def _put(self, key: Key, value: Value) -> None:
        self._young[key] = value
        self._old.pop(key, ABSENT)  # a load may bring a fact that is cached already: no stale copy may stay in `_old`
        if key[0] in WIDE:
            self._wide.add(key)
        elif key[0] == "block":
            for other in self.block_index.add(key):
                self._forget(other)
        elif key[0] == "owned":
            self._owned.setdefault(key[1], set()).add(key)
        self._young_bytes += size_of(key, value)
        if self._young_bytes > self.bytes_max // 2:
            self._rotate_generations()

    def _rotate_generations(self) -> None:
        """Drop the old generation and make the young generation the old one, unless a lease protects it."""
        if self._leases and min(self._leases) < self._turn:
            return
        for key in self._old:
            if key[0] == "block":
                self.block_index.remove(key)
        self._old, self._young, self._young_bytes = self._young, {}, 0
        for zone in self.zones.values():
            zone.derived.clear()  # it refers to facts that the budget no longer covers
        self._turn += 1

    def lease(self) -> int:
        """Protect all facts that are added from now on from eviction until `release`, even above the memory budget.

        For a request that loads many facts in several rounds. Returns the lease to pass to `release`.
        """
        self._leases[self._turn] = self._leases.get(self._turn, 0) + 1
        return self._turn

    def release(self, lease: int) -> None:
        """End a lease from `lease`, so that its facts can be evicted again."""
        self._leases[lease] -= 1
        if not self._leases[lease]:
            del self._leases[lease]
