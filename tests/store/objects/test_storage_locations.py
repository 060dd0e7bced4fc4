# SPDX-License-Identifier: Apache-2.0
"""The register of storage locations in the store: an object that moves to and fro keeps each of its locations once."""

from __future__ import annotations

from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table

HOME = "s3://b/w/t"


def test_object_that_moves_to_and_fro_keeps_each_location_once(lab: StoreLab, world: StoreWorld) -> None:
    """A table that moves away, back and away again, also to earlier locations, has each location once as its own."""
    space = lab.write(lambda tx: add_namespace(tx, world.main, "s"), zone=world.main.id)
    table = lab.write(lambda tx: add_table(tx, space, "t"), zone=world.main.id)
    claim = LocationClaim(kind=LocationKind.TABLE, owner_id=table.id, catalog_id=world.main.id, metalake_id=0)
    lab.write(lambda tx: tx.places.put(claim, HOME), zone=world.main.id)

    def move(tx: Tx, location: str) -> None:
        tx.places.keep_former_as_data(table.id, kind=LocationKind.TABLE, location=location)
        tx.places.put(claim, location)

    for end in ("x", "", "x", "", "y"):
        lab.write(lambda tx, at=f"{HOME}{end}": move(tx, at), zone=world.main.id)
    rows = lab.write(lambda tx: tx.places.of(table.id), zone=world.main.id)

    assert {(each.location, each.claim.kind) for each in rows if each.claim.kind is LocationKind.TABLE} == {
        (f"{HOME}y", LocationKind.TABLE)
    }
    assert sorted(each.location for each in rows if each.claim.kind is LocationKind.DATA_PATH) == [HOME, f"{HOME}x"]
