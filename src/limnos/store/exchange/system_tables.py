# SPDX-License-Identifier: Apache-2.0
"""Reads of the system tables: nodes, attachments, principals and grants by ranges of ids, in one snapshot.

Must not know rights. Each statement returns the rows with ids after `:after` and up to `:last`, at most `:limit`, in
the order of their keys.
"""

from __future__ import annotations

from typing import Final

from limnos.model.kinds import Kind
from limnos.store.objects.name_search import one_of
from limnos.store.objects.node_reads import COLUMNS
from limnos.store.sql import Sql


def _sql(text: str) -> Sql:
    """Build a statement in which `{ids}` and `{zones}` are conditions with JSON arrays of ids."""
    conditions = {name: one_of(name) for name in ("ids", "zones")}
    return Sql(
        text.format(**{name: each[0] for name, each in conditions.items()}),
        on_sqlite=text.format(**{name: each[1] for name, each in conditions.items()}),
    )


_NODE = ", ".join(f"n.{column}" for column in COLUMNS)
_OWNED = "FROM node n LEFT JOIN owner o ON o.object_id = n.id"
_RANGE = "{0} > :after AND {0} <= :last"
CLOCKS = Sql(
    "SELECT k.zone, k.revision, k.access_revision, (SELECT epoch FROM store) FROM clock k WHERE k.zone = :metalake"
    " UNION ALL SELECT k.zone, k.revision, k.access_revision, 0 FROM node c JOIN clock k ON k.zone = c.id"
    f" WHERE c.parent_id = :metalake AND c.kind = {int(Kind.CATALOG)} AND c.deleted = 0"
)
"""The clocks of a metalake and its catalogs, and the store's epoch in the metalake's row."""
RANGES = _sql(
    "SELECT max(x.id) FROM (SELECT n.id, ntile(:parts) OVER (ORDER BY n.id) AS part FROM node n"
    " WHERE n.deleted = 0 AND n.zone {zones}) x GROUP BY x.part ORDER BY 1"
)
"""The last ids of ranges that have equal counts of objects."""
NODES = _sql(
    f"SELECT {_NODE}, o.principal_id {_OWNED} WHERE {_RANGE.format('n.id')} AND n.deleted = 0"
    " AND (n.zone {zones} OR n.id = :metalake) ORDER BY n.id LIMIT :limit"
)
OBJECTS = _sql(
    f"SELECT n.id, n.parent_id, n.kind, n.name, o.principal_id {_OWNED} WHERE n.id {{ids}} AND n.deleted = 0"
)
CATALOGS = Sql(
    f"SELECT {_NODE} FROM node n WHERE n.parent_id = :metalake AND n.kind = {int(Kind.CATALOG)} AND n.deleted = 0"
)
DOCUMENTS = _sql(
    "SELECT d.node_id, d.version, d.uuid, d.location, d.metadata_location, d.body FROM document d WHERE d.node_id {ids}"
)
PLACES = _sql(
    "SELECT d.node_id, d.version, d.uuid, d.location, d.metadata_location FROM document d WHERE d.node_id {ids}"
)
OWNERS = Sql(
    "SELECT o.object_id, p.name, p.kind FROM owner o JOIN principal p ON p.id = o.principal_id AND p.deleted = 0"
    f" WHERE {_RANGE.format('o.object_id')} AND +p.metalake_id = :metalake ORDER BY o.object_id LIMIT :limit"
)
PRINCIPALS = Sql(
    "SELECT id, kind, name, enabled, created_by, created_at, modified_by, modified_at FROM principal"
    f" WHERE +metalake_id = :metalake AND deleted = 0 AND {_RANGE.format('id')} ORDER BY id LIMIT :limit"
)
ROLES = Sql(
    "SELECT r.id, r.name, r.created_by, r.created_at, r.modified_by, r.modified_at, o.principal_id FROM role r"
    " LEFT JOIN owner o ON o.object_id = r.id"
    f" WHERE +r.metalake_id = :metalake AND r.deleted = 0 AND {_RANGE.format('r.id')} ORDER BY r.id LIMIT :limit"
)
ROLES_AMONG = _sql(
    "SELECT r.id, r.name, o.principal_id FROM role r LEFT JOIN owner o ON o.object_id = r.id WHERE r.id {ids}"
    " AND r.deleted = 0 AND +r.metalake_id = :metalake"
)
MEMBERS = Sql(
    "SELECT m.user_id, m.group_id, u.name, g.name FROM group_member m"
    " JOIN principal u ON u.id = m.user_id AND u.deleted = 0 JOIN principal g ON g.id = m.group_id AND g.deleted = 0"
    f" WHERE {_RANGE.format('m.user_id')} AND (m.user_id, m.group_id) > (:key, :second) AND +g.metalake_id = :metalake"
    " ORDER BY m.user_id, m.group_id LIMIT :limit"
)
HOLDERS = Sql(
    "SELECT m.principal_id, m.role_id, p.kind, p.name, r.name, o.principal_id FROM role_member m"
    " JOIN principal p ON p.id = m.principal_id AND p.deleted = 0 JOIN role r ON r.id = m.role_id AND r.deleted = 0"
    " LEFT JOIN owner o ON o.object_id = r.id"
    f" WHERE {_RANGE.format('m.principal_id')} AND (m.principal_id, m.role_id) > (:key, :second)"
    " AND +r.metalake_id = :metalake ORDER BY m.principal_id, m.role_id LIMIT :limit"
)
GRANTS = Sql(
    "SELECT g.object_id, g.role_id, g.privilege, g.allowed, r.name, o.principal_id FROM access_grant g"
    " JOIN role r ON r.id = g.role_id AND r.deleted = 0 LEFT JOIN owner o ON o.object_id = r.id"
    f" WHERE {_RANGE.format('g.object_id')} AND (g.object_id, g.role_id, g.privilege) > (:key, :second, :third)"
    " AND +r.metalake_id = :metalake ORDER BY g.object_id, g.role_id, g.privilege LIMIT :limit"
)
_OF_METALAKE = (
    "(EXISTS (SELECT 1 FROM node n WHERE n.id = {0} AND n.zone {{zones}})"
    " OR EXISTS (SELECT 1 FROM lineage_dataset d WHERE d.id = {0} AND d.metalake_id = :metalake))"
)
LINEAGE = _sql(
    "SELECT e.target_id, e.job_digest, e.source_id, e.job_namespace, e.job_name, e.run, e.at, e.said_by, e.said_at,"
    f" e.kinds FROM lineage_edge e WHERE {_RANGE.format('e.target_id')} AND (e.target_id, e.job_digest, e.source_id) >"
    f" (:key, :digest, :last_key) AND {_OF_METALAKE.format('e.target_id')} ORDER BY e.target_id, e.job_digest,"
    " e.source_id LIMIT :limit"
)
COLUMN_LINEAGE = _sql(
    "SELECT c.target_id, c.job_digest, c.ordinal, c.source_id, c.target_field_id, c.target_field, c.source_field_id,"
    " c.source_field, c.subtype, c.direct, e.job_namespace, e.job_name, e.run, e.at FROM lineage_column c"
    " JOIN lineage_edge e ON e.target_id = c.target_id AND e.job_digest = c.job_digest AND e.source_id = c.source_id"
    f" WHERE {_RANGE.format('c.target_id')} AND (c.target_id, c.job_digest, c.ordinal) > (:key, :digest, :last_key)"
    f" AND {_OF_METALAKE.format('c.target_id')} ORDER BY c.target_id, c.job_digest, c.ordinal LIMIT :limit"
)
DATASETS = _sql(
    "SELECT d.id, d.namespace, d.name FROM lineage_dataset d WHERE d.id {ids} AND d.metalake_id = :metalake"
)
RUNS = Sql(
    "SELECT r.id, r.pipeline_id, r.uuid, o.principal_id, r.version, r.state, r.attempt, r.user_name, r.started_at,"
    " r.resumed_at, r.ended_at, r.message, r.beat_at + r.lease_ms FROM pipeline_run r"
    " LEFT JOIN owner o ON o.object_id = r.id"
    f" WHERE r.metalake_id = :metalake AND {_RANGE.format('r.id')} ORDER BY r.id LIMIT :limit"
)
OPERATIONS = _sql(
    "SELECT m.node_id, m.id, m.kind, m.state, m.user_name, m.started_at, m.ended_at, m.result"
    f" FROM maintenance_operation m WHERE {_RANGE.format('m.node_id')} AND (m.node_id, m.id) > (:key, :second)"
    " AND +m.catalog_id {zones} ORDER BY m.node_id, m.id LIMIT :limit"
)
FEEDS = Sql(
    "SELECT k.zone, k.revision, k.pruned_to, '', 0, NULL FROM clock k WHERE k.zone = :metalake"
    " UNION ALL SELECT k.zone, k.revision, k.pruned_to, c.name, c.deleted, o.principal_id FROM clock k"
    " JOIN node c ON c.id = k.zone LEFT JOIN owner o ON o.object_id = c.id"
    f" WHERE c.parent_id = :metalake AND +c.kind = {int(Kind.CATALOG)} ORDER BY 1"
)
"""The clocks of a metalake and its catalogs, dropped ones too, with name, time of the drop (0 if it is live) and owner
of each catalog.
"""
OWNERS_AMONG = _sql("SELECT o.object_id, o.principal_id FROM owner o WHERE o.object_id {ids}")
AUDIT_RANGES = Sql(
    "SELECT DISTINCT max(x.at) FROM (SELECT a.at, ntile(:parts) OVER (ORDER BY a.at) AS part FROM audit a"
    " WHERE a.metalake_id = :metalake) x GROUP BY x.part ORDER BY 1"
)
"""The last times of ranges that have equal counts of audit records."""


