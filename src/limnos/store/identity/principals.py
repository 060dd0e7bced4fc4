# SPDX-License-Identifier: Apache-2.0
"""Users and groups of a metalake, and memberships in groups.

Must not know rights. Every write except the record of a sign-in moves the metalake's access revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json import dumps
from operator import attrgetter
from typing import NamedTuple

from limnos.model.entities import Principal
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import KINDS, Kind
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = (
    "id, metalake_id, kind, name, external_id, enabled, created_by, created_at, modified_by, modified_at, tokens_from"
)
NAMED = Sql(
    f"SELECT {_COLUMNS} FROM principal WHERE metalake_id = :metalake AND kind = :kind AND name = :name AND deleted = 0"
)
BY_ID = Sql(f"SELECT {_COLUMNS} FROM principal WHERE id = :id AND deleted = 0")
_MANY = f"SELECT {_COLUMNS} FROM principal WHERE deleted = 0 AND id IN ({{ids}})"
MANY = Sql(
    _MANY.replace("{ids}", "SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:ids AS json)) v"),
    on_sqlite=_MANY.replace("{ids}", "SELECT value FROM json_each(:ids)"),
)
ALL = Sql(
    f"SELECT {_COLUMNS} FROM principal WHERE metalake_id = :metalake AND kind = :kind AND deleted = 0 ORDER BY name"
)
GROUPS_OF = Sql(
    "SELECT m.group_id FROM group_member m JOIN principal g ON g.id = m.group_id AND g.deleted = 0"
    " WHERE m.user_id = :id ORDER BY m.group_id"
)
WITH_GROUPS = Sql(
    f"SELECT {_COLUMNS} FROM principal WHERE metalake_id = :metalake AND kind = :kind AND name = :name AND deleted = 0"
    f" UNION ALL SELECT {', '.join('g.' + each for each in _COLUMNS.split(', '))} FROM principal u"
    " JOIN group_member m ON m.user_id = u.id JOIN principal g ON g.id = m.group_id AND g.deleted = 0"
    " WHERE u.metalake_id = :metalake AND u.kind = :kind AND u.name = :name AND u.deleted = 0"
)
MEMBERS = Sql(
    "SELECT u.name FROM group_member m JOIN principal u ON u.id = m.user_id AND u.deleted = 0"
    " WHERE m.group_id = :id ORDER BY u.name"
)
IS_ACTIVE = Sql(
    f"SELECT 1 FROM principal p WHERE p.id = :id AND p.deleted = 0 AND ((p.kind = {int(Kind.USER)} AND p.enabled ="
    " :yes) OR EXISTS (SELECT 1 FROM group_member m JOIN principal u ON u.id = m.user_id AND u.deleted = 0 AND"
    " u.enabled = :yes WHERE m.group_id = p.id))"
)
FORMER = Sql(
    "SELECT 1 FROM principal WHERE metalake_id = :metalake AND kind = :kind AND name = :name AND deleted <> 0 LIMIT 1"
)
INSERT = Sql(
    "INSERT INTO principal"
    " (id, metalake_id, kind, name, external_id, enabled, created_by, created_at, deleted, tokens_from) VALUES"
    " (:id, :metalake, :kind, :name, :external_id, :enabled, :actor, :now, 0, :tokens_from) ON CONFLICT DO NOTHING"
)
ENABLE = Sql("UPDATE principal SET enabled = :enabled, modified_by = :actor, modified_at = :now WHERE id = :id")
BURY = Sql("UPDATE principal SET deleted = id, modified_by = :actor, modified_at = :now WHERE id = :id")
JOIN = Sql("INSERT INTO group_member (user_id, group_id) VALUES (:user, :group) ON CONFLICT DO NOTHING")
LEAVE = Sql("DELETE FROM group_member WHERE user_id = :user AND group_id = :group")
ISSUE = Sql("INSERT INTO group_member (user_id, group_id, issued) VALUES (:user, :group, :yes) ON CONFLICT DO NOTHING")
ISSUED = Sql(
    f"SELECT {', '.join('g.' + each for each in _COLUMNS.split(', '))} FROM group_member m"
    " JOIN principal g ON g.id = m.group_id AND g.deleted = 0 WHERE m.user_id = :id AND m.issued = :yes"
)
NAMES = Sql("SELECT name FROM principal WHERE metalake_id = :metalake AND kind = :kind AND deleted = 0")
EVERYBODY = Sql(
    "SELECT n.name, p.kind, p.name FROM principal p JOIN node n ON n.id = p.metalake_id AND n.deleted = 0 WHERE"
    f" p.deleted = 0 UNION ALL SELECT n.name, {int(Kind.ROLE)}, r.name FROM role r JOIN node n ON n.id = r.metalake_id"
    " AND n.deleted = 0 WHERE r.deleted = 0"
)
# Without the metalakes, SQLite would read the names of all principals.
STANDING = Sql(
    "SELECT p.enabled FROM node m CROSS JOIN principal p WHERE m.parent_id = 0 AND m.name_space = 'metalake'"
    " AND m.deleted = 0 AND p.metalake_id = m.id AND p.kind = :kind AND p.name = :name AND p.deleted = 0"
)
_STANDING_OF = (
    "SELECT p.name, p.enabled, p.tokens_from FROM node m CROSS JOIN principal p WHERE m.parent_id = 0 AND"
    " m.name_space = 'metalake' AND m.deleted = 0 AND p.metalake_id = m.id AND p.kind = :kind AND p.deleted = 0"
    " AND p.name IN ({names})"
)
STANDING_OF = Sql(
    _STANDING_OF.replace("{names}", "SELECT v FROM json_array_elements_text(CAST(:names AS json)) v"),
    on_sqlite=_STANDING_OF.replace("{names}", "SELECT value FROM json_each(:names)"),
)
SIGNED_IN = Sql("SELECT signed_in FROM principal WHERE id = :id AND deleted = 0")
SIGN_IN = Sql("UPDATE principal SET signed_in = :issued WHERE id = :id AND (signed_in IS NULL OR signed_in < :issued)")
FORGET_MEMBER = Sql("DELETE FROM group_member WHERE user_id = :id OR group_id = :id")
FORGET_ROLES = Sql("DELETE FROM role_member WHERE principal_id = :id")


def principal_of(row: Row) -> Principal:
    """Build a principal from a row whose columns are `_COLUMNS`."""
    return Principal(
        id=row[0],
        metalake_id=row[1],
        kind=KINDS[row[2]],
        name=row[3],
        external_id=row[4],
        enabled=bool(row[5]),
        created_by=row[6],
        created_at=row[7],
        modified_by=row[8],
        modified_at=row[9],
        tokens_from=row[10],
    )


def principal_read(metalake_id: int, kind: Kind, name: str) -> Load[Principal | None]:
    """Read a user or group by name, or None."""
    rows = yield NAMED, {"metalake": metalake_id, "kind": int(kind), "name": name}
    return principal_of(rows[0]) if rows else None


def member_read(metalake_id: int, name: str) -> Load[tuple[Principal | None, list[Principal]]]:
    """Read a user by name, or None, and the groups of the user by id."""
    rows = yield WITH_GROUPS, {"metalake": metalake_id, "kind": int(Kind.USER), "name": name}
    principals = [principal_of(row) for row in rows]
    user = next((each for each in principals if each.kind is Kind.USER), None)
    return user, sorted((each for each in principals if each.kind is Kind.GROUP), key=attrgetter("id"))


def principal_by_id_read(principal_id: int) -> Load[Principal | None]:
    """Read a live user or group by id, or None."""
    rows = yield BY_ID, {"id": principal_id}
    return principal_of(rows[0]) if rows else None


def principals_by_id_read(principal_ids: Sequence[int]) -> Load[dict[int, Principal | None]]:
    """Read live users and groups by id, in one statement; None for each that does not exist."""
    rows = yield MANY, {"ids": dumps(principal_ids)}
    principals: dict[int, Principal | None] = dict.fromkeys(principal_ids)
    principals.update((row[0], principal_of(row)) for row in rows)
    return principals


def principals_read(metalake_id: int, kind: Kind) -> Load[tuple[Principal, ...]]:
    """Read all users, or all groups, of a metalake, by name."""
    rows = yield ALL, {"metalake": metalake_id, "kind": int(kind)}
    return tuple(principal_of(row) for row in rows)


def groups_of_read(user_id: int) -> Load[tuple[int, ...]]:
    """Read the ids of a user's groups."""
    rows = yield GROUPS_OF, {"id": user_id}
    return tuple(row[0] for row in rows)


