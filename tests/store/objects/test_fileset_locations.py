# SPDX-License-Identifier: Apache-2.0
"""Locations of filesets in the store: overlapping ones are found while they are reserved, and others are swept."""

from __future__ import annotations

from limnos.store.activity.upkeep import orphans_sweep
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace

ROOT = "file:///w/a"


def test_filesets_at_above_or_below_a_location_are_detected(lab: StoreLab, world: StoreWorld) -> None:
    """Filesets at, above or below a location are found, except adjacent ones and the caller's own. A dropped one is
    found while it is in the trash and while its files are being deleted.
    """
    nodes = {
        name: lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=world.main.id)
        for name in ("at", "above", "below", "beside", "gone", "kept", "going")
    }
    places = {
        "at": ROOT,
        "above": "file:///w",
        "below": f"{ROOT}/b/c",
        "beside": f"{ROOT}0",
        "gone": ROOT,
        "kept": ROOT,
        "going": f"{ROOT}/d",
    }
    for name, node in nodes.items():
        lab.write(
            lambda tx, node=node, name=name: tx.fileset_places.create(
                node.id, [places[name]] * 2, managed=name != "at"
            ),
            zone=world.main.id,
        )
    for name, keep_ms in (("gone", 0), ("kept", 1000), ("going", 0)):
        lab.write(lambda tx, node=nodes[name], keep=keep_ms: tx.nodes.drop(node, keep_ms=keep), zone=world.main.id)
    begun_places = lab.write(lambda tx: tx.fileset_places.begin(nodes["going"].id), zone=world.main.id)

    names = {node.id: name for name, node in nodes.items()}
    rivals = lab.write(lambda tx: tx.fileset_places.rivals(ROOT, but=0), zone=world.main.id)
    others = lab.write(lambda tx: tx.fileset_places.rivals(ROOT, but=nodes["at"].id), zone=world.main.id)
    assert begun_places == [places["going"]]
    assert {(names[each.node_id], each.managed, each.going, each.is_trashed) for each in rivals} == {
        ("at", False, False, False),
        ("above", True, False, False),
        ("below", True, False, False),
        ("kept", True, False, True),
        ("going", True, True, False),
    }
    assert {names[each.node_id] for each in others} == {"above", "below", "kept", "going"}
    assert lab.write(orphans_sweep, zone=world.lake.id) == 1
    lab.write(lambda tx: tx.fileset_places.clear(nodes["going"].id), zone=world.main.id)
    left = lab.write(lambda tx: tx.fileset_places.rivals(ROOT, but=0), zone=world.main.id)
    assert {names[each.node_id] for each in left} == {"at", "above", "below", "kept"}
