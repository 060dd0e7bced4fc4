# SPDX-License-Identifier: Apache-2.0
"""Reads for access analysis of many users and objects: grants and denials on objects, owners, and users with their
roles and groups.

Must not know rights. Callers limit the size of every read. These rows are not cached, because each is needed for one
response.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from json import dumps
from typing import Final, NamedTuple

from limnos.model.kinds import KINDS, Kind
from limnos.model.restrictions import Restriction
from limnos.store.changes import CLOCKS_READ, clock_params
from limnos.store.identity.restrictions import restriction_of
from limnos.store.sql import Load, Row, Sql, Value

LISTS: Final = ("ids", "roles", "users", "principals")


def _sql(text: str) -> Sql:
    """Build a statement in which `{ids}`, `{roles}`, `{users}` and `{principals}` are parameters with JSON arrays of
    ids.
    """
    return Sql(
        text.format(
            **{
                name: f"SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:{name} AS json)) v"
                for name in LISTS
            }
        ),
        on_sqlite=text.format(**{name: f"SELECT value FROM json_each(:{name})" for name in LISTS}),
    )


RULES_ON = _sql(
    "SELECT g.object_id, g.role_id, r.name, g.privilege, g.allowed FROM access_grant g"
    " JOIN role r ON r.id = g.role_id AND r.deleted = 0 WHERE g.object_id IN ({ids})"
    " ORDER BY g.object_id, g.role_id, g.privilege"
)
RULES_PART = Sql(
    "SELECT g.object_id, g.role_id, r.name, g.privilege, g.allowed FROM access_grant g"
    " JOIN role r ON r.id = g.role_id AND r.deleted = 0 WHERE g.object_id = :object"
    " AND (g.role_id, g.privilege) > (:role, :privilege) ORDER BY g.role_id, g.privilege LIMIT :limit"
)
OWNERS = _sql(
    "SELECT o.object_id, p.id, p.kind, p.name FROM owner o JOIN principal p ON p.id = o.principal_id AND p.deleted = 0"
    " WHERE o.object_id IN ({ids})"
)
ROLE_NAMES = _sql("SELECT id, name FROM role WHERE id IN ({ids}) AND deleted = 0")
_USER = f"SELECT u.id, u.name, u.enabled FROM principal u WHERE u.metalake_id = :metalake AND u.kind = {int(Kind.USER)}"
_AFTER = " AND u.deleted = 0 AND u.name > :after"
_ORDER = " ORDER BY u.name LIMIT :limit"
EVERYBODY = Sql(f"{_USER}{_AFTER}{_ORDER}")
HOLDING = _sql(
    f"{_USER}{_AFTER} AND u.id IN ("
    "SELECT m.principal_id FROM role_member m WHERE m.role_id IN ({roles})"
    " UNION SELECT x.user_id FROM role_member m JOIN group_member x ON x.group_id = m.principal_id"
    " WHERE m.role_id IN ({roles})"
    " UNION {principals}"
    " UNION SELECT x.user_id FROM group_member x WHERE x.group_id IN ({principals}))" + _ORDER
)
HOLDER_IDS = _sql("SELECT principal_id FROM role_member WHERE role_id IN ({roles}) LIMIT :limit")
MEMBER_IDS = _sql("SELECT user_id FROM group_member WHERE group_id IN ({principals}) LIMIT :limit")
# With an index on metalakes and names, SQLite would read all users of the metalake.
CHOSEN = _sql(
    f"SELECT id, name, enabled FROM principal WHERE id IN ({{users}}) AND +metalake_id = :metalake"
    f" AND kind = {int(Kind.USER)} AND deleted = 0 AND name > :after"
)
# With an index on roles, SQLite would probe each pair of a user and a role.
HELD = _sql(
    "SELECT m.principal_id, m.role_id, 0, '' FROM role_member m WHERE m.principal_id IN ({users})"
    " AND +m.role_id IN ({roles})"
    " UNION ALL SELECT x.user_id, m.role_id, g.id, g.name FROM group_member x"
    " JOIN principal g ON g.id = x.group_id AND g.deleted = 0 JOIN role_member m ON m.principal_id = g.id"
    " WHERE x.user_id IN ({users}) AND +m.role_id IN ({roles}) ORDER BY 1, 3, 2"
)
MEMBERSHIPS = _sql(
    "SELECT x.user_id, g.id, g.name FROM group_member x JOIN principal g ON g.id = x.group_id AND g.deleted = 0"
    " WHERE x.user_id IN ({users}) AND x.group_id IN ({principals}) ORDER BY 1, 2"
)
RESTRICTIONS_ON = _sql(
    "SELECT object_id, name, terms, set_by, set_at FROM restriction WHERE object_id IN ({ids}) ORDER BY object_id, name"
)
HOLDERS_COUNT = _sql(
    "SELECT m.role_id, p.kind, count(*) FROM role_member m JOIN principal p ON p.id = m.principal_id AND p.deleted = 0"
    " WHERE m.role_id IN ({roles}) GROUP BY m.role_id, p.kind"
)
PARENTS = _sql("SELECT id, parent_id FROM node WHERE id IN ({ids}) AND deleted = 0")
CHILDREN = Sql(
    "SELECT n.id, n.kind, n.name_space, n.name, o.principal_id FROM node n LEFT JOIN owner o ON o.object_id = n.id"
    " WHERE n.parent_id = :parent AND n.deleted = 0 AND (n.name_space, n.name) > (:space, :name)"
    " ORDER BY n.name_space, n.name LIMIT :limit"
)


class RuleRow(NamedTuple):
    """A grant or denial of a privilege on an object to a role. `privilege` is the code of the privilege."""

    object_id: int
    role_id: int
    role: str
    privilege: int
    allowed: bool


class OwnerRow(NamedTuple):
    """The owner of an object: a user or a group."""

    object_id: int
    principal_id: int
    kind: Kind
    name: str


class HeldRoleRow(NamedTuple):
    """A role of a user. `group` is the group to which it is granted; None if it is granted to the user directly."""

    role_id: int
    group: str | None


class UserRow(NamedTuple):
    """A user with the requested roles and groups."""

    id: int
    name: str
    is_enabled: bool
    roles: tuple[HeldRoleRow, ...] = ()
    groups: tuple[tuple[int, str], ...] = ()


class UserRange(NamedTuple):
    """A page of users of a metalake, ordered by name, after the name `after`.

    `chosen` is a pair of role ids and principal ids. It selects the users who have one of the roles, are one of the
    principals, or are members of one of the groups among them; None selects all users.
    """

    metalake_id: int
    after: str
    limit: int
    chosen: tuple[Collection[int], Collection[int]] | None


class ChildRow(NamedTuple):
    """A live child of a container; `space` is the stored name space of its kind."""

    id: int
    kind: Kind
    space: str
    name: str
    owner_id: int | None


def _ids(ids: Iterable[int]) -> str:
    return dumps(sorted(ids))


def rules_on_read(object_ids: Collection[int]) -> Load[list[RuleRow]]:
    """Read all grants and denials on some objects, ordered by object and role."""
    rows = yield RULES_ON, {"ids": _ids(object_ids)}
    return [
        RuleRow(object_id=row[0], role_id=row[1], role=row[2], privilege=row[3], allowed=bool(row[4])) for row in rows
    ]


def rules_part_read(object_id: int, after: tuple[int, int], *, limit: int) -> Load[list[RuleRow]]:
    """Read grants and denials on an object in the order of (role id, privilege), beginning after the pair `after`."""
    rows = yield RULES_PART, {"object": object_id, "role": after[0], "privilege": after[1], "limit": limit}
    return [
        RuleRow(object_id=row[0], role_id=row[1], role=row[2], privilege=row[3], allowed=bool(row[4])) for row in rows
    ]


def holder_ids_read(role_ids: Collection[int], *, limit: int) -> Load[list[int]]:
    """Read ids of users and groups to which some roles are granted, at most `limit`; one may come several times."""
    rows = yield HOLDER_IDS, {"roles": _ids(role_ids), "limit": limit}
    return [row[0] for row in rows]


def member_ids_read(group_ids: Collection[int], *, limit: int) -> Load[list[int]]:
    """Read ids of the members of the groups among some ids, at most `limit`; one may come several times."""
    rows = yield MEMBER_IDS, {"principals": _ids(group_ids), "limit": limit}
    return [row[0] for row in rows]


def users_named_read(metalake_id: int, user_ids: Collection[int], *, after: str) -> Load[list[UserRow]]:
    """Read the users among some ids whose names sort after `after`, in any order, without roles and groups."""
    rows = yield CHOSEN, {"metalake": metalake_id, "users": _ids(user_ids), "after": after}
    return [_user_of(row) for row in rows]


def owners_read(object_ids: Collection[int]) -> Load[list[OwnerRow]]:
    """Read the owners of some objects."""
    rows = yield OWNERS, {"ids": _ids(object_ids)}
    return [OwnerRow(row[0], row[1], KINDS[row[2]], row[3]) for row in rows]


def role_names_read(role_ids: Collection[int]) -> Load[dict[int, str]]:
    """Read the names of the roles among some ids."""
    rows = yield ROLE_NAMES, {"ids": _ids(role_ids)}
    return {row[0]: row[1] for row in rows}


def users_read(users: UserRange, *, roles: Collection[int], groups: Collection[int]) -> Load[list[UserRow]]:
    """Read users by name, each with the user's roles among `roles` and groups among `groups`."""
    params: dict[str, Value] = {"metalake": users.metalake_id, "after": users.after, "limit": users.limit}
    if users.chosen is None:
        rows = yield EVERYBODY, params
    else:
        params |= {"roles": _ids(users.chosen[0]), "principals": _ids(users.chosen[1])}
        rows = yield HOLDING, params
    return (yield from users_held_read([_user_of(row) for row in rows], roles=roles, groups=groups))


