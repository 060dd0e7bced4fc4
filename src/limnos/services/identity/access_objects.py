# SPDX-License-Identifier: Apache-2.0
"""Access of many users to one object: reads the facts for the decisions from the store, and decides.

Must not know any wire format. The policy is the same as for every request; only the facts are read for all users at
once. Users with the same roles and groups share one decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

from limnos.access.actions import Action
from limnos.access.decide import decide, is_allowed
from limnos.access.restrictions import RESTRICTED_ACTIONS, binding_restrictions, may_leave
from limnos.model.decisions import ChainLink, DecisionFactor, SecurableChain
from limnos.model.entities import Principal
from limnos.model.errors import BadRequest
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege
from limnos.model.restrictions import Restriction
from limnos.services.identity.explain import chain_to, require_path, scope_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.identity.access_facts import (
    HeldRoleRow,
    OwnerRow,
    RuleRow,
    UserRow,
    access_stamps_read,
    owners_read,
    role_names_read,
    rules_on_read,
    rules_part_read,
)
from limnos.store.sql import Load
from limnos.view.cache_miss import require_fact
from limnos.view.keys import principal_id_key, restrictions_key

T = TypeVar("T")
_OpenObject = tuple[int, tuple[int, int]]
"""An object whose grants are not all read, and the role and privilege of the last one read."""
RULES_AT_ONCE: Final = 1_000
"""The number of grants in one read; other requests run between two reads."""
ALTERNATIVES_MAX: Final = 4
"""The number of further sets of roles that are looked for, each of which gives an access alone."""
ROLES_COMPARED_MAX: Final = 200
"""The number of a user's roles up to which they are looked for: each set costs a merge of the remaining roles."""
_PRIVILEGES = {int(privilege): privilege for privilege in Privilege}


class AccessQuestion(NamedTuple):
    """The object that a request about access names. A `kind` of None means the innermost kind of object that exists at
    the path and of which the caller may know.
    """

    metalake: str
    kind: Kind | None
    path: tuple[str, ...]


