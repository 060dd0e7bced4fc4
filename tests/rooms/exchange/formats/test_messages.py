# SPDX-License-Identifier: Apache-2.0
"""Export records of read restrictions, and the terms that an import builds from them."""

from __future__ import annotations

from collections.abc import Iterable

from limnos.model.restrictions import ColumnMask, FormerColumn, Restriction, RestrictionTerms
from limnos.rooms.exchange.formats.messages import restriction, terms_of

TERMS = RestrictionTerms(
    masks=(ColumnMask("card", "replace-with-null"),),
    to=(7, 8),
    unless=(9,),
    former=(FormerColumn(5, 2, "card"),),
    inherited=True,
    denies=(6, 7),
)


def imported(known: dict[int, int]) -> RestrictionTerms:
    """Return the terms after an import into a store with other ids; `known` maps the ids of imported objects."""

    def ids(old: Iterable[int]) -> tuple[int, ...]:
        return tuple(known[each] for each in old if each in known)

    return terms_of(
        restriction(Restriction(object_id=5, name="r", terms=TERMS, set_by="admin", set_at=0)).restriction, ids
    )


def test_restriction_keeps_former_columns_and_principals() -> None:
    """An import maps the ids of principals, and of the tables of former columns."""
    terms = imported({5: 105, 7: 107, 8: 108, 9: 109})

    assert terms == RestrictionTerms(
        masks=TERMS.masks,
        to=(107, 108),
        unless=(109,),
        former=(FormerColumn(105, 2, "card"),),
        inherited=True,
        denies=(6, 7),
    )


def test_unknown_restricted_principal_restricts_all_users() -> None:
    """An import without one of the restricted principals restricts all users, and exempts only known principals."""
    terms = imported({5: 105, 7: 107})

    assert (terms.to, terms.unless) == ((), ())
