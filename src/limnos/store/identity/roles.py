# SPDX-License-Identifier: Apache-2.0
"""Roles, their grants and denials of privileges, and the principals to whom they are granted. A grant (`Grant`) allows
or denies one privilege on one object.

Must not know policies. Every write moves the metalake's access revision.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from json import dumps

from limnos.model.entities import Grant, Principal, RoleEntity, RoleWithRules
from limnos.model.errors import AlreadyExists
from limnos.model.kinds import KINDS, Kind
from limnos.model.privileges import Privilege
from limnos.model.records import RoleRecord, encode
from limnos.names.display import render
from limnos.store.ancestry import Ancestry, ancestry_of, path_of, with_ancestors
from limnos.store.changes import ChangeDraft
from limnos.store.objects.name_search import one_of
from limnos.store.objects.owners import OwnerWrites
from limnos.store.objects.trash import FOLLOWED, KEPT
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = "id, metalake_id, name, record, created_by, created_at, modified_by, modified_at"
NAMED = Sql(f"SELECT {_COLUMNS} FROM role WHERE metalake_id = :metalake AND name = :name AND deleted = 0")
NAMES = Sql("SELECT name FROM role WHERE metalake_id = :metalake AND deleted = 0")
BY_ID = Sql(f"SELECT {_COLUMNS} FROM role WHERE id = :id AND deleted = 0")
ALL = Sql(
    f"SELECT {_COLUMNS}, (SELECT o.principal_id FROM owner o WHERE o.object_id = role.id) FROM role"
    " WHERE metalake_id = :metalake AND deleted = 0 ORDER BY name"
)
HOLDERS = Sql(
    "SELECT m.principal_id, r.name FROM principal p JOIN role_member m ON m.principal_id = p.id"
    " JOIN role r ON r.id = m.role_id AND r.deleted = 0"
    " WHERE p.metalake_id = :metalake AND p.kind = :kind AND p.deleted = 0 ORDER BY m.principal_id, r.name"
)
ROLES_OF = Sql(
    "SELECT m.role_id FROM role_member m JOIN role r ON r.id = m.role_id AND r.deleted = 0"
    " WHERE m.principal_id = :id ORDER BY m.role_id"
)
_ROLES_OF_MANY = (
    "SELECT m.principal_id, m.role_id FROM role_member m JOIN role r ON r.id = m.role_id AND r.deleted = 0"
    " WHERE m.principal_id {} ORDER BY m.principal_id, m.role_id"
)
ROLES_OF_MANY = Sql(
    _ROLES_OF_MANY.format(one_of("principals")[0]), on_sqlite=_ROLES_OF_MANY.format(one_of("principals")[1])
)
ROLE_NAMES_OF = Sql(
    "SELECT r.name FROM role_member m JOIN role r ON r.id = m.role_id AND r.deleted = 0 WHERE m.principal_id = :id"
)
DENIES = Sql(
    "SELECT 1 FROM access_grant g LEFT JOIN node n ON n.id = g.object_id WHERE g.role_id = :id AND g.allowed = :allowed"
    f" AND (n.id IS NULL OR n.deleted = 0 OR {KEPT.format('g.object_id')}) LIMIT 1"
)
ROLES_ON = Sql(
    "SELECT DISTINCT r.name FROM access_grant g JOIN role r ON r.id = g.role_id AND r.deleted = 0"
    " WHERE g.object_id = :id ORDER BY r.name"
)
OBJECTS = with_ancestors("SELECT g.object_id FROM access_grant g WHERE g.role_id = :id")
GRANTS_PART = Sql(
    "SELECT object_id, object_kind, privilege, allowed FROM access_grant WHERE role_id = :id AND object_id > :after"
    " ORDER BY object_id, privilege LIMIT :limit"
)
GRANTS_WITHIN = Sql(
    "SELECT object_id, object_kind, privilege, allowed FROM access_grant WHERE role_id = :id AND object_id > :after"
    " AND object_id <= :last ORDER BY object_id, privilege"
)
_IDS = "SELECT CAST(v AS bigint) AS value FROM json_array_elements_text(CAST(:roles AS json)) v"
_MANY = f"SELECT {_COLUMNS} FROM role WHERE id IN ({{roles}}) AND deleted = 0"
MANY = Sql(_MANY.replace("{roles}", _IDS), on_sqlite=_MANY.replace("{roles}", "SELECT value FROM json_each(:roles)"))
_MANY_GRANTS = (
    "SELECT g.role_id, g.object_id, g.object_kind, g.privilege, g.allowed FROM ({roles}) r JOIN access_grant g"
    " ON g.role_id = r.value AND g.object_id <= COALESCE((SELECT x.object_id FROM access_grant x"
    " WHERE x.role_id = r.value ORDER BY x.object_id, x.privilege LIMIT 1 OFFSET :place), :last)"
    " ORDER BY g.role_id, g.object_id, g.privilege"
)
MANY_GRANTS = Sql(
    _MANY_GRANTS.replace("{roles}", _IDS),
    on_sqlite=_MANY_GRANTS.replace("{roles}", "SELECT value FROM json_each(:roles)"),
)
"""The statement that reads the grants of several roles, for each up to the object at which its first part ends."""
PART_END = Sql(
    "SELECT object_id FROM access_grant WHERE role_id = :id AND object_id > :after"
    " ORDER BY object_id, privilege LIMIT 1 OFFSET :place"
)
OBJECTS_PART = with_ancestors(
    "SELECT g.object_id FROM access_grant g WHERE g.role_id = :id AND g.object_id > :after AND g.object_id <= :last"
)
GRANTS_ON = Sql("SELECT privilege, allowed FROM access_grant WHERE role_id = :id AND object_id = :object")
OBJECTS_NAMED = Sql(
    with_ancestors(_IDS.replace(":roles", ":objects")).text,
    on_sqlite=with_ancestors("SELECT value FROM json_each(:objects)").text,
)
"""The statement that reads objects by their ids, with their ancestors."""
PART_MAX = 1_000
"""The maximum number of grants of a role in one read. A role with more is read in parts."""
RECORDED_MAX = 100
"""The maximum number of objects of one change of grants that have change rows of their own."""
LAST_ID = 2**63 - 1
"""The end of the last part of a role's grants: no object has a greater id."""
OTHER_HOLDER = Sql("SELECT 1 FROM role_member WHERE role_id = :role AND principal_id <> :principal LIMIT 1")
INSERT = Sql(
    "INSERT INTO role (id, metalake_id, name, created_by, created_at, deleted, record) VALUES"
    " (:id, :metalake, :name, :actor, :now, 0, :record) ON CONFLICT DO NOTHING"
)
BURY = Sql("UPDATE role SET deleted = id, modified_by = :actor, modified_at = :now WHERE id = :id")
TOUCH = Sql("UPDATE role SET modified_by = :actor, modified_at = :now WHERE id = :id")
GIVE = Sql("INSERT INTO role_member (principal_id, role_id) VALUES (:principal, :role) ON CONFLICT DO NOTHING")
TAKE = Sql("DELETE FROM role_member WHERE principal_id = :principal AND role_id = :role")
ALLOW = Sql(
    "INSERT INTO access_grant (role_id, object_id, privilege, object_kind, allowed) VALUES"
    " (:role, :object, :privilege, :kind, :allowed)"
    " ON CONFLICT (role_id, object_id, privilege) DO UPDATE SET allowed = excluded.allowed"
)
WITHDRAW = Sql(
    "DELETE FROM access_grant WHERE role_id = :role AND object_id = :object AND privilege = :privilege"
    " AND allowed = :allowed"
)
WITHDRAW_ALL = Sql("DELETE FROM access_grant WHERE role_id = :role")
FORGET_MEMBERS = Sql("DELETE FROM role_member WHERE role_id = :role")
DISOWN = Sql("DELETE FROM owner WHERE object_id = :role")
_NODES = ", ".join(str(kind.value) for kind in Kind if kind.is_node)
# Grants and denials on a dropped object decide who reads its drop in the change feed (decision record 0031).
SWEEP = Sql(
    f"DELETE FROM access_grant WHERE object_kind IN ({_NODES}) AND NOT EXISTS"
    " (SELECT 1 FROM node n LEFT JOIN clock c ON c.zone = n.zone WHERE n.id = access_grant.object_id"
    " AND (n.deleted = 0 OR n.revision > c.pruned_to))"
    f" AND NOT {FOLLOWED.format('access_grant.object_id')}"
)


