# SPDX-License-Identifier: Apache-2.0
"""Read restrictions: the selection of those that apply to a user, and the actions that they refuse.

Pure, like `access.decide`. A restriction applies to all users or to named principals, except for exempt principals and
the owners of its object or of a container of that object. Restricted users can only read the table through scan
planning. Their privileges to open files, or to move the table away from the restriction, have no effect. Decision
record 0093.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.decide import is_allowed
from limnos.access.rules import OwnerOf
from limnos.model.decisions import KIND_WORDS, Decision, DecisionFactor, SecurableChain, display_names
from limnos.model.kind_table import kinds_with
from limnos.model.principals import HeldRole, RoleRules, Rule, Subject
from limnos.model.privileges import Privilege
from limnos.model.restrictions import Restriction

RESTRICTED_KINDS: Final = kinds_with(lambda row: row.restricted)
RESTRICTED_ACTIONS: Final = frozenset(
    {
        Action.TABLE_LOAD,
        Action.TABLE_READ,
        Action.TABLE_ALTER,
        Action.TABLE_COMMIT,
        Action.TABLE_REPORTS,
        Action.TABLE_CHECK,
        Action.TABLE_MAINTAIN,
        Action.TABLE_REWRITE,
        Action.TABLE_DROP,
        Action.TABLE_RENAME,
        Action.TABLE_MOVE,
        Action.NAMESPACE_MOVE,
        Action.NAMESPACE_DROP,
        Action.UNDROP,
        Action.EXTERNAL_DATASET_LOAD,
    }
)
"""Actions that are refused to restricted users.

`TABLE_SCAN` remains allowed, because it is used only where restrictions are applied.
"""


LEAVING_ACTIONS: Final = frozenset(
    (Action.TABLE_DROP, Action.TABLE_RENAME, Action.TABLE_MOVE, Action.NAMESPACE_DROP, Action.NAMESPACE_MOVE)
)
"""Actions by which an object leaves its name. On a restricted object they also need the right to restrict it."""


class BindingRestriction(NamedTuple):
    """A restriction that applies to the subject. `at` is the index of its object in the chain: 0 for the target, then
    its ancestors.
    """

    restriction: Restriction
    at: int


def binding_restrictions(
    subject: Subject,
    chain: SecurableChain,
    *,
    by_object: Mapping[int, tuple[Restriction, ...]],
    owner_of: OwnerOf,
    active: frozenset[str] | None,
) -> tuple[BindingRestriction, ...]:
    """Return the restrictions that apply to a subject on the first object of `chain`, the nearest first.

    Args:
        subject: The user with groups and roles.
        chain: The target and its ancestors.
        by_object: Restrictions by the id of the object they are set on.
        owner_of: Returns the owner of a link; may raise.
        active: Names of the active roles, None for all. Only active roles exempt a user from a restriction, but every
            role that is held can make it apply.
    """
    if not any(link.id in by_object for link in chain):
        return ()
    applies = _test_of(subject, active)
    restrictions = []
    for at, link in enumerate(chain):
        current = by_object.get(link.id, ()) if link.kind in RESTRICTED_KINDS else ()
        if not current or any(owner_of(above) in subject.principal_ids for above in chain[at:] if above.id > 0):
            continue
        restrictions += [BindingRestriction(each, at) for each in current if applies(each)]
    return tuple(restrictions)


def may_be_restricted(
    subject: Subject, by_object: Mapping[int, tuple[Restriction, ...]], *, active: frozenset[str] | None
) -> bool:
    """Return whether any of a catalog's restrictions applies to a subject who owns none of their objects."""
    applies = _test_of(subject, active)
    return any(applies(each) for restrictions in by_object.values() for each in restrictions)


def _test_of(subject: Subject, active: frozenset[str] | None) -> Callable[[Restriction], bool]:
    """Return the test whether a restriction names a subject, or all users, and does not except the subject."""
    excepting = {
        role.rules.id for role in subject.roles if active is None or role.rules.name in active
    } | subject.principal_ids
    restricted_ids = subject.role_ids | subject.principal_ids
    return lambda each: (
        not each.terms.denies
        and excepting.isdisjoint(each.terms.unless)
        and (not each.terms.to or not restricted_ids.isdisjoint(each.terms.to))
    )


