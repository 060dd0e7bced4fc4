# SPDX-License-Identifier: Apache-2.0
"""The rules of storage locations, checked completely: each kind against each kind, in each relation, for each pair of
owners, compared with a separate table.
"""

from __future__ import annotations

from itertools import product

import pytest

from limnos.model.storage_locations import OF_CATALOGS, LocationClaim, LocationKind, LocationState
from limnos.services.request.location_rules import (
    ClaimVerdict,
    LocationRelation,
    find_conflicting_claims,
    judge_claim,
    may_coexist,
    relation_of,
)

# Columns: the row's location relative to the column's (= same, a above, b below), both of different owners. First in
# one catalog, then in two catalogs of one metalake. Locations of two metalakes never conflict.
KINDS = ["TABLE", "DATA_PATH", "VIEW", "LANCE_TABLE", "FILESET", "STAGED_TABLE", "EXTERNAL_FILESET", "RESTRICTED_READS"]
ONE_CATALOG = {("EXTERNAL_FILESET", "EXTERNAL_FILESET"): "=ab", ("RESTRICTED_READS", "RESTRICTED_READS"): "=ab"}
TWO_CATALOGS = {("RESTRICTED_READS", "RESTRICTED_READS"): "=ab"}
for kind in KINDS:
    for cells in (ONE_CATALOG, TWO_CATALOGS):
        cells[kind, "WAREHOUSE"] = "b"
        cells["WAREHOUSE", kind] = "a"
    ONE_CATALOG[kind, "ALLOWED_LOCATION"] = ONE_CATALOG["ALLOWED_LOCATION", kind] = "=ab"
    ONE_CATALOG[kind, "LANCE_DIRECTORY"] = ONE_CATALOG["LANCE_DIRECTORY", kind] = "=ab"
    TWO_CATALOGS[kind, "ALLOWED_LOCATION"] = "=b" if kind == "EXTERNAL_FILESET" else "b"
    TWO_CATALOGS["ALLOWED_LOCATION", kind] = "=a" if kind == "EXTERNAL_FILESET" else "a"
for root, other in product(("WAREHOUSE", "ALLOWED_LOCATION"), repeat=2):
    ONE_CATALOG[root, other] = TWO_CATALOGS[root, other] = "=ab"
for root in ("WAREHOUSE", "ALLOWED_LOCATION"):
    ONE_CATALOG[root, "LANCE_DIRECTORY"] = ONE_CATALOG["LANCE_DIRECTORY", root] = "=ab"
for cells in (ONE_CATALOG, TWO_CATALOGS):
    cells["LANCE_DIRECTORY", "LANCE_DIRECTORY"] = "=ab"
TWO_CATALOGS["LANCE_DIRECTORY", "ALLOWED_LOCATION"] = "b"
TWO_CATALOGS["ALLOWED_LOCATION", "LANCE_DIRECTORY"] = "a"
SIGNS = {LocationRelation.SAME: "=", LocationRelation.ABOVE: "a", LocationRelation.BELOW: "b"}
WHOSE = {"own": {}, "one catalog": ONE_CATALOG, "two catalogs": TWO_CATALOGS, "two metalakes": {}}
METALAKE, CATALOG, OTHER_CATALOG, OTHER_METALAKE = 1, 10, 11, 2


def pair(
    kind: LocationKind, other: LocationKind, *, whose: str, state: LocationState = LocationState.LIVE
) -> tuple[LocationClaim, LocationClaim]:
    """Return two locations. A catalog's own locations have the catalog's id as owner, unless different owners are
    required.
    """
    first = LocationClaim(
        kind=kind, owner_id=CATALOG if kind in OF_CATALOGS else 100, catalog_id=CATALOG, metalake_id=METALAKE
    )
    if whose == "own":
        return first, first._replace(kind=other, state=state)
    catalog, metalake = {
        "one catalog": (CATALOG, METALAKE),
        "two catalogs": (OTHER_CATALOG, METALAKE),
        "two metalakes": (20, OTHER_METALAKE),
    }[whose]
    return first, LocationClaim(
        kind=other, owner_id=200 + catalog, catalog_id=catalog, metalake_id=metalake, state=state
    )


CELLS = [
    pytest.param(kind, other, relation, whose, id=f"{kind.name} {relation.name} {other.name} of {whose}")
    for kind, other, relation, whose in product(LocationKind, LocationKind, LocationRelation, WHOSE)
]


def expected(kind: LocationKind, other: LocationKind, relation: LocationRelation, whose: str) -> bool:
    """Return the expected result by the tables above."""
    return whose == "own" or SIGNS[relation] in WHOSE[whose].get((kind.name, other.name), "")


@pytest.mark.parametrize("kind, other, relation, whose", CELLS)
def test_every_pair_of_locations_matches_the_expected_table(
    kind: LocationKind, other: LocationKind, relation: LocationRelation, whose: str
) -> None:
    """For every pair of kinds, owners and relations the rules give the result of an independent table, in both
    directions.
    """
    new, rival = pair(kind, other, whose=whose)

    allowed = expected(kind, other, relation, whose)
    assert may_coexist(new, rival, relation=relation) is allowed
    assert may_coexist(rival, new, relation=relation.inverse) is allowed
    assert judge_claim(new, rival, relation=relation, is_own=False) is (
        ClaimVerdict.ALLOWED if allowed else ClaimVerdict.REFUSED
    )


