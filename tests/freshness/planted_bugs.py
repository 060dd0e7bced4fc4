# SPDX-License-Identifier: Apache-2.0
"""Planted bugs: each removes one safeguard of the freshness protocol, and an invariant must then fail.

The names are those of the variations of the model that checks the protocol exhaustively at small scope.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from limnos.access.subjects import subject_of
from limnos.model.entities import ChangeRow, ClockRow, Node
from limnos.model.errors import StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.services.request import caller_view, request_scope
from limnos.store import tx
from limnos.store.activity import upkeep
from limnos.store.backends import sqlite
from limnos.store.changes import ChangeDraft
from limnos.store.interface import KnownRevisions
from limnos.store.objects import nodes
from limnos.store.sql import Load, Sql
from limnos.view import facts, view
from limnos.view.view import UNKNOWN, StoreView, ZoneState
from tests.freshness.harness import LateStore

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
WIDE: dict[str, Plant] = {}
"""Bugs that sequences with all kinds of mutations detect."""
FOCUS: dict[str, Plant] = {}
"""Bugs that only sequences concentrated on a few tables detect."""


def plant(bug: Plant) -> Plant:
    """Register a bug under its function's name."""
    WIDE[bug.__name__.replace("_", " ")] = bug
    return bug


def plant_in_crowd(bug: Plant) -> Plant:
    """Register a bug in the list of bugs that only focused sequences reveal."""
    FOCUS[bug.__name__.replace("_", " ")] = bug
    return bug


# ------------------------------------------------------------------------------ keys that a change touches


def _touch_less(patch: Patch, is_left: Callable[[ChangeRow, facts.Key], bool]) -> None:
    """Remove some keys from the keys that changes touch."""
    real = facts.touched_keys
    patch.setattr(view, "touched_keys", lambda change: [key for key in real(change) if not is_left(change, key)])


def _names(change: ChangeRow, parent: int | None, name: str | None, key: facts.Key) -> bool:
    return change.kind < Kind.USER and key[0] == "name" and key[1:] == (parent, change.name_space, name)


@plant
def names_not_touched(patch: Patch) -> None:
    """A change evicts no cached name."""
    _touch_less(patch, lambda change, key: key[0] == "name")


@plant
def old_name_not_touched(patch: Patch) -> None:
    """A renamed object is still found under its old name."""
    _touch_less(patch, lambda change, key: _names(change, change.old_parent, change.old_name, key))


@plant
def new_name_not_touched(patch: Patch) -> None:
    """The absence of the new name stays cached."""
    _touch_less(patch, lambda change, key: _names(change, change.new_parent, change.new_name, key))


@plant
def owner_not_touched(patch: Patch) -> None:
    """A change of owner does not evict the cached owner."""
    _touch_less(patch, lambda change, key: key[0] == "owner" and change.operation == "own")


@plant
def rules_not_touched(patch: Patch) -> None:
    """A grant or revoke does not evict the role's cached rules."""
    _touch_less(patch, lambda change, key: key[0] == "rules" and change.operation == "alter")


@plant
def roles_of_a_principal_not_touched(patch: Patch) -> None:
    """Granting or revoking a role does not evict the user's cached roles."""
    _touch_less(patch, lambda change, key: key[0] == "roles")


@plant
def memberships_not_touched(patch: Patch) -> None:
    """A change of a group's members does not evict the user's cached groups."""
    _touch_less(patch, lambda change, key: key[0] == "groups")


@plant
def dropped_roles_stay_held(patch: Patch) -> None:
    """Cached facts that name a dropped role, group or user among others are not evicted."""
    patch.setattr(view, "touches_value", lambda change, key, value: False)


@plant
def user_state_not_touched(patch: Patch) -> None:
    """A disabled user stays cached as enabled."""
    _touch_less(patch, lambda change, key: key[0] == "principal" and change.operation == "alter")


@plant
def tokens_not_touched(patch: Patch) -> None:
    """A revoked token stays cached as valid."""
    _touch_less(patch, lambda change, key: key[0] == "token")


@plant
def listings_not_touched(patch: Patch) -> None:
    """A listing keeps dropped objects and lacks new ones."""
    _touch_less(patch, lambda change, key: key[0] == "listing")


@plant
def documents_not_touched(patch: Patch) -> None:
    """A commit does not evict the cached document."""
    _touch_less(patch, lambda change, key: key[0] == "document")


@plant
def memos_not_forgotten(patch: Patch) -> None:
    """Cached decisions are not evicted after the access revision moved."""
    patch.setattr(StoreView, "_forget_memos", lambda self, zone: None)