def restrictions_left(
    action: Action, chain: SecurableChain, *, by_object: Mapping[int, tuple[Restriction, ...]]
) -> tuple[BindingRestriction, ...]:
    """Return the restrictions whose object or name an action leaves: those of the target, and for a move of a table
    those of its ancestors.
    """
    links = chain if action == Action.TABLE_MOVE else chain[:1]
    return tuple(BindingRestriction(each, at) for at, link in enumerate(links) for each in by_object.get(link.id, ()))


def may_leave(
    subject: Subject,
    action: Action,
    *,
    chain: SecurableChain,
    by_object: Mapping[int, tuple[Restriction, ...]],
    owner_of: OwnerOf,
) -> bool:
    """Return whether an action leaves no restricted object or name that the subject may not restrict."""
    if action not in LEAVING_ACTIONS or not by_object:
        return True
    left = restrictions_left(action, chain, by_object=by_object)
    return all(is_allowed(subject, Action.RESTRICT, chain=chain[each.at :], owner_of=owner_of) for each in left)


def refuse_restricted(decision: Decision, result: tuple[BindingRestriction, ...], *, chain: SecurableChain) -> Decision:
    """Return the decision as a refusal, with each restriction in `result` as a reason."""
    names = display_names(chain)
    factors = tuple(
        DecisionFactor(
            kind="restricted",
            privilege=each.restriction.name,
            object_id=chain[each.at].id,
            object_kind=KIND_WORDS[chain[each.at].kind],
            object_name=names[each.at],
        )
        for each in result
    )
    return msgspec.structs.replace(decision, allowed=False, factors=factors)


def refuse_leaving(
    decision: Decision, left: tuple[BindingRestriction, ...], *, chain: SecurableChain, lacking: Decision
) -> Decision:
    """Return the decision as a refusal to leave restrictions, with the rights that the user lacks to restrict the
    object, as the decision `lacking` names them, and with each restriction in `left`.
    """
    refused = refuse_restricted(decision, left, chain=chain)
    return msgspec.structs.replace(refused, factors=(*lacking.factors, *refused.factors))


def find_inherited_denial(factor: DecisionFactor, restrictions: Mapping[int, tuple[Restriction, ...]]) -> str | None:
    """Return the name of the restriction by which an object took a denial over from a former object of its path; None
    for a denial that is a grant of the role. Such a denial ends with the restriction.
    """
    if factor.kind != "deny" or factor.privilege is None:
        return None
    code = int(Privilege[factor.privilege])
    return next(
        (
            each.name
            for each in restrictions.get(factor.object_id, ())
            if code in each.terms.denies and each.name == f"denials of {factor.role}"
        ),
        None,
    )


def deny_inherited(subject: Subject, denying: Iterable[Restriction]) -> Subject:
    """Return the subject with the denials of restrictions that deny privileges to one of its roles."""
    names = {role.rules.id: role.rules.name for role in subject.roles}
    roles = [
        HeldRole(RoleRules.of(role_id, names[role_id], deny=_denied_rules(each)), None)
        for each in denying
        for role_id in each.terms.to
        if role_id in names
    ]
    return dataclasses.replace(subject, roles=(*subject.roles, *roles), merged=None) if roles else subject


def deny_inherited_on(
    subject: Subject, chain: SecurableChain, *, by_object: Mapping[int, tuple[Restriction, ...]]
) -> Subject:
    """Return the subject with the denials that the objects of `chain` took over."""
    denying = [each for link in chain for each in by_object.get(link.id, ()) if each.terms.denies]
    return deny_inherited(subject, denying) if denying else subject


def _denied_rules(restriction: Restriction) -> list[Rule]:
    return [(Privilege(each), restriction.object_id) for each in restriction.terms.denies]
