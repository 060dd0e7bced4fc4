"""The register of places inside a transaction: take a place under the rules, give it up, and say what keeps one out.

May import `files` for the spelling of locations, `model`, `store` and the rules (`services.request.place_rules`). Every mutation that brings a
location calls this. What is refused names no object and no place but the caller's own: the caller may not see the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.files import place_key
from limnos.model.errors import BadRequest, Unavailable
from limnos.model.places import OF_CATALOGS, ROOTS, Claim, PlaceKind, PlaceState
from limnos.services.request.place_rules import Relation, Verdict, judge, relation_of
from limnos.store.places import RIVALS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limnos.store.places import Place
    from limnos.store.tx import Tx

_WORDS: Final = {
    PlaceKind.TABLE: "table", PlaceKind.DATA_PATH: "table", PlaceKind.VIEW: "view", PlaceKind.LANCE_TABLE: "table",
    PlaceKind.LANCE_DIRECTORY: "directory that a catalog shows", PlaceKind.FILESET: "managed fileset",
    PlaceKind.EXTERNAL_FILESET: "fileset", PlaceKind.WAREHOUSE: "catalog's warehouse", PlaceKind.ALLOWED_LOCATION: "catalog's root",
    PlaceKind.STAGED_TABLE: "staged table", PlaceKind.RESTRICTED_READS: "directory for restricted reads",
}  # fmt: skip
_SIDES: Final = {Relation.SAME: "at", Relation.BELOW: "around", Relation.ABOVE: "inside"}
_FIRST_LENGTH: Final = len("file:///")


def key_of(location: str) -> str:
    """Return the key of a location in normal form. Most are a directory of their own in one that was asked for before."""
    parent, _, name = location.rpartition("/")
    if name.isalnum() and name.isascii() and len(parent) > _FIRST_LENGTH and not parent.endswith("/"):
        return f"{place_key(parent)}/{name}"
    return place_key(location)


def place_take(tx: Tx, kind: PlaceKind, *, owner_id: int, catalog_id: int, location: str) -> None:
    """Write an object's place into the register. Raises BadRequest where a rule keeps it out, Unavailable where files are being deleted.

    The caller holds the locks of the location (`DocumentWrites.create`, `PlaceWrites.lock`).
    """
    claim, key = Claim(kind, owner_id, catalog_id, 0), key_of(location)
    if not tx.places.insert_free(claim, key):
        place_judge(tx, claim, key=key, location=location)
        tx.places.put(claim, key)


def places_take(tx: Tx, kind: PlaceKind, *, owner_id: int, catalog_id: int, locations: Iterable[str]) -> None:
    """Take the locks of several places in one order, then the places."""
    wanted = list(locations)
    tx.places.lock(map(key_of, wanted))
    for each in wanted:
        place_take(tx, kind, owner_id=owner_id, catalog_id=catalog_id, location=each)


def place_move(tx: Tx, kind: PlaceKind, *, owner_id: int, catalog_id: int, location: str) -> None:
    """Give an object another location. What it wrote at the earlier one is still its own, so that stays taken as well."""
    claim, key = Claim(kind, owner_id, catalog_id, 0), key_of(location)
    place_judge(tx, claim, key=key, location=location)
    tx.places.moved(owner_id, kind=kind, location=key)
    tx.places.put(claim, key)


def place_judge(tx: Tx, claim: Claim, *, key: str, location: str) -> None:
    """Apply the rules to a new place; the caller's own dropped object at the very place ends. Raises BadRequest, Unavailable."""
    claim = claim._replace(metalake_id=tx.places.metalake_of(claim.catalog_id))
    for rival in rivals_near(tx, claim, key=key):
        relation = relation_of(key, rival.location)
        if relation is None:
            continue
        verdict = judge(claim, rival.claim, relation=relation, is_own=False)
        if verdict is Verdict.REFUSED and relation is Relation.SAME:
            verdict = judge(claim, rival.claim, relation=relation, is_own=tx.places.is_own(rival))
        if verdict is Verdict.REPLACES:
            _end(tx, rival)
        elif verdict is Verdict.WAIT:
            raise Unavailable(
                f"Files of what was dropped are being deleted {_SIDES[relation]} location {location}: try again when that is done",
                retry_after_s=5,
            )
        elif verdict is Verdict.REFUSED:
            raise _refused(claim, rival, relation=relation, location=location)