class AccessTarget(NamedTuple):
    """The requested object with its ancestors in the caller's request view, the zones of its facts, and its catalog's
    read restrictions by object.
    """

    scope: RequestScope
    metalake_id: int
    zones: tuple[int, ...]
    chain: SecurableChain
    restrictions: Mapping[int, tuple[Restriction, ...]]
    admins: frozenset[str]
    is_enforced: bool

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the target and its ancestors, without missing objects."""
        return frozenset(link.id for link in self.chain if link.id > 0)


async def scope_of_question(ctx: Context, question: AccessQuestion) -> RequestScope:
    """Return the scope of a requested object. Raises BadRequest for a path that names no object of the kind."""
    kind = question.kind or (Kind.METALAKE if not question.path else Kind.CATALOG)
    if question.kind is not None:
        require_path(question.kind, question.path, metalake=question.metalake)
    return await scope_of(ctx, question.metalake, kind=kind, path=question.path)


def target_of(request_view: RequestView, question: AccessQuestion, *, unknown: Kind = Kind.TABLE) -> AccessTarget:
    """Return the requested object, even if it is missing; a path of which the caller may not know has the kind
    `unknown`.

    Raises PermissionDenied if the caller is not a user of the metalake.
    """
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
    kind = question.kind or _kind_at(request_view, question.path, unknown=unknown)
    chain = chain_to(request_view, kind, path=question.path)
    restrictions: Mapping[int, tuple[Restriction, ...]] = {}
    if request_view.settled.catalog is not None:
        restrictions = require_fact(
            request_view.view, restrictions_key(request_view.zone), zone=request_view.zone
        ).by_object
    rules = request_view.rules
    return AccessTarget(
        scope=request_view.scope,
        metalake_id=request_view.metalake.id,
        zones=request_view.settled.zones,
        chain=chain,
        restrictions=restrictions,
        admins=frozenset(rules.service_admins),
        is_enforced=rules.access_enabled,
    )


def _kind_at(request_view: RequestView, path: tuple[str, ...], *, unknown: Kind) -> Kind:
    """Return the kind of the object at a path; `unknown` if there is none that the caller may know of."""
    if not path:
        return Kind.METALAKE
    if len(path) == 1:
        return Kind.CATALOG
    return next((chain[0].kind for chain in _known_chains(request_view, path)), unknown)


def _known_chains(request_view: RequestView, path: tuple[str, ...]) -> Iterator[SecurableChain]:
    """Yield the objects of each kind at a path of which the caller may know, with their ancestors; namespaces last."""
    if request_view.settled.catalog is None:
        return
    for kind in (*NAMESPACE_OBJECTS, Kind.NAMESPACE):
        node, chain = request_view.find(path[1:], kind)
        if node is not None and node.kind is kind and may_know(request_view, chain):
            yield chain


def meant_kind(request_view: RequestView, kind: Kind, *, path: tuple[str, ...]) -> Kind:
    """Return the kind of object that a request for access means: the requested kind, or that of the only object at the
    path. A user who may not see an object cannot know its kind. A namespace is meant only by its own kind: access to it
    is access to all of its objects.
    """
    if len(path) < 2:
        return kind
    kinds = [chain[0].kind for chain in _known_chains(request_view, path)]
    return kinds[0] if len(kinds) == 1 and kinds[0] is not Kind.NAMESPACE else kind


class KnownObject(NamedTuple):
    """An object of which the caller may know: its kind, and its owner if it has one."""

    kind: Kind
    owner: Principal | None


class KnownObjects(NamedTuple):
    """The objects at a path of which the caller may know; not `is_complete` in a catalog of an external system."""

    objects: tuple[KnownObject, ...]
    is_complete: bool


async def objects_at(ctx: Context, metalake: str, *, path: tuple[str, ...]) -> KnownObjects:
    """Return the objects at a path below the metalake of which the caller may know: a namespace and a table may share
    one. A hidden object is left out like a missing one, so nothing is refused.

    Raises PermissionDenied for a caller who is not a user of the metalake, NotFound for a missing metalake, and
    BadRequest for an empty path.
    """

    def read(request_view: RequestView) -> KnownObjects:
        request_view.require(Action.METALAKE_LOAD, request_view.settled.outer[-1:])
        if not path:
            raise BadRequest("path is missing: the catalog, then the object in it, as main.raw.nyc")
        catalog = request_view.settled.catalog
        traits = None if catalog is None else request_view.traits
        outer = request_view.settled.outer
        chains = [outer] if catalog is not None and may_know(request_view, outer) else []
        if len(path) > 1:
            chains = list(_known_chains(request_view, path))
        objects = [KnownObject(chain[0].kind, _owner_of(request_view, chain)) for chain in chains]
        is_outside = traits is not None and (traits.is_sourced or traits.is_federated or traits.shows_directory)
        return KnownObjects(tuple(objects), not is_outside)

    scope = await scope_of(ctx, metalake, kind=Kind.CATALOG, path=path[:1]) if path else RequestScope(metalake)
    return await ctx.read(scope, read)


def _owner_of(request_view: RequestView, chain: SecurableChain) -> Principal | None:
    owner_id = request_view.owner_of(chain[0])
    if owner_id is None:
        return None
    return require_fact(request_view.view, principal_id_key(owner_id), zone=request_view.metalake.id)


def may_know(request_view: RequestView, chain: SecurableChain) -> bool:
    """Return whether the caller may learn that the first object of `chain` exists."""
    actions = (Action.METADATA_LOAD, Action.EXPLAIN_OTHERS, Action.PRIVILEGE_GRANT)
    return any(request_view.decide(each, chain).allowed for each in actions if chain[0].kind in each.kinds)


def require_holder_list_access(request_view: RequestView, chain: SecurableChain) -> bool:
    """Check that the caller may list the holders of access to an object: a caller who manages grants, or may grant on
    it.

    Returns whether the caller manages grants there, which makes all role names visible. Raises PermissionDenied, and
    BadRequest for a kind of object on which access is not granted.
    """
    kind = chain[0].kind
    if kind not in Action.EXPLAIN_OTHERS.kinds:
        raise BadRequest(f"Access is not granted on a single {kind.word.replace('_', ' ')}")
    if request_view.decide(Action.EXPLAIN_OTHERS, chain).allowed:
        return True
    if kind in Action.PRIVILEGE_GRANT.kinds and request_view.decide(Action.PRIVILEGE_GRANT, chain).allowed:
        return False
    request_view.require(Action.EXPLAIN_OTHERS, chain)  # its refusal is the same for a hidden object and a missing one
    return True


class ObjectAccess:
    """Makes access decisions for users on one object from stored rows, as `decide` does for a request."""

    def __init__(
        self, target: AccessTarget, *, rules: Iterable[RuleRow], owners: Iterable[OwnerRow], names: Mapping[int, str]
    ) -> None:
        self.target = target
        self.rows = (*rules, *_inherited_denials(target, names))
        self.owners = {row.object_id: row for row in owners}
        self.role_names = {**names, **{row.role_id: row.role for row in self.rows}}
        self._rows_of: dict[int, list[RuleRow]] = {}
        for row in self.rows:
            self._rows_of.setdefault(row.role_id, []).append(row)
        self._roles: dict[int, RoleRules] = {}
        named_principals = principals_named(target.chain, target.restrictions)
        self.principals = {row.principal_id for row in self.owners.values()} | (named_principals - names.keys())
        if target.chain[0].kind in (Kind.USER, Kind.GROUP):
            self.principals.add(target.chain[0].id)
        self._last: tuple[UserRow, Subject] | None = None
        self._made: dict[object, tuple[DecisionFactor, ...] | None] = {}

    def owner_of(self, link: ChainLink) -> int | None:
        """Return the principal id of an object's owner; None if the object has no owner."""
        row = self.owners.get(link.id)
        return None if row is None else row.principal_id

    def subject_of(self, user: UserRow) -> Subject:
        """Return a user as the subject of decisions, with the roles and groups that affect this object."""
        roles = [HeldRole(self._role(row.role_id), row.group) for row in user.roles if row.role_id in self.role_names]
        return Subject.of(
            user.id,
            user.name,
            groups=[each for each, _ in user.groups],
            group_names=[name for _, name in user.groups],
            roles=roles,
            service_admin=user.name in self.target.admins,
        )

    def build_roles(self, rows: Iterable[HeldRoleRow]) -> None:
        """Build some roles of a user with many, so that other requests run before the user is decided for."""
        for row in rows:
            if row.role_id in self.role_names:
                self._role(row.role_id)

    def _role(self, role_id: int) -> RoleRules:
        """Return a role with its grants on the object and its ancestors, built when the first user has it."""
        role = self._roles.get(role_id)
        if role is None:
            own_role = roles_of(self._rows_of.get(role_id, ())).get(role_id)
            role = self._roles[role_id] = own_role or RoleRules.of(role_id, self.role_names[role_id])
        return role

    def reasons(self, user: UserRow, actions: tuple[Action, ...]) -> tuple[DecisionFactor, ...] | None:
        """Return the reasons why a user may take one of `actions`, the first allowed one; None if the user may take
        none.
        """
        key = (self._class_of(user), actions)
        if key not in self._made:
            self._made[key] = self._reasons(self._last_subject(user), actions)
        return self._made[key]

    def _last_subject(self, user: UserRow) -> Subject:
        """Return the subject of a user, kept for the next action of the same user."""
        if self._last is None or self._last[0] is not user:
            self._last = (user, self.subject_of(user))
        return self._last[1]

    def _class_of(self, user: UserRow) -> object:
        own_id = user.id if user.id in self.principals else 0
        return (user.roles, user.groups, own_id, user.name in self.target.admins)

    def _reasons(self, subject: Subject, actions: tuple[Action, ...]) -> tuple[DecisionFactor, ...] | None:
        chain = self.target.chain
        for action in actions:
            if not is_allowed(subject, action, chain=chain, owner_of=self.owner_of):
                continue
            if action in RESTRICTED_ACTIONS and self.restrictions_of(subject):
                continue
            if not may_leave(subject, action, chain=chain, by_object=self.target.restrictions, owner_of=self.owner_of):
                continue
            return self._all_reasons(subject, action)
        return None

    def _all_reasons(self, subject: Subject, action: Action) -> tuple[DecisionFactor, ...]:
        """Return the reasons of an allowed action, and those that would remain without the first ones: who takes a role
        away can see whether another one gives the same access.
        """
        chain, owner_of = self.target.chain, self.owner_of
        latest = decide(subject, action, chain, owner_of).factors
        reasons = dict.fromkeys(latest)
        for _ in range(ALTERNATIVES_MAX if len(subject.roles) <= ROLES_COMPARED_MAX else 0):
            names = {factor.role for factor in latest if factor.role is not None}
            is_owner = any(factor.kind == "owner" for factor in latest)
            if not names and not is_owner:
                break
            owner_of = _no_owner if is_owner else owner_of
            roles = tuple(each for each in subject.roles if each.rules.name not in names)
            subject = replace(subject, roles=roles, merged=None)
            if not is_allowed(subject, action, chain=chain, owner_of=owner_of):
                break
            latest = decide(subject, action, chain, owner_of).factors
            reasons |= dict.fromkeys(latest)
        return tuple(reasons)

    def restrictions_of(self, subject: Subject) -> tuple[tuple[Restriction, ChainLink], ...]:
        """Return the read restrictions that apply to a subject, each with the object it is set on."""
        chain, restrictions = self.target.chain, self.target.restrictions
        if not restrictions:
            return ()
        binding = binding_restrictions(subject, chain, by_object=restrictions, owner_of=self.owner_of, active=None)
        return tuple((each.restriction, chain[each.at]) for each in binding)