def role_of(row: Row) -> RoleEntity:
    """Build a role from a row whose columns are `_COLUMNS`."""
    return RoleEntity(
        id=row[0],
        metalake_id=row[1],
        name=row[2],
        properties=_properties_of(bytes(row[3])),
        created_by=row[4],
        created_at=row[5],
        modified_by=row[6],
        modified_at=row[7],
    )


@lru_cache(maxsize=256)
def _properties_of(record: bytes) -> tuple[tuple[str, str], ...]:
    """Return the properties in a role's record. Cached, since most roles have none."""
    return tuple(sorted(RoleRecord.read(record).properties.items()))


def _grant_of(row: Row) -> Grant:
    return Grant(row[0], KINDS[row[1]], row[2], bool(row[3]))


def role_read(metalake_id: int, name: str) -> Load[RoleEntity | None]:
    """Read a role by name, or None."""
    rows = yield NAMED, {"metalake": metalake_id, "name": name}
    return role_of(rows[0]) if rows else None


def role_rules_read(role_id: int) -> Load[tuple[RoleEntity, tuple[Grant, ...] | None] | None]:
    """Read a live role with its grants, or None.

    The grants are None if there are `PART_MAX` or more, which are read in parts.
    """
    rows = yield BY_ID, {"id": role_id}
    if not rows:
        return None
    grants = yield GRANTS_PART, {"id": role_id, "after": 0, "limit": PART_MAX}
    return role_of(rows[0]), None if len(grants) == PART_MAX else tuple(_grant_of(row) for row in grants)


