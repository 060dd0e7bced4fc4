# SPDX-License-Identifier: Apache-2.0
"""The queries of an export, over one snapshot of a metalake: first the ids, parents before children, then rows by id.

Must not know file formats. Only live objects and relations between them are read. The trash, rows that await cleanup,
and objects of a dropped catalog are omitted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from limnos.model.entities import MetadataDocument, Node
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.model_versions import ModelVersion
from limnos.model.statistics import Statistic
from limnos.store.identity.principals import _COLUMNS as _PRINCIPAL
from limnos.store.identity.roles import _COLUMNS as _ROLE
from limnos.store.objects.documents import document_of
from limnos.store.objects.node_reads import COLUMNS, WIDTH, node_of
from limnos.store.snapshots import SnapshotRows, StoreSnapshot
from limnos.store.sql import Query, Row, Sql

_OURS = (
    "(SELECT :metalake UNION ALL SELECT c.id FROM node c WHERE c.parent_id = :metalake AND c.kind ="
    f" {int(Kind.CATALOG)} AND c.deleted = 0)"
)
"""The subselect for the zones of a metalake: its own, and those of its live catalogs."""
_LIVE = "{0}.deleted = 0 AND ({0}.zone IN " + _OURS + " OR {0}.id = :metalake)"
REVISIONS = Sql(
    "SELECT s.epoch, (SELECT revision FROM clock WHERE zone = 0), (SELECT revision FROM clock WHERE zone = :metalake)"
    " FROM store s"
)
CONTAINERS = Sql(
    "WITH RECURSIVE tree (id, zone, depth) AS (SELECT n.id, n.id, 0 FROM node n WHERE n.parent_id = :metalake AND"
    " n.deleted = 0 UNION ALL SELECT n.id, n.zone, t.depth + 1 FROM tree t JOIN node n ON n.zone = t.zone AND"
    f" n.parent_id = t.id AND n.kind = {int(Kind.NAMESPACE)} AND n.deleted = 0) SELECT id FROM tree ORDER BY depth, id"
)
"""Catalogs, other objects of the metalake, and namespaces, each after the one above it. An index has the namespaces
alone, so the statement does not read the objects in them.
"""
_AMONG = "IN (SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:ids AS json)) v)"
_AMONG_ON_SQLITE = "IN (SELECT value FROM json_each(:ids))"
_CONTAINED = (
    "SELECT n.id FROM node n WHERE n.parent_id {} AND n.deleted = 0"
    f" AND n.kind <> {int(Kind.NAMESPACE)} ORDER BY n.parent_id, n.name_space, n.name"
)
CONTAINED = Sql(_CONTAINED.format(_AMONG), on_sqlite=_CONTAINED.format(_AMONG_ON_SQLITE))
"""The objects in some containers, in the order of an index, so that the first are there before the last are read."""
_NODES = (
    f"SELECT {', '.join(f'n.{column}' for column in COLUMNS)}, o.principal_id, d.node_id, d.version, d.uuid,"
    " d.location, d.metadata_location, d.body, d.digest FROM node n LEFT JOIN owner o ON o.object_id = n.id LEFT JOIN"
    " document d ON d.node_id = n.id WHERE n.id {}"
)
NODES = Sql(_NODES.format(_AMONG), on_sqlite=_NODES.format(_AMONG_ON_SQLITE))
PRINCIPALS = Sql(f"SELECT {_PRINCIPAL} FROM principal WHERE metalake_id = :metalake AND deleted = 0 ORDER BY kind, id")
ROLES = Sql(
    f"SELECT {_ROLE}, (SELECT o.principal_id FROM owner o WHERE o.object_id = role.id) FROM role"
    " WHERE metalake_id = :metalake AND deleted = 0 ORDER BY id"
)
_OF_ROLES = "JOIN role r ON r.id = x.role_id AND r.metalake_id = :metalake AND r.deleted = 0"
GRANTS = Sql(
    f"SELECT x.role_id, x.object_id, x.privilege, x.allowed FROM access_grant x {_OF_ROLES} JOIN node n ON n.id ="
    f" x.object_id WHERE {_LIVE.format('n')} ORDER BY x.role_id, x.object_id, x.privilege"
)
HOLDERS = Sql(
    f"SELECT x.principal_id, x.role_id FROM role_member x {_OF_ROLES} JOIN principal p ON p.id = x.principal_id AND"
    " p.deleted = 0 ORDER BY x.role_id, x.principal_id"
)
MEMBERS = Sql(
    "SELECT x.user_id, x.group_id FROM group_member x JOIN principal g ON g.id = x.group_id AND g.deleted = 0"
    " JOIN principal u ON u.id = x.user_id AND u.deleted = 0 WHERE g.metalake_id = :metalake AND NOT x.issued"
    " ORDER BY x.group_id, x.user_id"
)
_ATTACHED = (
    "SELECT x.object_id, x.attached, x.field, x.attached_by FROM (SELECT object_id, {0}_id AS attached, 0 AS field,"
    " {2} AS attached_by FROM {0}_object UNION ALL"
    " SELECT object_id, attached_id, field_id, 0 FROM column_attachment WHERE kind = {1}) x"
    " JOIN node t ON t.id = x.attached AND t.deleted = 0 AND t.zone = :metalake"
    " JOIN node n ON n.id = x.object_id WHERE " + _LIVE.format("n") + " ORDER BY x.attached, x.object_id, x.field"
)
TAGGED = Sql(_ATTACHED.format(Kind.TAG.word, int(Kind.TAG), "0"))
POLICED = Sql(_ATTACHED.format(Kind.POLICY.word, int(Kind.POLICY), "attached_by"))
_VALUES = "SELECT object_id, tag_id, field_id, value FROM tag_value WHERE object_id {} ORDER BY position, value"
VALUES = Sql(_VALUES.format(_AMONG), on_sqlite=_VALUES.format(_AMONG_ON_SQLITE))
STATISTICS = Sql(
    "SELECT x.object_id, x.partition_name, x.name, x.value, x.created_by, x.created_at, x.modified_by, x.modified_at"
    f" FROM statistic x JOIN node n ON n.id = x.object_id WHERE {_LIVE.format('n')} ORDER BY x.object_id,"
    " x.partition_name, x.name"
)
COLUMN_STATISTICS = Sql(
    "SELECT x.object_id, x.field_id, '', x.name, x.value, x.created_by, x.created_at, x.modified_by, x.modified_at"
    f" FROM column_statistic x JOIN node n ON n.id = x.object_id WHERE {_LIVE.format('n')} ORDER BY x.object_id,"
    " x.field_id, x.name"
)
PROTECTED = Sql(
    "SELECT x.node_id, x.below, x.set_by, x.set_at FROM protection x JOIN node n ON n.id = x.node_id"
    f" WHERE {_LIVE.format('n')} ORDER BY x.node_id"
)
RESTRICTIONS = Sql(
    "SELECT x.object_id, x.name, x.terms, x.set_by, x.set_at FROM restriction x JOIN node n ON n.id = x.object_id"
    f" WHERE {_LIVE.format('n')} ORDER BY x.object_id, x.name"
)
USES = Sql(
    "SELECT x.user_id, x.used_id FROM dependency x JOIN node n ON n.id = x.user_id JOIN node u ON u.id = x.used_id"
    f" WHERE {_LIVE.format('n')} AND {_LIVE.format('u')} ORDER BY x.user_id, x.used_id"
)
MODEL_VERSIONS = Sql(
    "SELECT x.model_id, x.version, x.comment, x.properties, x.uris, x.created_by, x.created_at, x.modified_by,"
    f" x.modified_at FROM model_version x JOIN node n ON n.id = x.model_id WHERE {_LIVE.format('n')} ORDER BY"
    " x.model_id, x.version"
)
_ALIASES = "SELECT model_id, version, alias FROM model_alias WHERE model_id {} ORDER BY alias"
ALIASES = Sql(_ALIASES.format(_AMONG), on_sqlite=_ALIASES.format(_AMONG_ON_SQLITE))
LANCE_VERSIONS = Sql(
    "SELECT x.node_id, x.branch, x.version, x.scheme, x.staged, x.size, x.e_tag, x.metadata, x.created_at, x.settled"
    f" FROM lance_version x JOIN node n ON n.id = x.node_id WHERE {_LIVE.format('n')} ORDER BY x.node_id, x.branch,"
    " x.version"
)
DECLARATIONS = Sql(
    "SELECT x.pipeline_id, x.version, x.digest, x.declaration, x.declared_by, x.declared_at FROM pipeline_version x"
    f" JOIN node n ON n.id = x.pipeline_id WHERE {_LIVE.format('n')} ORDER BY x.pipeline_id, x.version"
)


class ExportNode(NamedTuple):
    """A node with its owner, and its metadata document if it has one."""

    node: Node
    owner_id: int | None
    document: MetadataDocument | None


def contained_query(parent_ids: Sequence[int]) -> Query:
    """Return the query for the ids of the objects in some containers, without namespaces."""
    return CONTAINED, {"ids": json.dumps(parent_ids)}


def nodes_query(ids: Sequence[int]) -> Query:
    """Return the query for nodes by id. The rows come in any order."""
    return NODES, {"ids": json.dumps(ids)}


def export_node_of(row: Row) -> ExportNode:
    """Build a node from a row of `nodes_query`. Raises StoreDamaged if its document is not what was written."""
    document = None if row[WIDTH + 1] is None else document_of(row[WIDTH + 1 :])
    return ExportNode(node_of(row[:WIDTH]), row[WIDTH], document)


def lance_version_of(row: Row) -> tuple[int, LanceVersion]:
    """Build the table's id and the version from a row of `LANCE_VERSIONS`."""
    return row[0], LanceVersion(
        branch=row[1],
        version=row[2],
        scheme=row[3],
        staged=row[4],
        size=row[5],
        e_tag=row[6],
        metadata=row[7],
        created_at=row[8],
        settled=bool(row[9]),
    )