def _no_owner(link: ChainLink) -> int | None:
    """Return no owner of any object."""
    del link
    return None


def _inherited_denials(target: AccessTarget, names: Mapping[int, str]) -> list[RuleRow]:
    """Return the denials that objects of the chain took over from former objects of their paths, as rows of rules."""
    return [
        RuleRow(object_id=link.id, role_id=role_id, role=names[role_id], privilege=privilege, allowed=False)
        for link in target.chain
        for restriction in target.restrictions.get(link.id, ())
        for role_id in restriction.terms.to
        for privilege in restriction.terms.denies
        if role_id in names
    ]


def principals_named(chain: SecurableChain, restrictions: Mapping[int, tuple[Restriction, ...]]) -> set[int]:
    """Return the ids of users, groups and roles that the restrictions on the objects of `chain` name."""
    return {
        each
        for link in chain
        for restriction in restrictions.get(link.id, ())
        for each in (*restriction.terms.to, *restriction.terms.unless)
    }


def roles_of(rows: Iterable[RuleRow]) -> dict[int, RoleRules]:
    """Group rows of grants by role id into roles."""
    names: dict[int, str] = {}
    pairs: dict[tuple[int, bool], list[tuple[Privilege, int]]] = {}
    for row in rows:
        names[row.role_id] = row.role
        pairs.setdefault((row.role_id, row.allowed), []).append((_PRIVILEGES[row.privilege], row.object_id))
    return {
        role_id: RoleRules.of(role_id, name, allow=pairs.get((role_id, True), ()), deny=pairs.get((role_id, False), ()))
        for role_id, name in names.items()
    }