def many_rules_read(role_ids: Sequence[int]) -> Load[dict[int, tuple[RoleEntity, tuple[Grant, ...] | None] | None]]:
    """Read several roles with their grants by id, in two statements. The values are those of `role_rules_read`."""
    roles = dumps(role_ids)
    rows = yield MANY, {"roles": roles}
    grants = yield MANY_GRANTS, {"roles": roles, "place": PART_MAX - 1, "last": LAST_ID}
    rules: dict[int, list[Grant]] = {}
    for role_id, object_id, kind, privilege, is_allowed in grants:
        rules.setdefault(role_id, []).append(Grant(object_id, KINDS[kind], privilege, bool(is_allowed)))
    results: dict[int, tuple[RoleEntity, tuple[Grant, ...] | None] | None] = dict.fromkeys(role_ids)
    for row in rows:
        own_rules = rules.get(row[0], ())
        results[row[0]] = (role_of(row), None if len(own_rules) >= PART_MAX else tuple(own_rules))
    return results


def rules_end_read(role_id: int, after: int) -> Load[int]:
    """Return the object id that ends the next part of a role's grants, which begins after the object id `after`.

    A part has about `PART_MAX` grants.
    """
    rows = yield PART_END, {"id": role_id, "after": after, "place": PART_MAX - 1}
    return rows[0][0] if rows else LAST_ID


def rules_part_read(role_id: int, span: tuple[int, int]) -> Load[tuple[Grant, ...]]:
    """Read the grants of a role on objects with ids in `span` (start exclusive, end inclusive)."""
    rows = yield GRANTS_WITHIN, {"id": role_id, "after": span[0], "last": span[1]}
    return tuple(_grant_of(row) for row in rows)


def roles_read(metalake_id: int) -> Load[tuple[tuple[RoleEntity, int | None], ...]]:
    """Read all roles of a metalake with their owners' ids, by name."""
    rows = yield ALL, {"metalake": metalake_id}
    return tuple([(role_of(row[:-1]), row[-1]) for row in rows])


def holders_read(metalake_id: int, kind: Kind) -> Load[tuple[tuple[int, tuple[str, ...]], ...]]:
    """Read the role names of each user, or group, of a metalake, by principal id.

    Principals without roles are omitted.
    """
    rows = yield HOLDERS, {"metalake": metalake_id, "kind": int(kind)}
    results: dict[int, list[str]] = {}
    for principal_id, name in rows:
        results.setdefault(principal_id, []).append(name)
    return tuple([(principal_id, tuple(names)) for principal_id, names in results.items()])