def members_read(group_id: int) -> Load[tuple[str, ...]]:
    """Read the names of a group's members."""
    rows = yield MEMBERS, {"id": group_id}
    return tuple(row[0] for row in rows)


def signed_in_read(user_id: int) -> Load[int | None]:
    """Read the issue time of a user's newest token from an external issuer, in milliseconds since 1970; or None."""
    rows = yield SIGNED_IN, {"id": user_id}
    return rows[0][0] if rows else None


class UserStatus(NamedTuple):
    """The status of a user name over all metalakes: whether it exists, and whether it is enabled or disabled."""

    is_known: bool
    """Whether at least one metalake has a user of that name."""
    is_disabled: bool
    """Whether every metalake with such a user has disabled the user, and at least one has."""


def user_status_read(user: str) -> Load[UserStatus]:
    """Read the status of a user name, combined over all metalakes."""
    rows = yield STANDING, {"kind": int(Kind.USER), "name": user}
    return _user_status(rows)


class UserEntry(NamedTuple):
    """A user of one metalake: whether it is enabled, and the lowest root id of the tokens that are its own."""

    is_enabled: bool
    tokens_from: int


def user_entries_read(users: Iterable[str]) -> Load[dict[str, list[UserEntry]]]:
    """Read the entries of users in all metalakes, in one statement; an empty list for a name that none has."""
    entries: dict[str, list[UserEntry]] = {user: [] for user in users}
    rows = yield STANDING_OF, {"kind": int(Kind.USER), "names": dumps(list(entries))}
    for name, enabled, tokens_from in rows:
        entries[name].append(UserEntry(bool(enabled), tokens_from))
    return entries


