# SPDX-License-Identifier: Apache-2.0
"""Preview of a change of rights: counts and first names of the users who gain or lose each access level, and counts of
the affected objects.

Must not know any wire format. It only reads. A caller needs the right to make the change. Users with the same roles are
decided together, and so are objects with the same grants, owners and containers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.levels import LEVELS
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Grant, Principal, RoleEntity, RoleWithRules
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind, ZoneKind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.names.fullname import FullName, render_quoted
from limnos.names.logical import LogicalCodec
from limnos.services.federation.placeholder_nodes import MissingPlaceholder
from limnos.services.identity.access_changes import (
    NAMES_MAX,
    AffectedUsers,
    ObjectClass,
    UserClass,
    classes_of,
    decided_levels,
)
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.access_subtrees import SubtreeFacts
from limnos.services.identity.explain import scope_of
from limnos.services.identity.grants import (
    PrivilegeRequest,
    check_opposite,
    check_privilege_requests,
    grant_scope,
    roles_decide,
    rules_decide,
)
from limnos.services.identity.presets.access_presets import (
    PresetChange,
    PresetRequest,
    preset_decide,
    preset_scope,
    require_own_role,
    revoked_grants,
)
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.ancestry import Ancestry
from limnos.store.identity.access_facts import RuleRow, UserRange, UserRow, users_read
from limnos.store.identity.roles import role_holding_read, role_part_read
from limnos.view.cache_miss import for_each

USERS_MAX: Final = 20_000
USERS_AT_ONCE: Final = 250
PAIRS_MAX: Final = 20_000
"""The maximum number of pairs of a class of users and a class of objects that are decided."""
PAIRS_AT_ONCE: Final = 25
_NO_ROLE: Final = -1


class RulesQuestion(NamedTuple):
    """A question about the consequence of granting privileges on an object to a role, or of revoking them."""

    metalake: str
    role: str
    privilege_request: PrivilegeRequest
    grants_them: bool


class RolesQuestion(NamedTuple):
    """A question about the consequence of assigning roles to a user or group, or of revoking them."""

    metalake: str
    kind: Kind
    name: str
    roles: tuple[str, ...]
    gives: bool


async def privilege_request_at(
    ctx: Context, question: AccessQuestion, *, privileges: tuple[tuple[Privilege, GrantCondition], ...]
) -> PrivilegeRequest:
    """Return the privilege request for the object at a path, with its full name as encoded by its catalog's codec.
    Raises BadRequest for a path that is too short.
    """
    kind, path = question.kind or Kind.TABLE, question.path
    if _is_apart(kind):
        name = path[0] if path else question.metalake
        return PrivilegeRequest(kind, _catalog_name(name) if kind is Kind.CATALOG else name, privileges)
    if len(path) < 2:
        raise BadRequest(f"A {kind.word} needs a path of its catalog and name")
    scope = await scope_of(ctx, question.metalake, kind=kind, path=path)
    return PrivilegeRequest(kind, await ctx.read(scope, partial(full_name_of, kind=kind, path=path)), privileges)


def _is_apart(kind: Kind) -> bool:
    return kind in (Kind.METALAKE, Kind.CATALOG) or kind.home is not ZoneKind.CATALOG


def full_name_of(request_view: RequestView, *, kind: Kind, path: tuple[str, ...]) -> str:
    """Return the full name of a catalog or of an object in it, as encoded by the catalog's codec."""
    if _is_apart(kind):
        return _catalog_name(path[0])
    levels, leaf = (path[1:], None) if kind is Kind.NAMESPACE else (path[1:-1], path[-1])
    return render_quoted(FullName(path[0], levels, leaf), codec=codec_of(request_view))


def _catalog_name(name: str) -> str:
    return render_quoted(FullName(name), codec=LogicalCodec())


class ConsequenceLine(NamedTuple):
    """The count of users who gain or lose an access level on objects of a kind, and the count of those objects.

    `names` are the names of the first `NAMES_MAX` users, without those that the caller may not load.
    """

    level: str
    kind: Kind
    gains: bool
    users: int
    objects: int
    names: tuple[str, ...] = ()


