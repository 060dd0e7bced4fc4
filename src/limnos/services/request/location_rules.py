# SPDX-License-Identifier: Apache-2.0
"""Location rules: which storage locations may be equal to or contain one another, and what happens to objects that
violate the rules.

`docs/reference/storage-locations.md` has the rules as tables. They are symmetric: whether two locations may coexist
does not depend on their order. For a new location, call `judge_claim` with every existing location that it overlaps.
Locations that were stored before the rules were enforced may violate them: the files of their objects are withheld
(`services.storage.location_reconciliation`).
"""

from __future__ import annotations

from enum import Enum, IntEnum

from limnos.model.errors import PermissionDenied
from limnos.model.storage_locations import ROOTS, LocationClaim, LocationKind, LocationState


class LocationRelation(IntEnum):
    """The relation of one location to another: equal, above or below."""

    SAME = 0
    ABOVE = 1
    """The location contains the other."""
    BELOW = 2
    """The location is inside the other."""

    @property
    def inverse(self) -> LocationRelation:
        """The relation of the other location to this one: below for above."""
        return _INVERSE[self]


_INVERSE = {
    LocationRelation.SAME: LocationRelation.SAME,
    LocationRelation.ABOVE: LocationRelation.BELOW,
    LocationRelation.BELOW: LocationRelation.ABOVE,
}


class ClaimVerdict(Enum):
    """The verdict on a new location that overlaps an existing one."""

    ALLOWED = "allowed"
    REPLACES = "replaces"
    """The existing location belongs to a dropped object of the caller: its claim ends, and the new object takes over
    its files.
    """
    WAIT = "wait"
    """The files at the existing location are being deleted."""
    REFUSED = "refused"


def relation_of(location: str, other: str) -> LocationRelation | None:
    """Return the relation of a location to another location; None if neither contains the other.

    Both are keys of the register.
    """
    if location == other:
        return LocationRelation.SAME
    if other.startswith(f"{location.removesuffix('/')}/"):
        return LocationRelation.ABOVE
    return LocationRelation.BELOW if location.startswith(f"{other.removesuffix('/')}/") else None


def may_coexist(one: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """Return whether two locations may coexist. `relation` is the relation of `one` to `other`."""
    if one.owner_id == other.owner_id:
        return True
    if one.metalake_id != other.metalake_id:
        return False
    if one.kind in ROOTS and other.kind in ROOTS:
        return True
    if one.kind is LocationKind.LANCE_DIRECTORY:
        return _directory_may_coexist(one, other, relation=relation)
    if other.kind is LocationKind.LANCE_DIRECTORY:
        return _directory_may_coexist(other, one, relation=relation.inverse)
    if one.kind in ROOTS:
        return _root_may_coexist(one, other, relation=relation)
    if other.kind in ROOTS:
        return _root_may_coexist(other, one, relation=relation.inverse)
    return _objects_may_coexist(one, other)


def _directory_may_coexist(directory: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """Return whether a directory catalog's location may overlap another location.

    The catalog shows all files in its directory, so no location of another catalog may overlap it. An allowed location
    of another catalog may contain it.
    """
    if other.kind is LocationKind.LANCE_DIRECTORY or directory.catalog_id == other.catalog_id:
        return True
    return other.kind is LocationKind.ALLOWED_LOCATION and relation is LocationRelation.BELOW


def _root_may_coexist(root: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """Return whether a catalog's root may overlap an object's location.

    A root may contain objects of its metalake. An object whose location contains a root would own the files of all
    objects created below the root later.
    """
    if relation is LocationRelation.ABOVE:
        return True
    if root.kind is LocationKind.WAREHOUSE:
        return False
    if root.catalog_id == other.catalog_id:
        return True
    return relation is LocationRelation.SAME and other.kind is LocationKind.EXTERNAL_FILESET


def _objects_may_coexist(one: LocationClaim, other: LocationClaim) -> bool:
    """Return whether two objects' locations may overlap; in general they may not.

    Exceptions: external filesets of one catalog, which own no files; and the directory for restricted reads of catalogs
    that share a warehouse.
    """
    if one.kind is not other.kind:
        return False
    if one.kind is LocationKind.RESTRICTED_READS:
        return True
    return one.kind is LocationKind.EXTERNAL_FILESET and one.catalog_id == other.catalog_id


def judge_claim(new: LocationClaim, rival: LocationClaim, *, relation: LocationRelation, is_own: bool) -> ClaimVerdict:
    """Decide whether a new location may overlap an existing location.

    Args:
        new: The new location.
        rival: The existing location.
        relation: The relation of the new location to the existing one.
        is_own: Whether the caller owned, dropped or staged the object at the existing location.
    """
    if may_coexist(new, rival, relation=relation):
        return ClaimVerdict.ALLOWED
    new_is_root = new.kind in ROOTS or new.kind is LocationKind.LANCE_DIRECTORY
    if rival.is_conflicting and not new_is_root:
        return ClaimVerdict.ALLOWED
    if rival.state is LocationState.DELETING:
        return ClaimVerdict.WAIT
    is_free = rival.state is not LocationState.LIVE or rival.kind is LocationKind.STAGED_TABLE
    if (
        is_free
        and is_own
        and relation is LocationRelation.SAME
        and not new_is_root
        and new.metalake_id == rival.metalake_id
    ):
        return ClaimVerdict.REPLACES
    return ClaimVerdict.REFUSED


def find_conflicting_claims(
    one: LocationClaim, other: LocationClaim, *, relation: LocationRelation
) -> tuple[LocationClaim, ...]:
    """Return which of two stored locations to mark as conflicting, or both.

    Empty if they may coexist or one is marked already. Clients get no credentials for a marked object, and it blocks no
    other object. So the location with the weaker claim is marked: a directory catalog; else a root inside an object's
    location, or an object at or below a root of another catalog; else an external fileset; else the newer object. Roots
    of two metalakes are both marked.
    """
    if may_coexist(one, other, relation=relation) or one.is_conflicting or other.is_conflicting:
        return ()
    both = (one, other)
    output = tuple(each for each in both if each.kind is LocationKind.LANCE_DIRECTORY)
    roots = tuple(each for each in both if each.kind in ROOTS)
    if output or len(roots) == 2:
        return output or roots
    if roots:
        is_covered = (
            roots[0] is (one if relation is LocationRelation.ABOVE else other) and relation is not LocationRelation.SAME
        )
        return roots if is_covered else tuple(each for each in both if each is not roots[0])
    external = tuple(each for each in both if each.kind is LocationKind.EXTERNAL_FILESET)
    return external if len(external) == 1 else (max(both, key=lambda each: each.owner_id),)


class LocationConflicts:
    """The owners of conflicting locations, read at the start and again in each round of upkeep."""

    __slots__ = ("ids", "seen_id")

    def __init__(self) -> None:
        self.ids: frozenset[int] = frozenset()
        self.seen_id = 0
        """The highest id of the documents whose locations are in the register."""

    def refuse(self, owner_id: int, *, what: str) -> None:
        """Raise PermissionDenied if the location of an object or catalog is marked as conflicting with another
        location.

        `what` is the word for the object's kind in the message.
        """
        if owner_id in self.ids:
            raise PermissionDenied(
                f"The files of this {what} are not served to clients: another object's files have been at, above or"
                " below its location since before that was refused. 'limnos server check' shows the operator how to"
                " correct it"
            )
