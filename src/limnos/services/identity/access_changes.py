# SPDX-License-Identifier: Apache-2.0
"""Equivalence classes of users and of objects, for comparing rights before and after a change.

Pure, except that it yields to other requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.decide import is_allowed
from limnos.access.levels import levels_in, levels_of
from limnos.access.restrictions import RESTRICTED_ACTIONS, binding_restrictions, deny_inherited_on, may_leave
from limnos.model.decisions import SecurableChain
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.services.identity.access_objects import roles_of
from limnos.services.identity.access_subtrees import SubtreeFacts
from limnos.store.identity.access_facts import HeldRoleRow, RuleRow, UserRow

CLASSED_AT_ONCE: Final = 1_000
NAMES_MAX: Final = 5
"""The maximum number of users that a consequence names."""


class ObjectClass(NamedTuple):
    """Objects with equal decisions for every affected user: one of them with its ancestors, and the count of
    objects.
    """

    chain: SecurableChain
    size: int


class UserClass(NamedTuple):
    """Users with the same decisions: one of them, their count, their roles before and after the change, and the first
    `NAMES_MAX` of their names.
    """

    user: UserRow
    size: int
    before: frozenset[int]
    after: frozenset[int]
    names: tuple[str, ...]

    def subject(self, rules: Mapping[int, list[RuleRow]], chain: SecurableChain, *, is_after: bool) -> Subject:
        """Return a subject with the roles before or after the change, and their grants on the objects of `chain`."""
        roles = self.after if is_after else self.before
        rows = [row for link in chain for row in rules.get(link.id, ()) if row.role_id in roles]
        by_id = roles_of(rows)
        held_roles = [HeldRole(by_id.get(each) or RoleRules.of(each, ""), None) for each in roles]
        return Subject.of(self.user.id, self.user.name, groups=[each for each, _ in self.user.groups], roles=held_roles)


class AffectedUsers:
    """The users whom a change affects, grouped into classes. `principals` are the owners, and the principals that read
    restrictions name.
    """

    def __init__(self, principals: Collection[int]) -> None:
        self.principals = frozenset(principals)
        self.is_bounded = False
        self.roles: set[int] = set()
        self.own: set[int] = set()
        self._rows: list[UserRow] = []
        self._change: tuple[frozenset[int], bool, str | None] | None = None

    def add(self, row: UserRow) -> None:
        """Add an affected user."""
        self._rows.append(row)
        self.roles.update(each.role_id for each in row.roles)
        self.own.update(group_id for group_id, _ in row.groups)
        if row.id in self.principals:
            self.own.add(row.id)

    def ids_of(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of affected users by name."""
        return {row.name: row.id for row in self._rows if row.name in names}

    def change(self, roles: Collection[int], *, gives: bool, group: str | None) -> None:
        """Set the change: the users gain these roles (`gives`) or lose them, directly or through a group."""
        self._change = frozenset(roles), gives, group
        if gives:
            self.roles.update(roles)

    def classes(self) -> list[UserClass]:
        """Group the users: users of one class have equal roles and groups before and after the change."""
        by_key: dict[object, UserClass] = {}
        for row in self._rows:
            before = frozenset(each.role_id for each in row.roles)
            after = before if self._change is None else self._roles_after(row.roles)
            key = (before, after, row.groups, row.id if row.id in self.principals else 0)
            user_class = by_key.get(key) or UserClass(user=row, size=0, before=before, after=after, names=())
            by_key[key] = user_class._replace(size=user_class.size + 1, names=(*user_class.names, row.name)[:NAMES_MAX])
        return list(by_key.values())

    def _roles_after(self, rows: tuple[HeldRoleRow, ...]) -> frozenset[int]:
        if self._change is None:
            return frozenset(each.role_id for each in rows)
        roles, gives, group = self._change
        if gives:
            return frozenset(each.role_id for each in rows) | roles
        return frozenset(each.role_id for each in rows if each.role_id not in roles or each.group != group)


async def classes_of(
    facts: SubtreeFacts, after_rules: Mapping[int, list[RuleRow]], *, users: AffectedUsers
) -> list[ObjectClass]:
    """Group the objects into classes of the same kind with the same grants, owners and restrictions on them and their
    ancestors.

    Only roles and owners that an affected user has are compared.
    """
    numbers: dict[object, int] = {}
    by_id: dict[int, int] = {}
    roles = users.roles

    def number_of(chain: SecurableChain) -> int:
        link = chain[0]
        if link.id in by_id:
            return by_id[link.id]
        above = number_of(chain[1:]) if len(chain) > 1 else 0
        own_rules = tuple(
            tuple([(row.role_id, row.privilege, row.allowed) for row in rules.get(link.id, ()) if row.role_id in roles])
            for rules in (facts.rules, after_rules)
        )
        owner = facts.owners.get(link.id)
        key = (
            link.kind,
            above,
            own_rules,
            owner if owner in users.own else 0,
            link.id if link.id in facts.restrictions else 0,
        )
        by_id[link.id] = numbers.setdefault(key, len(numbers) + 1)
        return by_id[link.id]

    classes: dict[int, ObjectClass] = {}
    for position, each in enumerate(facts.objects):
        if position % CLASSED_AT_ONCE == 0:
            await asyncio.sleep(0)
        number = number_of(each.chain)
        user_class = classes.get(number)
        classes[number] = (
            ObjectClass(each.chain, 1) if user_class is None else user_class._replace(size=user_class.size + 1)
        )
    return list(classes.values())


def decided_levels(subject: Subject, chain: SecurableChain, *, facts: SubtreeFacts) -> frozenset[str]:
    """Return the access levels, such as `read`, that a subject has on an object."""
    levels = levels_of(chain[0].kind)
    permitted = permitted_actions(
        subject, chain, facts=facts, among=[each for some in levels.values() for each in some]
    )
    return frozenset(levels_in(permitted, chain[0].kind))


def permitted_actions(
    subject: Subject, chain: SecurableChain, *, facts: SubtreeFacts, among: Iterable[Action]
) -> frozenset[Action]:
    """Return those actions on an object that a request of the subject would be allowed."""
    subject = deny_inherited_on(subject, chain, by_object=facts.restrictions)
    binding = binding_restrictions(subject, chain, by_object=facts.restrictions, owner_of=facts.owner_of, active=None)
    return frozenset(
        action
        for action in among
        if is_allowed(subject, action, chain=chain, owner_of=facts.owner_of)
        and not (binding and action in RESTRICTED_ACTIONS)
        and may_leave(subject, action, chain=chain, by_object=facts.restrictions, owner_of=facts.owner_of)
    )