class Consequence(NamedTuple):
    """The consequence of a change.

    `users` is the count of affected users, `gaining` and `losing` the counts of users who gain or lose a level.
    `objects` is the count of examined objects. `is_bounded` is true if limits excluded users or objects. `is_enforced`
    is False if access control is off.
    """

    users: int
    gaining: int
    losing: int
    objects: int
    lines: tuple[ConsequenceLine, ...]
    is_bounded: bool
    is_enforced: bool


class _RulesChange(NamedTuple):
    """A change of a role's grants on an object that the caller may make."""

    chain: SecurableChain
    role: RoleEntity
    grants: tuple[Grant, ...]
    metalake_id: int
    is_enforced: bool


class _RolesChange(NamedTuple):
    """A change of a user's or group's roles that the caller may make. `outer` is the metalake."""

    principal: Principal
    roles: tuple[RoleEntity, ...]
    outer: SecurableChain
    is_enforced: bool

    @property
    def role_ids(self) -> frozenset[int]:
        """The ids of the roles."""
        return frozenset([role.id for role in self.roles])


class _PresetPreview(NamedTuple):
    """A change by a preset that the caller may make."""

    command: PresetChange
    is_enforced: bool

    @property
    def identity(self) -> object:
        """The objects, the role and the principal that the change is about."""
        command = self.command
        principal_id = None if command.principal is None else command.principal.id
        return [link.id for link in command.chain], command.grants, _role_of(command).id, principal_id


@contextmanager
def _refuse_unknown_objects() -> Iterator[None]:
    """Raise UnsupportedOperation for an object of an external system on which nothing was granted yet: the decisions of
    a preview are about nodes, and it creates none.
    """
    try:
        yield
    except MissingPlaceholder as missing:
        word = missing.object_kind.word
        raise UnsupportedOperation(
            f"There is no preview for a {word} of another system before its first grant, because this server does not"
            f" know the {word} yet: preview the grant on its catalog, or make it and ask who has access"
        ) from None


async def rules_consequence(ctx: Context, question: RulesQuestion) -> Consequence:
    """Return the consequence of a change of a role's privileges on an object.

    Raises as `privileges_grant`, and UnsupportedOperation for an object of an external system on which nothing was
    granted yet.
    """
    privilege_request = question.privilege_request
    check_privilege_requests((privilege_request,))

    def read(request_view: RequestView) -> _RulesChange:
        target, command, _ = rules_decide(
            request_view, question.role, privilege_request=privilege_request, grants_them=question.grants_them
        )
        enforced = request_view.rules.access_enabled
        return _RulesChange(
            chain=target.chain,
            role=command.role,
            grants=command.grants,
            metalake_id=request_view.metalake.id,
            is_enforced=enforced,
        )

    async def facts_read(decided: _RulesChange) -> tuple[SubtreeFacts, AffectedUsers]:
        facts = SubtreeFacts(with_rules=True)
        await facts.walk(ctx, (decided.chain,))
        user_range = UserRange(decided.metalake_id, "", USERS_AT_ONCE, ((decided.role.id,), ()))
        # The role may have no grants there yet.
        return facts, await _users(ctx, user_range, facts=facts, extra={decided.role.id})

    scope = grant_scope(question.metalake, privilege_request)
    with _refuse_unknown_objects():
        change, (facts, users) = await ctx.read_confirmed(
            scope,
            read,
            work=facts_read,
            identity=lambda decided: ([link.id for link in decided.chain], decided.role.id),
        )
    changed_id = change.chain[0].id
    if question.grants_them:
        _check_opposite(facts, change.role, grants=change.grants)
    own_rules = facts.rules.get(changed_id, [])
    after = _rules_after(own_rules, change.role, grants=change.grants, grants_them=question.grants_them)
    consequence = await _compare_levels(
        facts, users, changed_rules={changed_id: after} if after != own_rules else {}, is_enforced=change.is_enforced
    )
    return await _hide_names(ctx, scope, consequence=consequence, users=users)


