# SPDX-License-Identifier: Apache-2.0
"""Prechecks: a cheap check whether a user could take an action on any target, before the target is known.

Pure. A negative result is final; after a positive result, `decide` must still decide on the actual target.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS
from limnos.access.rules import (
    AllOf,
    AnyOf,
    ByKind,
    NotDeniedRule,
    OwnerAboveRule,
    OwnerOf,
    OwnerRule,
    PrivilegeRule,
    Rule,
    ServiceAdminRule,
)
from limnos.model.decisions import SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import Subject

_OPEN = {Kind.METALAKE: frozenset({Kind.METALAKE}), Kind.CATALOG: frozenset({Kind.METALAKE, Kind.CATALOG})}
"""The kinds of objects below which the target may lie at any depth. Owners are known only for these kinds.
"""


def may_be_allowed(subject: Subject, action: Action, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    """Return whether the subject could take the action on the first object of the chain, or on an object below it.

    A privilege counts on any object on which it is held, and denials are ignored. Ownership of objects below the chain
    counts as possible.
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
    return True  # rules on membership, the user itself or its roles: usually true here, and cheap to decide


def _may_own(kinds: frozenset[Kind], subject: Subject, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    if chain and kinds - _OPEN.get(chain[0].kind, kinds):
        return True
    owners = [owner_of(link) for link in chain if link.kind in kinds and link.id > 0]
    return any(owner in subject.principal_ids for owner in owners if owner is not None)
