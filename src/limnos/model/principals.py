"""Who asks: a user with groups and roles, as one immutable value with the sets that decisions need.

May import `model` only. Knows no rule of who may do what, no store and no wire format. A value is made when the facts
behind it change and shared by every request until then, so everything that can be computed beforehand is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from limnos.model.decisions import Link
from limnos.model.errors import Forbidden
from limnos.model.privileges import Privilege, shown

__all__ = ["HeldRole", "Link", "RoleRules", "Rule", "Subject", "Trust", "is_name"]

NAME_BYTES_MAX = 255
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line ends and marks of direction: in a log or on a terminal they show something that is not there."""

Rule = tuple[Privilege, int]
"""A privilege on the object of that id."""


def is_name(name: str) -> bool:
    """Say whether a text can name a user, group or role: not empty, not too long, and every character shows as itself."""
    return 0 < len(name.encode("utf-8", "replace")) <= NAME_BYTES_MAX and _INVISIBLE.search(name) is None


class Trust(StrEnum):
    """What a token's worth rests on: how its maker was known. The words are stored."""

    OPEN = "open"
    """Access control was off: nobody was asked for a right."""
    BELIEVED = "believed"
    """The maker only said who they were (`access.authentication = simple`). Also every token from before this was kept."""
    PROVEN = "proven"
    """The maker had a proven token, or the server made it for its administrator."""


class Purpose(StrEnum):
    """What a token is for. The words are stored."""

    API = "api"
    """Made by somebody to keep."""
    SESSION = "session"
    """Given by a login, for a while."""
    REFRESH = "refresh"
    """Given by a login, to ask for the next session; it opens nothing else."""
    CLIENT = "client"
    """A service account's secret: access is asked for with it, and it opens nothing else."""
    ACCESS = "access"
    """Given for a service account's secret, for a while; its root is the secret."""


class Identity(NamedTuple):
    """Whom a token of an outside issuer speaks for. Times are milliseconds since 1970.

    `groups` is None where no claim of the issuer's tells them; `expires_ms` has the time added by which clocks may differ.
    """

    user: str
    issued_ms: int
    expires_ms: int
    groups: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class RoleRules:
    """What one role allows and denies, keyed by object id; one value is shared by all who hold the role."""

    id: int
    name: str
    allow: frozenset[Rule]
    deny: frozenset[Rule]
    allow_ids: Mapping[Privilege, frozenset[int]] = field(init=False, compare=False, repr=False)
    deny_ids: Mapping[Privilege, frozenset[int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow_ids", _by_privilege(self.allow))
        object.__setattr__(self, "deny_ids", _by_privilege(self.deny))


@dataclass(frozen=True, slots=True)
class HeldRole:
    """A role as somebody holds it: `via` is the group it comes through, None when it is held directly."""

    rules: RoleRules
    via: str | None


@dataclass(frozen=True, slots=True)
class Subject:
    """A user in one metalake, as decisions see them.

    `user_id` is None and `member` False for somebody who is not a user of the metalake. `groups` are ids; user and
    group ids come from one sequence, so `principal_ids` can be compared with an owner's id. The fields after
    `member` are derived: unions over all roles, once.
    """

    user_id: int | None
    user_name: str
    groups: frozenset[int]
    group_names: tuple[str, ...]
    roles: tuple[HeldRole, ...]
    service_admin: bool
    member: bool
    allow: frozenset[Rule] = field(init=False, compare=False, repr=False)
    deny: frozenset[Rule] = field(init=False, compare=False, repr=False)
    allow_ids: Mapping[Privilege, frozenset[int]] = field(init=False, compare=False, repr=False)
    deny_ids: Mapping[Privilege, frozenset[int]] = field(init=False, compare=False, repr=False)
    principal_ids: frozenset[int] = field(init=False, compare=False, repr=False)
    role_ids: frozenset[int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # By identity: a role held directly and through a group is one shared value, and no rule is ever lost.
        rules = list({id(held.rules): held.rules for held in self.roles}.values())
        own = frozenset() if self.user_id is None else frozenset({self.user_id})
        derived = {
            "allow": _union([r.allow for r in rules]),
            "deny": _union([r.deny for r in rules]),
            "allow_ids": _merged([r.allow_ids for r in rules]),
            "deny_ids": _merged([r.deny_ids for r in rules]),
            "principal_ids": own | self.groups,
            "role_ids": frozenset(r.id for r in rules),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

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
    ) -> Subject:
        """A subject from whatever iterables are at hand; a member without groups and roles unless told otherwise."""
        return cls(
            user_id,
            user_name,
            frozenset(groups),
            tuple(group_names),
            tuple(roles),
            service_admin,
            member and user_id is not None,
        )

    def narrowed(self, active: frozenset[str]) -> Subject:
        """The same subject when only the roles named in `active` may allow anything.

        Denials, ownership and the holding of the other roles stay. Raises Forbidden for a role that is not held.
        """
        unheld = sorted(active - {held.rules.name for held in self.roles})
        if unheld:
            raise Forbidden(f"User '{shown(self.user_name)}' does not hold the role {', '.join(map(shown, unheld))}")
        roles = tuple(held if held.rules.name in active else _denying(held) for held in self.roles)
        return Subject(
            self.user_id, self.user_name, self.groups, self.group_names, roles, self.service_admin, self.member
        )


def _denying(held: HeldRole) -> HeldRole:
    return HeldRole(RoleRules(held.rules.id, held.rules.name, frozenset(), held.rules.deny), held.via)


def _by_privilege(rules: frozenset[Rule]) -> dict[Privilege, frozenset[int]]:
    found: dict[Privilege, set[int]] = {}
    for privilege, object_id in rules:
        found.setdefault(privilege, set()).add(object_id)
    return {privilege: frozenset(ids) for privilege, ids in found.items()}


def _union(sets: list[frozenset[Rule]]) -> frozenset[Rule]:
    return sets[0] if len(sets) == 1 else frozenset().union(*sets)


def _merged(maps: list[Mapping[Privilege, frozenset[int]]]) -> Mapping[Privilege, frozenset[int]]:
    """Per privilege the union of all ids; a set that only one role brings is shared, not copied."""
    merged: dict[Privilege, frozenset[int]] = {}
    for by_privilege in maps:
        for privilege, ids in by_privilege.items():
            known = merged.get(privilege)
            merged[privilege] = ids if known is None else known | ids
    return merged


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose a request is: a name by itself may be given anew. The id is 0 for who is no user of the metalake."""

    name: str
    id: int
