# SPDX-License-Identifier: Apache-2.0
"""`decide`: the one function that makes access decisions.

Pure: no I/O, no clock, no knowledge beyond its arguments. Missing facts are handled by the caller: `owner_of` may
raise, and its exception propagates.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS
from limnos.access.rules import DecisionCase, OwnerAboveRule, OwnerOf, OwnerRule, PrivilegeRule, Rule
from limnos.model.decisions import KIND_WORDS, ChainLink, Decision, DecisionFactor, SecurableChain
from limnos.model.kinds import ROOT_ID
from limnos.model.principals import Subject

ZoneRevisions = tuple[tuple[int, int], ...]
"""Pairs of zone and revision at which a decision was made."""


def decide(
    subject: Subject, action: Action, chain: SecurableChain, owner_of: OwnerOf, *, revision: ZoneRevisions = ()
) -> Decision:
    """Decide whether the subject may take an action on the first object of `chain`.

    Returns the decision with its reasons. Membership of the metalake is checked first, except for actions of the
    server.

    Args:
        subject: The user with groups and roles.
        action: The action to decide about.
        chain: From the target up to the metalake. For a create, the target is the nearest existing container; for an
            absent target see `ChainLink.absent`.
        owner_of: Returns the owner of a link. Called only if grants do not decide; its exceptions propagate.
        revision: The revisions of the facts, recorded in the decision.
    """
    case = DecisionCase(subject, chain, owner_of)
    if not subject.member and action not in SERVER_ACTIONS:
        return _decision(case, action, (case.factor("member", len(chain) - 1),), revision, allowed=False)
    rule = POLICY[action]
    proof = rule.evaluate(case)
    if proof is not None:
        return _decision(case, action, proof, revision, allowed=True)
    return _decision(
        case, action, _missing_factors(rule, case) + _satisfied_factors(rule, case), revision, allowed=False
    )


def is_allowed(subject: Subject, action: Action, *, chain: SecurableChain, owner_of: OwnerOf) -> bool:
    """Return only the verdict of `decide`. Faster, for checks of many users and objects."""
    if not subject.member and action not in SERVER_ACTIONS:
        return False
    return POLICY[action].is_met(DecisionCase(subject, chain, owner_of, is_named=False))


def allow_unchecked(
    subject: Subject, action: Action, chain: SecurableChain, *, revision: ZoneRevisions = ()
) -> Decision:
    """Return the decision for disabled access control: allowed, with the factor `access-off`."""
    case = DecisionCase(subject, chain, _no_owner)
    return _decision(case, action, (DecisionFactor(kind="access-off"),), revision, allowed=True)


def _no_owner(_link: ChainLink) -> int | None:
    return None


def _decision(
    case: DecisionCase, action: Action, factors: tuple[DecisionFactor, ...], revision: ZoneRevisions, *, allowed: bool
) -> Decision:
    user = case.subject.user_name
    if not case.chain:
        return Decision(
            allowed=allowed,
            action=action.word,
            target_id=ROOT_ID,
            target="server",
            user=user,
            factors=factors,
            revision=revision,
            target_kind="server",
        )
    target = case.chain[0]
    word = KIND_WORDS[target.kind]
    return Decision(
        allowed=allowed,
        action=action.word,
        target_id=target.id,
        target=case.names[0],
        user=user,
        factors=factors,
        revision=revision,
        target_kind=word,
    )


def _missing_factors(rule: Rule, case: DecisionCase) -> tuple[DecisionFactor, ...]:
    """Return the missing grants and the denials that cause a refusal, each with the number of its clause.

    The action would be allowed if one factor of each clause changed.
    """
    clauses = rule.wants(case) or ()
    return tuple(
        DecisionFactor(
            kind=f.kind,
            privilege=f.privilege,
            object_id=f.object_id,
            object_kind=f.object_kind,
            object_name=f.object_name,
            role=f.role,
            group=f.group,
            clause=number,
        )
        for number, clause in enumerate(clauses)
        for f in dict.fromkeys(clause)
    )


def _satisfied_factors(rule: Rule, case: DecisionCase) -> tuple[DecisionFactor, ...]:
    """Return the privileges and ownerships of the rule that the subject has, as factors."""
    leaves = [
        leaf for leaf in rule.leaves(case.target_kind) if isinstance(leaf, PrivilegeRule | OwnerRule | OwnerAboveRule)
    ]
    return tuple(dict.fromkeys(factor for leaf in leaves for factor in leaf.evaluate(case) or ()))
