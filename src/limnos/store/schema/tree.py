"""Tables of the tree and its objects: clocks and the change feed, names, owners, documents, versions, trash.

May import only SQLAlchemy and this room. Knows no statement.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    false,
    text,
)

from limnos.store.schema.base import LIVE, Id, Name, live_index, made_by, metadata

store = Table(
    "store",
    metadata,
    Column("one", SmallInteger, primary_key=True),
    Column("epoch", Id, nullable=False),
    Column("format_version", Integer, nullable=False),
    Column("next_id", Id, nullable=False),
    Column("separator", Text),
)

clock = Table(
    "clock",
    metadata,
    Column("zone", Id, primary_key=True, autoincrement=False),
    Column("revision", Id, nullable=False),
    Column("access_revision", Id, nullable=False),
    Column("pruned_to", Id, nullable=False),
)

change = Table(
    "change",
    metadata,
    Column("zone", Id, nullable=False),
    Column("revision", Id, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("operation", Text, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("name_space", Text, nullable=False),
    Column("old_parent", Id),
    Column("old_name", Name),
    Column("new_parent", Id),
    Column("new_name", Name),
    Column("owner_id", Id),
    Column("actor", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("at", Id, nullable=False),
    Column("payload", Text),
    PrimaryKeyConstraint("zone", "revision", "ordinal"),
    sqlite_with_rowid=False,
)

node = Table(
    "node",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False),
    Column("parent_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("name_space", Text, nullable=False),
    Column("name", Name, nullable=False),
    Column("format", Text, nullable=False),
    Column("implicit", Boolean, nullable=False),
    *made_by(),
    Column("revision", Id, nullable=False),
    Column("deleted", Id, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("folded", Name),
)
"""`folded` is the name in the form in which searches compare it; NULL in rows that an older release wrote."""
live_index("node_name", node, "parent_id", "name_space", "name")
node_folded = Index(
    "node_folded",
    node.c.zone,
    node.c.folded,
    sqlite_where=text(LIVE),
    postgresql_where=text(LIVE),
)
node_unfolded = Index(
    "node_unfolded", node.c.id, sqlite_where=text("folded IS NULL"), postgresql_where=text("folded IS NULL")
)

owner = Table(
    "owner",
    metadata,
    Column("object_id", Id, primary_key=True, autoincrement=False),
    Column("principal_id", Id, nullable=False),
)
owner_principal = Index("owner_principal_object", owner.c.principal_id, owner.c.object_id)

tag_object = Table(
    "tag_object",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("tag_id", Id, nullable=False),
    PrimaryKeyConstraint("object_id", "tag_id"),
    sqlite_with_rowid=False,
)
Index("tag_object_tag", tag_object.c.tag_id)

policy_object = Table(
    "policy_object",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("policy_id", Id, nullable=False),
    PrimaryKeyConstraint("object_id", "policy_id"),
    sqlite_with_rowid=False,
)
Index("policy_object_policy", policy_object.c.policy_id)

column_attachment = Table(
    "column_attachment",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("field_id", Id, nullable=False),
    Column("attached_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    PrimaryKeyConstraint("object_id", "field_id", "attached_id"),
    sqlite_with_rowid=False,
)
"""Tags and policies on columns: a table, and the field id of the table's format."""
Index("column_attachment_attached", column_attachment.c.attached_id)

tag_value = Table(
    "tag_value",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("field_id", Id, nullable=False),
    Column("tag_id", Id, nullable=False),
    Column("value", Text, nullable=False),
    Column("position", Integer, nullable=False),
    PrimaryKeyConstraint("object_id", "field_id", "tag_id", "value"),
    sqlite_with_rowid=False,
)
"""The values of a tag on an object (field 0) or on a column, beside the row that attaches it."""
Index("tag_value_value", tag_value.c.tag_id, tag_value.c.value)

