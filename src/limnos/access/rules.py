# SPDX-License-Identifier: Apache-2.0
"""The expressions of rules, and their evaluation for one object and its ancestors.

Must not know actions or rules: `access.policy` composes them. Everything here is pure. `evaluate` returns the proof
(the factors that make an expression true) or None; `wants` returns the missing factors. The first part of an `AnyOf` is
the usual one, which an administrator would satisfy with a grant. It is the cheapest to evaluate (sets in memory, no
lookup of an owner), and refusals suggest it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from limnos.model import decisions
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.principals import HeldRole, Subject
from limnos.model.privileges import BINDS, Privilege

OwnerOf = Callable[[decisions.ChainLink], int | None]
"""A function that returns the principal (user or group id) that owns a link's object, or None. May raise if the fact is
not cached.
"""

Proof = tuple[decisions.DecisionFactor, ...]
Clauses = tuple[tuple[decisions.DecisionFactor, ...], ...]
"""The missing factors. One alternative of every clause is needed."""


class DecisionCase:
    """The input of one decision: the subject, the target with its ancestors (`chain`), and a function that finds
    owners. Only factors need the names of the objects: without `is_named` they are empty.
    """

    __slots__ = ("allow_ids", "chain", "deny_ids", "names", "owner_of", "principal_ids", "subject")

    def __init__(
        self, subject: Subject, chain: decisions.SecurableChain, owner_of: OwnerOf, *, is_named: bool = True
    ) -> None:
        self.subject = subject
        self.chain = chain
        self.names = decisions.display_names(chain) if is_named else [""] * len(chain)
        self.owner_of = owner_of
        self.allow_ids = subject.allow_ids
        self.deny_ids = subject.deny_ids
        self.principal_ids = subject.principal_ids

    @property
    def target_kind(self) -> Kind | None:
        """The kind of the target; None for the server itself."""
        return self.chain[0].kind if self.chain else None

    def factor(
        self,
        kind: decisions.FactorKind,
        at: int,
        privilege: str | None = None,
        held_role: HeldRole | None = None,
        group: str | None = None,
    ) -> decisions.DecisionFactor:
        """Build a factor of a decision, about the object at index `at` of `chain`, or about the server if `chain` is
        empty.

        `held_role` or `group` names the role or group through which the subject has the privilege or ownership.
        """
        role = None
        if held_role is not None:
            role, group = held_role.rules.name, held_role.via
        if not self.chain:
            return decisions.DecisionFactor(
                kind=kind,
                privilege=privilege,
                object_id=ROOT_ID,
                object_kind="server",
                object_name="server",
                role=role,
                group=group,
            )
        link = self.chain[at]
        return decisions.DecisionFactor(
            kind=kind,
            privilege=privilege,
            object_id=link.id,
            object_kind=decisions.KIND_WORDS[link.kind],
            object_name=self.names[at],
            role=role,
            group=group,
        )

    def holder(self, privilege: Privilege, object_id: int, *, denied: bool = False) -> HeldRole | None:
        """Return the first role that allows (or denies) a privilege on an object."""
        for role in self.subject.roles:
            ids = (role.rules.deny_ids if denied else role.rules.allow_ids).get(privilege)
            if ids is not None and object_id in ids:
                return role
        return None

    def deepest(self, kinds: frozenset[Kind]) -> int | None:
        """Return the index in `chain` of the innermost object of one of the kinds, or None."""
        for i, link in enumerate(self.chain):
            if link.kind in kinds:
                return i
        return None


class Rule(ABC):
    """A condition on a decision case: the abstract base class of all rules."""

    __slots__ = ()

    @abstractmethod
    def evaluate(self, case: DecisionCase) -> Proof | None:
        """Return the factors that make the condition true, or None if it is false."""

    def is_met(self, case: DecisionCase) -> bool:
        """Return whether the condition is true. Subclasses need no factors for it, nor the role that gives a right."""
        return self.evaluate(case) is not None

    @abstractmethod
    def wants(self, case: DecisionCase) -> Clauses | None:
        """Return the grants or changes of owner that would make a false condition true; None if there are none.

        All clauses are needed, and of each clause one factor is enough.
        """

    def leaves(self, kind: Kind | None = None) -> Iterator[Rule]:
        """Yield the simple conditions of a composed rule; with `kind`, only the conditions for that kind of target."""
        yield self


@dataclass(frozen=True, slots=True)
class PrivilegeRule(Rule):
    """A rule that is true if the privilege is allowed on the target or an ancestor, and denied on none of them."""

    privilege: Privilege
    name: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.privilege.name)

    def is_met(self, case: DecisionCase) -> bool:
        ids, denied = case.allow_ids.get(self.privilege), case.deny_ids.get(self.privilege)
        if ids is None or (denied is not None and any(link.id in denied for link in case.chain)):
            return False
        return any(link.id in ids for link in case.chain)

    def evaluate(self, case: DecisionCase) -> Proof | None:
        privilege = self.privilege
        ids = case.allow_ids.get(privilege)
        if ids is None:
            return None
        denied = case.deny_ids.get(privilege)
        if denied is not None and any(link.id in denied for link in case.chain):
            return None
        for i, link in enumerate(case.chain):
            if link.id in ids:
                return (case.factor("allow", i, self.name, case.holder(privilege, link.id)),)
        return None

    def wants(self, case: DecisionCase) -> Clauses | None:
        denial = NotDeniedRule(self.privilege).wants(case)
        if denial:
            return denial
        at = case.deepest(BINDS[self.privilege])
        return None if at is None else ((case.factor("missing", at, self.name),),)


@dataclass(frozen=True, slots=True)
class UseSchemaRule(PrivilegeRule):
    """A rule that is true if USE_SCHEMA is, or if the target lies in no schema and the caller has a right on it alone.

    A table directly in its catalog is in no schema. USE_SCHEMA on the catalog would open all schemas, so a privilege on
    the table itself, or its ownership, stands for it; privileges on the catalog do not.
    """

    privilege: Privilege = Privilege.USE_SCHEMA

    def is_met(self, case: DecisionCase) -> bool:
        return PrivilegeRule.is_met(self, case) or self._own_right(case) is not None

    def evaluate(self, case: DecisionCase) -> Proof | None:
        return PrivilegeRule.evaluate(self, case) or self._own_right(case)

    def wants(self, case: DecisionCase) -> Clauses | None:
        clauses = PrivilegeRule.wants(self, case)
        if not clauses or not _is_at_root(case) or clauses[0][0].kind == "deny":
            return clauses
        return ((*clauses[0], case.factor("missing", 0, Privilege.SELECT_TABLE.name)),)

    def _own_right(self, case: DecisionCase) -> Proof | None:
        if not _is_at_root(case):
            return None
        denied = case.deny_ids.get(self.privilege)
        if denied is not None and any(link.id in denied for link in case.chain):
            return None
        for privilege, ids in case.allow_ids.items():
            if case.chain[0].id in ids:
                return (case.factor("allow", 0, privilege.name, case.holder(privilege, case.chain[0].id)),)
        return OwnerRule(frozenset({Kind.TABLE})).evaluate(case)


def _is_at_root(case: DecisionCase) -> bool:
    return [link.kind for link in case.chain[:2]] == [Kind.TABLE, Kind.CATALOG]


@dataclass(frozen=True, slots=True)
class NotDeniedRule(Rule):
    """A rule that is true if the privilege is denied neither on the target nor on an ancestor."""

    privilege: Privilege

    def evaluate(self, case: DecisionCase) -> Proof | None:
        denied = case.deny_ids.get(self.privilege)
        return None if denied is not None and any(link.id in denied for link in case.chain) else ()

    def wants(self, case: DecisionCase) -> Clauses | None:
        denied = case.deny_ids.get(self.privilege, frozenset())
        return tuple(
            (case.factor("deny", i, self.privilege.name, case.holder(self.privilege, link.id, denied=True)),)
            for i, link in enumerate(case.chain)
            if link.id in denied
        )


@dataclass(frozen=True, slots=True)
class OwnerRule(Rule):
    """A rule that is true if the caller, or one of the caller's groups, owns the target or an ancestor of one of the
    kinds.

    The owner of a namespace owns its subtree, so any ancestor namespace counts.
    """

    kinds: frozenset[Kind]

    def evaluate(self, case: DecisionCase) -> Proof | None:
        kinds, owner_of, principals = self.kinds, case.owner_of, case.principal_ids
        for i, link in enumerate(case.chain):
            if link.kind in kinds and link.id >= 0 and (owner := owner_of(link)) in principals:
                return (case.factor("owner", i, None, None, _group(case.subject, owner)),)
        return None

    def wants(self, case: DecisionCase) -> Clauses | None:
        at = case.deepest(self.kinds)
        return None if at is None else ((case.factor("missing", at, decisions.OWNER),),)


@dataclass(frozen=True, slots=True)
class OwnerAboveRule(Rule):
    """A rule like `OwnerRule` that excludes the target: the caller or a group of the caller owns an ancestor of one of
    the kinds.
    """

    kinds: frozenset[Kind]

    def evaluate(self, case: DecisionCase) -> Proof | None:
        for i, link in enumerate(case.chain[1:], 1):
            if link.kind in self.kinds and link.id >= 0 and (owner := case.owner_of(link)) in case.principal_ids:
                return (case.factor("owner", i, None, None, _group(case.subject, owner)),)
        return None

    def wants(self, case: DecisionCase) -> Clauses | None:
        results = [i for i, link in enumerate(case.chain) if i and link.kind in self.kinds]
        return ((case.factor("missing", results[0], decisions.OWNER),),) if results else None


def _group(subject: Subject, owner: int | None) -> str | None:
    """Return the name of the group that owns an object if it can be determined.

    The subject's group ids and group names are not paired. So the result is None unless the subject is in one group
    only.
    """
    through_group = owner != subject.user_id and len(subject.groups) == len(subject.group_names) == 1
    return subject.group_names[0] if through_group else None


@dataclass(frozen=True, slots=True)
class ServiceAdminRule(Rule):
    """A rule that is true if the caller is a service admin."""

    def evaluate(self, case: DecisionCase) -> Proof | None:
        return (decisions.DecisionFactor(kind="service-admin"),) if case.subject.service_admin else None

    def wants(self, case: DecisionCase) -> Clauses | None:
        return (
            (
                decisions.DecisionFactor(
                    kind="missing", privilege=decisions.SERVICE_ADMIN, object_name="server", object_kind="server"
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class MemberRule(Rule):
    """A rule that is true if the caller is a user of the metalake.

    `decide` refuses other callers before it evaluates the rule of an action on a metalake.
    """

    def evaluate(self, case: DecisionCase) -> Proof | None:
        return (case.factor("member", len(case.chain) - 1),) if case.subject.member else None

    def wants(self, case: DecisionCase) -> Clauses | None:
        return None


@dataclass(frozen=True, slots=True)
class SelfRule(Rule):
    """A rule that is true if the target is the caller, or a group that the caller is in."""

    def evaluate(self, case: DecisionCase) -> Proof | None:
        is_found = bool(case.chain) and case.chain[0].id in case.principal_ids
        return (case.factor("self", 0),) if is_found else None

    def wants(self, case: DecisionCase) -> Clauses | None:
        return None


@dataclass(frozen=True, slots=True)
class HoldsRoleRule(Rule):
    """A rule that is true if the target is a role that the caller holds."""

    def evaluate(self, case: DecisionCase) -> Proof | None:
        if not case.chain or case.chain[0].id not in case.subject.role_ids:
            return None
        role = next(h for h in case.subject.roles if h.rules.id == case.chain[0].id)
        return (case.factor("self", 0, None, role),)

    def wants(self, case: DecisionCase) -> Clauses | None:
        return None


@dataclass(frozen=True, slots=True, init=False)
class AllOf(Rule):
    """A rule that is true if all of its parts are true."""

    parts: tuple[Rule, ...]

    def __init__(self, *parts: Rule) -> None:
        object.__setattr__(self, "parts", parts)

    def is_met(self, case: DecisionCase) -> bool:
        return all(part.is_met(case) for part in self.parts)

    def evaluate(self, case: DecisionCase) -> Proof | None:
        proof: Proof = ()
        for part in self.parts:
            factors = part.evaluate(case)
            if factors is None:
                return None
            proof += factors
        return proof

    def wants(self, case: DecisionCase) -> Clauses | None:
        clauses: Clauses = ()
        for part in self.parts:
            if part.evaluate(case) is None:
                factors = part.wants(case)
                if factors is None:
                    return None
                clauses += factors
        return clauses

    def leaves(self, kind: Kind | None = None) -> Iterator[Rule]:
        for part in self.parts:
            yield from part.leaves(kind)


@dataclass(frozen=True, slots=True, init=False)
class AnyOf(Rule):
    """A rule that is true if at least one of its parts is true. The first part is the one that is usually granted."""

    parts: tuple[Rule, ...]
    flat: bool = field(compare=False, repr=False)

    def __init__(self, *parts: Rule) -> None:
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "flat", not any(isinstance(leaf, AllOf | ByKind) for leaf in parts))

    def is_met(self, case: DecisionCase) -> bool:
        return any(part.is_met(case) for part in self.parts)

    def evaluate(self, case: DecisionCase) -> Proof | None:
        for part in self.parts:
            factors = part.evaluate(case)
            if factors is not None:
                return factors
        return None

    def wants(self, case: DecisionCase) -> Clauses | None:
        """Return the factors of all parts as alternatives if every part is simple.

        Otherwise return those of the part that the fewest grants satisfy, or of the first part that needs a change of
        owner. An owner of a namespace without USE_CATALOG lacks this privilege alone.
        """
        options = [factors for part in self.parts if (factors := part.wants(case)) is not None]
        if not options:
            return None
        if not self.flat:
            return min([option for option in options if _needs_only_grants(option)] or options[:1], key=len)
        return (tuple(factor for option in options for clause in option for factor in clause),)

    def leaves(self, kind: Kind | None = None) -> Iterator[Rule]:
        for part in self.parts:
            yield from part.leaves(kind)


def _needs_only_grants(clauses: Clauses) -> bool:
    """Return whether each clause can be satisfied without a change of owner or of the service's admins."""
    owners = {decisions.OWNER, decisions.SERVICE_ADMIN}
    return all(any(factor.privilege not in owners for factor in clause) for clause in clauses)


@dataclass(frozen=True, slots=True)
class ByKind(Rule):
    """A rule for each kind of target. It is false for kinds without an entry."""

    rules: Mapping[Kind, Rule]

    def is_met(self, case: DecisionCase) -> bool:
        rule = self._choose_rule(case)
        return rule is not None and rule.is_met(case)

    def evaluate(self, case: DecisionCase) -> Proof | None:
        rule = self._choose_rule(case)
        return None if rule is None else rule.evaluate(case)

    def wants(self, case: DecisionCase) -> Clauses | None:
        rule = self._choose_rule(case)
        return None if rule is None else rule.wants(case)

    def leaves(self, kind: Kind | None = None) -> Iterator[Rule]:
        rules = self.rules.values() if kind is None else [self.rules[kind]] if kind in self.rules else []
        for rule in rules:
            yield from rule.leaves(kind)

    def _choose_rule(self, case: DecisionCase) -> Rule | None:
        return None if case.target_kind is None else self.rules.get(case.target_kind)