def rivals_near(tx: Tx, claim: Claim, *, key: str) -> Iterator[Place]:
    """Yield what others have at a location, above it (the nearest first), and below it; of a root only what could be in its way."""
    upwards = tx.places.upwards(key, but=claim.owner_id)
    yield from sorted(upwards, key=lambda each: (-len(each.location), each.claim.owner_id))
    after = ""
    root_of = claim.metalake_id if claim.kind in ROOTS else None
    while page := tx.places.lower(key, but=claim.owner_id, after=after, root_of=root_of):
        yield from page
        if len(page) < RIVALS_MAX:
            return
        after = page[-1].location


def _end(tx: Tx, rival: Place) -> None:
    """End what was dropped, or staged; its other places stay taken."""
    owner = rival.claim.owner_id
    if not tx.trash.forget(owner) and rival.claim.kind is not PlaceKind.STAGED_TABLE:
        tx.documents.delete(owner)
    tx.places.clear(owner, location=rival.location)


def _refused(claim: Claim, rival: Place, *, relation: Relation, location: str) -> BadRequest:
    if rival.claim.metalake_id != claim.metalake_id:
        told = f"Location {location} lies {_SIDES[relation]} a place of another metalake, and metalakes share no files: choose another"
        return BadRequest(told)
    mine, word = _WORDS[claim.kind], _WORDS[rival.claim.kind]
    if claim.kind in OF_CATALOGS:
        return BadRequest(
            f"Location {location} lies {_SIDES[relation]} the place of another catalog's {word}, which a {mine} may not: choose another (what "
            "was dropped keeps its place while its files stand)"
        )
    if rival.claim.kind in ROOTS or rival.claim.kind is PlaceKind.LANCE_DIRECTORY:
        return BadRequest(
            f"Location {location} lies {_SIDES[relation]} another catalog's {_root_word(rival)}, where a {mine} may not lie: choose another"
        )
    return BadRequest(
        f"Another {word} lies {'at' if relation is Relation.SAME else 'above' if relation is Relation.BELOW else 'below'} location {location}, "
        f"and {'tables' if mine == word == 'table' else 'objects'} do not share files: choose a location of its own, or leave it out to get one (what was dropped keeps its place for "
        "a while)"
    )


def _root_word(rival: Place) -> str:
    return "directory" if rival.claim.kind is PlaceKind.LANCE_DIRECTORY else "warehouse or root"


def places_release(tx: Tx, owner_id: int, *, claimant_id: int | None = None) -> None:
    """Note that an object is dropped for good and its files stay: its place is taken still, except for who may take it again.

    That is `claimant_id`, else its owner, else who dropped it; so this is called before the owner is forgotten.
    """
    tx.places.end(owner_id, state=PlaceState.RELEASED, claimant_id=claimant_id)


def places_delete(tx: Tx, owner_id: int) -> None:
    """Note that a task is going to delete an object's files."""
    tx.places.end(owner_id, state=PlaceState.DELETING, claimant_id=None)


def rivals_of(tx: Tx, location: str, *, but: int = 0) -> list[str]:
    """Return the places of objects other than `but` that files at a location could belong to, the first few; those being deleted are no rivals."""
    key = place_key(location)
    near = [*tx.places.upwards(key, but=but), *tx.places.lower(key, but=but)]
    return [
        each.location
        for each in near
        if each.claim.kind not in ROOTS and not (each.claim.state is PlaceState.DELETING and each.location == key)
    ]
