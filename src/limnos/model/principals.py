# SPDX-License-Identifier: Apache-2.0
"""Principals: a user with groups and roles as one immutable value, with the sets that decisions need.

Must not know access rules, stores or wire formats. A value is built when its facts change, and requests share it until
the next change. So the sets are computed in advance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from limnos.model.decisions import ChainLink
from limnos.model.errors import PermissionDenied
from limnos.model.privileges import Privilege, escape_percent

__all__ = ["ChainLink", "HeldRole", "MergedRules", "RoleRules", "Rule", "Subject", "TokenTrust", "is_name"]

NAME_BYTES_MAX = 255
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line ends and direction marks: a log or terminal would show the name as something else."""

Rule = tuple[Privilege, int]
"""A privilege on the object of that id."""


def is_name(name: str) -> bool:
    """Return whether a string can name a user, group or role: 1 to 255 bytes, without invisible control characters."""
    return 0 < len(name.encode("utf-8", "replace")) <= NAME_BYTES_MAX and _INVISIBLE.search(name) is None


class TokenTrust(StrEnum):
    """How strongly the user who created a token was authenticated. The values are stored."""

    OPEN = "open"
    """Access control was off: no right was required."""
    BELIEVED = "believed"
    """The creator only stated a name (`access.authentication = simple`).

    Also every token that was created before trusts were recorded.
    """
    PROVEN = "proven"
    """The creator's credential was verified (a proven token, or a token of the external issuer), or the server itself
    created the token.
    """


class TokenPurpose(StrEnum):
    """What a token is valid for, such as API requests, a console session or one operation. The values are stored."""

    API = "api"
    """A long-lived token that a user created."""
    SESSION = "session"
    """A short-lived token from a login."""
    REFRESH = "refresh"
    """Made at login, to request the next session. It gives no other access."""
    CLIENT = "client"
    """A service account's secret. Access tokens are requested with it; it gives no other access."""
    ACCESS = "access"
    """A short-lived token issued for a service account's secret, which is its root."""
    CONSOLE = "console"
    """A session of the console. Its text is a cookie, which is valid for the console only."""
    CONSOLE_CODE = "console-code"
    """A code that opens one session of the console. It gives no other access."""
    OPERATION = "operation"
    """Issued for one maintenance operation: its holder may load one table, and commit rewrites of its files."""
    WORK = "work"
    """Made by the server for its own work on behalf of a user: a statement or a task. It creates no credentials."""


class CredentialState(StrEnum):
    """What a token or secret is good for at the moment. The values are in answers of the own API."""

    VALID = "valid"
    REVOKED = "revoked"
    EXPIRED = "expired"
    UNTRUSTED = "untrusted"
    """The server does not accept tokens of such a trust."""
    USER_MISSING = "user missing"
    """No metalake has the user, or no more: a new user of the name of a removed one gets no rights by its tokens."""
    USER_DISABLED = "user disabled"
    """Each metalake that has the user has disabled it."""


class IssuerIdentity(NamedTuple):
    """The identity that a token of an external issuer proves. Times are milliseconds since 1970.

    `groups` is None if no claim names groups. `expires_ms` includes the allowed clock skew. `issued_ms` orders the
    tokens of a user; that of a token without an issue time is negative. `signed_in_ms` is the time of the sign-in; None
    if the token does not state one.
    """

    user: str
    issued_ms: int
    expires_ms: int
    groups: tuple[str, ...] | None
    signed_in_ms: int | None = None


IdsByPrivilege = Mapping[Privilege, frozenset[int]]
"""Ids of objects, by the privilege that is allowed (or denied) on them."""