def _check_opposite(facts: SubtreeFacts, role: RoleEntity, *, grants: tuple[Grant, ...]) -> None:
    """Raise IllegalPrivilege, as the change would, if a role has the opposite of grants on an object."""
    own_rules = [row for row in facts.rules.get(grants[0].object_id, ()) if row.role_id == role.id] if grants else []
    check_opposite(role, grants=grants, stored_privileges={row.privilege: row.allowed for row in own_rules})


def _rules_after(
    own: list[RuleRow], role: RoleEntity, *, grants: tuple[Grant, ...], grants_them: bool
) -> list[RuleRow]:
    """Return the grants on an object after a change."""
    rows = [
        RuleRow(
            object_id=each.object_id, role_id=role.id, role=role.name, privilege=each.privilege, allowed=each.allowed
        )
        for each in grants
    ]
    if not grants_them:
        return [row for row in own if row not in rows]
    stored_privileges = {(row.role_id, row.privilege) for row in own}
    return [*own, *(row for row in rows if (row.role_id, row.privilege) not in stored_privileges)]


async def roles_consequence(ctx: Context, question: RolesQuestion) -> Consequence:
    """Return the consequence of assigning or revoking roles. Raises NotFound for the user or group, IllegalRole for an
    unknown role, BadRequest without roles, PermissionDenied.
    """
    if not question.roles:
        raise BadRequest("Name the roles")

    def read(request_view: RequestView) -> _RolesChange:
        command, _ = roles_decide(
            request_view, question.kind, name=question.name, roles=question.roles, gives=question.gives
        )
        enforced = request_view.rules.access_enabled
        return _RolesChange(command.principal, command.roles, request_view.settled.outer, enforced)

    async def facts_read(decided: _RolesChange) -> tuple[SubtreeFacts, AffectedUsers]:
        principal, ids, facts = decided.principal, decided.role_ids, SubtreeFacts(with_rules=True)
        await facts.walk(ctx, await _roots(ctx, decided.roles, outer=decided.outer))
        user_range = UserRange(decided.outer[-1].id, "", USERS_AT_ONCE, ((), (principal.id,)))
        users = await _users(ctx, user_range, facts=facts, extra=ids)
        users.change(ids, gives=question.gives, group=principal.name if principal.kind is Kind.GROUP else None)
        return facts, users

    scope = RequestScope(question.metalake)
    change, (facts, users) = await ctx.read_confirmed(
        scope,
        read,
        work=facts_read,
        identity=lambda decided: (decided.principal.id, decided.role_ids, decided.outer[-1].id),
    )
    consequence = await _compare_levels(facts, users, changed_rules={}, is_enforced=change.is_enforced)
    return await _hide_names(ctx, scope, consequence=consequence, users=users)


