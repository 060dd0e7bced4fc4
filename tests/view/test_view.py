# SPDX-License-Identifier: Apache-2.0
"""The view in isolation: what it merges, what it drops, and when it is reset. The tests construct the reads."""

from __future__ import annotations

import pytest

from limnos.model.entities import ChangeRow, ClockRow
from limnos.model.kinds import Kind
from limnos.store.changes import NO_CHANGES, UNKNOWN, GateResult
from limnos.view import view as module
from limnos.view.keys import ABSENT, Key, document_key, name_key, node_key, owner_key
from limnos.view.view import BrokenFeed, StoreView

EPOCH, ROOT, LAKE, MAIN, SIDE = 7, 0, 1, 2, 3
CHAIN = (ROOT, LAKE, MAIN)
NEIGHBOUR = (ROOT, LAKE, SIDE)


def moved(
    *clocks: tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, int], rows: tuple[ChangeRow, ...] = ()
) -> GateResult:
    """Return a gate's result: clocks as (zone, revision[, access revision[, pruned to]])."""
    return GateResult(EPOCH, tuple(ClockRow(*clock, *(0, 0)[len(clock) - 2 :]) for clock in clocks), rows)


def alter(zone: int, revision: int, node_id: int = 50) -> ChangeRow:
    """Return a change of a node's record."""
    return ChangeRow(
        zone=zone,
        revision=revision,
        ordinal=0,
        operation="alter",
        kind=Kind.TABLE,
        node_id=node_id,
        name_space="table",
        old_parent=None,
        old_name=None,
        new_parent=None,
        new_name=None,
        owner_id=None,
    )


def rename(zone: int, revision: int, node_id: int = 50) -> ChangeRow:
    """Return a change of a node's name from `a` to `b`, below node 40."""
    return ChangeRow(
        zone=zone,
        revision=revision,
        ordinal=0,
        operation="move",
        kind=Kind.TABLE,
        node_id=node_id,
        name_space="table",
        old_parent=40,
        old_name="a",
        new_parent=40,
        new_name="b",
        owner_id=None,
    )


@pytest.fixture
def view() -> StoreView:
    """A view with three paired clocks at revision 1."""
    view = StoreView()
    view.advance(moved((ROOT, 1), (LAKE, 1), (MAIN, 1)), tuple((zone, UNKNOWN) for zone in CHAIN))
    return view


def put(view: StoreView, key: Key, value: object, *, zone: int = MAIN, at: int | None = None) -> bool:
    """Merge one fact that was read at a revision, by default the current one."""
    return view.merge({key: value}, zone_of={key: zone}, at={zone: view.zones[zone].revision if at is None else at})


def step(view: StoreView, zone: int, revision: int, *rows: ChangeRow, access: int = 0) -> None:
    """Advance one zone by a gate result for it and the zones above it."""
    chain = CHAIN[: CHAIN.index(zone) + 1] if zone in CHAIN else NEIGHBOUR
    view.advance(moved((zone, revision, access), rows=rows), view.known_revisions(chain))


# ------------------------------------------------------------------------------------------------ facts


def test_absent_fact_is_cached_as_none(view: StoreView) -> None:
    """An absent fact is cached as None; an uncached one is ABSENT."""
    put(view, name_key(40, "table", "a"), None)

    assert view.get(name_key(40, "table", "a")) is None
    assert view.get(name_key(40, "table", "b")) is ABSENT


def test_change_drops_the_facts_it_touches(view: StoreView) -> None:
    """A rename drops both names and the node, and nothing else."""
    touched = [name_key(40, "table", "a"), name_key(40, "table", "b"), node_key(50)]
    others = [name_key(40, "table", "c"), name_key(41, "table", "a"), node_key(51), owner_key(50)]
    for key in touched + others:
        put(view, key, None)

    step(view, MAIN, 2, rename(MAIN, 2))

    assert [view.get(key) for key in touched] == [ABSENT] * 3
    assert [view.get(key) for key in others] == [None] * 4