def roles_of_read(principal_id: int) -> Load[tuple[int, ...]]:
    """Read the ids of the roles that are granted directly to a user or group."""
    rows = yield ROLES_OF, {"id": principal_id}
    return tuple(row[0] for row in rows)


def roles_of_many_read(principal_ids: Collection[int]) -> Load[dict[int, tuple[int, ...]]]:
    """Read the ids of the roles that are granted directly to each of several principals, in one statement."""
    results: dict[int, list[int]] = {each: [] for each in principal_ids}
    for principal_id, role_id in (yield ROLES_OF_MANY, {"principals": dumps(sorted(principal_ids))}):
        results[principal_id].append(role_id)
    return {principal_id: tuple(role_ids) for principal_id, role_ids in results.items()}


def roles_on_read(object_id: int) -> Load[tuple[str, ...]]:
    """Read the names of the roles that have a grant or denial on an object."""
    rows = yield ROLES_ON, {"id": object_id}
    return tuple(row[0] for row in rows)


def role_part_read(role_id: int, after: int) -> Load[tuple[tuple[Grant, ...], Ancestry, bool]]:
    """Read a role's grants on its next objects after the id `after`, the ancestry of these objects, and whether more
    grants may follow.
    """
    rows = yield GRANTS_PART, {"id": role_id, "after": after, "limit": PART_MAX}
    goes_on = len(rows) == PART_MAX
    if goes_on and rows[0][0] != rows[-1][0]:  # the last object's rules may be incomplete
        rows = [row for row in rows if row[0] != rows[-1][0]]
    if not rows:
        return (), {}, False
    results = yield OBJECTS_PART, {"id": role_id, "after": after, "last": rows[-1][0]}
    return tuple(_grant_of(row) for row in rows), ancestry_of(results), goes_on


def role_holding_read(role_id: int, principal_id: int) -> Load[tuple[bool, bool]]:
    """Read whether a user or group has a role directly, and whether others have it."""
    own_roles = yield ROLES_OF, {"id": principal_id}
    others = yield OTHER_HOLDER, {"role": role_id, "principal": principal_id}
    return any(row[0] == role_id for row in own_roles), bool(others)


def role_objects_read(role_id: int) -> Load[Ancestry]:
    """Read the ancestry of the live objects on which a role has grants or denials."""
    rows = yield OBJECTS, {"id": role_id}
    return ancestry_of(rows)