@plant
def paths_not_forgotten(patch: Patch) -> None:
    """Resolved paths are not evicted after a name was removed."""

    class PermanentDict(dict[object, object]):
        def clear(self) -> None:
            """Do not clear the cache."""

    path_caches: dict[int, PermanentDict] = {}
    patch.setattr(StoreView, "paths", lambda self, zone: path_caches.setdefault(id(self) ^ zone, PermanentDict()))


@plant
def scopes_not_forgotten(patch: Patch) -> None:
    """Resolved metalakes and catalogs are not evicted after a rename."""
    retained_scopes: dict[tuple[StoreView, object], object] = {}

    def guess(of: StoreView, scope: object) -> object:
        cached_scope = of.scopes.get(scope)
        if cached_scope is not None:
            retained_scopes[of, scope] = cached_scope
        return retained_scopes.get((of, scope))

    patch.setattr(request_scope, "cached_scope", guess)


@plant
def fact_in_both_generations(patch: Patch) -> None:
    """A fact that is loaded again also stays in the old generation, and is read from there later."""
    real = StoreView._put

    def put(self: StoreView, key: facts.Key, value: facts.Value) -> None:
        before = self._old.get(key, view.ABSENT)
        real(self, key, value)
        if before is not view.ABSENT and key not in self._old:
            self._old[key] = before

    patch.setattr(StoreView, "_put", put)


# ------------------------------------------------------------------------------------------- gates and loads


@plant_in_crowd
def no_ring_check(patch: Patch) -> None:
    """A load is merged regardless of changes since its read."""
    patch.setattr(StoreView, "_is_current", staticmethod(lambda zone, key, value, revision: True))


@plant_in_crowd
def own_write_outlives_later_ones(patch: Patch) -> None:
    """A fact that a node wrote itself is merged at any later revision, even if another node has changed it since."""

    def take(self: StoreView, zone: ZoneState, revision: int) -> None:
        for true_from, facts_written in zone.offered.items():
            if true_from <= revision:
                for key, value in facts_written.items():
                    self._put(key, value)

    patch.setattr(StoreView, "_take_offered", take)


@plant_in_crowd
def ring_trusted_past_its_end(patch: Patch) -> None:
    """A load is merged although the ring no longer has all changes since its read."""
    real = StoreView._is_current
    patch.setattr(view, "RING_MAX", 0)

    def is_current(zone: ZoneState, key: facts.Key, value: facts.Value, revision: int) -> bool:
        later = {entry[0] for entry in zone.ring if entry[0] > revision}
        return real(zone, key, value, max(revision, zone.revision - len(later)))

    patch.setattr(StoreView, "_is_current", staticmethod(is_current))


@plant_in_crowd
def facts_then_changes(patch: Patch) -> None:
    """A load reads facts and then changes, in two snapshots."""

    async def load_async(
        self: LateStore, epoch: int, known: KnownRevisions, load: Callable[[], Load[object]]
    ) -> object:
        await self.pause()
        load_result = self.real._drive(load())
        await self.pause()
        return self.real.gate(epoch, known), load_result

    patch.setattr(LateStore, "load_async", load_async)


@plant
def pruned_feed_unnoticed(patch: Patch) -> None:
    """The feed is pruned while a node is idle, and the clock has no pruned revision."""
    patch.setattr(upkeep, "PRUNE_CLOCKS", Sql("UPDATE clock SET pruned_to = pruned_to WHERE :before < 0"))
    patch.setattr(upkeep, "PRUNE_CHANGES", Sql("DELETE FROM change"))


@plant
def pruned_feed_believed(patch: Patch) -> None:
    """The view treats the rest of a pruned feed as complete."""
    real = StoreView._apply

    def advance(self: StoreView, clock: ClockRow, rows: tuple[ChangeRow, ...]) -> None:
        zone = self.zones.get(clock.zone)
        if zone is not None and UNKNOWN < zone.revision < clock.pruned_to:
            zone.revision = clock.revision - len({row.revision for row in rows if row.zone == clock.zone})
            real(self, zone, clock, [row for row in rows if row.zone == clock.zone])
            return
        before(self, clock, rows)

    before = StoreView._advance_zone
    patch.setattr(StoreView, "_advance_zone", advance)


# ------------------------------------------------------------------------------------------ revisions and ids


@plant
def wall_clock(patch: Patch) -> None:
    """The revision is taken from a coarse clock, so two commits may have the same one."""
    real_run, real_keep = tx.MutationBatch.run, tx.MutationBatch._keep
    ticks: dict[int, int] = {}

    def run(self: tx.MutationBatch, permit: Permit[object], mutation: Callable[[tx.Tx], object]) -> object:
        revision, access = self.clock(permit.zone)
        ticks[permit.zone] = ticks.get(permit.zone, 0) + 1
        if revision and ticks[permit.zone] % 2:
            self._clocks[permit.zone] = (revision - 1, min(access, revision - 1))
        try:
            return real_run(self, permit, mutation)
        except BaseException:
            self._clocks[permit.zone] = (revision, access)
            raise

    def keep(self: tx.MutationBatch, zone: int, of: tx.Tx, revision: int, access: int, **more: Any) -> None:  # noqa: ANN401
        before = len(self._changes)
        real_keep(self, zone, of, revision, access, **more)
        for row in self._changes[before:]:
            row["ordinal"] += ticks[zone] * 1000  # type: ignore[index,operator]

    patch.setattr(tx.MutationBatch, "run", run)
    patch.setattr(tx.MutationBatch, "_keep", keep)


