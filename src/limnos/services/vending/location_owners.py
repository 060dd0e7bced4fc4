# SPDX-License-Identifier: Apache-2.0
"""Location owners: whether the register of storage locations gives a location to one object alone, at this moment.

Credentials and signatures for an object's files are given only then. The register is read at each request and not
cached. Decision record 0165.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from limnos.files import key_of, normalise
from limnos.services.request.context import Context
from limnos.services.request.location_rules import LocationRelation, may_coexist, relation_of
from limnos.store.objects.storage_locations import RegisteredLocation, near_query, registered_location_of


class LocationOwner(NamedTuple):
    """The object whose location is checked, and its metalake."""

    object_id: int
    metalake_id: int


async def is_own_location(ctx: Context, location: str, *, owner: LocationOwner | None) -> bool:
    """Return whether a location is registered for an object, and no other claim there excludes it.

    The caller decides again afterwards whether the user may use the object.
    """
    key = key_of(normalise(location))
    now_ms = ctx.services.store.time.now_ms()
    rows = [registered_location_of(row) for row in await ctx.find(near_query(key))]
    return owner is not None and is_exclusive([each for each in rows if not each.is_over(now_ms)], key=key, owner=owner)


def is_exclusive(rows: Iterable[RegisteredLocation], *, key: str, owner: LocationOwner) -> bool:
    """Return whether one of the claims near a location is the owner's claim to it, and none of the others excludes it.

    A location that had files before it was claimed is nobody's. A claim that is marked as conflicting excludes nothing
    in its own metalake, but every claim of another metalake excludes this one, also that of a catalog's root.
    """
    claims = [(each, relation) for each in rows if (relation := relation_of(key, each.location)) is not None]
    mine = [
        each
        for each, relation in claims
        if each.claim.owner_id == owner.object_id and relation is LocationRelation.SAME
    ]
    if not mine or any(
        each.had_files or each.claim.is_conflicting or each.claim.metalake_id != owner.metalake_id for each in mine
    ):
        return False
    own_claim = mine[0].claim
    return all(
        may_coexist(own_claim, each.claim, relation=relation)
        or (each.claim.is_conflicting and each.claim.metalake_id == own_claim.metalake_id)
        for each, relation in claims
    )