def object_access_read(target: AccessTarget) -> Load[ObjectAccess]:
    """Read the grants, owners and named roles that decide on an object, in one snapshot."""
    rules = yield from rules_on_read(target.ids)
    owners, names = yield from _owners_and_names_read(target)
    return ObjectAccess(target, rules=rules, owners=owners, names=names)


def _owners_and_names_read(target: AccessTarget) -> Load[tuple[list[OwnerRow], dict[int, str]]]:
    owners = yield from owners_read(target.ids)
    ids = principals_named(target.chain, target.restrictions)
    if target.chain[0].kind is Kind.ROLE:
        ids = ids | {target.chain[0].id}
    names = (yield from role_names_read(ids)) if ids else {}
    return owners, names


class AccessMoved(Exception):
    """Raised if a right changed between two reads that must agree."""


class AgreeingReads:
    """Reads of one request in several short snapshots, between which no right in `zones` changes."""

    def __init__(self, ctx: Context, zones: tuple[int, ...]) -> None:
        self._ctx = ctx
        self._zones = zones
        self.stamps: frozenset[tuple[int, int]] | None = None

    async def read(self, load: Callable[[], Load[T]]) -> T:
        """Read in one snapshot, and let other requests run. Raises AccessMoved if a right changed since the first."""
        stamps, result = await self._ctx.look_up(partial(_stamped_read, self._zones, load), aside=True)
        if self.stamps is None:
            self.stamps = stamps
        elif stamps != self.stamps:
            raise AccessMoved
        await asyncio.sleep(0)
        return result


def _stamped_read(zones: tuple[int, ...], load: Callable[[], Load[T]]) -> Load[tuple[frozenset[tuple[int, int]], T]]:
    stamps = yield from access_stamps_read(zones)
    return stamps, (yield from load())


async def object_access_load(reads: AgreeingReads, target: AccessTarget) -> ObjectAccess:
    """Read what `object_access_read` reads, in parts. Raises AccessMoved."""
    rules: list[RuleRow] = []
    open_objects: list[_OpenObject] = [(object_id, (0, 0)) for object_id in sorted(target.ids, reverse=True)]
    while open_objects:
        rows, open_objects = await reads.read(partial(_rules_batch_read, tuple(open_objects)))
        rules += rows
    owners, names = await reads.read(partial(_owners_and_names_read, target))
    return ObjectAccess(target, rules=rules, owners=owners, names=names)


def _rules_batch_read(opened: tuple[_OpenObject, ...]) -> Load[tuple[list[RuleRow], list[_OpenObject]]]:
    """Read the next grants on some objects, at most `RULES_AT_ONCE`. Returns them, and the objects that have more."""
    rules, left = list[RuleRow](), list(opened)
    while left and len(rules) < RULES_AT_ONCE:
        object_id, after = left.pop()
        limit = RULES_AT_ONCE - len(rules)
        rows = yield from rules_part_read(object_id, after, limit=limit)
        if len(rows) == limit:
            left.append((object_id, (rows[-1].role_id, rows[-1].privilege)))
        rules += rows
    return rules, left
