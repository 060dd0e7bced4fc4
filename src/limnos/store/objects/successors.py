# SPDX-License-Identifier: Apache-2.0
"""Successors: objects that take over grants, tags and lineage of the former object of their path.

Must not know rights or schemas. Only catalogs whose property `successors` is `same-owner` remember former objects. An
object that its owner creates, renames or moves to the path takes over what that owner's former object had when it left
the path, and still has. Grants and tags are changes of the metalake, so the transaction needs the metalake's lock.
Decision record 0175.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import loads
from typing import Final, NamedTuple

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest, MetalakeLockRequired
from limnos.model.kinds import KINDS, Kind
from limnos.model.privileges import Privilege
from limnos.model.records import CatalogRecord
from limnos.names.display import render
from limnos.names.parts import quote_for_message
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Params, Sql
from limnos.store.transaction import Writes

SUCCESSORS: Final = "successors"
"""The property of a catalog that says whether objects take over from former objects of their path."""
SAME_OWNER: Final = "same-owner"
NONE: Final = "none"
WORDS: Final = (NONE, SAME_OWNER)
FORMER_OBJECT_MS: Final = 7 * 86_400_000
"""The time for which a path remembers its former object at least, in milliseconds."""
LINEAGE_MAX: Final = 5_000
"""The maximum number of edges, and four times as many pairs of columns, that an object takes over in each direction."""

AT_PATH = Sql(
    "SELECT f.object_id, f.kind, f.owner_id, f.left_at, f.expires_at, f.carried, c.parent_id, c.name FROM former_object"
    " f JOIN node c ON c.id = f.zone WHERE f.zone = :zone AND f.path = :path AND f.name_space = :space"
)
PUT = Sql(
    "INSERT INTO former_object (zone, path, name_space, object_id, name, kind, owner_id, left_at, expires_at, carried)"
    " VALUES (:zone, :path, :space, :id, :name, :kind, :owner, :now, :expires, :carried)"
    " ON CONFLICT (zone, path, name_space) DO UPDATE SET object_id = excluded.object_id, kind = excluded.kind,"
    " owner_id = excluded.owner_id, left_at = excluded.left_at, expires_at = excluded.expires_at,"
    " carried = excluded.carried"
)
FORGET_PATH = Sql("DELETE FROM former_object WHERE zone = :zone AND path = :path AND name_space = :space")
FORGET_ZONE = Sql("DELETE FROM former_object WHERE zone = :zone")
FORGET_EXPIRED = Sql("DELETE FROM former_object WHERE zone = :zone AND expires_at <= :now")
PATHS = Sql("SELECT path, name_space FROM former_object WHERE zone = :zone")
SWEEP = Sql(
    "DELETE FROM former_object WHERE NOT EXISTS"
    " (SELECT 1 FROM node c WHERE c.id = former_object.zone AND c.deleted = 0) OR expires_at <= :now"
)
OWNER = Sql("SELECT principal_id FROM owner WHERE object_id = :id")
SET_OWNER = Sql("UPDATE owner SET principal_id = :owner WHERE object_id = :id")
IS_MEMBER = Sql(
    "SELECT 1 FROM group_member m JOIN principal g ON g.id = m.group_id AND g.deleted = 0"
    " WHERE m.user_id = :user AND m.group_id = :group"
)
GRANTS = Sql(
    "SELECT g.role_id, g.privilege, r.name FROM access_grant g JOIN role r ON r.id = g.role_id AND r.deleted = 0"
    " WHERE g.object_id = :id AND g.allowed ORDER BY r.name, g.privilege"
)
GRANT = Sql(
    "INSERT INTO access_grant (role_id, object_id, privilege, object_kind, allowed)"
    " VALUES (:role, :id, :privilege, :kind, :allowed) ON CONFLICT DO NOTHING"
)
TOUCH_ROLE = Sql("UPDATE role SET modified_by = :actor, modified_at = :now WHERE id = :role")
TAGS = Sql(
    "SELECT t.tag_id, n.name FROM tag_object t JOIN node n ON n.id = t.tag_id AND n.deleted = 0"
    " WHERE t.object_id = :id ORDER BY n.name"
)
TAG = Sql("INSERT INTO tag_object (object_id, tag_id) VALUES (:id, :tag) ON CONFLICT DO NOTHING")
TAG_VALUES = Sql(
    "INSERT INTO tag_value (object_id, field_id, tag_id, value, position) SELECT :id, 0, v.tag_id, v.value, v.position"
    " FROM tag_value v WHERE v.object_id = :former AND v.field_id = 0 AND v.tag_id = :tag"
)
_EDGE = "job_namespace, job_name, run, parent, at, said_by, said_at, kinds"
_PAIR = "target_field, source_field_id, source_field, subtype, direct"
_KNOWN = "EXISTS (SELECT 1 FROM lineage_edge x WHERE x.target_id = :id AND x.job_digest = e.job_digest)"
LINEAGE: Final[tuple[Sql, ...]] = (
    # Field ids are those of the former table: -1 means that the column is known by its name only.
    Sql(
        "INSERT INTO lineage_column (target_id, job_digest, ordinal, source_id, target_field_id, target_field,"
        " source_field_id, source_field, subtype, direct) SELECT :id, e.job_digest, e.ordinal, e.source_id,"
        " CASE WHEN e.target_field_id = 0 THEN 0 ELSE -1 END, e.target_field, e.source_field_id, e.source_field,"
        " e.subtype, e.direct FROM lineage_column e WHERE e.target_id = :former AND e.source_id NOT IN (:id, :former)"
        f" AND NOT {_KNOWN} ORDER BY e.job_digest, e.ordinal LIMIT 4 * :most"
    ),
    Sql(
        f"INSERT INTO lineage_edge (target_id, job_digest, source_id, {_EDGE}) SELECT :id, e.job_digest, e.source_id,"
        f" {', '.join(f'e.{each.strip()}' for each in _EDGE.split(','))} FROM lineage_edge e"
        " WHERE e.target_id = :former AND e.source_id NOT IN (:id, :former) AND e.said_at <= :left"
        f" AND NOT {_KNOWN} ORDER BY e.at DESC LIMIT :most ON CONFLICT DO NOTHING"
    ),
    Sql(
        "INSERT INTO lineage_column (target_id, job_digest, ordinal, source_id, target_field_id, target_field,"
        " source_field_id, source_field, subtype, direct) SELECT e.target_id, e.job_digest,"
        " e.ordinal + 1 + (SELECT max(x.ordinal) FROM lineage_column x WHERE x.target_id = e.target_id"
        " AND x.job_digest = e.job_digest), :id, e.target_field_id, e.target_field,"
        " CASE WHEN e.source_field_id = 0 THEN 0 ELSE -1 END, e.source_field, e.subtype, e.direct"
        " FROM lineage_column e WHERE e.source_id = :former AND e.target_id NOT IN (:id, :former)"
        " ORDER BY e.target_id, e.job_digest, e.ordinal LIMIT 4 * :most"
    ),
    Sql(
        f"INSERT INTO lineage_edge (target_id, job_digest, source_id, {_EDGE}) SELECT e.target_id, e.job_digest, :id,"
        f" {', '.join(f'e.{each.strip()}' for each in _EDGE.split(','))} FROM lineage_edge e"
        " WHERE e.source_id = :former AND e.target_id NOT IN (:id, :former) AND e.said_at <= :left"
        " ORDER BY e.at DESC LIMIT :most ON CONFLICT DO NOTHING"
    ),
)
"""The statements that copy lineage to a successor: first columns, since edges say which jobs are known already."""


class CarriedFacts(msgspec.Struct, frozen=True):
    """The grants and tags of an object when it left its path: pairs of role and privilege, and ids of tags."""

    grants: tuple[tuple[int, int], ...] = ()
    tags: tuple[int, ...] = ()


class FormerObject(NamedTuple):
    """The last object that left a path, with its owner at that time. Times are in milliseconds since 1970."""

    id: int
    kind: Kind
    owner_id: int | None
    left_at: int
    expires_at: int
    carried: CarriedFacts
    metalake_id: int
    catalog: str


class SuccessorObject(NamedTuple):
    """An object that gets a path: its id, kind, name space and zone, and the path as names and as stored text."""

    id: int
    kind: Kind
    space: str
    zone: int
    names: Sequence[str]
    path: str


def check_successors(properties: Mapping[str, str], *, has_tables: bool) -> None:
    """Check the property in a catalog's properties. Raises BadRequest for an unknown word, or a catalog of other
    objects.
    """
    word = properties.get(SUCCESSORS, NONE)
    if word not in WORDS:
        raise BadRequest(f"Property {SUCCESSORS} is {quote_for_message(word)}: it must be {' or '.join(WORDS)}")
    if word != NONE and not has_tables:
        raise BadRequest(f"Property {SUCCESSORS} has no effect in this catalog, which manages no tables: leave it out")


def has_successors(record: bytes) -> bool:
    """Return whether the stored record of a catalog says that objects take over from former ones."""
    if SUCCESSORS.encode() not in record:
        return False
    return CatalogRecord.read(record).properties.get(SUCCESSORS) == SAME_OWNER


class SuccessorWrites(Writes):
    """Remembers objects that leave their paths, and lets their successors take over from them."""

    def remember(self, node: Node, *, path: str, keep_ms: int = 0) -> None:
        """Store what a node has that leaves a path. Call it before the node is dropped or moved.

        `keep_ms` is the time in the trash, in milliseconds.
        """
        tx = self.tx
        tx.count(FORGET_EXPIRED, {"zone": node.zone, "now": tx.now_ms})
        carried = CarriedFacts(
            tuple([(row[0], row[1]) for row in tx.rows(GRANTS, {"id": node.id})]),
            tuple([row[0] for row in tx.rows(TAGS, {"id": node.id})]),
        )
        tx.count(
            PUT,
            {
                "zone": node.zone,
                "path": path,
                "space": node.name_space,
                "id": node.id,
                "name": node.name,
                "kind": int(node.kind),
                "owner": self._owner(node.id),
                "now": tx.now_ms,
                "expires": tx.now_ms + max(keep_ms, FORMER_OBJECT_MS),
                "carried": msgspec.json.encode(carried).decode(),
            },
        )

    def forget_below(self, zone: int, names: Sequence[str]) -> None:
        """Forget the former objects of all paths below a namespace that is moved."""
        depth = len(names)
        for path, space in self.tx.rows(PATHS, {"zone": zone}):
            if len(levels := loads(path)) > depth and levels[:depth] == list(names):
                self.tx.count(FORGET_PATH, {"zone": zone, "path": path, "space": space})

    def forget_zone(self, zone: int) -> None:
        """Forget all former objects of a catalog."""
        self.tx.count(FORGET_ZONE, {"zone": zone})

    def take(self, placed: SuccessorObject, *, is_restored: bool = False) -> str | None:
        """Let an object take over from the former object of its path, if its owner is that of the former object and is
        the caller. In any case the path forgets the former object.

        Args:
            placed: The object, at its path.
            is_restored: Whether it comes from the trash: then it has its own grants, and takes over nothing.

        Returns:
            A description for the audit; None if it takes over nothing.

        Raises:
            MetalakeLockRequired: It would take over grants or tags, and the transaction lacks the metalake's lock.
        """
        tx = self.tx
        at: Params = {"zone": placed.zone, "path": placed.path, "space": placed.space}
        rows = tx.rows(AT_PATH, at)
        if not rows:
            return None
        tx.count(FORGET_PATH, at)
        row = rows[0]
        former = FormerObject(
            id=row[0],
            kind=KINDS[row[1]],
            owner_id=row[2],
            left_at=row[3],
            expires_at=row[4],
            carried=msgspec.json.decode(row[5], type=CarriedFacts),
            metalake_id=row[6],
            catalog=row[7],
        )
        if is_restored or former.id == placed.id or former.kind is not placed.kind or former.expires_at <= tx.now_ms:
            return None
        if not self._has_same_owner(placed, former):
            return None
        grants = self._take_grants(placed, former)
        tags = self._take_tags(placed, former)
        edges = self._take_lineage(placed, former)
        parts = [
            f"grants of {', '.join(grants)}" if grants else "",
            f"tags {', '.join(tags)}" if tags else "",
            "lineage" if edges else "",
        ]
        parts = [each for each in parts if each]
        return f"takes over from the former {former.kind.word} of this path: {'; '.join(parts)}" if parts else None

    def _owner(self, object_id: int) -> int | None:
        rows = self.tx.rows(OWNER, {"id": object_id})
        return rows[0][0] if rows else None

    def _has_same_owner(self, placed: SuccessorObject, former: FormerObject) -> bool:
        """Return whether the caller owns an object whose former object had, and has, the same owner.

        A member of the group that owned the former object rebuilds it for the group, which then owns the object, too.
        """
        tx = self.tx
        own_owner, current = self._owner(placed.id), self._owner(former.id)
        if current is not None and current != former.owner_id:
            return False
        if own_owner is None or former.owner_id is None:
            return own_owner is None and former.owner_id is None and tx.actor_id is None
        if own_owner == former.owner_id:
            return tx.actor_id == own_owner or self._is_member(tx.actor_id, own_owner)
        if tx.actor_id != own_owner or not self._is_member(own_owner, former.owner_id):
            return False
        tx.count(SET_OWNER, {"id": placed.id, "owner": former.owner_id})
        tx.add_change(
            ChangeDraft(
                operation="own",
                kind=placed.kind,
                node_id=placed.id,
                name_space=placed.space,
                moves_access=True,
                owner_id=former.owner_id,
            )
        )
        return True

    def _is_member(self, user_id: int | None, group_id: int) -> bool:
        return user_id is not None and bool(self.tx.rows(IS_MEMBER, {"user": user_id, "group": group_id}))

    def _take_grants(self, placed: SuccessorObject, former: FormerObject) -> list[str]:
        """Give an object the grants that the former object had and still has. Returns the names of their roles."""
        tx = self.tx
        roles: dict[tuple[int, str], list[str]] = {}
        for role_id, privilege, role in tx.rows(GRANTS, {"id": former.id}):
            if (role_id, privilege) not in former.carried.grants:
                continue
            self._require_lock()
            kind, codes = int(placed.kind), {"role": role_id, "privilege": privilege, "allowed": True}
            if tx.count(GRANT, {"id": placed.id, "kind": kind, **codes}):
                roles.setdefault((role_id, role), []).append(Privilege(privilege).name)
        for (role_id, role), privileges in roles.items():
            tx.count(TOUCH_ROLE, {"role": role_id, "actor": tx.actor, "now": tx.now_ms})
            on = f"{placed.kind.word} {render((former.catalog, *placed.names))}"
            draft = ChangeDraft(
                operation="alter",
                kind=Kind.ROLE,
                node_id=role_id,
                old_parent=former.metalake_id,
                old_name=role,
                new_parent=placed.id,
                moves_access=True,
                detail=f"allow {', '.join(privileges)} on {on}, as on the former object of this path",
            )
            tx.add_change_in(former.metalake_id, draft)
        return [role for _, role in roles]

    def _take_tags(self, placed: SuccessorObject, former: FormerObject) -> list[str]:
        """Give an object the tags that the former object had and still has. Returns the names of the tags."""
        tx, names = self.tx, []
        for tag_id, name in tx.rows(TAGS, {"id": former.id}):
            if tag_id not in former.carried.tags:
                continue
            self._require_lock()
            if tx.count(TAG, {"id": placed.id, "tag": tag_id}):
                tx.count(TAG_VALUES, {"id": placed.id, "tag": tag_id, "former": former.id})
                draft = ChangeDraft(
                    operation="attach", kind=Kind.TAG, node_id=tag_id, name_space=Kind.TAG.word, new_parent=placed.id
                )
                tx.add_change_in(former.metalake_id, draft)
                names.append(name)
        return names

    def _take_lineage(self, placed: SuccessorObject, former: FormerObject) -> int:
        """Copy the edges that were reported before the former object left its path. Returns their number."""
        params = {"id": placed.id, "former": former.id, "left": former.left_at, "most": LINEAGE_MAX}
        return sum(self.tx.count(statement, params) for statement in LINEAGE)

    def _require_lock(self) -> None:
        if not self.tx.writes_metalake:
            raise MetalakeLockRequired