@pytest.mark.parametrize("state", LocationState)
@pytest.mark.parametrize("whose", WHOSE)
def test_dropped_location_can_be_reused_only_by_its_owner(state: LocationState, whose: str) -> None:
    """Only an object at the same location in the same metalake may replace a dropped object of the same owner."""
    for kind, other, relation, is_own in product(LocationKind, LocationKind, LocationRelation, (True, False)):
        new, rival = pair(kind, other, whose=whose, state=state)
        verdict = judge_claim(new, rival, relation=relation, is_own=is_own)
        if expected(kind, other, relation, whose):
            assert verdict is ClaimVerdict.ALLOWED
            continue
        if state is LocationState.DELETING:
            assert verdict is ClaimVerdict.WAIT
            continue
        is_object = kind.name in KINDS
        makes_way = is_own and is_object and relation is LocationRelation.SAME and whose != "two metalakes"
        makes_way = makes_way and (state is not LocationState.LIVE or other is LocationKind.STAGED_TABLE)
        assert verdict is (ClaimVerdict.REPLACES if makes_way else ClaimVerdict.REFUSED)


def test_conflicting_stored_location_does_not_refuse_new_objects() -> None:
    """A stored location that violates the rules does not refuse new objects, but still refuses roots and
    directories.
    """
    for kind, other, relation in product(LocationKind, LocationKind, LocationRelation):
        new, rival = pair(kind, other, whose="two catalogs")
        if may_coexist(new, rival, relation=relation):
            continue
        expected = ClaimVerdict.ALLOWED if kind.name in KINDS else ClaimVerdict.REFUSED
        assert judge_claim(new, rival._replace(is_conflicting=True), relation=relation, is_own=False) is expected


def test_exactly_one_location_of_a_conflicting_pair_is_marked() -> None:
    """Of every stored pair that violates a rule exactly one location is marked, in either order. No other pair has a
    mark.
    """
    for kind, other, relation, whose in product(LocationKind, LocationKind, LocationRelation, WHOSE):
        one, two = pair(kind, other, whose=whose)
        marked = find_conflicting_claims(one, two, relation=relation)
        assert set(marked) == set(find_conflicting_claims(two, one, relation=relation.inverse))
        assert bool(marked) is not may_coexist(one, two, relation=relation)
        assert not find_conflicting_claims(one._replace(is_conflicting=True), two, relation=relation)


@pytest.mark.parametrize(
    "one, other, relation, marked",
    [
        ("TABLE", "EXTERNAL_FILESET", LocationRelation.SAME, "EXTERNAL_FILESET"),
        ("EXTERNAL_FILESET", "TABLE", LocationRelation.ABOVE, "EXTERNAL_FILESET"),
        ("FILESET", "TABLE", LocationRelation.SAME, "TABLE"),
        ("TABLE", "WAREHOUSE", LocationRelation.SAME, "TABLE"),
        ("TABLE", "WAREHOUSE", LocationRelation.ABOVE, "TABLE"),
        ("LANCE_DIRECTORY", "TABLE", LocationRelation.ABOVE, "LANCE_DIRECTORY"),
        ("WAREHOUSE", "LANCE_DIRECTORY", LocationRelation.ABOVE, "LANCE_DIRECTORY"),
    ],
)
def test_kind_or_else_age_decides_which_location_is_marked(
    one: str, other: str, relation: LocationRelation, marked: str
) -> None:
    """Of two conflicting locations, a directory, a location that contains a root, or an external fileset is marked,
    else the younger location.
    """
    pair_of = pair(LocationKind[one], LocationKind[other], whose="two catalogs")

    assert [each.kind.name for each in find_conflicting_claims(*pair_of, relation=relation)] == [marked]


def test_roots_of_two_metalakes_are_both_marked() -> None:
    """Two overlapping roots are both marked, and so is a root over another metalake's table."""
    roots = pair(LocationKind.WAREHOUSE, LocationKind.ALLOWED_LOCATION, whose="two metalakes")
    over = pair(LocationKind.WAREHOUSE, LocationKind.TABLE, whose="two metalakes")

    assert find_conflicting_claims(*roots, relation=LocationRelation.ABOVE) == roots
    assert find_conflicting_claims(*over, relation=LocationRelation.ABOVE) == over[:1]
    assert find_conflicting_claims(over[1], over[0], relation=LocationRelation.BELOW) == over[:1]


@pytest.mark.parametrize(
    "location, other, relation",
    [
        ("s3://b/x", "s3://b/x", LocationRelation.SAME),
        ("s3://b", "s3://b/x", LocationRelation.ABOVE),
        ("s3://b/x/y/z", "s3://b/x", LocationRelation.BELOW),
        ("s3://b/x", "s3://b/x-1", None),
        ("s3://b/x.y", "s3://b/x", None),
        ("s3://b", "s3://bb", None),
        ("file:///", "file:///a", LocationRelation.ABOVE),
        ("file:///a", "file:///", LocationRelation.BELOW),
    ],
)
def test_containment_is_decided_by_whole_path_segments(
    location: str, other: str, relation: LocationRelation | None
) -> None:
    """One location contains another by whole path segments, not by a prefix of a name."""
    assert relation_of(location, other) is relation
    assert relation_of(other, location) is (None if relation is None else relation.inverse)
