# SPDX-License-Identifier: Apache-2.0
"""Properties of decisions that hold for every subject, chain and action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from limnos.access.actions import Action
from limnos.access.decide import decide, is_allowed
from limnos.access.filters import list_filter
from limnos.access.policy import ITEMS, POLICY
from limnos.access.rules import AllOf, AnyOf, ByKind, DecisionCase, OwnerRule, PrivilegeRule, Rule
from limnos.model.decisions import OWNER, ChainLink, Decision, SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege
from tests.access.world import GROUP, OTHER, ROLE, USER, chain_for, nobody, owned_by

Rules = frozenset[tuple[Privilege, int]]

CHAIN_IDS = (1, 2, 3, 4, 5)
ITEM_IDS = (10, 11, 12, ROLE, ROLE + 1, USER, GROUP)
NOTHING: Rules = frozenset()


@dataclass(frozen=True, kw_only=True)
class Question:
    """A random question: subject, action and chain, with all facts that the answer depends on."""

    action: Action
    chain: SecurableChain
    roles: tuple[HeldRole, ...]
    groups: tuple[int, ...]
    owned: dict[int, int]

    @property
    def subject(self) -> Subject:
        """Return the caller, a user of the metalake."""
        names = ("g",) if self.groups else ()
        return Subject.of(USER, "u", groups=self.groups, group_names=names, roles=self.roles, service_admin=False)

    def answer(self) -> Decision:
        """Return the decision."""
        return decide(self.subject, self.action, self.chain, owned_by(self.owned))

    def plus(self, *, allow: Rules = NOTHING, deny: Rules = NOTHING) -> Question:
        """Return the question with one more role."""
        return replace(
            self,
            roles=(*self.roles, HeldRole(RoleRules.of(900 + len(self.roles), "extra", allow=allow, deny=deny), None)),
        )


def _rules(privileges: list[Privilege], ids: tuple[int, ...], size: int) -> st.SearchStrategy[Rules]:
    """Generate rules, mostly relevant ones, so that not all examples are refusals."""
    relevant = st.sampled_from(privileges or list(Privilege))
    return st.sets(
        st.tuples(relevant | relevant | st.sampled_from(Privilege), st.sampled_from(ids)), max_size=size
    ).map(frozenset)


def _privileges(action: Action, kind: Kind | None = None) -> list[Privilege]:
    return sorted({leaf.privilege for leaf in POLICY[action].leaves(kind) if isinstance(leaf, PrivilegeRule)})


@st.composite
def questions(draw: st.DrawFn, actions: tuple[Action, ...] = tuple(Action)) -> Question:
    """Generate an action on any kind of object that it applies to, by a user with up to three roles, possibly in a
    group.
    """
    action = draw(st.sampled_from(actions))
    kind = draw(st.sampled_from(sorted(action.kinds)))
    ids = CHAIN_IDS + ITEM_IDS
    privileges = _privileges(ITEMS.get(action, action), None if action in ITEMS else kind)
    roles = tuple(
        HeldRole(
            RoleRules.of(
                ROLE + i, f"r{i}", allow=draw(_rules(privileges, ids, 8)), deny=draw(_rules(privileges, ids, 3))
            ),
            draw(st.sampled_from([None, "g"])),
        )
        for i in range(draw(st.integers(0, 3)))
    )
    groups = draw(st.sampled_from([(), (GROUP,)]))
    owned = draw(st.dictionaries(st.sampled_from(ids), st.sampled_from([USER, GROUP, OTHER]), max_size=3))
    return Question(action=action, chain=chain_for(kind), roles=roles, groups=groups, owned=owned)


any_rules = _rules(list(Privilege), CHAIN_IDS, 30)
law = settings(max_examples=300, deadline=None)


@law
@given(questions())
def test_verdict_equals_the_decision(question: Question) -> None:
    """The verdict without reasons is that of the decision with reasons."""
    verdict = is_allowed(question.subject, question.action, chain=question.chain, owner_of=owned_by(question.owned))

    assert verdict == question.answer().allowed


@law
@given(questions(), any_rules)
def test_additional_allowing_role_never_removes_a_right(question: Question, more: Rules) -> None:
    """An additional role that only allows never removes a right."""
    before = question.answer().allowed

    assert question.plus(allow=more).answer().allowed >= before


@law
@given(questions(), any_rules)
def test_additional_denying_role_never_adds_a_right(question: Question, more: Rules) -> None:
    """An additional role that only denies never adds a right."""
    before = question.answer().allowed

    assert question.plus(deny=more).answer().allowed <= before


@law
@given(questions())
def test_additional_ownership_never_removes_a_right(question: Question) -> None:
    """An additional ownership never removes a right."""
    before = question.answer().allowed

    after = [replace(question, owned={**question.owned, link.id: USER}).answer().allowed for link in question.chain]

    assert all(after) or not before


@law
@given(questions(), st.data())
def test_denial_anywhere_overrides_a_privilege(question: Question, data: st.DataObject) -> None:
    """One denial anywhere in the ancestors, in any role, makes a privilege count as not held."""
    privileges = _privileges(question.action, question.chain[0].kind) or list(Privilege)
    privilege = data.draw(st.sampled_from(privileges))
    level = data.draw(st.sampled_from(question.chain)).id
    rest = tuple(
        HeldRole(
            RoleRules.of(h.rules.id, h.rules.name, allow=_without(h.rules.allow, privilege), deny=h.rules.deny), h.via
        )
        for h in question.roles
    )

    denied = question.plus(deny=frozenset({(privilege, level)}))

    assert PrivilegeRule(privilege).evaluate(DecisionCase(denied.subject, denied.chain, nobody)) is None
    assert denied.answer().allowed <= replace(question, roles=rest).answer().allowed


def _without(rules: Rules, privilege: Privilege) -> Rules:
    return frozenset(rule for rule in rules if rule[0] is not privilege)


@law
@given(questions(), st.randoms(use_true_random=False))
def test_order_of_roles_and_rules_does_not_change_decision(question: Question, random: Random) -> None:
    """Neither the order of roles nor that of a rule's parts changes the decision."""
    verdict = question.answer().allowed
    case = DecisionCase(question.subject, question.chain, owned_by(question.owned))

    shuffled = _shuffled(POLICY[question.action], random).evaluate(case) is not None

    assert replace(question, roles=question.roles[::-1]).answer().allowed == verdict
    assert shuffled == verdict