@plant
def gap(patch: Patch) -> None:
    """The revision is assigned before the lock, while an earlier one is not committed yet."""
    real = tx.MutationBatch._keep
    drawn: dict[int, int] = {}

    def keep(self: tx.MutationBatch, zone: int, of: tx.Tx, revision: int, access: int, **more: Any) -> None:  # noqa: ANN401
        drawn[zone] = drawn.get(zone, 0) + 1
        real(self, zone, of, revision + drawn[zone] % 2, access, **more)

    patch.setattr(tx.MutationBatch, "_keep", keep)


@plant
def ids_reused(patch: Patch) -> None:
    """A new table gets the id of a dropped one."""
    real_drop, real_id = nodes.NodeWrites.drop, sqlite.SqliteSession.next_id
    free: list[int] = []

    def drop(self: nodes.NodeWrites, node: Node) -> None:
        real_drop(self, node)
        if node.kind is Kind.TABLE:
            self.tx.count(Sql("DELETE FROM node WHERE id = :id"), {"id": node.id})
            free.append(node.id)

    patch.setattr(nodes.NodeWrites, "drop", drop)
    patch.setattr(sqlite.SqliteSession, "next_id", lambda self: free.pop() if free else real_id(self))


# ------------------------------------------------------------------------------------------ permits and rights


@plant_in_crowd
def permit_trusted(patch: Patch) -> None:
    """The transaction does not compare access revisions."""
    patch.setattr(tx.MutationBatch, "check", lambda self, permit: None)


def _check_zones(patch: Patch, chosen: Callable[[Permit[object]], set[int]]) -> None:
    def check(self: tx.MutationBatch, permit: Permit[object]) -> None:
        if any(self.clock(zone)[1] != stamp for zone, stamp in permit.stamps if zone in chosen(permit)):
            raise StalePermit

    patch.setattr(tx.MutationBatch, "check", check)


@plant_in_crowd
def own_zone_only(patch: Patch) -> None:
    """The transaction compares only the access revision of the written zone."""
    _check_zones(patch, lambda permit: {permit.zone})


@plant_in_crowd
def metalake_only(patch: Patch) -> None:
    """The transaction compares only the metalake's access revision."""
    _check_zones(patch, lambda permit: {zone for zone, _ in permit.stamps[1:2]})


@plant_in_crowd
def name_not_checked(patch: Patch) -> None:
    """The mutation changes the permit's object without checking its current name."""
    patch.setattr(nodes.NodeWrites, "confirm", lambda self, node: self.by_id(node.id))


@plant
def quiet_catalogs(patch: Patch) -> None:
    """Renaming a catalog or metalake does not advance the access revision."""
    real = nodes.NodeWrites.move

    def place(self: nodes.NodeWrites, node: Node, *, parent_id: int, name: str, moves_access: bool) -> None:
        quiet = node.kind <= Kind.CATALOG
        real(self, node, parent_id=parent_id, name=name, moves_access=moves_access and not quiet)

    patch.setattr(nodes.NodeWrites, "move", place)


@plant_in_crowd
def quiet_transfers(patch: Patch) -> None:
    """Transferring an object does not advance the access revision."""
    _quiet(patch, "own")


@plant
def quiet_disabling(patch: Patch) -> None:
    """Disabling and altering users, roles and catalogs does not advance the access revision."""
    _quiet(patch, "alter")


def _quiet(patch: Patch, operation: str) -> None:
    real = tx.Tx.add_change

    def add_change(self: tx.Tx, draft: ChangeDraft) -> None:
        real(self, msgspec.structs.replace(draft, moves_access=False) if draft.operation == operation else draft)

    patch.setattr(tx.Tx, "add_change", add_change)


@plant
def subjects_kept(patch: Patch) -> None:
    """A user's roles and groups are cached forever."""
    subjects: dict[object, object] = {}

    def remembered(of: StoreView, metalake_id: int, user: str, *, service_admin: bool) -> object:
        key = (of, metalake_id, user)
        if key not in subjects:
            subjects[key] = subject_of(of, metalake_id, user, service_admin=service_admin)
        return subjects[key]

    patch.setattr(caller_view, "subject_of", remembered)
