# SPDX-License-Identifier: Apache-2.0
"""Read restrictions in the store, on both databases: set, replaced, removed, counted, kept for objects in the trash,
and swept afterwards.
"""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.model.restrictions import RESTRICTIONS_MAX, ColumnMask, Restriction, RestrictionTerms
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.changes import changes_read
from limnos.store.identity import restrictions
from limnos.store.identity.restrictions import many_restrictions_read, restrictions_read
from limnos.store.objects import former_names
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def list_restrictions(lab: StoreLab, world: StoreWorld) -> list[Restriction]:
    """Return all restrictions of the catalog."""
    fact = lab.load(restrictions_read(world.main.id))
    return [each for those in fact.by_object.values() for each in those]


def test_restrictions_are_set_replaced_and_removed(lab: StoreLab, world: StoreWorld) -> None:
    """A restriction replaces an earlier one of the same name. Each change names its object and moves the access
    revision.
    """
    zone = world.main.id
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)
    since = max(each.revision for each in lab.load(changes_read(zone, 0)))
    terms = RestrictionTerms(
        row_filter='{"type":"true"}', masks=(ColumnMask("card", "show-last-4", 3),), to=(5,), unless=(6, 7)
    )
    lab.write(lambda tx: tx.restrictions.put(node, "eu", terms=RestrictionTerms()), zone=zone)
    lab.write(lambda tx: tx.restrictions.put(node, "eu", terms=terms), zone=zone)
    lab.write(lambda tx: tx.restrictions.put(node, "us", terms=RestrictionTerms()), zone=zone)

    assert [(each.object_id, each.name, each.terms) for each in list_restrictions(lab, world)] == [
        (node.id, "eu", terms),
        (node.id, "us", RestrictionTerms()),
    ]
    assert [lab.write(lambda tx: tx.restrictions.delete(node, "us"), zone=zone) for _ in range(2)] == [True, False]
    changes = [(each.operation, each.node_id) for each in lab.load(changes_read(zone, since))]
    assert changes == [*[("restrict", node.id)] * 3, ("unrestrict", node.id)]


def test_restrictions_of_objects_in_the_trash_are_retained(lab: StoreLab, world: StoreWorld) -> None:
    """Objects in the trash keep their restrictions. The sweep deletes those of objects that are gone for good."""
    zone = world.main.id
    trashed_node, purged_node = (
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone) for name in ("a", "b")
    )
    for node in (trashed_node, purged_node):
        lab.write(lambda tx, node=node: tx.restrictions.put(node, "eu", terms=RestrictionTerms()), zone=zone)
    lab.write(lambda tx: tx.nodes.drop(trashed_node, keep_ms=60_000), zone=zone)
    lab.write(lambda tx: tx.nodes.drop(purged_node), zone=zone)
    lab.write(orphans_sweep, zone=0)

    assert [each.object_id for each in list_restrictions(lab, world)] == [trashed_node.id]


def test_restrictions_per_catalog_are_limited(lab: StoreLab, world: StoreWorld) -> None:
    """The number of restrictions of a catalog is limited, because they are one fact. A restriction above the limit is
    refused.
    """
    zone = world.main.id
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)

    def fill(tx: object) -> None:
        for number in range(RESTRICTIONS_MAX):
            tx.restrictions.put(node, f"r{number}", terms=RestrictionTerms())  # type: ignore[attr-defined]

    lab.write(fill, zone=zone)
    with pytest.raises(BadRequest, match=f"at most {RESTRICTIONS_MAX}"):
        lab.write(lambda tx: tx.restrictions.put(node, "more", terms=RestrictionTerms()), zone=zone)

    assert len(list_restrictions(lab, world)) == RESTRICTIONS_MAX


def test_restrictions_of_dropped_objects_have_a_limit_of_their_own(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restrictions of objects in the trash do not use up the limit of live ones, so restricted tables can be rebuilt
    many times; all of them have a limit, too.
    """
    zone = world.main.id
    monkeypatch.setattr(former_names, "RESTRICTIONS_MAX", 2)
    monkeypatch.setattr(former_names, "RETAINED_MAX", 4)

    def rebuild(tx: Tx) -> None:
        node = add_namespace(tx, world.main, "a")
        if not tx.restrictions.of_zone(zone):
            tx.restrictions.put(node, "r", terms=RestrictionTerms(masks=(ColumnMask("card", "replace-with-null"),)))
        tx.nodes.drop(node, keep_ms=60_000)

    for _ in range(4):
        lab.write(rebuild, zone=zone)
    with pytest.raises(BadRequest, match="in the trash"):
        lab.write(rebuild, zone=zone)

    assert len(list_restrictions(lab, world)) == 4


def test_restrictions_of_several_catalogs_are_read_together_up_to_a_number(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read has the restrictions of several catalogs, as separate reads have them. A catalog that the read may not
    have reached completely is left out.
    """
    zones = [world.main.id, world.side.id]
    for parent, names in ((world.main, "ba"), (world.side, "c")):
        node = lab.write(lambda tx, parent=parent: add_namespace(tx, parent, "n"), zone=parent.id)
        for name in names:
            lab.write(
                lambda tx, node=node, name=name: tx.restrictions.put(node, name, terms=RestrictionTerms()),
                zone=parent.id,
            )

    together = lab.load(many_restrictions_read([*zones, 10**12]))
    monkeypatch.setattr(restrictions, "READ_TOGETHER_MAX", 3)
    fewer = lab.load(many_restrictions_read(zones))

    assert [together[zone].by_object for zone in zones] == [
        lab.load(restrictions_read(zone)).by_object for zone in zones
    ]
    assert together[10**12].by_object == {}
    assert set(fewer) == {world.main.id}