def _shuffled(rule: Rule, random: Random) -> Rule:
    """Return an equal rule with its parts in another order, at every depth."""
    match rule:
        case AllOf(parts):
            return AllOf(*_mixed(parts, random))
        case AnyOf(parts):
            return AnyOf(*_mixed(parts, random))
        case ByKind(rules):
            return ByKind({kind: _shuffled(inner, random) for kind, inner in rules.items()})
        case _:
            return rule


def _mixed(parts: tuple[Rule, ...], random: Random) -> list[Rule]:
    return [_shuffled(part, random) for part in random.sample(parts, len(parts))]


@law
@given(questions())
def test_refusal_names_a_gap_and_allowed_decision_none(question: Question) -> None:
    """A refusal names at least one gap, and an allowed decision none."""
    decision = question.answer()
    gaps = [factor for factor in decision.factors if factor.kind in ("missing", "deny")]

    assert bool(gaps) != decision.allowed


SERVICE_ADMINS_ONLY = (
    Action.METALAKE_CREATE,
    Action.TOKEN_MANAGE_OTHERS,
    Action.TASK_MANAGE,
    Action.METALAKE_IMPORT,
    Action.SECRETS_EXPORT,
    Action.KEYS_MANAGE,
    Action.AUDIT_READ_ALL,
    Action.SERVER_INSPECT,
    Action.METALAKE_TAKE,
)
"""Actions that no grant allows: their refusal says that a service admin is needed."""


@law
@given(questions(tuple(a for a in Action if a not in SERVICE_ADMINS_ONLY)))
def test_following_all_suggestions_allows_the_action(question: Question) -> None:
    """After all suggested grants and removed denials the action is allowed."""
    decision = question.answer()
    for _ in range(len(Privilege)):
        if decision.allowed:
            break
        question = _helped(question, decision)
        decision = question.answer()

    assert decision.allowed