@dataclass(frozen=True, slots=True)
class RoleRules:
    """The grants of one role. All users who hold the role share one value."""

    id: int
    name: str
    allow_ids: IdsByPrivilege = field(hash=False)
    deny_ids: IdsByPrivilege = field(hash=False)

    @classmethod
    def of(cls, id: int, name: str, *, allow: Iterable[Rule] = (), deny: Iterable[Rule] = ()) -> RoleRules:
        """Build the grants of a role from (privilege, object id) pairs."""
        return cls(id, name, _by_privilege(allow), _by_privilege(deny))

    @property
    def allow(self) -> frozenset[Rule]:
        """The allowed pairs. Computed at each access in time linear in the number of grants: for tests and tools."""
        return _pairs(self.allow_ids)

    @property
    def deny(self) -> frozenset[Rule]:
        """The denied pairs. Computed at each access in time linear in the number of grants: for tests and tools."""
        return _pairs(self.deny_ids)


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role that a user holds. `via` is the group through which the user holds it; None for a direct role."""

    rules: RoleRules
    via: str | None


@dataclass(frozen=True, slots=True)
class MergedRules:
    """The merged grants of several roles, valid until the grants of one of the roles change."""

    allow_ids: IdsByPrivilege
    deny_ids: IdsByPrivilege
    role_ids: frozenset[int]

    @classmethod
    def of(cls, roles: Iterable[HeldRole]) -> MergedRules:
        """Merge the grants of roles. The cost grows with the number of grants."""
        # By identity: a role held directly and through a group is one shared value, merged once.
        rules = list({id(role.rules): role.rules for role in roles}.values())
        return cls(
            union_by_privilege([r.allow_ids for r in rules]),
            union_by_privilege([r.deny_ids for r in rules]),
            frozenset(r.id for r in rules),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A user in one metalake, in the form that decisions use.

    `user_id` is None and `member` False for a caller who is not a user of the metalake. `groups` are ids. User and
    group ids come from one sequence, so an owner's id can be compared with `principal_ids`. The fields after `member`
    are derived.
    """

    user_id: int | None
    user_name: str
    groups: frozenset[int]
    group_names: tuple[str, ...]
    roles: tuple[HeldRole, ...]
    service_admin: bool
    member: bool
    merged: MergedRules | None = field(default=None, compare=False, repr=False)
    """The merged grants of the roles, if they are computed already."""
    allow_ids: IdsByPrivilege = field(init=False, compare=False, repr=False)
    deny_ids: IdsByPrivilege = field(init=False, compare=False, repr=False)
    principal_ids: frozenset[int] = field(init=False, compare=False, repr=False)
    role_ids: frozenset[int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        merged_rules = MergedRules.of(self.roles) if self.merged is None else self.merged
        own_ids = frozenset() if self.user_id is None else frozenset({self.user_id})
        derived = {
            "merged": merged_rules,
            "allow_ids": merged_rules.allow_ids,
            "deny_ids": merged_rules.deny_ids,
            "principal_ids": own_ids | self.groups,
            "role_ids": merged_rules.role_ids,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def allow(self) -> frozenset[Rule]:
        """The pairs of a privilege and an object id that any role allows.

        Computed at each access in time linear in the number of rules: for tests and tools.
        """
        return _pairs(self.allow_ids)

    @property
    def deny(self) -> frozenset[Rule]:
        """The pairs that any role denies.

        Computed at each access in time linear in the number of rules: for tests and tools.
        """
        return _pairs(self.deny_ids)

    @classmethod
    def of(
        cls,
        user_id: int | None,
        user_name: str,
        *,
        groups: Iterable[int] = (),
        group_names: Iterable[str] = (),
        roles: Iterable[HeldRole] = (),
        service_admin: bool = False,
        member: bool = True,
        merged: MergedRules | None = None,
    ) -> Subject:
        """Build a subject, and merge the grants of its roles.

        By default the subject is a member of the metalake without groups and roles. Without a `user_id` it is never a
        member.
        """
        return cls(
            user_id=user_id,
            user_name=user_name,
            groups=frozenset(groups),
            group_names=tuple(group_names),
            roles=tuple(roles),
            service_admin=service_admin,
            member=member and user_id is not None,
            merged=merged,
        )

    def narrow_to_roles(self, active: frozenset[str]) -> Subject:
        """Return the subject with only the allow grants of the roles in `active`.

        Deny grants, ownership and held roles are unchanged. Raises PermissionDenied for a role that the user does not
        hold.
        """
        unheld = sorted(active - {role.rules.name for role in self.roles})
        if unheld:
            raise PermissionDenied(
                f"User '{escape_percent(self.user_name)}' does not hold the role"
                f" {', '.join(map(escape_percent, unheld))}"
            )
        roles = tuple(held_role if held_role.rules.name in active else _denying(held_role) for held_role in self.roles)
        return Subject(
            user_id=self.user_id,
            user_name=self.user_name,
            groups=self.groups,
            group_names=self.group_names,
            roles=roles,
            service_admin=self.service_admin,
            member=self.member,
        )


def _denying(role: HeldRole) -> HeldRole:
    return HeldRole(RoleRules(role.rules.id, role.rules.name, {}, role.rules.deny_ids), role.via)


def _by_privilege(rules: Iterable[Rule]) -> dict[Privilege, frozenset[int]]:
    results: dict[Privilege, set[int]] = {}
    for privilege, object_id in rules:
        results.setdefault(privilege, set()).add(object_id)
    return {privilege: frozenset(ids) for privilege, ids in results.items()}


def _pairs(ids_by_privilege: IdsByPrivilege) -> frozenset[Rule]:
    return frozenset((privilege, object_id) for privilege, ids in ids_by_privilege.items() for object_id in ids)


def union_by_privilege(maps: Sequence[IdsByPrivilege]) -> IdsByPrivilege:
    """Return the union of ids per privilege. A set that only one role contributes is shared, not copied."""
    if len(maps) == 1:
        return maps[0]
    results: dict[Privilege, list[frozenset[int]]] = {}
    for by_privilege in maps:
        for privilege, ids in by_privilege.items():
            results.setdefault(privilege, []).append(ids)
    return {privilege: sets[0] if len(sets) == 1 else _NONE.union(*sets) for privilege, sets in results.items()}


_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Requester:
    """The user who sent a request.

    The id distinguishes users of the same name; 0 stands for a caller who is not a user of the metalake.
    """

    name: str
    id: int