def users_held_read(users: list[UserRow], *, roles: Collection[int], groups: Collection[int]) -> Load[list[UserRow]]:
    """Read the roles among `roles` and the groups among `groups` of some users."""
    if not users:
        return []
    ids = _ids(user.id for user in users)
    by_user: dict[int, list[HeldRoleRow]] = {}
    member: dict[int, list[tuple[int, str]]] = {}
    if roles:
        for user_id, role_id, group_id, group in (yield HELD, {"users": ids, "roles": _ids(roles)}):
            by_user.setdefault(user_id, []).append(HeldRoleRow(role_id, group if group_id else None))
    if groups:
        for user_id, group_id, group in (yield MEMBERSHIPS, {"users": ids, "principals": _ids(groups)}):
            member.setdefault(user_id, []).append((group_id, group))
    return [
        UserRow(
            id=user.id,
            name=user.name,
            is_enabled=user.is_enabled,
            roles=tuple(by_user.get(user.id, ())),
            groups=tuple(member.get(user.id, ())),
        )
        for user in users
    ]


def _user_of(row: Row) -> UserRow:
    return UserRow(id=row[0], name=row[1], is_enabled=bool(row[2]))


def access_stamps_read(zones: tuple[int, ...]) -> Load[frozenset[tuple[int, int]]]:
    """Read the access revisions of one to three zones, as pairs: equal pairs mean that no right changed."""
    rows = yield CLOCKS_READ, clock_params(zones)
    return frozenset((row[0], row[2]) for row in rows)