def _helped(question: Question, decision: Decision) -> Question:
    """Apply the first alternative of every clause: a grant, an ownership, or a removed denial."""
    first = {f.clause: f for f in reversed(decision.factors) if f.kind in ("missing", "deny")}
    grants = frozenset(
        (Privilege[f.privilege], f.object_id)
        for f in first.values()
        if f.kind == "missing" and f.privilege is not None and f.privilege != OWNER
    )
    owned = question.owned | {f.object_id: USER for f in first.values() if f.privilege == OWNER}
    lifted = {(f.privilege, f.object_id) for f in first.values() if f.kind == "deny"}
    return replace(question, roles=tuple(_lifted(h, lifted) for h in question.roles), owned=owned).plus(allow=grants)


def _lifted(held_role: HeldRole, lifted: set[tuple[str | None, int]]) -> HeldRole:
    deny = frozenset(rule for rule in held_role.rules.deny if (rule[0].name, rule[1]) not in lifted)
    return HeldRole(
        RoleRules.of(held_role.rules.id, held_role.rules.name, allow=held_role.rules.allow, deny=deny), held_role.via
    )


@settings(max_examples=600, deadline=None)
@given(questions(tuple(ITEMS)), st.lists(st.sampled_from(ITEM_IDS), unique=True))
def test_filters_agree_with_decisions(question: Question, ids: list[int]) -> None:
    """A list filter accepts exactly the items whose own decision is allowed."""
    item = ITEMS[question.action]
    (kind,) = item.kinds
    parent, owned, subject = question.chain, question.owned, question.subject

    positions = list_filter(subject, question.action, parent, owned_by(owned)).positions(
        ids, [owned.get(i) for i in ids]
    )

    chains = [(ChainLink(i, kind, "x"), *parent) for i in ids]
    assert positions == [at for at, chain in enumerate(chains) if decide(subject, item, chain, owned_by(owned)).allowed]


@law
@given(questions())
def test_missing_object_is_decided_like_one_without_grants(question: Question) -> None:
    """A missing object gets the decision and message of an object without owner and grants."""
    head = question.chain[0]
    bare = replace(question, chain=(ChainLink(77, head.kind, head.name), *question.chain[1:]))

    absent = replace(question, chain=(ChainLink.absent(head.kind, head.name), *question.chain[1:]))

    existing_answer, missing_answer = bare.answer(), absent.answer()
    assert (existing_answer.allowed, existing_answer.message()) == (missing_answer.allowed, missing_answer.message())


@law
@given(questions(), st.sets(st.sampled_from(["r0", "r1", "r2"])))
def test_active_roles_never_allow_more_than_all_roles(question: Question, names: set[str]) -> None:
    """With only some of the held roles active, nothing is allowed that all of them together do not allow."""
    subject = question.subject
    narrow = subject.narrow_to_roles(frozenset(names & {role.rules.name for role in subject.roles}))

    after = decide(narrow, question.action, question.chain, owned_by(question.owned)).allowed

    assert after <= question.answer().allowed
    assert narrow.deny == subject.deny


def test_owner_rules_never_look_at_denials() -> None:
    """An owner rule holds in spite of denials of everything."""
    everything = frozenset((p, i) for p in Privilege for i in CHAIN_IDS)
    denying = HeldRole(RoleRules.of(ROLE, "r", allow=NOTHING, deny=everything), None)
    case = DecisionCase(Subject.of(USER, "u", roles=[denying]), chain_for(Kind.TABLE), owned_by({3: USER}))

    assert OwnerRule(frozenset({Kind.NAMESPACE})).evaluate(case)


@law
@given(questions((Action.UNDROP,)))
def test_users_who_may_restore_an_object_may_grant_on_it(question: Question) -> None:
    """The trash states the restrictions of an object to each user who may restore it, and asks for no other right."""
    if question.answer().allowed:
        assert replace(question, action=Action.PRIVILEGE_GRANT).answer().allowed