async def preset_consequence(ctx: Context, request: PresetRequest) -> Consequence:
    """Return the consequence of granting or revoking a preset. Raises as `preset_change`, and UnsupportedOperation for
    an object of an external system on which nothing was granted yet.
    """

    def read(request_view: RequestView) -> _PresetPreview:
        return _PresetPreview(preset_decide(request_view, request)[0], request_view.rules.access_enabled)

    async def facts_read(decided: _PresetPreview) -> tuple[SubtreeFacts, AffectedUsers, RoleWithRules]:
        command, facts = decided.command, SubtreeFacts(with_rules=True)
        principal, role = command.principal, _role_of(command)
        outermost = max(
            index
            for index, link in enumerate(command.chain)
            if any(each.object_id == link.id for each in command.grants)
        )
        await facts.walk(ctx, (command.chain[outermost:],))
        holders = ((role.id,), () if principal is None else (principal.id,))
        users = await _users(
            ctx, UserRange(command.metalake_id, "", USERS_AT_ONCE, holders), facts=facts, extra={role.id}
        )
        if principal is not None:
            users.change({role.id}, gives=True, group=principal.name if principal.kind is Kind.GROUP else None)
        if principal is not None and command.role is not None and command.grants_them:
            has_role, has_others = await ctx.look_up(partial(role_holding_read, role.id, principal.id))
            require_own_role(role, principal, has_role=has_role, has_others=has_others)
        grants, nodes, goes_on = await ctx.look_up(partial(role_part_read, role.id, 0))
        return facts, users, RoleWithRules(role, grants, nodes, in_parts=goes_on)

    scope = preset_scope(request)
    with _refuse_unknown_objects():
        preview, (facts, users, rules) = await ctx.read_confirmed(
            scope, read, work=facts_read, identity=lambda decided: decided.identity
        )
    command, changed_grants = preview.command, preview.command.grants
    if not command.grants_them:
        stored_privileges = {
            (row.privilege, row.object_id)
            for each in changed_grants
            for row in facts.rules.get(each.object_id, ())
            if row.role_id == rules.role.id and row.allowed
        }
        changed_grants = revoked_grants(changed_grants, stored_privileges=stored_privileges, rules=rules)
    after: dict[int, list[RuleRow]] = {}
    for each in changed_grants:
        if command.grants_them:
            _check_opposite(facts, rules.role, grants=(each,))
        own_rules = after.get(each.object_id, facts.rules.get(each.object_id, []))
        after[each.object_id] = _rules_after(own_rules, rules.role, grants=(each,), grants_them=command.grants_them)
    consequence = await _compare_levels(facts, users, changed_rules=after, is_enforced=preview.is_enforced)
    return await _hide_names(ctx, scope, consequence=consequence, users=users)


def _role_of(command: PresetChange) -> RoleEntity:
    """Return the role of a change; for one that would be created, a role with an id that no role has."""
    return command.role or RoleEntity(
        id=_NO_ROLE,
        metalake_id=command.metalake_id,
        name=command.role_name,
        properties=(),
        created_by="",
        created_at=0,
        modified_by=None,
        modified_at=None,
    )


async def _hide_names(
    ctx: Context, scope: RequestScope, *, consequence: Consequence, users: AffectedUsers
) -> Consequence:
    """Return the consequence without the names of users whom the caller may not load."""
    ids = users.ids_of({name for line in consequence.lines for name in line.names})

    def read(request_view: RequestView) -> frozenset[str]:
        outer = request_view.settled.outer[-1:]

        def may(name: str) -> bool:
            return request_view.decide(Action.USER_LOAD, (ChainLink(ids[name], Kind.USER, name), *outer)).allowed

        role_ids = list(ids)
        return frozenset([name for name, is_seen in zip(role_ids, for_each(role_ids, may), strict=True) if is_seen])

    visible = await ctx.read(scope, read) if ids else frozenset()
    lines = [line._replace(names=tuple([name for name in line.names if name in visible])) for line in consequence.lines]
    return consequence._replace(lines=tuple(lines))


async def _roots(ctx: Context, roles: tuple[RoleEntity, ...], *, outer: SecurableChain) -> list[SecurableChain]:
    """Return the objects on which roles have grants, each with its ancestors, except objects below another of them."""
    chains: dict[int, SecurableChain] = {}
    for role in roles:
        after, goes_on = 0, True
        while goes_on:
            grants, nodes, goes_on = await ctx.look_up(partial(role_part_read, role.id, after))
            if grants:
                after = grants[-1].object_id
            for grant in grants:
                chain = _chain_in(nodes, grant.object_id, outer=outer)
                if chain is not None:
                    chains[grant.object_id] = chain
            await asyncio.sleep(0)
    return [chain for chain in chains.values() if not any(link.id in chains for link in chain[1:])]


def _chain_in(nodes: Ancestry, object_id: int, *, outer: SecurableChain) -> SecurableChain | None:
    """Return an object followed by its ancestors; None for a dropped object."""
    if object_id == outer[-1].id:
        return outer[-1:]
    links: list[ChainLink] = []
    at = object_id
    while at in nodes and at != outer[-1].id:
        parent, kind, name = nodes[at]
        links.append(ChainLink(at, kind, name))
        at = parent
    return (*links, outer[-1]) if at == outer[-1].id else None


