# SPDX-License-Identifier: Apache-2.0
"""The subject of a decision, built from cached facts: a user with groups and roles in one metalake.

Users with the same role share one `RoleRules` value, which is cached while the role's fact is unchanged. The merged
grants of a user are cached while the facts of all their roles are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from operator import is_
from typing import Final, NamedTuple

from limnos.model.entities import Grant, Principal, RoleEntity
from limnos.model.kinds import Kind
from limnos.model.principals import HeldRole, MergedRules, RoleRules, Subject, union_by_privilege
from limnos.model.privileges import Privilege
from limnos.store.identity.roles import LAST_ID, PART_MAX
from limnos.view.cache_miss import CacheMiss, require_fact, require_facts
from limnos.view.fact_reads import ROLES_AT_ONCE
from limnos.view.keys import (
    ABSENT,
    RoleFact,
    groups_key,
    member_key,
    principal_id_key,
    principal_key,
    roles_key,
    rules_end_key,
    rules_key,
    rules_part_key,
)
from limnos.view.view import DerivedValues, StoreView

HELD_ROLES_MAX: Final = 500_000
"""The maximum size of the cache of held roles: roles of all users of a metalake together."""
PRIVILEGES: Final = {int(privilege): privilege for privilege in Privilege}


class HeldRoles(NamedTuple):
    """The roles and merged grants of a user, with the facts from which they were built."""

    facts: list[RoleFact]
    vias: list[str | None]
    roles: tuple[HeldRole, ...]
    merged: MergedRules

    def rests_on(self, facts: list[RoleFact], vias: list[str | None]) -> bool:
        """Return whether the value was built from these facts, compared by identity, through these groups (`vias`)."""
        return len(facts) == len(self.facts) and all(map(is_, facts, self.facts)) and vias == self.vias


def principal_of(view: StoreView, metalake_id: int, kind: Kind, name: str) -> Principal | None:
    """Return the user or group with this name, or None. Raises CacheMiss if the fact is not cached."""
    return require_fact(view, principal_key(metalake_id, kind, name), zone=metalake_id)


def require_member(view: StoreView, metalake_id: int, *, user: str) -> Principal | None:
    """Return the user with this name, or None.

    Raises CacheMiss if the fact is not cached. The groups and roles of the user are then loaded with it.
    """
    principal = view.get(principal_key(metalake_id, Kind.USER, user))
    if principal is ABSENT:
        raise CacheMiss({member_key(metalake_id, user): metalake_id})
    return principal


def subject_of(view: StoreView, metalake_id: int, user: str, *, service_admin: bool) -> Subject:
    """Build the subject of a user. Raises CacheMiss until groups, roles and grants are cached."""
    principal = require_member(view, metalake_id, user=user)
    if principal is None:
        return Subject.of(None, user, service_admin=service_admin, member=False)
    groups = _groups(view, metalake_id, principal.id)
    holders = [(principal.id, None), *((group.id, group.name) for group in groups)]
    roles = _held_roles(view, metalake_id, holders)
    return Subject.of(
        principal.id,
        user,
        groups=[group.id for group in groups],
        group_names=[group.name for group in groups],
        roles=roles.roles,
        service_admin=service_admin,
        merged=roles.merged,
    )


def _groups(view: StoreView, metalake_id: int, user_id: int) -> list[Principal]:
    ids = require_fact(view, groups_key(user_id), zone=metalake_id)
    principals = require_facts(view, [principal_id_key(group_id) for group_id in ids], zone=metalake_id)
    return [group for group in principals if group is not None]


def _held_roles(view: StoreView, metalake_id: int, holders: list[tuple[int, str | None]]) -> HeldRoles:
    ids = require_facts(view, [roles_key(principal_id) for principal_id, _ in holders], zone=metalake_id)
    facts = _facts_of(view, metalake_id, role_ids=list(chain.from_iterable(ids)), user_id=holders[0][0])
    vias = [via for (_, via), role_ids in zip(holders, ids, strict=True) for _ in role_ids]
    derived = view.derived_values(metalake_id)
    key = ("held", holders[0][0])
    held_roles: HeldRoles | None = derived.get(key)
    if held_roles is None or not held_roles.rests_on(facts, vias):
        rules = [_shared_rules(view, metalake_id, fact) for fact in facts]
        roles = tuple([HeldRole(rule, via) for rule, via in zip(rules, vias, strict=True) if rule is not None])
        held_roles = HeldRoles(facts, vias, roles, MergedRules.of(roles))
        _cache_held_roles(derived, key, held_roles=held_roles)
    return held_roles


def _facts_of(view: StoreView, metalake_id: int, *, role_ids: list[int], user_id: int) -> list[RoleFact]:
    """Return the cached facts of a user's roles.

    Raises CacheMiss for one part of the roles at a time; the `RoleRules` of a part are built when it is cached. The
    number of roles read so far is stored, so that the retry does not check the earlier parts again.
    """
    derived, progress = view.derived_values(metalake_id), ("roles read", user_id)
    start = derived.get(progress)
    if start is None:
        try:
            return _role_facts(view, metalake_id, role_ids=role_ids)
        except CacheMiss as cold:
            if cold.goes_on:
                derived[progress] = 0
            raise
    while start < len(role_ids):
        end = start + ROLES_AT_ONCE
        try:
            facts = _role_facts(view, metalake_id, role_ids=role_ids[start:end])
        except CacheMiss as cold:
            raise CacheMiss(cold.missing_keys, goes_on=end < len(role_ids)) from None
        for fact in facts:
            _shared_rules(view, metalake_id, fact)
        start = derived[progress] = end
    del derived[progress]
    return _role_facts(view, metalake_id, role_ids=role_ids)


def _role_facts(view: StoreView, metalake_id: int, *, role_ids: list[int]) -> list[RoleFact]:
    keys = [rules_key(role_id) for role_id in role_ids]
    return require_facts(view, keys, zone=metalake_id, at_once=ROLES_AT_ONCE)


def _cache_held_roles(derived: DerivedValues, key: tuple[str, int], *, held_roles: HeldRoles) -> None:
    """Cache the roles of a user. `HELD_ROLES_MAX` bounds the cache of all users together."""
    entry = derived.get("held roles", 0) + len(held_roles.roles)
    if entry > HELD_ROLES_MAX:
        derived.clear()
        entry = len(held_roles.roles)
    derived["held roles"] = entry
    derived[key] = held_roles


def _shared_rules(view: StoreView, metalake_id: int, fact: RoleFact) -> RoleRules | None:
    """Return the grants of a role as one value that all users with the role share while its fact is unchanged."""
    if fact is None:
        return None
    derived = view.derived_values(metalake_id)
    role, grants = fact
    key = ("rules", role.id)
    result: tuple[RoleFact, RoleRules] | None = derived.get(key)
    if result is None or result[0] is not fact:
        rules = _rules_in_parts(view, role) if grants is None else rules_of((role, grants))
        view.derived_values(metalake_id)[key] = result = (fact, rules)
    return result[1]


class RuleIds(NamedTuple):
    """Ids of objects by privilege: `allow` for grants that allow it, `deny` for grants that deny it."""

    allow: Mapping[Privilege, frozenset[int]]
    deny: Mapping[Privilege, frozenset[int]]


def _rules_in_parts(view: StoreView, role: RoleEntity) -> RoleRules:
    """Return the grants of a role with many grants, merged from their parts. A change rebuilds one part only.

    Raises CacheMiss for one part at a time.
    """
    ids = []
    for after, part in _parts(view, role):
        derived = view.derived_values(role.metalake_id)
        key = ("rules part", role.id, after)
        rule_ids: tuple[tuple[Grant, ...], RuleIds] | None = derived.get(key)
        if rule_ids is None or rule_ids[0] is not part:
            derived[key] = rule_ids = (part, ids_of(part))
        ids.append(rule_ids[1])
    allow, deny = union_by_privilege([each.allow for each in ids]), union_by_privilege([each.deny for each in ids])
    return RoleRules(role.id, role.name, allow, deny)


def _parts(view: StoreView, role: RoleEntity) -> Iterator[tuple[int, tuple[Grant, ...]]]:
    """Yield the grants of a role in parts, each with the object id after which it begins.

    Raises CacheMiss for one part at a time, so that other requests can run in between.
    """
    after, zone = 0, role.metalake_id
    while after != LAST_ID:
        end_key = rules_end_key(role.id, after)
        end = view.get(end_key)
        if end is ABSENT:
            raise CacheMiss({end_key: zone}, goes_on=True)
        key = rules_part_key(role.id, (after, end))
        part = view.get(key)
        if part is ABSENT:
            next_end = rules_end_key(role.id, end)
            requested = [key] if end == LAST_ID or view.get(next_end) is not ABSENT else [key, next_end]
            raise CacheMiss(dict.fromkeys(requested, zone), goes_on=True)
        if len(part) > 2 * PART_MAX:  # the part has grown: read its end again, so that it is split
            raise CacheMiss({end_key: zone}, goes_on=True)
        yield after, part
        after = end


def ids_of(grants: tuple[Grant, ...]) -> RuleIds:
    """Group stored grants by privilege, into the ids of objects on which it is allowed and on which it is denied."""
    allow: dict[Privilege, list[int]] = {}
    deny: dict[Privilege, list[int]] = {}
    for grant in grants:
        (allow if grant.allowed else deny).setdefault(PRIVILEGES[grant.privilege], []).append(grant.object_id)
    return RuleIds(_frozen(allow), _frozen(deny))


def _frozen(ids: dict[Privilege, list[int]]) -> dict[Privilege, frozenset[int]]:
    return {privilege: frozenset(each) for privilege, each in ids.items()} if ids else {}


def rules_of(fact: tuple[RoleEntity, tuple[Grant, ...]]) -> RoleRules:
    """Build the grants of a role, in the form that decisions use, from its fact."""
    role, grants = fact
    return RoleRules(role.id, role.name, *ids_of(grants))
