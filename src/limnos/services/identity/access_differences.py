# SPDX-License-Identifier: Apache-2.0
"""Differences between the rights of two users: the actions on each object that only one of them may take.

As in a user's reach, objects with the same grants, owner and container share one decision.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.levels import actions_on, levels_in
from limnos.access.restrictions import binding_restrictions
from limnos.model.decisions import SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import Subject
from limnos.services.identity.access_changes import permitted_actions
from limnos.services.identity.access_objects import AccessQuestion, AccessTarget, scope_of_question, target_of
from limnos.services.identity.access_reach import EXAMINED_AT_ONCE, PageBuilder, SubtreeDecisions
from limnos.services.identity.access_subtrees import SubtreeFacts, SubtreeObject
from limnos.services.identity.explain import require_present
from limnos.services.identity.users import principal_require
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

CLASS_COST: Final = 200
"""The number of examined objects that the decisions for a class of objects count as."""


class DiffRequest(NamedTuple):
    """A request for a page of at most `limit` objects, after the path `after`, on which two users differ."""

    user: str
    other: str
    after: tuple[str, ...] = ()
    limit: int = 100


class OwnRights(NamedTuple):
    """What only one of two users has on an object: levels, actions, and read restrictions that apply to the user."""

    levels: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    restrictions: tuple[str, ...] = ()


class DifferingObject(NamedTuple):
    """An object with its path from the catalog down, and what each user has and the other has not."""

    kind: Kind
    path: tuple[str, ...]
    user: OwnRights
    other: OwnRights


class Differences(NamedTuple):
    """The objects on which two users differ.

    `differing` is the count of these objects, `hidden` of those among them that the caller may not load, and `looked`
    of all examined objects. `following` is the path after which the next page begins; None at the end. `is_bounded` is
    true if more objects exist that were not examined.
    """

    objects: list[DifferingObject]
    following: tuple[str, ...] | None
    differing: int
    hidden: int
    looked: int
    is_bounded: bool
    is_enforced: bool


_PROBES: Final = frozenset({Action.TABLE_MAY_PROBE, Action.VIEW_MAY_PROBE})
"""Rights to learn that a name is free, which no request asks for by itself."""


class _DiffView(NamedTuple):
    target: AccessTarget
    subjects: tuple[Subject, Subject, Subject]
    """The two users, and the caller."""


async def access_diff(ctx: Context, question: AccessQuestion, *, request: DiffRequest) -> Differences:
    """Return the actions that one user may take on an object, or on an object below it, and another may not.

    Raises PermissionDenied if the caller does not manage grants there, and NotFound if the metalake has no such user or
    no such object.
    """
    scope = await scope_of_question(ctx, question)

    def read(request_view: RequestView) -> _DiffView:
        request_view.require_in_metalake_use()
        target = target_of(request_view, question, unknown=Kind.NAMESPACE)
        request_view.require(Action.EXPLAIN_OTHERS, target.chain)
        for each in (request.user, request.other):
            principal_require(request_view, Kind.USER, each)
        require_present(request_view, target.chain, actions=(Action.EXPLAIN_OTHERS,))
        user, other, caller = map(request_view.subject_of, (request.user, request.other, request_view.user))
        return _DiffView(target, (user, other, caller))

    async def walk(diff_view: _DiffView) -> SubtreeFacts:
        facts = SubtreeFacts(with_rules=False)
        await facts.walk(ctx, (diff_view.target.chain,) if diff_view.target.chain[0].id > 0 else ())
        return facts

    # The rights are those of the later decision: the objects may have been created after a right was lost.
    diff_view, facts = await ctx.read_confirmed(
        scope, read, work=walk, identity=lambda decided: [link.id for link in decided.target.chain]
    )
    return await _differences(diff_view, facts, request=request)


class _DifferenceClass(NamedTuple):
    """Objects of one kind with the same decisions for both users and the caller."""

    kind: Kind
    user: OwnRights
    other: OwnRights
    is_visible: bool

    @property
    def is_differing(self) -> bool:
        """Whether the users differ on the objects."""
        return self.user != self.other

    def entry(self, path: tuple[str, ...]) -> DifferingObject:
        """Return an object of the class."""
        return DifferingObject(self.kind, path, self.user, self.other)


async def _differences(diff_view: _DiffView, facts: SubtreeFacts, *, request: DiffRequest) -> Differences:
    classes: dict[object, _DifferenceClass] = {}
    page = PageBuilder[DifferingObject](request.after, request.limit)
    deciders = tuple([SubtreeDecisions(each, facts) for each in diff_view.subjects])
    object_count, examined, differing, visible = len(facts.objects), 0, 0, 0
    while facts.objects:
        if examined >= EXAMINED_AT_ONCE:
            examined = 0
            await asyncio.sleep(0)
        each = facts.objects.pop()  # to free all of them at the end would be one long step
        key = tuple([decider.class_of(each) for decider in deciders])
        difference = classes.get(key)
        if difference is None:
            difference = classes[key] = _class_of(deciders, each, is_enforced=diff_view.target.is_enforced)
            examined += CLASS_COST
        examined += 1
        if difference.is_differing:
            differing += 1
            if difference.is_visible:
                visible += 1
                page.add(each.chain, difference.entry)
    objects, following = page.result()
    return Differences(
        objects=objects,
        following=following,
        differing=differing,
        hidden=differing - visible,
        looked=object_count,
        is_bounded=facts.is_bounded,
        is_enforced=diff_view.target.is_enforced,
    )


def _class_of(deciders: tuple[SubtreeDecisions, ...], each: SubtreeObject, *, is_enforced: bool) -> _DifferenceClass:
    kind, (first, second, caller) = each.chain[0].kind, deciders
    first_rights, second_rights = _rights(first, each.chain), _rights(second, each.chain)
    return _DifferenceClass(
        kind,
        _own_rights(kind, own=first_rights, others=second_rights),
        _own_rights(kind, own=second_rights, others=first_rights),
        not is_enforced or caller.is_loaded(each),
    )


class _Rights(NamedTuple):
    """The actions that a user may take on an object, and the names of the restrictions that apply."""

    actions: frozenset[Action]
    restrictions: frozenset[str]


def _rights(decider: SubtreeDecisions, chain: SecurableChain) -> _Rights:
    facts = decider.facts
    actions = permitted_actions(decider.subject, chain, facts=facts, among=actions_on(chain[0].kind))
    binding = binding_restrictions(
        decider.subject, chain, by_object=facts.restrictions, owner_of=facts.owner_of, active=None
    )
    return _Rights(actions, frozenset([each.restriction.name for each in binding] if actions else []))


def _own_rights(kind: Kind, *, own: _Rights, others: _Rights) -> OwnRights:
    other_levels = levels_in(others.actions, kind)
    return OwnRights(
        tuple([level for level in levels_in(own.actions, kind) if level not in other_levels]),
        tuple([action for action in _comparable(kind) if action in own.actions and action not in others.actions]),
        tuple(sorted(own.restrictions - others.restrictions)),
    )


def _comparable(kind: Kind) -> list[Action]:
    """Return the actions on an object of a kind that a difference names."""
    return [action for action in actions_on(kind) if action not in _PROBES]