def _user_status(rows: Sequence[Row]) -> UserStatus:
    enabled = [bool(row[0]) for row in rows]
    return UserStatus(bool(enabled), bool(enabled) and not any(enabled))


class PrincipalWrites(Writes):
    """Reads and writes users, groups and memberships inside a transaction."""

    def find(self, metalake_id: int, kind: Kind, name: str) -> Principal | None:
        """Read a principal by name inside the transaction, or None."""
        rows = self.tx.rows(NAMED, {"metalake": metalake_id, "kind": int(kind), "name": name})
        return principal_of(rows[0]) if rows else None

    def require(self, metalake_id: int, kind: Kind, name: str) -> Principal:
        """Read a principal by name inside the transaction. Raises NotFound if there is none."""
        principal = self.find(metalake_id, kind, name)
        if principal is None:
            raise NotFound(f"{kind.word.capitalize()} {name} does not exist: add it first", kind=kind.word)
        return principal

    def names(self, metalake_id: int, kind: Kind) -> tuple[str, ...]:
        """Read the names of all users, or all groups, of a metalake."""
        return tuple(row[0] for row in self.tx.rows(NAMES, {"metalake": metalake_id, "kind": int(kind)}))

    def everybody(self) -> list[tuple[str, Kind, str]]:
        """Read (metalake, kind, name) of all users, groups and roles of the server, sorted by these three columns."""
        return sorted((row[0], KINDS[row[1]], row[2]) for row in self.tx.rows(EVERYBODY, {}))

    def user_status(self, user: str) -> UserStatus:
        """Read the status of a user name, combined over all metalakes, inside the transaction."""
        return _user_status(self.tx.rows(STANDING, {"kind": int(Kind.USER), "name": user}))

    def by_id(self, principal_id: int) -> Principal | None:
        """Read a live principal by id, or None."""
        rows = self.tx.rows(BY_ID, {"id": principal_id})
        return principal_of(rows[0]) if rows else None

    def create(
        self, metalake_id: int, kind: Kind, name: str, *, external_id: str | None = None, enabled: bool = True
    ) -> Principal:
        """Insert a user or group. Raises AlreadyExists if its name or its external id is taken.

        If an earlier principal of that name was removed, only tokens created from now on belong to the new one.
        """
        tx = self.tx
        is_successor = bool(tx.rows(FORMER, {"metalake": metalake_id, "kind": int(kind), "name": name}))
        new_id = tx.next_id()
        principal = Principal(
            id=new_id,
            metalake_id=metalake_id,
            kind=kind,
            name=name,
            external_id=external_id,
            enabled=enabled,
            created_by=tx.actor,
            created_at=tx.now_ms,
            modified_by=None,
            modified_at=None,
            tokens_from=new_id if is_successor else 0,
        )
        params: dict[str, Value] = {
            "id": principal.id,
            "metalake": metalake_id,
            "kind": int(kind),
            "name": name,
            "external_id": external_id,
            "enabled": enabled,
            "actor": tx.actor,
            "now": tx.now_ms,
            "tokens_from": principal.tokens_from,
        }
        if tx.count(INSERT, params) == 0:
            raise AlreadyExists(f"{kind.word.capitalize()} {name}, or its external id, already exists", kind=kind.word)
        self._add_change("create", principal, new=True)
        return principal

    def enable(self, principal: Principal, *, enabled: bool) -> None:
        """Enable or disable a user. All requests of a disabled user are refused."""
        self.tx.count(ENABLE, {"id": principal.id, "enabled": enabled, "actor": self.tx.actor, "now": self.tx.now_ms})
        word = "enable" if enabled else "disable"
        self._add_change("alter", principal, old=True, audit_word=word, detail=f"{word}d")

    def drop(self, principal: Principal) -> None:
        """Delete a user or group with its memberships and its role assignments."""
        self.tx.count(BURY, {"id": principal.id, "actor": self.tx.actor, "now": self.tx.now_ms})
        self.tx.count(FORGET_MEMBER, {"id": principal.id})
        self.tx.count(FORGET_ROLES, {"id": principal.id})
        self._add_change("drop", principal, old=True)

    def members(self, group: Principal) -> tuple[str, ...]:
        """Read the names of a group's members inside the transaction."""
        return tuple(row[0] for row in self.tx.rows(MEMBERS, {"id": group.id}))

    def is_active(self, principal_id: int) -> bool:
        """Return whether a principal is an enabled user, or a group with an enabled member, inside the transaction."""
        return bool(self.tx.rows(IS_ACTIVE, {"id": principal_id, "yes": True}))

    def groups_of(self, user_id: int) -> tuple[int, ...]:
        """Read the ids of a user's groups inside the transaction."""
        return tuple(row[0] for row in self.tx.rows(GROUPS_OF, {"id": user_id}))

    def join(self, group: Principal, user: Principal) -> None:
        """Make a user a member of a group. No-op if the user is a member already."""
        if self.tx.count(JOIN, {"user": user.id, "group": group.id}):
            self._add_change("join", user, old=True, group=group)

    def remove_member(self, group: Principal, user: Principal) -> bool:
        """Remove a user from a group. Returns whether the user was a member."""
        left = self.tx.count(LEAVE, {"user": user.id, "group": group.id}) > 0
        if left:
            self._add_change("leave", user, old=True, group=group)
        return left

    def sign_in(self, user: Principal, issued_ms: int) -> bool:
        """Record a sign-in with a token of an external issuer, and the token's issue time.

        Returns False if a newer token was used before.
        """
        return self.tx.count(SIGN_IN, {"id": user.id, "issued": issued_ms}) > 0

    def issue(self, user: Principal, groups: Iterable[Principal]) -> None:
        """Replace a user's memberships that come from an external issuer by memberships in `groups`.

        Memberships that administrators added are not changed.
        """
        principals = {group.id: group for group in groups}
        entries = {row[0]: principal_of(row) for row in self.tx.rows(ISSUED, {"id": user.id, "yes": True})}
        for group_id in entries.keys() - principals.keys():
            self.remove_member(entries[group_id], user)
        for group_id in principals.keys() - entries.keys():
            if self.tx.count(ISSUE, {"user": user.id, "group": group_id, "yes": True}):
                self._add_change("join", user, old=True, group=principals[group_id])

    def _add_change(
        self,
        operation: str,
        principal: Principal,
        *,
        new: bool = False,
        old: bool = False,
        group: Principal | None = None,
        audit_word: str = "",
        detail: str | None = None,
    ) -> None:
        """Write the change row. For a membership it also has the group: `ChangeRow.group_id`, and its name for the
        audit.
        """
        home = principal.metalake_id if new else None
        self.tx.add_change(
            ChangeDraft(
                operation=operation,
                kind=principal.kind,
                node_id=principal.id,
                old_parent=principal.metalake_id if old else None,
                old_name=principal.name if old else None,
                new_parent=home if group is None else group.id,
                new_name=principal.name if new else None,
                moves_access=True,
                detail=detail if group is None else f"group {group.name}",
                audit_word=audit_word,
            )
        )