def test_late_result_changes_nothing(view: StoreView) -> None:
    """An older result changes nothing (rule 1)."""
    step(view, MAIN, 3, alter(MAIN, 2), alter(MAIN, 3), access=3)
    put(view, node_key(50), "new")

    view.advance(moved((MAIN, 2, 0), rows=(alter(MAIN, 2),)), ((ROOT, 1), (LAKE, 1), (MAIN, 1)))

    assert (view.zones[MAIN].revision, view.zones[MAIN].access_revision) == (3, 3)
    assert view.get(node_key(50)) == "new"


def test_overlapping_results_apply_once(view: StoreView) -> None:
    """Of a result that overlaps known revisions only the newer part is applied."""
    step(view, MAIN, 2, alter(MAIN, 2))
    put(view, node_key(50), "at 2")

    view.advance(moved((MAIN, 3), rows=(alter(MAIN, 2), alter(MAIN, 3, 51))), ((ROOT, 1), (LAKE, 1), (MAIN, 1)))

    assert view.zones[MAIN].revision == 3
    assert view.get(node_key(50)) == "at 2"


@pytest.mark.parametrize("rows", [(), (3,), (2,)])
def test_missing_change_rows_are_an_error(view: StoreView, rows: tuple[int, ...]) -> None:
    """A clock ahead of its change rows is an error."""
    with pytest.raises(BrokenFeed, match="its feed has gaps"):
        step(view, MAIN, 3, *(alter(MAIN, revision) for revision in rows))

    assert view.zones[MAIN].revision == 1


# ------------------------------------------------------------------------------------- merging (rule 3)


def test_late_load_is_merged_except_for_changed_facts(view: StoreView) -> None:
    """A late load is merged except for the facts that changed since."""
    step(view, MAIN, 2, alter(MAIN, 2, 50))

    assert put(view, node_key(51), "still true", at=1)
    assert not put(view, node_key(50), "outdated", at=1)
    assert view.get(node_key(51)) == "still true"
    assert view.get(node_key(50)) is ABSENT