def restrictions_on_read(object_ids: Collection[int]) -> Load[dict[int, tuple[Restriction, ...]]]:
    """Read the read restrictions set on some objects."""
    rows = yield RESTRICTIONS_ON, {"ids": _ids(object_ids)}
    restrictions: dict[int, tuple[Restriction, ...]] = {}
    for row in rows:
        restrictions[row[0]] = (*restrictions.get(row[0], ()), restriction_of(row))
    return restrictions


def holder_counts_read(role_ids: Collection[int]) -> Load[dict[int, dict[Kind, int]]]:
    """Read, for each of some roles, the count of users and of groups to which it is granted directly."""
    rows = yield HOLDERS_COUNT, {"roles": _ids(role_ids)}
    counts: dict[int, dict[Kind, int]] = {}
    for role_id, kind, count in rows:
        counts.setdefault(role_id, {})[KINDS[kind]] = count
    return counts


def children_read(parent_id: int, *, after: tuple[str, str], limit: int) -> Load[list[ChildRow]]:
    """Read the live children of a container in the order of (name space, name), beginning after the pair `after`."""
    rows = yield CHILDREN, {"parent": parent_id, "space": after[0], "name": after[1], "limit": limit}
    return [ChildRow(id=row[0], kind=KINDS[row[1]], space=row[2], name=row[3], owner_id=row[4]) for row in rows]


def parents_read(object_ids: Collection[int]) -> Load[dict[int, int]]:
    """Read the parent ids of the live objects among some ids."""
    rows = yield PARENTS, {"ids": _ids(object_ids)}
    return {row[0]: row[1] for row in rows}
