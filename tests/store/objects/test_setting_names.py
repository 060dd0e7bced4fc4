# SPDX-License-Identifier: Apache-2.0
"""Names of metalakes in settings: a metalake keeps the name that it was created with, and a name has one metalake."""

from __future__ import annotations

from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import MetalakeRecord
from limnos.store.objects.setting_names import setting_name_read, setting_names_read
from limnos.store.tx import Tx
from tests.backends import StoreLab


def make(tx: Tx, name: str, *, is_assigned: bool = True) -> int:
    """Create a metalake. Returns its id."""
    record = MetalakeRecord(comment=None, properties={}, in_use=True)
    metalake_id = tx.next_id()
    tx.new_zone(metalake_id)
    tx.nodes.create(
        kind=Kind.METALAKE,
        space="metalake",
        name=name,
        parent_id=ROOT_ID,
        zone=ROOT_ID,
        record=record,
        owner_id=1,
        node_id=metalake_id,
    )
    if is_assigned:
        tx.setting_names.assign(metalake_id, name)
    return metalake_id


def test_metalake_keeps_its_first_name_in_settings(lab: StoreLab) -> None:
    """A renamed metalake keeps its name in settings; one that takes the free name afterwards has none."""
    first = lab.write(lambda tx: make(tx, "prod"))
    lab.write(lambda tx: tx.nodes.move(tx.nodes.by_id(first), parent_id=ROOT_ID, name="former", moves_access=True))
    second = lab.write(lambda tx: make(tx, "prod"))

    lab.write(lambda tx: tx.setting_names.assign_missing())

    assert lab.load(setting_names_read())["prod"] == (first, "former")
    assert [lab.load(setting_name_read(each)) for each in (first, second)] == ["prod", ""]


def test_metalakes_without_a_name_get_their_current_one(lab: StoreLab) -> None:
    """A metalake of an earlier release gets its current name, once, and none that another metalake has."""
    first = lab.write(lambda tx: make(tx, "prod"))
    lab.write(lambda tx: tx.nodes.move(tx.nodes.by_id(first), parent_id=ROOT_ID, name="former", moves_access=True))
    older, other = (lab.write(lambda tx, name=name: make(tx, name, is_assigned=False)) for name in ("prod", "beta"))

    lab.write(lambda tx: tx.setting_names.assign_missing())
    lab.write(lambda tx: tx.nodes.move(tx.nodes.by_id(other), parent_id=ROOT_ID, name="gamma", moves_access=True))
    lab.write(lambda tx: tx.setting_names.assign_missing())

    assert [lab.load(setting_name_read(each)) for each in (first, older, other)] == ["prod", "", "beta"]
