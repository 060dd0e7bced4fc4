"""Whether somebody could do a thing at all, before it is known to what exactly: a question of little cost, asked early.

May import `model`, the policy and its rules. Pure. A yes promises nothing, the decision still has to be made; a no is certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.policy import POLICY, SERVER_ACTIONS
from limnos.access.rules import (
    AllOf,
    AnyOf,
    ByKind,
    NotDeniedRule,
    OwnerAboveRule,
    OwnerRule,
    PrivilegeRule,
    ServiceAdminRule,
)
from limnos.model.kinds import Kind

if TYPE_CHECKING:
    from limnos.access.actions import Action
    from limnos.access.rules import OwnerOf, Rule
    from limnos.model.decisions import SecurableChain
    from limnos.model.principals import Subject

_OPEN = {Kind.METALAKE: frozenset({Kind.METALAKE}), Kind.CATALOG: frozenset({Kind.METALAKE, Kind.CATALOG})}
"""Where a chain begins here, what the action is done to may lie anywhere below; of these kinds alone the owner is known."""


def may_be_allowed(subject: Subject, action: Action, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    """Say whether the subject could do the action to the first object of the chain, or to something below it.

    A privilege counts wherever it is held, and denials do not. Somebody may own what is not named yet, unless the chain
    leads to it.
    """
    if not subject.member and action not in SERVER_ACTIONS:
        return False
    return _holds(POLICY[action], subject, chain, owner_of)


def _holds(rule: Rule, subject: Subject, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    match rule:
        case AllOf(parts=parts):
            return all(_holds(part, subject, chain, owner_of) for part in parts)
        case AnyOf(parts=parts):
            return any(_holds(part, subject, chain, owner_of) for part in parts)
        case ByKind(rules=rules):
            return any(_holds(each, subject, chain, owner_of) for each in rules.values())
        case PrivilegeRule(privilege=privilege):
            return privilege in subject.allow_ids
        case OwnerRule(kinds=kinds) | OwnerAboveRule(kinds=kinds):
            return _may_own(kinds, subject, chain, owner_of)
        case ServiceAdminRule():
            return subject.service_admin
        case NotDeniedRule():
            return True
    return True  # membership, oneself, a role one holds: true for somebody who got as far as this, or cheap to find out


def _may_own(kinds: frozenset[Kind], subject: Subject, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    if chain and kinds - _OPEN.get(chain[0].kind, kinds):
        return True
    owners = [owner_of(link) for link in chain if link.kind in kinds and link.id > 0]
    return any(owner in subject.principal_ids for owner in owners if owner is not None)