class RoleWrites(Writes):
    """Reads and writes roles, their grants and their assignments to principals inside a transaction."""

    def names(self, metalake_id: int) -> tuple[str, ...]:
        """Read the names of all roles of a metalake."""
        return tuple(row[0] for row in self.tx.rows(NAMES, {"metalake": metalake_id}))

    def find(self, metalake_id: int, name: str) -> RoleEntity | None:
        """Read a role by name inside the transaction; None if it does not exist."""
        rows = self.tx.rows(NAMED, {"metalake": metalake_id, "name": name})
        return role_of(rows[0]) if rows else None

    def with_rules(self, role: RoleEntity) -> RoleWithRules:
        """Read a role with its grants and the names of their objects, so that the response to a write needs no other
        read.

        A role with `PART_MAX` grants or more is read without its grants, because a transaction must be short.
        """
        results = self.tx.rows(GRANTS_PART, {"id": role.id, "after": 0, "limit": PART_MAX})
        if len(results) == PART_MAX:
            return RoleWithRules(role, (), in_parts=True)
        rows = self.tx.rows(OBJECTS, {"id": role.id})
        return RoleWithRules(role, tuple(map(_grant_of, results)), ancestry_of(rows))

    def privileges_on(self, role: RoleEntity, object_id: int) -> dict[int, bool]:
        """Read a role's grants on one object: a mapping from the privilege's code to True (allowed) or False
        (denied).
        """
        return {row[0]: bool(row[1]) for row in self.tx.rows(GRANTS_ON, {"id": role.id, "object": object_id})}

    def held_by(self, principal: Principal) -> tuple[str, ...]:
        """Read the names of the roles that are granted directly to a user or group, sorted."""
        return tuple(sorted(row[0] for row in self.tx.rows(ROLE_NAMES_OF, {"id": principal.id})))

    def of_principals(self, principal_ids: Collection[int]) -> set[int]:
        """Read the ids of the roles that are granted directly to one of some users and groups."""
        return {row[0] for each in principal_ids for row in self.tx.rows(ROLES_OF, {"id": each})}

    def deny_any(self, role_ids: Collection[int]) -> bool:
        """Return whether one of some roles denies a privilege on an object that is live, or in the trash."""
        return any(self.tx.rows(DENIES, {"id": each, "allowed": False}) for each in role_ids)

    def is_held_by_others(self, role: RoleEntity, principal: Principal) -> bool:
        """Return whether a user or group other than `principal` has the role."""
        return bool(self.tx.rows(OTHER_HOLDER, {"role": role.id, "principal": principal.id}))

    def is_alive(self, role_id: int) -> bool:
        """Return whether the role is live."""
        return bool(self.tx.rows(BY_ID, {"id": role_id}))

    def create(self, metalake_id: int, name: str, *, properties: dict[str, str], owner_id: int | None) -> RoleEntity:
        """Insert a role without grants. Raises AlreadyExists if the name is taken."""
        tx = self.tx
        entity = RoleEntity(
            id=tx.next_id(),
            metalake_id=metalake_id,
            name=name,
            properties=tuple(sorted(properties.items())),
            created_by=tx.actor,
            created_at=tx.now_ms,
            modified_by=None,
            modified_at=None,
        )
        params: dict[str, Value] = {
            "id": entity.id,
            "metalake": metalake_id,
            "name": name,
            "actor": tx.actor,
            "now": tx.now_ms,
            "record": encode(RoleRecord(properties=properties)),
        }
        if tx.count(INSERT, params) == 0:
            raise AlreadyExists(f"Role {name} already exists", kind="role")
        if owner_id is not None:
            OwnerWrites(tx).insert(entity.id, owner_id)
        tx.add_change(
            ChangeDraft(
                operation="create",
                kind=Kind.ROLE,
                node_id=entity.id,
                new_parent=metalake_id,
                new_name=name,
                moves_access=True,
            )
        )
        return entity

    def drop(self, role: RoleEntity) -> None:
        """Drop a role with its grants, and revoke it from all principals."""
        removed_grants = self._first_grants(role)
        self.tx.count(BURY, {"id": role.id, "actor": self.tx.actor, "now": self.tx.now_ms})
        self.tx.count(WITHDRAW_ALL, {"role": role.id})
        self.tx.count(FORGET_MEMBERS, {"role": role.id})
        self.tx.count(DISOWN, {"role": role.id})
        self._record_grants(role, removed_grants, word="revoke")
        self._add_change("drop", role)

    def allow(self, role: RoleEntity, grants: Collection[Grant]) -> None:
        """Add grants, each of which allows or denies a privilege on an object. A new grant replaces one of the same
        privilege on the same object.
        """
        self._insert(grants, role)
        self._touch(role)
        self._record_grants(role, grants, word="grant", is_whole=True)

    def _insert(self, grants: Collection[Grant], role: RoleEntity) -> None:
        for grant in grants:
            self.tx.count(
                ALLOW,
                {
                    "role": role.id,
                    "object": grant.object_id,
                    "privilege": grant.privilege,
                    "kind": int(grant.object_kind),
                    "allowed": grant.allowed,
                },
            )

    def withdraw(self, role: RoleEntity, grants: Collection[Grant]) -> None:
        """Remove the stored grants that equal one of `grants` in object, privilege and effect (allow or deny).

        Those that do not exist are ignored.
        """
        for grant in grants:
            params = {
                "role": role.id,
                "object": grant.object_id,
                "privilege": grant.privilege,
                "allowed": grant.allowed,
            }
            self.tx.count(WITHDRAW, params)
        self._touch(role)
        self._record_grants(role, grants, word="revoke", is_whole=True)

    def replace(self, role: RoleEntity, grants: Collection[Grant]) -> None:
        """Replace all grants of a role."""
        before = self._first_grants(role)
        self.tx.count(WITHDRAW_ALL, {"role": role.id})
        self._insert(grants, role)
        self._touch(role)
        texts = self._grant_texts(grants, word="grant").values()
        self._add_change("alter", role, detail=f"nothing but: {', '.join(texts) or 'no rules'}", audit_word="grant")
        self._record_grants(role, [each for each in before if each not in grants], word="revoke")
        self._record_grants(role, [each for each in grants if each not in before], word="grant")

    def _first_grants(self, role: RoleEntity) -> tuple[Grant, ...]:
        """Read at most `PART_MAX` grants of a role, for the records of their objects."""
        return tuple(map(_grant_of, self.tx.rows(GRANTS_PART, {"id": role.id, "after": 0, "limit": PART_MAX})))

    def give(self, role: RoleEntity, principal: Principal) -> None:
        """Grant a role to a user or group. No-op if the principal has it already."""
        if self.tx.count(GIVE, {"principal": principal.id, "role": role.id}):
            self._write_holder_change("give", principal, role=role)

    def take(self, role: RoleEntity, principal: Principal) -> None:
        """Revoke a role from a user or group. No-op if the principal does not have it."""
        if self.tx.count(TAKE, {"principal": principal.id, "role": role.id}):
            self._write_holder_change("take", principal, role=role)

    def _grant_texts(self, grants: Collection[Grant], *, word: str) -> dict[int, str]:
        """Describe added or removed grants by the id of their object, for the audit. A dropped object is named by its
        id.
        """
        ids = dumps(sorted({each.object_id for each in grants}))
        nodes = ancestry_of(self.tx.rows(OBJECTS_NAMED, {"objects": ids})) if grants else {}
        results: dict[int, list[str]] = {}
        for each in grants:
            path = path_of(each.object_id, nodes)
            verb = f"{'' if word == 'grant' else 'no longer '}{'allow' if each.allowed else 'deny'}"
            on = f"{each.object_kind.word} {each.object_id if path is None else render(path)}"
            results.setdefault(each.object_id, []).append(f"{verb} {Privilege(each.privilege).name} on {on}")
        return {object_id: ", ".join(texts) for object_id, texts in results.items()}

    def _touch(self, role: RoleEntity) -> None:
        self.tx.count(TOUCH, {"id": role.id, "actor": self.tx.actor, "now": self.tx.now_ms})

    def _record_grants(self, role: RoleEntity, grants: Collection[Grant], *, word: str, is_whole: bool = False) -> None:
        """Write a change row for each object of changed grants, with its id in `new_parent`; a single row for those
        after the first `RECORDED_MAX`. With `is_whole` a row is written without grants, too.
        """
        texts = self._grant_texts(grants, word=word)
        first = list(texts)[:RECORDED_MAX]
        for object_id in first:
            self._add_change("alter", role, detail=texts.pop(object_id), object_id=object_id, audit_word=word)
        if texts or (is_whole and not first):
            self._add_change("alter", role, detail=", ".join(texts.values()) or "no rules", audit_word=word)

    def _write_holder_change(self, operation: str, principal: Principal, *, role: RoleEntity) -> None:
        """Write the change row for a role that was granted to or revoked from a principal.

        The role's id is in `new_parent`, for readers of the feed.
        """
        self.tx.add_change(
            ChangeDraft(
                operation=operation,
                kind=principal.kind,
                node_id=principal.id,
                old_parent=principal.metalake_id,
                old_name=principal.name,
                new_parent=role.id,
                moves_access=True,
                detail=f"role {role.name}",
            )
        )

    def _add_change(
        self,
        operation: str,
        role: RoleEntity,
        *,
        detail: str | None = None,
        object_id: int | None = None,
        audit_word: str = "",
    ) -> None:
        self.tx.add_change(
            ChangeDraft(
                operation=operation,
                kind=Kind.ROLE,
                node_id=role.id,
                old_parent=role.metalake_id,
                old_name=role.name,
                new_parent=object_id,
                moves_access=True,
                detail=detail,
                audit_word=audit_word,
            )
        )
