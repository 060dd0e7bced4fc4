# SPDX-License-Identifier: Apache-2.0
"""Holders of access: the users with access to an object, with reasons, and the grants and owners that give it.

Must not know any wire format. The facts of the object are read once for a page, and users in batches. A batch that
finds that rights have changed since reads the facts again, in its own snapshot. The caller's right and the object's
path are checked before and after.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action, require_kind
from limnos.access.levels import deciding_privileges, levels_of
from limnos.model.decisions import ChainLink, DecisionFactor, SecurableChain, display_names
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.services.identity.access_objects import (
    AccessMoved,
    AccessQuestion,
    AccessTarget,
    AgreeingReads,
    ObjectAccess,
    object_access_load,
    object_access_read,
    require_holder_list_access,
    scope_of_question,
    target_of,
)
from limnos.services.identity.explain import absence_notes
from limnos.services.request.browsing import is_permitted
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.access_facts import (
    UserRange,
    UserRow,
    access_stamps_read,
    holder_counts_read,
    holder_ids_read,
    member_ids_read,
    users_held_read,
    users_named_read,
    users_read,
)
from limnos.store.sql import Load
from limnos.view.cache_miss import for_each

PAGE_MAX: Final = 1_000
USERS_AT_ONCE: Final = 100
"""The number of users in one read; other requests run between two reads."""
DECIDED_AT_ONCE: Final = 20
"""The number of users after whose decisions other requests run."""
VISIBLE_AT_ONCE: Final = 200
"""The number of roles that are decided together for the caller."""
IDS_AT_ONCE: Final = 500
ROWS_AT_ONCE: Final = 5_000
ROLES_AT_ONCE: Final = 100
LOOKED_MAX: Final = 10_000
"""The maximum number of users that one page examines, and of users who are selected in advance."""
ATTEMPTS_MAX: Final = 5
LevelActions = dict[str, tuple[Action, ...]]


class AccessHolder(NamedTuple):
    """A user with access: the reasons by level or action, and the names and objects of the read restrictions that
    apply.
    """

    user: str
    is_enabled: bool
    reasons: Mapping[str, tuple[DecisionFactor, ...]]
    restrictions: tuple[tuple[str, Kind, str], ...]


class HoldersPage(NamedTuple):
    """A page of holders. `following` is the name after which the next page begins; None at the end.

    `asked` contains the requested access levels, or the requested action. `is_enforced` is False if access control is
    off. `notes` says that the object does not exist.
    """

    kind: Kind
    asked: tuple[str, ...]
    holders: list[AccessHolder]
    following: str | None
    is_enforced: bool
    notes: tuple[str, ...] = ()


class HoldersRequest(NamedTuple):
    """A request for a page of at most `limit` users after the name `after`, for one action or for all access levels."""

    action: Action | None = None
    after: str = ""
    limit: int = 100


class AccessRule(NamedTuple):
    """A grant on an object or one of its ancestors: the role, and the counts of users and groups that hold the role
    directly.
    """

    role: str
    privilege: int
    is_allowed: bool
    kind: Kind
    object_name: str
    is_inherited: bool
    users: int
    groups: int


class AccessOwner(NamedTuple):
    """An owner of an object or of one of its ancestors. `object_kind` and `object_name` are the owned object."""

    kind: Kind
    name: str
    object_kind: Kind
    object_name: str
    is_inherited: bool


class AccessRules(NamedTuple):
    """The owners and grants that decide on an object, the object's own first. Grants of hidden roles are only counted,
    in `hidden_rules`.
    """

    kind: Kind
    owners: list[AccessOwner]
    rules: list[AccessRule]
    hidden_rules: int
    following: int | None
    is_enforced: bool


class _AskerView(NamedTuple):
    target: AccessTarget
    sees_roles: bool
    notes: tuple[str, ...]


async def _ask(ctx: Context, question: AccessQuestion, *, scope: RequestScope) -> _AskerView:
    def read(request_view: RequestView) -> _AskerView:
        request_view.require_in_metalake_use()
        target = target_of(request_view, question)
        sees_roles = require_holder_list_access(request_view, target.chain)
        notes = absence_notes(request_view, target.chain, actions=(Action.EXPLAIN_OTHERS, Action.PRIVILEGE_GRANT))
        return _AskerView(target, sees_roles, tuple(notes))

    return await ctx.read(scope, read)


async def access_holders(ctx: Context, question: AccessQuestion, *, request: HoldersRequest) -> HoldersPage:
    """Return users who may take an action on an object, or who have any level of access to it, by name.

    Raises:
        PermissionDenied: The caller neither manages grants on the object or an ancestor, nor may grant on the object.
        BadRequest: The action does not apply to the kind, the kind has no access levels and no action is given, or
            access is not granted on that kind of object.
        ServiceUnavailable: The object was moved during each attempt.
    """
    for _ in range(ATTEMPTS_MAX):
        scope = await scope_of_question(ctx, question)
        answer = await _ask(ctx, question, scope=scope)
        levels = _levels(answer.target.chain[0].kind, request.action)
        page, roles = await _page(ctx, answer.target, levels=levels, request=request)
        now = await _ask(ctx, question, scope=scope)
        if now.target.chain != answer.target.chain:
            continue
        page = page._replace(notes=now.notes)
        if now.sees_roles:
            return page
        visible_roles = await _visible_roles(ctx, scope, roles=roles)
        return page._replace(holders=[_without_roles(each, visible_roles) for each in page.holders])
    raise ServiceUnavailable("The object was moved while its holders were read: try again")


def _levels(kind: Kind, action: Action | None) -> LevelActions:
    if action is not None:
        require_kind(action, kind)
        return {action.word: (action,)}
    levels = dict(levels_of(kind))
    if not levels:
        raise BadRequest(f"A {kind.word} has no levels of access: name an action")
    return levels


class _Selection(NamedTuple):
    """The users to examine: those with one of these roles, these principals, and members of the groups among both."""

    roles: frozenset[int]
    principals: frozenset[int]


class _HolderFacts(NamedTuple):
    """The facts of an object at the access revisions `stamps`, and the users to examine by name; None for all."""

    stamps: frozenset[tuple[int, int]] | None
    access: ObjectAccess
    users: list[UserRow] | None


def _selection(access: ObjectAccess, *, levels: LevelActions) -> _Selection | None:
    """Return the users who may have access; None for every user of the metalake."""
    privileges = deciding_privileges(
        (action for actions in levels.values() for action in actions), access.target.chain[0].kind
    )
    if privileges is None:
        return None
    roles = frozenset([row.role_id for row in access.rows if row.allowed and row.privilege in privileges])
    return _Selection(roles, frozenset([row.principal_id for row in access.owners.values()]))


async def _page(
    ctx: Context, target: AccessTarget, *, levels: LevelActions, request: HoldersRequest
) -> tuple[HoldersPage, Mapping[str, int]]:
    holders: list[AccessHolder] = []
    roles: dict[str, int] = {}
    after, examined_count = request.after, 0
    following: str | None = None
    facts = await _facts_load(ctx, target, levels=levels, after=after)
    while True:
        access, users = await ctx.look_up(partial(_step_read, target, facts, levels=levels, after=after), aside=True)
        for number, user in enumerate(users):
            if number % DECIDED_AT_ONCE == 0:
                await asyncio.sleep(0)
            for start in range(ROLES_AT_ONCE, len(user.roles), ROLES_AT_ONCE):
                access.build_roles(user.roles[start : start + ROLES_AT_ONCE])
                await asyncio.sleep(0)
            holder = _holder(access, user, levels=levels)
            if holder is not None:
                holders.append(holder)
                roles |= {access.role_names[row.role_id]: row.role_id for row in user.roles}
                if len(holders) > request.limit:
                    break
        examined_count += len(users)
        if len(holders) > request.limit:
            holders.pop()
            following = holders[-1].user
            break
        if len(users) < USERS_AT_ONCE:
            break
        after = users[-1].name
        if examined_count >= LOOKED_MAX:
            following = after
            break
    kind = target.chain[0].kind
    return HoldersPage(
        kind=kind, asked=tuple(levels), holders=holders, following=following, is_enforced=target.is_enforced
    ), roles


async def _facts_load(ctx: Context, target: AccessTarget, *, levels: LevelActions, after: str) -> _HolderFacts | None:
    """Read the facts of an object and select the users to examine, in parts; None if rights changed meanwhile."""
    reads = AgreeingReads(ctx, target.zones)
    try:
        access = await object_access_load(reads, target)
        selection = _selection(access, levels=levels)
        users = None if selection is None else await _selected_users(reads, target, selection=selection, after=after)
    except AccessMoved:
        return None
    return _HolderFacts(reads.stamps, access, users)


async def _selected_users(
    reads: AgreeingReads, target: AccessTarget, *, selection: _Selection, after: str
) -> list[UserRow] | None:
    """Return the selected users whose names sort after `after`, by name; None if they are more than `LOOKED_MAX`."""
    ids, roles = set(selection.principals), sorted(selection.roles)
    for start in range(0, len(roles), ROLES_AT_ONCE):
        part = roles[start : start + ROLES_AT_ONCE]
        some = await reads.read(partial(holder_ids_read, part, limit=LOOKED_MAX + 1))
        ids.update(some)
        if max(len(some), len(ids)) > LOOKED_MAX:
            return None
    for part in _parts(sorted(ids)):
        some = await reads.read(partial(member_ids_read, part, limit=LOOKED_MAX + 1))
        ids.update(some)
        if max(len(some), len(ids)) > LOOKED_MAX:
            return None
    users: list[UserRow] = []
    for part in _parts(sorted(ids)):
        users += await reads.read(partial(users_named_read, target.metalake_id, part, after=after))
    users.sort(key=_name_of)
    return users


def _parts(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE)]


_name_of = attrgetter("name")


def _step_read(
    target: AccessTarget, facts: _HolderFacts | None, *, levels: LevelActions, after: str
) -> Load[tuple[ObjectAccess, list[UserRow]]]:
    """Read, in one snapshot, the next users who may have access, and the facts of the object if rights have changed."""
    stamps = yield from access_stamps_read(target.zones)
    if facts is not None and facts.stamps == stamps:
        access = facts.access
        if facts.users is not None:
            begin = bisect_right(facts.users, after, key=_name_of)
            part = facts.users[begin : begin + USERS_AT_ONCE]
            return access, (yield from users_held_read(part, roles=access.role_names, groups=access.principals))
        selection = None
    else:
        access = yield from object_access_read(target)
        selection = _selection(access, levels=levels)
    users = UserRange(target.metalake_id, after, USERS_AT_ONCE, selection)
    return access, (yield from users_read(users, roles=access.role_names, groups=access.principals))


def _holder(access: ObjectAccess, user: UserRow, *, levels: LevelActions) -> AccessHolder | None:
    reasons = {name: why for name, actions in levels.items() if (why := access.reasons(user, actions)) is not None}
    if not reasons:
        return None
    restrictions: tuple[tuple[str, Kind, str], ...] = ()
    if access.target.restrictions:
        names = dict(zip((link.id for link in access.target.chain), display_names(access.target.chain), strict=True))
        restrictions = tuple(
            (each.name, link.kind, names[link.id]) for each, link in access.restrictions_of(access.subject_of(user))
        )
    return AccessHolder(user.name, user.is_enabled, reasons, restrictions)


async def _visible_roles(ctx: Context, scope: RequestScope, *, roles: Mapping[str, int]) -> frozenset[str]:
    """Return the names of those roles that the caller may load. Other requests run between parts of them."""
    links = [ChainLink(role_id, Kind.ROLE, name) for name, role_id in roles.items()]
    visible: set[str] = set()

    def read(part: list[ChainLink], request_view: RequestView) -> list[str]:
        outer = request_view.settled.outer[-1:]
        may = for_each(part, lambda link: is_permitted(request_view, Action.ROLE_LOAD, chain=(link, *outer)))
        return [link.name for link, is_visible in zip(part, may, strict=True) if is_visible]

    for start in range(0, len(links), VISIBLE_AT_ONCE):
        visible.update(await ctx.read(scope, partial(read, links[start : start + VISIBLE_AT_ONCE])))
        await asyncio.sleep(0)
    return frozenset(visible)


def _without_roles(holder: AccessHolder, visible: frozenset[str]) -> AccessHolder:
    """Return a holder without the names of roles hidden from the caller, and of the groups that give these roles."""
    reasons = {
        level: tuple(
            each if each.role is None or each.role in visible else msgspec.structs.replace(each, role=None, group=None)
            for each in factors
        )
        for level, factors in holder.reasons.items()
    }
    return holder._replace(reasons=reasons)


async def access_rules(ctx: Context, question: AccessQuestion, *, after: int = 0, limit: int = 100) -> AccessRules:
    """Return the owners and grants that decide on an object, the object's own first, then those of its ancestors.

    Grants come in pages: `after` is the page's offset, the count of grants before it. Raises as `access_holders`.
    """
    for _ in range(ATTEMPTS_MAX):
        scope = await scope_of_question(ctx, question)
        answer = await _ask(ctx, question, scope=scope)
        access = await _access_load(ctx, answer.target)
        roles = {name: role_id for role_id, name in access.role_names.items()}
        visible = None if answer.sees_roles else await _visible_roles(ctx, scope, roles=roles)
        page = await _rules(ctx, access, visible=visible, after=after, limit=limit)
        now = await _ask(ctx, question, scope=scope)
        if (now.target.chain, now.sees_roles) != (answer.target.chain, answer.sees_roles):
            continue
        if visible is None or visible == await _visible_roles(ctx, scope, roles=roles):
            return page
    raise ServiceUnavailable("The object was moved, or access changed, while its rules were read: try again")


async def _access_load(ctx: Context, target: AccessTarget) -> ObjectAccess:
    """Read the facts of an object in parts, or in one snapshot if rights change meanwhile."""
    try:
        return await object_access_load(AgreeingReads(ctx, target.zones), target)
    except AccessMoved:
        return await ctx.look_up(partial(object_access_read, target), aside=True)


async def _rules(
    ctx: Context, access: ObjectAccess, *, visible: frozenset[str] | None, after: int, limit: int
) -> AccessRules:
    chain: SecurableChain = access.target.chain
    levels_by_id = {link.id: at for at, link in enumerate(chain) if link.id > 0}
    names = display_names(chain)
    owners = [
        AccessOwner(kind=row.kind, name=row.name, object_kind=link.kind, object_name=names[at], is_inherited=at > 0)
        for at, link in enumerate(chain)
        if link.id > 0 and (row := access.owners.get(link.id)) is not None
    ]
    keyed: list[tuple[int, bool, str, int, int]] = []
    for number, rule in enumerate(access.rows):
        if number % ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
        if visible is None or rule.role in visible:
            keyed.append((levels_by_id[rule.object_id], rule.allowed, rule.role, rule.privilege, number))
    keyed.sort()
    page = [access.rows[number] for *_, number in keyed[after : after + limit]]
    counts = await ctx.look_up(partial(holder_counts_read, {row.role_id for row in page}), aside=True)
    rules = [
        AccessRule(
            role=row.role,
            privilege=row.privilege,
            is_allowed=row.allowed,
            kind=chain[levels_by_id[row.object_id]].kind,
            object_name=names[levels_by_id[row.object_id]],
            is_inherited=levels_by_id[row.object_id] > 0,
            users=counts.get(row.role_id, {}).get(Kind.USER, 0),
            groups=counts.get(row.role_id, {}).get(Kind.GROUP, 0),
        )
        for row in page
    ]
    following = after + limit if len(keyed) > after + limit else None
    hidden_count = len(access.rows) - len(keyed)
    return AccessRules(
        kind=chain[0].kind,
        owners=owners,
        rules=rules,
        hidden_rules=hidden_count,
        following=following,
        is_enforced=access.target.is_enforced,
    )
