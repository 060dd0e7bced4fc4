"""The one function that decides, and the values it makes.

May import `model` and the policy. Pure: no I/O and no clock; what it is told is all it knows. A fact that is not at
hand is the caller's business: `owner_of` may raise, and that passes through untouched.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS
from limnos.access.rules import DecisionCase, OwnerAboveRule, OwnerOf, OwnerRule, PrivilegeRule, Rule
from limnos.model.decisions import KIND_WORDS, ChainLink, Decision, DecisionFactor, SecurableChain
from limnos.model.kinds import ROOT_ID
from limnos.model.principals import Subject

ZoneRevisions = tuple[tuple[int, int], ...]
"""Pairs of zone and revision that a decision holds at."""


def decide(
    subject: Subject, action: Action, chain: SecurableChain, owner_of: OwnerOf, *, revision: ZoneRevisions = ()
) -> Decision:
    """May the subject do this to the first object of the chain?

    `chain` goes from the target up to the metalake; for a create the target is the nearest existing scope, for
    something absent see `ChainLink.absent`. Membership of the metalake comes first, except for actions of the server.
    `owner_of` is called only where no grant settles the matter, and whatever it raises is not caught.
    """
    case = DecisionCase(subject, chain, owner_of)
    if not subject.member and action not in SERVER_ACTIONS:
        return _decision(case, action, (case.factor("member", len(chain) - 1),), revision, allowed=False)
    rule = POLICY[action]
    proof = rule.evaluate(case)
    if proof is not None:
        return _decision(case, action, proof, revision, allowed=True)
    return _decision(case, action, _gaps(rule, case) + _holdings(rule, case), revision, allowed=False)


def allow_unchecked(
    subject: Subject, action: Action, chain: SecurableChain, *, revision: ZoneRevisions = ()
) -> Decision:
    """The decision when access control is off: always yes, and it says why."""
    case = DecisionCase(subject, chain, _nobody)
    return _decision(case, action, (DecisionFactor("access-off"),), revision, allowed=True)


def _nobody(_link: ChainLink) -> int | None:
    return None


def _decision(
    case: DecisionCase, action: Action, factors: tuple[DecisionFactor, ...], revision: ZoneRevisions, *, allowed: bool
) -> Decision:
    user = case.subject.user_name
    if not case.chain:
        return Decision(allowed, action.word, ROOT_ID, "server", user, factors, revision, "server")
    target = case.chain[0]
    word = KIND_WORDS[target.kind]
    return Decision(allowed, action.word, target.id, case.names[0], user, factors, revision, word)


def _gaps(rule: Rule, case: DecisionCase) -> tuple[DecisionFactor, ...]:
    """What is missing or denied, numbered by clause: one factor of each clause has to change."""
    clauses = rule.wants(case) or ()
    return tuple(
        DecisionFactor(f.kind, f.privilege, f.object_id, f.object_kind, f.object_name, f.role, f.group, number)
        for number, clause in enumerate(clauses)
        for f in dict.fromkeys(clause)
    )


def _holdings(rule: Rule, case: DecisionCase) -> tuple[DecisionFactor, ...]:
    """What of the rule the subject does have."""
    leaves = [
        leaf for leaf in rule.leaves(case.target_kind) if isinstance(leaf, PrivilegeRule | OwnerRule | OwnerAboveRule)
    ]
    return tuple(dict.fromkeys(factor for leaf in leaves for factor in leaf.evaluate(case) or ()))