def test_load_older_than_the_ring_is_not_merged(view: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load is not merged if the ring of recent changes no longer reaches back to its revision."""
    monkeypatch.setattr(module, "RING_MAX", 2)
    step(view, MAIN, 5, *(alter(MAIN, revision) for revision in range(2, 6)))

    assert not put(view, node_key(99), "who knows", at=2)
    assert put(view, node_key(99), "known", at=3)


def test_zone_without_history_accepts_only_current_loads() -> None:
    """A zone without known history accepts only loads of its current revision."""
    view = StoreView()
    view.advance(moved((ROOT, 5)), ((ROOT, UNKNOWN),))

    assert not put(view, node_key(1), "older", zone=ROOT, at=4)
    assert put(view, node_key(1), "of now", zone=ROOT, at=5)


def test_fact_of_a_future_revision_is_not_merged(view: StoreView) -> None:
    """A fact of a revision that the view has not reached is not merged."""
    assert not put(view, node_key(50), "later", at=2)
    assert view.get(node_key(50)) is ABSENT


def test_fact_of_a_forgotten_zone_is_not_merged(view: StoreView) -> None:
    """A fact of a zone that was forgotten meanwhile is not merged."""
    assert not view.merge({node_key(1): "x"}, zone_of={node_key(1): 99}, at={99: 1})


@pytest.mark.parametrize(
    "dropped,key,value,stays",
    [
        (Kind.GROUP, ("groups", 8), (50,), False),
        (Kind.GROUP, ("groups", 8), (51,), True),
        (Kind.USER, ("members", 8), ("ana",), False),
        (Kind.USER, ("members", 8), ("bob",), True),
        (Kind.ROLE, ("roles", 8), (50,), False),
        (Kind.ROLE, ("roles", 8), (51,), True),
        (Kind.USER, ("groups", 8), (50,), True),
        (Kind.ROLE, ("roles on", 8, LAKE), (), False),
    ],
)
def test_dropped_principal_drops_facts_that_name_it(
    view: StoreView, dropped: Kind, key: Key, value: object, stays: bool
) -> None:
    """If a principal is dropped, the cached groups, members and roles that name it are dropped, also those being
    loaded. Others are not.
    """
    row = ChangeRow(
        zone=LAKE,
        revision=2,
        ordinal=0,
        operation="drop",
        kind=dropped,
        node_id=50,
        name_space="",
        old_parent=LAKE,
        old_name="ana",
        new_parent=None,
        new_name=None,
        owner_id=None,
    )
    put(view, key, value, zone=LAKE)

    step(view, LAKE, 2, row)

    assert (view.get(key) == value) is stays
    assert put(view, key, value, zone=LAKE, at=1) is stays


# ------------------------------------------------------------------------------------- pairing (rule 2)


def test_zones_of_one_snapshot_are_paired(view: StoreView) -> None:
    """Zones that are read in one snapshot are paired, and so is each prefix of the ancestor chain."""
    assert view.is_paired(CHAIN)
    assert view.is_paired(CHAIN[:2])
    assert view.is_paired(CHAIN[:1])


def test_moved_metalake_unpairs_other_catalogs(view: StoreView) -> None:
    """If a gate read for another catalog finds that the metalake has moved, this catalog is unpaired until its next
    gate read.
    """
    view.advance(
        moved((LAKE, 2), (SIDE, 1), rows=(alter(LAKE, 2),)), (*view.known_revisions(CHAIN[:2]), (SIDE, UNKNOWN))
    )

    assert view.is_paired(NEIGHBOUR)
    assert not view.is_paired(CHAIN)

    view.advance(NO_CHANGES, view.known_revisions(CHAIN))
    assert view.is_paired(CHAIN)


def test_late_result_does_not_pair(view: StoreView) -> None:
    """An older snapshot does not pair newer zones."""
    step(view, LAKE, 2, alter(LAKE, 2))

    view.advance(moved((MAIN, 2), rows=(alter(MAIN, 2),)), ((ROOT, 1), (LAKE, 1), (MAIN, 1)))

    assert view.zones[MAIN].revision == 2
    assert not view.is_paired(CHAIN)


def test_unknown_zone_is_not_paired(view: StoreView) -> None:
    """Unknown zones, including the server's, are not paired."""
    assert not StoreView().is_paired((ROOT,))
    assert not view.is_paired((ROOT, 99))
    assert not view.is_paired((ROOT, LAKE, 99))


# --------------------------------------------------------------------------------------- reset


def test_new_epoch_drops_all_facts(view: StoreView) -> None:
    """After a new epoch all facts are dropped, whatever the revisions are."""
    put(view, node_key(50), "before")
    view.scopes["x"] = 1
    generation = view.generation

    view.advance(GateResult(EPOCH + 1, (ClockRow(MAIN, 1, 0, 0),), ()), view.known_revisions((ROOT, LAKE, MAIN)))

    assert view.get(node_key(50)) is ABSENT
    assert (view.scopes, len(view), view.epoch) == ({}, 0, EPOCH + 1)
    assert view.generation > generation
    assert not view.is_paired(CHAIN)


def test_view_older_than_pruned_revision_is_reset(view: StoreView) -> None:
    """A view older than the pruned revision is reset to the zone's current revision."""
    put(view, node_key(50), "before")
    put(view, node_key(60), "of another zone", zone=LAKE)

    view.advance(moved((MAIN, 9, 4, 5), rows=tuple(alter(MAIN, i) for i in range(6, 10))), view.known_revisions(CHAIN))

    assert len(view) == 0
    assert (view.zones[MAIN].revision, view.zones[MAIN].access_revision) == (9, 4)
    assert not view.is_paired(CHAIN)


def test_view_that_knows_the_pruned_revision_is_not_reset(view: StoreView) -> None:
    """A view that knows the last pruned revision has missed no change, and is not reset."""
    put(view, node_key(99), "kept")

    view.advance(moved((MAIN, 2, 0, 1), rows=(alter(MAIN, 2),)), view.known_revisions(CHAIN))

    assert view.get(node_key(99)) == "kept"
    assert view.zones[MAIN].revision == 2


# -------------------------------------------------------------------------------------- derived values


def test_memo_lasts_until_access_moves(view: StoreView) -> None:
    """Decisions stay cached until the access revision moves in the zone or in a zone above."""
    for zone, moving in ((MAIN, MAIN), (MAIN, LAKE), (MAIN, ROOT), (LAKE, ROOT)):
        view.memo(zone)["decision"] = 1
        revision = view.zones[moving].revision
        step(view, moving, revision + 1, alter(moving, revision + 1), access=view.zones[moving].access_revision)
        assert view.memo(zone) == {"decision": 1}

        step(view, moving, revision + 2, alter(moving, revision + 2), access=revision + 2)

        assert view.memo(zone) == {}


def test_metalake_memos_survive_access_moves_of_a_catalog(view: StoreView) -> None:
    """If the access revision of a catalog moves, values derived from the metalake stay cached."""
    view.memo(LAKE)["ana"] = 1

    step(view, MAIN, 2, alter(MAIN, 2), access=2)

    assert view.memo(LAKE) == {"ana": 1}


def test_rename_drops_resolved_paths_and_decisions(view: StoreView) -> None:
    """A rename drops resolved paths and decisions, because both contain names. A create drops neither."""
    view.paths(MAIN)["x"] = view.memo(MAIN)["x"] = 1
    create = ChangeRow(
        zone=MAIN,
        revision=2,
        ordinal=0,
        operation="create",
        kind=Kind.TABLE,
        node_id=60,
        name_space="table",
        old_parent=None,
        old_name=None,
        new_parent=40,
        new_name="n",
        owner_id=None,
    )
    step(view, MAIN, 2, create)
    assert (view.paths(MAIN), view.memo(MAIN)) == ({"x": 1}, {"x": 1})

    step(view, MAIN, 3, rename(MAIN, 3))

    assert (view.paths(MAIN), view.memo(MAIN)) == ({}, {})


def test_changed_catalog_drops_resolved_scopes(view: StoreView) -> None:
    """Any change of a metalake or catalog drops resolved scopes."""
    view.scopes["lake/main"] = 1
    step(view, MAIN, 2, alter(MAIN, 2))
    assert view.scopes == {"lake/main": 1}

    step(
        view,
        LAKE,
        2,
        ChangeRow(
            zone=LAKE,
            revision=2,
            ordinal=0,
            operation="alter",
            kind=Kind.CATALOG,
            node_id=MAIN,
            name_space="catalog",
            old_parent=None,
            old_name=None,
            new_parent=None,
            new_name=None,
            owner_id=None,
        ),
    )

    assert view.scopes == {}


def test_memos_are_bounded(view: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of derived values is limited."""
    monkeypatch.setattr(module, "MEMO_MAX", 10)
    for i in range(11):
        view.memo(MAIN)[i] = view.paths(MAIN)[i] = 1

    assert (view.memo(MAIN), view.paths(MAIN)) == ({}, {})


# ---------------------------------------------------------------------------------------------- budget


def test_cached_facts_stay_within_the_budget() -> None:
    """However many facts are merged, absent ones included, the view stays within its budget and keeps the latest."""
    view = StoreView(bytes_max=20_000)
    view.advance(moved((ROOT, 1)), ((ROOT, UNKNOWN),))

    for i in range(2000):
        put(view, name_key(1, "table", f"t{i}"), None, zone=ROOT)

    assert len(view) < 20_000 / 200
    assert view.get(name_key(1, "table", "t1999")) is None
    assert view.get(name_key(1, "table", "t0")) is ABSENT


def test_regularly_used_fact_is_not_evicted() -> None:
    """A fact that is used regularly is not evicted."""
    view = StoreView(bytes_max=20_000)
    view.advance(moved((ROOT, 1)), ((ROOT, UNKNOWN),))
    put(view, node_key(1), "hot", zone=ROOT)

    for i in range(2000):
        put(view, name_key(1, "table", f"t{i}"), None, zone=ROOT)
        assert view.get(node_key(1)) == "hot"


def test_fact_loaded_during_eviction_is_dropped_completely() -> None:
    """If a fact is loaded again while its old copy is being evicted, a change drops both copies."""
    view = StoreView(bytes_max=2_000)
    view.advance(moved((ROOT, 1), (LAKE, 1), (MAIN, 1)), tuple((zone, UNKNOWN) for zone in CHAIN))
    put(view, node_key(50), "old")
    while node_key(50) in view._young:
        put(view, name_key(1, "table", f"t{len(view)}"), None)
    put(view, node_key(50), "old")

    step(view, MAIN, 2, alter(MAIN, 2, 50))

    assert view.get(node_key(50)) is ABSENT


# ------------------------------------------------------------------------------- facts written by this node


def commit(revision: int, node_id: int = 50) -> ChangeRow:
    """Return a commit to a table's document."""
    return ChangeRow(
        zone=MAIN,
        revision=revision,
        ordinal=0,
        operation="commit",
        kind=Kind.TABLE,
        node_id=node_id,
        name_space="table",
        old_parent=None,
        old_name=None,
        new_parent=None,
        new_name=None,
        owner_id=None,
    )


DOCUMENT = document_key(50)


def test_own_write_is_merged_when_its_revision_is_reached(view: StoreView) -> None:
    """A fact that this node wrote at revision 3 enters the view once the gate has reached revision 3, not before."""
    view.offer(DOCUMENT, "third", zone=MAIN, revision=3, epoch=EPOCH)

    step(view, MAIN, 2, commit(2))
    before = view.get(DOCUMENT)
    step(view, MAIN, 3, commit(3))

    assert before is ABSENT
    assert view.get(DOCUMENT) == "third"


def test_own_write_is_dropped_by_a_later_change(view: StoreView) -> None:
    """A fact that this node wrote is dropped if the gate brings a later change of it."""
    view.offer(DOCUMENT, "ours", zone=MAIN, revision=2, epoch=EPOCH)

    step(view, MAIN, 3, commit(2), commit(3))

    assert view.get(DOCUMENT) is ABSENT
    assert not view.zones[MAIN].offered


def test_late_own_write_is_merged_unless_changed_since(view: StoreView) -> None:
    """A fact that is offered after the gate has reached its revision is merged, unless it has changed since."""
    step(view, MAIN, 3, commit(2, node_id=50), commit(3, node_id=51))

    view.offer(DOCUMENT, "second", zone=MAIN, revision=2, epoch=EPOCH)
    view.offer(document_key(51), "too old", zone=MAIN, revision=2, epoch=EPOCH)

    assert view.get(DOCUMENT) == "second"
    assert view.get(document_key(51)) is ABSENT


def test_own_write_of_another_epoch_is_ignored(view: StoreView) -> None:
    """A written fact of another epoch is ignored."""
    view.offer(DOCUMENT, "before the restore", zone=MAIN, revision=2, epoch=EPOCH - 1)

    step(view, MAIN, 2, commit(2))

    assert view.get(DOCUMENT) is ABSENT


def test_own_writes_may_be_offered_out_of_order(view: StoreView) -> None:
    """Of two written facts the newer one stays, in either order."""
    view.offer(DOCUMENT, "third", zone=MAIN, revision=3, epoch=EPOCH)
    view.offer(DOCUMENT, "second", zone=MAIN, revision=2, epoch=EPOCH)

    step(view, MAIN, 3, commit(2), commit(3))

    assert view.get(DOCUMENT) == "third"


def test_own_writes_are_bounded(view: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a zone that no gate read covers, a limited number of written facts is kept."""
    monkeypatch.setattr(module, "OFFERED_MAX", 3)

    for node_id in range(50, 60):
        view.offer(document_key(node_id), "x", zone=MAIN, revision=2, epoch=EPOCH)

    assert 0 < len(view.zones[MAIN].offered) <= 3