async def _users(ctx: Context, users: UserRange, *, facts: SubtreeFacts, extra: Collection[int] = ()) -> AffectedUsers:
    """Read the users of a range, each with the roles and groups that affect decisions on the objects."""
    roles = {row.role_id for rows in facts.rules.values() for row in rows} | set(extra)
    restricted_names = {
        each
        for restrictions in facts.restrictions.values()
        for restriction in restrictions
        for each in (*restriction.terms.to, *restriction.terms.unless)
    }
    principals = set(facts.owners.values()) | restricted_names
    affected = AffectedUsers(principals)
    count, part = 0, users
    while True:
        rows: list[UserRow] = await ctx.look_up(
            partial(users_read, part, roles=roles | restricted_names, groups=principals)
        )
        for row in rows:
            affected.add(row)
        count += len(rows)
        if len(rows) < part.limit:
            return affected
        if count >= USERS_MAX:
            affected.is_bounded = True
            return affected
        part = part._replace(after=rows[-1].name)
        await asyncio.sleep(0)


class _Tally:
    """Collects classes of users and of objects by access level, kind of object, and direction (gain or loss)."""

    def __init__(self) -> None:
        self.users: dict[tuple[str, Kind, bool], set[int]] = {}
        self.objects: dict[tuple[str, Kind, bool], set[int]] = {}

    def add(self, key: tuple[str, Kind, bool], *, users: int, objects: int) -> None:
        """Add a class of users and a class of objects under `key`, by their positions in the lists of classes."""
        self.users.setdefault(key, set()).add(users)
        self.objects.setdefault(key, set()).add(objects)


async def _compare_levels(
    facts: SubtreeFacts, users: AffectedUsers, *, changed_rules: dict[int, list[RuleRow]], is_enforced: bool
) -> Consequence:
    """Compare the access levels before and after the change for each class of users and objects, and count the
    differences.
    """
    after_rules = facts.rules | changed_rules
    objects = await classes_of(facts, after_rules, users=users)
    tally, pairs, is_bounded = _Tally(), 0, facts.is_bounded or users.is_bounded
    people = users.classes()
    for number, group in enumerate(people):
        for index, each in enumerate(objects):
            if pairs >= PAIRS_MAX:
                is_bounded = True
                break
            pairs += 1
            if pairs % PAIRS_AT_ONCE == 0:
                await asyncio.sleep(0)
            before = decided_levels(group.subject(facts.rules, each.chain, is_after=False), each.chain, facts=facts)
            after = decided_levels(group.subject(after_rules, each.chain, is_after=True), each.chain, facts=facts)
            for level in before ^ after:
                tally.add((level, each.chain[0].kind, level in after), users=number, objects=index)
    sizes = [group.size for group in people]
    lines = _lines(tally, people=people, objects=objects)
    gaining, losing = (
        set().union(*(ids for key, ids in tally.users.items() if key[2] is gains)) for gains in (True, False)
    )
    return Consequence(
        users=sum(sizes),
        gaining=sum(sizes[each] for each in gaining),
        losing=sum(sizes[each] for each in losing),
        objects=len(facts.objects),
        lines=lines,
        is_bounded=is_bounded,
        is_enforced=is_enforced,
    )


def _lines(tally: _Tally, *, people: list[UserClass], objects: list[ObjectClass]) -> tuple[ConsequenceLine, ...]:
    lines = [
        ConsequenceLine(
            level=level,
            kind=kind,
            gains=gains,
            users=sum(people[each].size for each in classes),
            objects=sum(objects[each].size for each in tally.objects[level, kind, gains]),
            names=tuple(sorted(name for each in classes for name in people[each].names)[:NAMES_MAX]),
        )
        for (level, kind, gains), classes in tally.users.items()
    ]
    return tuple(sorted(lines, key=lambda line: (not line.gains, LEVELS.index(line.level), line.kind)))