document = Table(
    "document",
    metadata,
    Column("node_id", Id, primary_key=True, autoincrement=False),
    Column("version", Id, nullable=False),
    Column("uuid", Text, nullable=False),
    Column("location", Name, nullable=False),
    Column("metadata_location", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
Index("document_location", document.c.location, unique=True)
document_uuid = Index("document_uuid", document.c.uuid)

protection = Table(
    "protection",
    metadata,
    Column("node_id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False),
    Column("below", Boolean, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", Id, nullable=False),
)
Index("protection_zone", protection.c.zone)

metrics_report = Table(
    "metrics_report",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("node_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reporter", Text, nullable=False),
    Column("at", Id, nullable=False),
    Column("expires_at", Id, nullable=False),
    Column("snapshot_id", Id),
    Column("body", LargeBinary, nullable=False),
)
Index("metrics_report_node", metrics_report.c.node_id, metrics_report.c.id)
Index("metrics_report_expires", metrics_report.c.expires_at)

fileset_place = Table(
    "fileset_place",
    metadata,
    Column("node_id", Id, nullable=False),
    Column("location", Name, nullable=False),
    Column("managed", Boolean, nullable=False),
    Column("going", Boolean, nullable=False),
    PrimaryKeyConstraint("node_id", "location"),
)
Index("fileset_place_location", fileset_place.c.location)

place = Table(
    "place",
    metadata,
    Column("location", Name, nullable=False),
    Column("owner_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("catalog_id", Id, nullable=False),
    Column("metalake_id", Id, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("conflicting", Boolean, nullable=False),
    Column("claimant_id", Id),
    Column("since", Id, nullable=False),
    PrimaryKeyConstraint("location", "owner_id", "kind"),
    sqlite_with_rowid=False,
)
"""The storage locations of all objects with files. `owner_id` is the id of an object or a catalog."""
Index("place_owner", place.c.owner_id)
Index(
    "place_conflicting",
    place.c.owner_id,
    sqlite_where=text("conflicting"),
    postgresql_where=text("conflicting"),
)

lance_version = Table(
    "lance_version",
    metadata,
    Column("node_id", Id, nullable=False),
    Column("branch", Name, nullable=False),
    Column("version", Id, nullable=False),
    Column("scheme", SmallInteger, nullable=False),
    Column("staged", Text, nullable=False),
    Column("size", Id),
    Column("e_tag", Text),
    Column("metadata", Text, nullable=False),
    Column("created_at", Id, nullable=False),
    Column("settled", Boolean, nullable=False),
    PrimaryKeyConstraint("node_id", "branch", "version"),
    sqlite_with_rowid=False,
)

trash = Table(
    "trash",
    metadata,
    Column("node_id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False),
    Column("parent_id", Id, nullable=False),
    Column("dropped_by", Text, nullable=False),
    Column("dropped_by_id", Id),
    Column("dropped_at", Id, nullable=False),
    Column("expires_at", Id, nullable=False),
    Column("purges", Boolean, nullable=False, server_default=false()),
)
Index("trash_zone", trash.c.zone, trash.c.dropped_at, trash.c.node_id)
Index("trash_parent", trash.c.parent_id)
Index("trash_expires", trash.c.expires_at)

dependency = Table(
    "dependency",
    metadata,
    Column("user_id", Id, nullable=False),
    Column("used_id", Id, nullable=False),
    PrimaryKeyConstraint("user_id", "used_id"),
    sqlite_with_rowid=False,
)
Index("dependency_used", dependency.c.used_id)

model_version = Table(
    "model_version",
    metadata,
    Column("model_id", Id, nullable=False),
    Column("version", Id, nullable=False),
    Column("comment", Text),
    Column("properties", Text, nullable=False),
    Column("uris", Text, nullable=False),
    *made_by(),
    PrimaryKeyConstraint("model_id", "version"),
    sqlite_with_rowid=False,
)

model_alias = Table(
    "model_alias",
    metadata,
    Column("model_id", Id, nullable=False),
    Column("alias", Name, nullable=False),
    Column("version", Id, nullable=False),
    PrimaryKeyConstraint("model_id", "alias"),
    sqlite_with_rowid=False,
)

statistic = Table(
    "statistic",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("partition_name", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("value", Text, nullable=False),
    *made_by(),
    PrimaryKeyConstraint("object_id", "partition_name", "name"),
    sqlite_with_rowid=False,
)

column_statistic = Table(
    "column_statistic",
    metadata,
    Column("object_id", Id, nullable=False),
    Column("field_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    Column("value", Text, nullable=False),
    *made_by(),
    PrimaryKeyConstraint("object_id", "field_id", "name"),
    sqlite_with_rowid=False,
)
