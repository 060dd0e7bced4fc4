# SPDX-License-Identifier: Apache-2.0
"""Scan plans in the store, on both databases: beyond the maximum number per user the oldest ones are deleted."""

from __future__ import annotations

from limnos.model.principals import Requester
from limnos.store.activity.scan_plans import ScanPlan, plan_of, plan_query
from limnos.store.sql import read_rows
from tests.backends import StoreLab
from tests.store.world import StoreWorld

ANA, BOB = Requester("ana", 7), Requester("bob", 8)
TABLE = 12


def insert(lab: StoreLab, world: StoreWorld, plan_id: str, *, requester: Requester = ANA, keep_ms: int) -> None:
    """Insert a plan of a user who may have two."""
    plan = ScanPlan(plan_id, b"{}")
    lab.write(
        lambda tx: tx.scan_plans.insert(plan, requester=requester, table_id=TABLE, keep_ms=keep_ms, most=2),
        zone=world.main.id,
    )


def is_stored(lab: StoreLab, plan_id: str, *, requester: Requester = ANA) -> bool:
    """Return whether a user has an unexpired plan."""
    query, params = plan_query(plan_id, table_id=TABLE, requester=requester, now_ms=lab.store.time.now_ms())
    return plan_of(lab.load(read_rows(query, **params))) is not None


def test_oldest_plans_of_a_user_are_deleted(lab: StoreLab, world: StoreWorld) -> None:
    """A plan beyond the maximum number of its user replaces the user's oldest one. Plans of others stay."""
    insert(lab, world, "other", requester=BOB, keep_ms=60_000)
    for at in range(1, 6):
        insert(lab, world, f"p{at}", keep_ms=60_000 * (at + 1))

    assert [is_stored(lab, f"p{at}") for at in range(1, 6)] == [False, False, False, True, True]
    assert is_stored(lab, "other", requester=BOB)


def test_plan_is_found_only_by_its_user(lab: StoreLab, world: StoreWorld) -> None:
    """A plan is found with its user's name and id only, until it expires."""
    insert(lab, world, "p", keep_ms=60_000)
    insert(lab, world, "over", keep_ms=-1)

    assert is_stored(lab, "p")
    assert not is_stored(lab, "p", requester=BOB)
    assert not is_stored(lab, "p", requester=Requester("ana", 9))
    assert not is_stored(lab, "over")
