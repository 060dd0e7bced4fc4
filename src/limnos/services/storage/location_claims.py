# SPDX-License-Identifier: Apache-2.0
"""Location claims: claims and releases storage locations in the register, under the location rules, within a
transaction.

Every mutation that sets a location calls this. An error message names only the caller's own object and location, since
other objects may be hidden from the caller: `services.lookup.location_holders` adds the name of a visible one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from limnos.files import STORAGE, is_local, key_of, parse, place_key
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, LocationTaken, ServiceUnavailable
from limnos.model.storage_locations import OF_CATALOGS, ROOTS, LocationClaim, LocationKind, LocationState
from limnos.services.request.location_rules import ClaimVerdict, LocationRelation, judge_claim, relation_of
from limnos.services.storage.namespace_locations import check_namespace_directory
from limnos.sources.vending import keys_life_ms
from limnos.store.objects.catalogs import catalog_read
from limnos.store.objects.documents import document_locks
from limnos.store.objects.storage_locations import RIVALS_MAX, RegisteredLocation, location_locks
from limnos.store.tx import Tx

_WORDS: Final = {
    LocationKind.TABLE: "table",
    LocationKind.DATA_PATH: "table",
    LocationKind.VIEW: "view",
    LocationKind.LANCE_TABLE: "table",
    LocationKind.LANCE_DIRECTORY: "directory of a catalog",
    LocationKind.FILESET: "managed fileset",
    LocationKind.EXTERNAL_FILESET: "fileset",
    LocationKind.WAREHOUSE: "catalog's warehouse",
    LocationKind.ALLOWED_LOCATION: "catalog's root",
    LocationKind.STAGED_TABLE: "staged table",
    LocationKind.RESTRICTED_READS: "directory for restricted reads",
}
_SIDES: Final = {LocationRelation.SAME: "at", LocationRelation.BELOW: "around", LocationRelation.ABOVE: "inside"}


def locations_lock(tx: Tx, *, documents: Iterable[MetadataDocument] = (), locations: Iterable[str] = ()) -> None:
    """Lock all new locations of a mutation at once, before the first is claimed.

    Two mutations that lock the same locations one by one in different orders would deadlock.

    Args:
        tx: The transaction.
        documents: Documents of tables and views with a new location.
        locations: Other new locations, such as data paths, in normal form.
    """
    if not tx.session.has_location_locks:
        return
    locks = location_locks(map(key_of, locations))
    for document in documents:
        for spelling in (document.location, key_of(document.location)):
            for location, is_own in document_locks(document, spelling).items():
                locks[location] = is_own or locks.get(location, False)
    tx.session.lock_locations(locks)


def location_claim(
    tx: Tx,
    kind: LocationKind,
    *,
    owner_id: int,
    catalog_id: int,
    location: str,
    had_files: bool = False,
    adopts: bool = False,
    namespace_id: int | None = None,
) -> None:
    """Register an object's location. The caller holds its locks (`locations_lock`).

    Args:
        tx: The transaction.
        kind: The kind of location.
        owner_id: The id of the object.
        catalog_id: The id of the object's catalog.
        location: The location in its normal form.
        had_files: Whether files are there. Clients get no credentials for them, unless they were the caller's before:
            those of a dropped object, or of a staged create.
        adopts: Whether the object existed before, at this location: a registered table, an import. Then it may be in
            the directory of another namespace.
        namespace_id: The id of the object's namespace; None if the caller does not know it: then it is read.

    Raises:
        BadRequest: A location rule forbids it.
        ServiceUnavailable: Files there are being deleted.
    """
    claim, key = LocationClaim(kind=kind, owner_id=owner_id, catalog_id=catalog_id, metalake_id=0), key_of(location)
    if not adopts and "/n" in key:  # only then it can be in a namespace's directory, whose name begins with an n
        parent_id = tx.nodes.by_id(owner_id).parent_id if namespace_id is None else namespace_id
        check_namespace_directory(tx, key=key, location=location, namespace_id=parent_id)
    if not tx.places.insert_free(claim, key, had_files=had_files):
        replaced_location = location_check(tx, claim, key=key, location=location)
        tx.places.put(claim, key, had_files=had_files and (replaced_location is None or replaced_location.had_files))


def location_stage(
    tx: Tx, *, catalog_id: int, namespace_id: int, location: str, keys_until: int, had_files: bool
) -> None:
    """Register the location of a staged create for the caller. The claim ends at `keys_until`, in milliseconds since
    1970, or when the caller creates an object at the location. Raises as `location_claim`.
    """
    locations_lock(tx, locations=(location,))
    claim, key = (
        LocationClaim(kind=LocationKind.STAGED_TABLE, owner_id=tx.next_id(), catalog_id=catalog_id, metalake_id=0),
        key_of(location),
    )
    check_namespace_directory(tx, key=key, location=location, namespace_id=namespace_id)
    replaced_location = location_check(tx, claim, key=key, location=location)
    had_files = had_files and (replaced_location is None or replaced_location.had_files)
    tx.places.put(claim, key, claimant_id=tx.actor_id, keys_until=keys_until, had_files=had_files)


def locations_claim(
    tx: Tx,
    kind: LocationKind,
    *,
    owner_id: int,
    catalog_id: int,
    locations: Iterable[str],
    had_files: frozenset[str] = frozenset(),
    adopts: bool = False,
) -> None:
    """Lock several locations in a fixed order, then register them. `had_files` are those that have files of nobody;
    data paths count as such, since nobody looks. Raises as `location_claim`.
    """
    requested_names = list(locations)
    locations_lock(tx, locations=requested_names)
    for each in requested_names:
        is_used = each in had_files or kind is LocationKind.DATA_PATH
        location_claim(
            tx, kind, owner_id=owner_id, catalog_id=catalog_id, location=each, had_files=is_used, adopts=adopts
        )


def location_move(
    tx: Tx,
    kind: LocationKind,
    *,
    owner_id: int,
    catalog_id: int,
    location: str,
    had_files: bool = False,
    adopts: bool = False,
) -> None:
    """Register an object's new location. The earlier one stays registered, since the object's older files are there.

    The files of an earlier location to which the object returns are its own. Raises as `location_claim`.
    """
    claim, key = LocationClaim(kind=kind, owner_id=owner_id, catalog_id=catalog_id, metalake_id=0), key_of(location)
    before = [each for each in tx.places.of(owner_id) if each.location == key]
    if not before and not adopts and "/n" in key:
        namespace_id = tx.nodes.by_id(owner_id).parent_id
        check_namespace_directory(tx, key=key, location=location, namespace_id=namespace_id)
    replaced_location = location_check(tx, claim, key=key, location=location)
    mine = [*before, *([] if replaced_location is None else [replaced_location])]
    tx.places.keep_former_as_data(owner_id, kind=kind, location=key)
    tx.places.clear(owner_id, location=key)
    tx.places.put(claim, key, had_files=had_files and (not mine or any(each.had_files for each in mine)))


def location_check(tx: Tx, claim: LocationClaim, *, key: str, location: str) -> RegisteredLocation | None:
    """Check a new location under the rules. If the location belongs to a dropped or staged object of the caller, that
    object's claim ends, and a dropped object is deleted from the trash. Claims whose time is over end, too.

    Returns the claim to the location that the new one replaces, if any.

    Raises BadRequest if a rule forbids the location, ServiceUnavailable while files there are being deleted.
    """
    claim = claim._replace(metalake_id=tx.places.metalake_of(claim.catalog_id))
    replaced_location: RegisteredLocation | None = None
    for rival in rivals_near(tx, claim, key=key):
        relation = relation_of(key, rival.location)
        if relation is None:
            continue
        if rival.is_over(tx.now_ms):
            tx.places.clear(rival.claim.owner_id, location=rival.location)
            continue
        verdict = judge_claim(claim, rival.claim, relation=relation, is_own=False)
        if verdict is ClaimVerdict.REFUSED and relation is LocationRelation.SAME:
            verdict = judge_claim(claim, rival.claim, relation=relation, is_own=tx.places.is_own(rival))
        if verdict is ClaimVerdict.REPLACES:
            _end_claim(tx, rival)
            replaced_location = rival
        elif verdict is ClaimVerdict.WAIT:
            raise ServiceUnavailable(
                f"Files of a dropped object are being deleted {_SIDES[relation]} location {location}: try again after"
                " that",
                retry_after_s=5,
            )
        elif verdict is ClaimVerdict.REFUSED:
            raise _claim_refusal(tx, claim, rival=rival, relation=relation, location=location)
    return replaced_location


def rivals_near(tx: Tx, claim: LocationClaim, *, key: str) -> Iterator[RegisteredLocation]:
    """Yield the claims of other objects at a location, above it (the nearest first), and below it.

    For a root, only claims below it that may conflict are included.
    """
    root_of = claim.metalake_id if claim.kind in ROOTS else None
    return _claims_near(tx, key, but=claim.owner_id, root_of=root_of)


def _claims_near(tx: Tx, key: str, *, but: int, root_of: int | None = None) -> Iterator[RegisteredLocation]:
    upwards = tx.places.upwards(key, but=but)
    yield from sorted(upwards, key=lambda each: (-len(each.location), each.claim.owner_id))
    after: RegisteredLocation | None = None
    while page := tx.places.lower(key, but=but, after=after, root_of=root_of):
        yield from page
        if len(page) < RIVALS_MAX:
            return
        after = page[-1]


def _end_claim(tx: Tx, rival: RegisteredLocation) -> None:
    """End the claim of a dropped or staged object at one location. Deletes a dropped object from the trash, and
    releases its other locations to the caller.
    """
    owner = rival.claim.owner_id
    if rival.claim.state is LocationState.DROPPED:
        tx.places.end(owner, state=LocationState.RELEASED, claimant_id=tx.actor_id)
    if not tx.trash.forget(owner) and rival.claim.kind is not LocationKind.STAGED_TABLE:
        tx.documents.delete(owner)
    tx.places.clear(owner, location=rival.location)


def _claim_refusal(
    tx: Tx, claim: LocationClaim, *, rival: RegisteredLocation, relation: LocationRelation, location: str
) -> BadRequest:
    if rival.claim.metalake_id != claim.metalake_id:
        text = (
            f"Location {location} is {_SIDES[relation]} a location of another metalake, and metalakes cannot share"
            " files: choose another"
        )
        return BadRequest(text)
    text = _refusal_text(claim, rival, relation=relation, location=location)
    metalake = tx.nodes.live(rival.claim.metalake_id)
    if metalake is None or rival.claim.state is not LocationState.LIVE:
        return BadRequest(text)
    return LocationTaken(text, holder_id=rival.claim.owner_id, metalake=metalake.name)


def _refusal_text(claim: LocationClaim, rival: RegisteredLocation, *, relation: LocationRelation, location: str) -> str:
    """Return the message about a location of another object of the same metalake."""
    mine, word = _WORDS[claim.kind], _WORDS[rival.claim.kind]
    if claim.kind in OF_CATALOGS:
        return (
            f"Location {location} is {_SIDES[relation]} {_rival_words(rival, word)}, which is not allowed"
            f" for a {mine}: choose another (dropped objects keep their locations while their files exist)"
        )
    if rival.claim.kind in ROOTS or rival.claim.kind is LocationKind.LANCE_DIRECTORY:
        return (
            f"Location {location} is {_SIDES[relation]} another catalog's {_root_word(rival)}, which is not allowed for"
            f" a {mine}: choose another"
        )
    return (
        f"Another {word} is"
        f" {'at' if relation is LocationRelation.SAME else 'above' if relation is LocationRelation.BELOW else 'below'}"
        f" location {location}, and {'tables' if mine == word == 'table' else 'objects'} cannot share files: choose"
        " another location, or leave it out to get one (dropped objects keep their locations for a while)"
    )


def _rival_words(rival: RegisteredLocation, word: str) -> str:
    """Return what the other location is, for the message about a catalog's own location."""
    if rival.claim.kind in ROOTS or rival.claim.kind is LocationKind.LANCE_DIRECTORY:
        return f"another catalog's {_root_word(rival)}"
    return f"the location of another catalog's {word}"


