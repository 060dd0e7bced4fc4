# SPDX-License-Identifier: Apache-2.0
"""Leases of ended holders: each kind ends at once, and the leases of other holders stay."""

from __future__ import annotations

import pytest

from limnos.store.activity.lease_holders import LEASES, holders_read, leases_end
from limnos.store.schema import base
from tests.backends import StoreLab
from tests.store.activity.test_future_times import CASES, SkewedStore
from tests.store.world import StoreWorld

KINDS = ("task lease", "webhook lease", "index lease", "lock lease", "statement", "job")
HOLDERS = ("dead", "here")


@pytest.mark.parametrize("kind", KINDS)
def test_lease_of_an_ended_holder_ends_at_once(lab: StoreLab, world: StoreWorld, kind: str) -> None:
    """A lease ends when its holder has ended, a day ahead or not; it does not end with another holder."""
    skewed, case = SkewedStore(lab, world), CASES[kind]
    skewed.move(86_400_000)
    case.begin(skewed)
    skewed.move(-86_400_000)
    names = lab.load(holders_read())
    other_count = lab.write(lambda tx: leases_end(tx, ["other"]))

    count = lab.write(lambda tx: leases_end(tx, HOLDERS))
    left = lab.load(holders_read())
    skewed.move(86_400_000)  # a task is due then, and only its lease held it

    assert [each in HOLDERS for each in names] == [True]
    assert (other_count, count) == (0, 1)
    assert left == []
    assert case.is_over(skewed)


def test_every_lease_with_a_holder_is_known() -> None:
    """Each table with a holder has its leases ended, except runs of pipelines and leases of executors, which are
    programs of clients on any machine.
    """
    with_holder = {table.name for table in base.metadata.sorted_tables if "holder" in table.columns}

    assert with_holder - {each.table for each in LEASES} == {"pipeline_run", "maintenance_lease", "sqlpp_lock"}
