"""Which read restrictions bind somebody, and what is closed to whom they bind.

May import `model` and this room. Pure, as `access.decide` is. A restriction binds everybody, or who is named, but those that it excepts and who owns what it is on, or something
above that. Whoever is bound reads through scan planning, and does nothing else to the table: a right that opens files, or takes the table out of
the restriction's reach, is as if it were not there. Decision record 0093.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import KIND_WORDS, DecisionFactor, display_names
from limnos.model.kind_table import kinds_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.access.rules import OwnerOf
    from limnos.model.decisions import Decision, SecurableChain
    from limnos.model.principals import Subject
    from limnos.model.restrictions import Restriction

RESTRICTED_KINDS: Final = kinds_with(lambda row: row.restricted)
RESTRICTED_ACTIONS: Final = frozenset(
    {
        Action.TABLE_LOAD, Action.TABLE_READ, Action.TABLE_ALTER, Action.TABLE_COMMIT, Action.TABLE_REPORTS, Action.TABLE_CHECK, Action.TABLE_DROP,
        Action.TABLE_RENAME, Action.TABLE_MOVE, Action.NAMESPACE_MOVE, Action.NAMESPACE_DROP, Action.UNDROP,
    }
)  # fmt: skip
"""What is not done by whom a restriction binds. `TABLE_SCAN` is the way that stays open, to doors that obey restrictions."""


class BindingRestriction(NamedTuple):
    """A restriction that binds, and the place in the chain of what it is on."""

    restriction: Restriction
    at: int


def binding_restrictions(
    subject: Subject, chain: SecurableChain, *, by_object: Mapping[int, tuple[Restriction, ...]], owner_of: OwnerOf, active: frozenset[str] | None
) -> tuple[BindingRestriction, ...]:  # fmt: skip
    """Return the restrictions that bind a subject on what the chain begins with, the nearest first.

    `active`: the names of the roles that alone may allow anything: only those except somebody, while every role that is held binds. `owner_of` may raise.
    """
    excepting = {
        held.rules.id for held in subject.roles if active is None or held.rules.name in active
    } | subject.principal_ids
    named = subject.role_ids | subject.principal_ids
    found = []
    for at, link in enumerate(chain):
        held = by_object.get(link.id, ()) if link.kind in RESTRICTED_KINDS else ()
        if not held or any(owner_of(above) in subject.principal_ids for above in chain[at:] if above.id > 0):
            continue
        found += [
            BindingRestriction(each, at)
            for each in held
            if excepting.isdisjoint(each.terms.unless) and (not each.terms.to or not named.isdisjoint(each.terms.to))
        ]
    return tuple(found)


def refuse_restricted(decision: Decision, found: tuple[BindingRestriction, ...], *, chain: SecurableChain) -> Decision:
    """Return a decision as it is for whom restrictions bind: refused, with each restriction as a reason."""
    names = display_names(chain)
    factors = tuple(
        DecisionFactor(
            "restricted", each.restriction.name, chain[each.at].id, KIND_WORDS[chain[each.at].kind], names[each.at]
        )
        for each in found
    )
    return msgspec.structs.replace(decision, allowed=False, factors=factors)