def _root_word(rival: RegisteredLocation) -> str:
    return "directory" if rival.claim.kind is LocationKind.LANCE_DIRECTORY else "warehouse or allowed location"


def locations_release(tx: Tx, owner_id: int, *, claimant_id: int | None = None) -> None:
    """Record the permanent drop of an object whose files are kept: only one principal, the claimant, may reuse its
    location.

    The claimant is `claimant_id`, else the object's owner, else the user who dropped it. So call this before the owner
    is deleted. Locations of an external fileset, which owned no files, are free once its credentials have expired.
    """
    external = [each for each in tx.places.of(owner_id) if each.claim.kind is LocationKind.EXTERNAL_FILESET]
    tx.places.end(owner_id, state=LocationState.RELEASED, claimant_id=claimant_id)
    _expire(tx, external, claimant_id=claimant_id)


def locations_leave(tx: Tx, owner_id: int) -> None:
    """Record that an object is removed and its files are left to others. Its locations are free once its credentials
    have expired; until then only the caller may use them.
    """
    _expire(tx, tx.places.of(owner_id), claimant_id=tx.actor_id)


def _expire(tx: Tx, places: Iterable[RegisteredLocation], *, claimant_id: int | None) -> None:
    for each in places:
        record = None if is_local(each.location) else catalog_read(tx, each.claim.catalog_id)
        properties = {} if record is None else record.properties
        keys_ms = keys_life_ms(properties, parse(each.location).scheme, is_named=STORAGE in properties)
        tx.places.expire(each, keys_ms=keys_ms, claimant_id=claimant_id)


def locations_mark_deleting(tx: Tx, owner_id: int) -> None:
    """Record that a task will delete an object's files."""
    tx.places.end(owner_id, state=LocationState.DELETING, claimant_id=None)


def rivals_of(tx: Tx, location: str, *, but: int = 0) -> list[str]:
    """Return the locations of objects, other than the object `but`, to which files at a location could belong, up to a
    limit.

    Roots of catalogs do not count, nor an object at the same location whose files are being deleted.
    """
    key = place_key(location)
    rivals = (
        each.location
        for each in _claims_near(tx, key, but=but)
        if each.claim.kind not in ROOTS and not (each.claim.state is LocationState.DELETING and each.location == key)
    )
    return list(islice(rivals, RIVALS_MAX))
