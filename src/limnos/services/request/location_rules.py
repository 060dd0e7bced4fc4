"""The rules of places: which two storage locations may lie at, above or below one another. Pure.

May import `model` alone. `docs/reference/storage-locations.md` has the rules as tables. They are symmetric: whether two places may be there together does not
depend on which of them came first. Whoever brings a new place asks `judge_claim` about every place that it would meet.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from limnos.model.storage_locations import ROOTS, LocationClaim, LocationKind, LocationState


class LocationRelation(IntEnum):
    """How one location lies to another."""

    SAME = 0
    ABOVE = 1
    """It contains the other."""
    BELOW = 2
    """It lies inside the other."""

    @property
    def inverse(self) -> LocationRelation:
        """How the other lies to it."""
        return _INVERSE[self]


_INVERSE = {
    LocationRelation.SAME: LocationRelation.SAME,
    LocationRelation.ABOVE: LocationRelation.BELOW,
    LocationRelation.BELOW: LocationRelation.ABOVE,
}


class ClaimVerdict(Enum):
    """What becomes of a new place that meets another one."""

    ALLOWED = "allowed"
    REPLACES = "replaces"
    """The other is the caller's own and dropped: it ends, and its files are the new one's."""
    WAIT = "wait"
    """The other's files are being deleted."""
    REFUSED = "refused"


def relation_of(location: str, other: str) -> LocationRelation | None:
    """Return how a location lies to another; None when neither contains the other. Both are keys of the register."""
    if location == other:
        return LocationRelation.SAME
    if other.startswith(f"{location.removesuffix('/')}/"):
        return LocationRelation.ABOVE
    return LocationRelation.BELOW if location.startswith(f"{other.removesuffix('/')}/") else None


def may_meet(one: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """Say whether two places may lie so. `relation` is how `one` lies to `other`."""
    if one.owner_id == other.owner_id:
        return True
    if one.metalake_id != other.metalake_id:
        return False
    if one.kind in ROOTS and other.kind in ROOTS:
        return True
    if one.kind is LocationKind.LANCE_DIRECTORY:
        return _directory_may_meet(one, other, relation=relation)
    if other.kind is LocationKind.LANCE_DIRECTORY:
        return _directory_may_meet(other, one, relation=relation.inverse)
    if one.kind in ROOTS:
        return _root_may_meet(one, other, relation=relation)
    if other.kind in ROOTS:
        return _root_may_meet(other, one, relation=relation.inverse)
    return _objects_may_meet(one, other)


def _directory_may_meet(directory: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """A directory shows all that lies in it, so nothing of another catalog does; an allowed location may cover it."""
    if other.kind is LocationKind.LANCE_DIRECTORY or directory.catalog_id == other.catalog_id:
        return True
    return other.kind is LocationKind.ALLOWED_LOCATION and relation is LocationRelation.BELOW


def _root_may_meet(root: LocationClaim, other: LocationClaim, *, relation: LocationRelation) -> bool:
    """A root covers objects of its metalake. What contains a root would have the files of all that is made there later."""
    if relation is LocationRelation.ABOVE:
        return True
    if root.kind is LocationKind.WAREHOUSE:
        return False
    if root.catalog_id == other.catalog_id:
        return True
    return relation is LocationRelation.SAME and other.kind is LocationKind.EXTERNAL_FILESET


def _objects_may_meet(one: LocationClaim, other: LocationClaim) -> bool:
    """Objects share no files; external filesets own none, and catalogs with one warehouse have one directory for restricted reads."""
    if one.kind is not other.kind:
        return False
    if one.kind is LocationKind.RESTRICTED_READS:
        return True
    return one.kind is LocationKind.EXTERNAL_FILESET and one.catalog_id == other.catalog_id


def judge_claim(new: LocationClaim, rival: LocationClaim, *, relation: LocationRelation, is_own: bool) -> ClaimVerdict:
    """Say what becomes of a new place beside one that is there.

    `relation`: how the new place lies to the rival. `is_own`: the caller owned the rival, dropped it, or staged it.
    """
    if may_meet(new, rival, relation=relation):
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
    """Return which of two stored places are marked as conflicting; none when they may lie so, or when one is marked already.

    A marked object gets no credentials and keeps nobody out, so the mark goes to who has the lesser claim to the files: a directory that
    only shows them, what contains a root, an external fileset, the younger one. Roots of two metalakes are both marked: neither loses its files.
    """
    if may_meet(one, other, relation=relation) or one.is_conflicting or other.is_conflicting:
        return ()
    both = (one, other)
    shown = tuple(each for each in both if each.kind is LocationKind.LANCE_DIRECTORY)
    roots = tuple(each for each in both if each.kind in ROOTS)
    if shown or len(roots) == 2:
        return shown or roots
    if roots:
        is_covered = (
            roots[0] is (one if relation is LocationRelation.ABOVE else other) and relation is not LocationRelation.SAME
        )
        return roots if is_covered else tuple(each for each in both if each is not roots[0])
    external = tuple(each for each in both if each.kind is LocationKind.EXTERNAL_FILESET)
    return external if len(external) == 1 else (max(both, key=lambda each: each.owner_id),)
