"""The subject of a decision, built from facts: a user with groups and roles in one metalake.

May import `view` and `model`. Role values are shared between all who hold them and live as long as their fact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.kinds import Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege
from limnos.view.cold import need, need_all
from limnos.view.keys import groups_key, principal_id_key, principal_key, roles_key, rules_key

if TYPE_CHECKING:
    from limnos.model.entities import Grant, Principal, RoleEntity
    from limnos.view.keys import RoleFact
    from limnos.view.view import View


def principal_of(view: View, metalake_id: int, kind: Kind, name: str) -> Principal | None:
    """Return a user or group by name. Raises Cold."""
    return need(view, principal_key(metalake_id, kind, name), zone=metalake_id)


def subject_of(view: View, metalake_id: int, user: str, *, service_admin: bool) -> Subject:
    """Build the subject of a user. Raises Cold until every fact is there: groups, roles, rules."""
    principal = principal_of(view, metalake_id, Kind.USER, user)
    if principal is None:
        return Subject.of(None, user, service_admin=service_admin, member=False)
    groups = _groups(view, metalake_id, principal.id)
    holders = [(principal.id, None), *((group.id, group.name) for group in groups)]
    held = _held(view, metalake_id, holders)
    return Subject.of(
        principal.id,
        user,
        groups=[group.id for group in groups],
        group_names=[group.name for group in groups],
        roles=held,
        service_admin=service_admin,
    )


def _groups(view: View, metalake_id: int, user_id: int) -> list[Principal]:
    ids = need(view, groups_key(user_id), zone=metalake_id)
    found = need_all(view, [principal_id_key(group_id) for group_id in ids], zone=metalake_id)
    return [group for group in found if group is not None]


def _held(view: View, metalake_id: int, holders: list[tuple[int, str | None]]) -> list[HeldRole]:
    ids = need_all(view, [roles_key(principal_id) for principal_id, _ in holders], zone=metalake_id)
    pairs = [(role_id, via) for (_, via), role_ids in zip(holders, ids, strict=True) for role_id in role_ids]
    facts = need_all(view, [rules_key(role_id) for role_id, _ in pairs], zone=metalake_id)
    rules = [_shared(view, metalake_id, fact) for fact in facts]
    return [HeldRole(rule, via) for rule, (_, via) in zip(rules, pairs, strict=True) if rule is not None]


def _shared(view: View, metalake_id: int, fact: RoleFact) -> RoleRules | None:
    """One value for a role's rules, whoever holds it, until access moves."""
    if fact is None:
        return None
    memo = view.memo(metalake_id)
    key = ("rules", fact[0].id)
    found: RoleRules | None = memo.get(key)
    if found is None:
        memo[key] = found = rules_of(fact)
    return found


def rules_of(fact: tuple[RoleEntity, tuple[Grant, ...]]) -> RoleRules:
    """Turn a role's stored rules into the sets that decisions use."""
    role, grants = fact
    allowed = frozenset((Privilege(grant.privilege), grant.object_id) for grant in grants if grant.allowed)
    denied = frozenset((Privilege(grant.privilege), grant.object_id) for grant in grants if not grant.allowed)
    return RoleRules(role.id, role.name, allowed, denied)