async def tag_values_of(moment: SnapshotRows, rows: Sequence[Row]) -> dict[tuple[int, int, int], list[str]]:
    """Read the values of tags for rows of `TAGGED`, by (object, tag, field), in order."""
    results: dict[tuple[int, int, int], list[str]] = {}
    objects = sorted({row[0] for row in rows})
    for object_id, tag_id, field_id, value in await moment.rows((VALUES, {"ids": json.dumps(objects)})):
        results.setdefault((object_id, tag_id, field_id), []).append(value)
    return results


def statistic_of(row: Row) -> Statistic:
    """Build a statistic from the last columns of `STATISTICS` or `COLUMN_STATISTICS`."""
    return Statistic(*row)


async def model_versions_of(moment: StoreSnapshot, rows: Sequence[Row]) -> list[tuple[int, ModelVersion]]:
    """Build (model id, version) pairs from rows of `MODEL_VERSIONS`, with the aliases of each version."""
    aliases: dict[tuple[int, int], list[str]] = {}
    for model_id, version, alias in await moment.rows((ALIASES, {"ids": json.dumps([row[0] for row in rows])})):
        aliases.setdefault((model_id, version), []).append(alias)
    results = []
    for row in rows:
        texts = [msgspec.json.decode(row[at], type=dict[str, str]) for at in (3, 4)]
        names = tuple(aliases.get((row[0], row[1]), ()))
        results.append(
            (
                row[0],
                ModelVersion(
                    version=row[1],
                    comment=row[2],
                    properties=texts[0],
                    uris=texts[1],
                    aliases=names,
                    created_by=row[5],
                    created_at=row[6],
                    modified_by=row[7],
                    modified_at=row[8],
                ),
            )
        )
    return results