def _select_attachments(kind: Kind) -> Sql:
    """Build the read of attachments of tags or policies to objects (field id 0) and columns."""
    word, key = kind.word, "({0}, {1}, {2}) > (:key, :second, :third)"
    text = (
        "SELECT x.object_id, x.field, x.attached, t.name, o.principal_id FROM ("
        f"SELECT a.object_id, a.{word}_id AS attached, CAST(0 AS bigint) AS field FROM {word}_object a"
        f" WHERE {_RANGE.format('a.object_id')} AND {key.format('a.object_id', 'CAST(0 AS bigint)', f'a.{word}_id')}"
        " UNION ALL SELECT c.object_id, c.attached_id, c.field_id FROM column_attachment c"
        f" WHERE c.kind = {int(kind)} AND {_RANGE.format('c.object_id')}"
        f" AND {key.format('c.object_id', 'c.field_id', 'c.attached_id')}) x"
        " JOIN node t ON t.id = x.attached AND t.deleted = 0 AND +t.zone = :metalake"
        " LEFT JOIN owner o ON o.object_id = t.id ORDER BY x.object_id, x.field, x.attached LIMIT :limit"
    )
    return Sql(text)


TAGGED: Final = _select_attachments(Kind.TAG)
POLICED: Final = _select_attachments(Kind.POLICY)
USERS = Sql(
    f"SELECT id, name, enabled FROM principal WHERE metalake_id = :metalake AND kind = {int(Kind.USER)} AND deleted = 0"
    " ORDER BY name LIMIT :limit"
)
USERS_NAMED = Sql(
    f"SELECT id, name, enabled FROM principal WHERE metalake_id = :metalake AND kind = {int(Kind.USER)}"
    " AND name = :name AND deleted = 0"
)
GROUPS_OF = _sql(
    "SELECT m.user_id, g.id, g.name FROM group_member m JOIN principal g ON g.id = m.group_id AND g.deleted = 0"
    " WHERE m.user_id {ids} ORDER BY 1, 2"
)
ROLES_OF = _sql(
    "SELECT m.principal_id, r.id, r.name FROM role_member m JOIN role r ON r.id = m.role_id AND r.deleted = 0"
    " WHERE m.principal_id {ids} ORDER BY 1, 2"
)
GRANTS_OF = _sql("SELECT g.role_id, g.privilege, g.object_id, g.allowed FROM access_grant g WHERE g.role_id {ids}")
OWNING = Sql(
    "SELECT p.id FROM principal p WHERE p.metalake_id = :metalake AND p.deleted = 0"
    " AND EXISTS (SELECT 1 FROM owner o WHERE o.principal_id = p.id)"
)
"""The users and groups that own objects."""
OWNED = _sql(
    "SELECT count(*), sum(o.object_id), sum((o.object_id % 2147483647) * 2654435761 % 4294967291) FROM owner o"
    " WHERE o.principal_id {ids} AND o.object_id <= :last"
)
"""A digest of the objects up to an id that some users and groups own."""
RESTRICTIONS = _sql(
    "SELECT r.object_id, r.name, r.terms FROM restriction r WHERE r.zone {zones} ORDER BY r.object_id, r.name"
)
LAST_ID = Sql("SELECT coalesce(max(object_id), 0) FROM owner")
