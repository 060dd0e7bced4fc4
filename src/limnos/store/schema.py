"""The tables, once, in SQLAlchemy Core; migrations create them, statements elsewhere are text.

May import only SQLAlchemy. Names sort by code point on every backend (`COLLATE "C"` on PostgreSQL; SQLite's BINARY is
the same for UTF-8).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    false,
    text,
)

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Name = Text().with_variant(Text(collation="C"), "postgresql")
LIVE = "deleted = 0"
GONE = "deleted <> 0"


def _live_index(name: str, table: Table, *columns: str) -> Index:
    """Build a unique index over live rows only."""
    return Index(
        name,
        *(table.c[column] for column in columns),
        unique=True,
        sqlite_where=text(LIVE),
        postgresql_where=text(LIVE),
    )


def _audit() -> list[Column[object]]:
    return [
        Column("created_by", Text, nullable=False),
        Column("created_at", Id, nullable=False),
        Column("modified_by", Text),
        Column("modified_at", Id),
    ]


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
    *_audit(),
    Column("revision", Id, nullable=False),
    Column("deleted", Id, nullable=False),
    Column("record", LargeBinary, nullable=False),
)
_live_index("node_name", node, "parent_id", "name_space", "name")

owner = Table(
    "owner",
    metadata,
    Column("object_id", Id, primary_key=True, autoincrement=False),
    Column("principal_id", Id, nullable=False),
)

principal = Table(
    "principal",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("name", Name, nullable=False),
    Column("external_id", Name),
    Column("enabled", Boolean, nullable=False),
    *_audit(),
    Column("deleted", Id, nullable=False),
    Column("tokens_from", Id, nullable=False, server_default="0"),
    Column("signed_in", BigInteger),
)
Index(
    "principal_former",
    principal.c.metalake_id,
    principal.c.kind,
    principal.c.name,
    sqlite_where=text(GONE),
    postgresql_where=text(GONE),
)
_live_index("principal_name", principal, "metalake_id", "kind", "name")
_live_index("principal_external_id", principal, "metalake_id", "kind", "external_id")

role = Table(
    "role",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    *_audit(),
    Column("deleted", Id, nullable=False),
    Column("record", LargeBinary, nullable=False),
)
_live_index("role_name", role, "metalake_id", "name")

grant = Table(
    "access_grant",  # `grant` is a reserved word
    metadata,
    Column("role_id", Id, nullable=False),
    Column("object_id", Id, nullable=False),
    Column("privilege", SmallInteger, nullable=False),
    Column("object_kind", SmallInteger, nullable=False),
    Column("allowed", Boolean, nullable=False),
    PrimaryKeyConstraint("role_id", "object_id", "privilege"),
    sqlite_with_rowid=False,
)
Index("access_grant_object", grant.c.object_id)

role_member = Table(
    "role_member",
    metadata,
    Column("principal_id", Id, nullable=False),
    Column("role_id", Id, nullable=False),
    PrimaryKeyConstraint("principal_id", "role_id"),
    sqlite_with_rowid=False,
)
Index("role_member_role", role_member.c.role_id)

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
"""Tags and policies on columns: a table, and the id that its format gives the column."""
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
"""What a tag says of an object (field 0) or of a column, beside the row that attaches it."""
Index("tag_value_value", tag_value.c.tag_id, tag_value.c.value)

group_member = Table(
    "group_member",
    metadata,
    Column("user_id", Id, nullable=False),
    Column("group_id", Id, nullable=False),
    Column("issued", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("user_id", "group_id"),
    sqlite_with_rowid=False,
)
Index("group_member_group", group_member.c.group_id)

token = Table(
    "token",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("user_name", Name, nullable=False),
    Column("name", Text, nullable=False),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("created_at", Id, nullable=False),
    Column("expires_at", Id),
    Column("revoked", Boolean, nullable=False),
    Column("trust", Text, nullable=False, server_default="believed"),
    Column("root_id", Id),
    Column("purpose", Text, nullable=False, server_default="api"),
)
Index("token_user", token.c.user_name)

password = Table(
    "password",
    metadata,
    Column("user_name", Name, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("trust", Text, nullable=False),
    Column("root_id", Id, nullable=False),
    Column("changed_at", Id, nullable=False),
)

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

restriction = Table(
    "restriction",
    metadata,
    Column("object_id", Id, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    Column("zone", Id, nullable=False),
    Column("terms", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", Id, nullable=False),
)
Index("restriction_zone", restriction.c.zone)

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

audit = Table(
    "audit",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("at", Id, nullable=False),
    Column("user_name", Name, nullable=False),
    Column("user_id", Id),
    Column("outcome", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("object_id", Id, nullable=False),
    Column("path", Name, nullable=False),
    Column("new_path", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("request_id", Name, nullable=False),
    Column("client", Text, nullable=False),
    Column("peer", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("zone", Id),
    Column("revision", Id),
    Column("ordinal", Integer),
)
Index("audit_metalake", audit.c.metalake_id, audit.c.id)
Index("audit_at", audit.c.at)
Index("audit_user", audit.c.user_name, audit.c.id)
Index("audit_object", audit.c.object_id, audit.c.id)
Index("audit_path", audit.c.path, audit.c.id)
Index("audit_request", audit.c.request_id)

audit_note = Table(
    "audit_note", metadata, Column("id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False), Column("actor", Text, nullable=False), Column("request_id", Text, nullable=False),
    Column("at", Id, nullable=False), Column("payload", Text, nullable=False),
)  # fmt: skip
audit_position = Table(
    "audit_position", metadata, Column("zone", Id, primary_key=True, autoincrement=False), Column("revision", Id, nullable=False)
)  # fmt: skip

pipeline_version = Table(
    "pipeline_version",
    metadata,
    Column("pipeline_id", Id, nullable=False),
    Column("version", Id, nullable=False),
    Column("digest", Text, nullable=False),
    Column("declaration", Text, nullable=False),
    Column("declared_by", Text, nullable=False),
    Column("declared_at", Id, nullable=False),
    PrimaryKeyConstraint("pipeline_id", "version"),
)

pipeline_run = Table(
    "pipeline_run",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("pipeline_id", Id, nullable=False),
    Column("version", Id, nullable=False),
    Column("uuid", Name, nullable=False),
    Column("user_name", Name, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("beat_at", Id, nullable=False),
    Column("lease_ms", Id, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("progress", Text),
    Column("message", Text),
    Column("catalog_id", Id),
    Column("revision", Id),
    Column("started_at", Id, nullable=False),
    Column("resumed_at", Id),
    Column("ended_at", Id),
    Column("phases", Text),
)
Index("pipeline_run_uuid", pipeline_run.c.metalake_id, pipeline_run.c.uuid, unique=True)
Index("pipeline_run_metalake", pipeline_run.c.metalake_id, pipeline_run.c.id)
Index("pipeline_run_pipeline", pipeline_run.c.pipeline_id, pipeline_run.c.id)
Index("pipeline_run_ended", pipeline_run.c.ended_at)

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

template_job = Table(
    "template_job",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("template_id", Id, nullable=False),
    Column("uuid", Name, nullable=False),
    Column("user_name", Name, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("state", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("beat_at", Id, nullable=False),
    Column("lease_ms", Id, nullable=False),
    Column("conf", Text, nullable=False),
    Column("work", Text, nullable=False),
    Column("message", Text),
    Column("exit_code", Integer),
    Column("stdout", Text, nullable=False),
    Column("stderr", Text, nullable=False),
    Column("stdout_bytes", Id, nullable=False),
    Column("stderr_bytes", Id, nullable=False),
    Column("queued_at", Id, nullable=False),
    Column("started_at", Id),
    Column("ended_at", Id),
)
Index("template_job_uuid", template_job.c.metalake_id, template_job.c.uuid, unique=True)
Index("template_job_metalake", template_job.c.metalake_id, template_job.c.id)
Index("template_job_template", template_job.c.template_id, template_job.c.id)
Index("template_job_state", template_job.c.state, template_job.c.id)

run_step = Table(
    "run_step",
    metadata,
    Column("run_id", Id, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("name", Name, nullable=False),
    Column("reads", Text, nullable=False),
    Column("output", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("row_count", Id),
    Column("byte_count", Id),
    Column("started_at", Id),
    Column("ended_at", Id),
    Column("message", Text),
    Column("outputs", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("phases", Text),
    PrimaryKeyConstraint("run_id", "name"),
)

run_finding = Table(
    "run_finding",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("run_id", Id, nullable=False),
    Column("pipeline_id", Id, nullable=False),
    Column("step", Name, nullable=False),
    Column("rule", Name, nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Id, nullable=False),
)
Index("run_finding_run", run_finding.c.run_id, run_finding.c.step)
Index("run_finding_pipeline", run_finding.c.pipeline_id, run_finding.c.id)

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

idempotency = Table(
    "idempotency",
    metadata,
    Column("zone", Id, nullable=False),
    Column("caller", Name, nullable=False),
    Column("key", Name, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("object_id", Id),
    Column("body", LargeBinary),
    Column("expires_at", Id, nullable=False),
    PrimaryKeyConstraint("zone", "caller", "key"),
    sqlite_with_rowid=False,
)
Index("idempotency_expires", idempotency.c.expires_at)

webhook = Table(
    "webhook",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("user_name", Name, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("position", Text, nullable=False),
    Column("created_at", Id, nullable=False),
    Column("due_at", Id, nullable=False),
    Column("leased_until", Id, nullable=False),
    Column("holder", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("stopped", Boolean, nullable=False),
    Column("error", Text),
    Column("delivered_at", Id),
)

task = Table(
    "task",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("created_at", Id, nullable=False),
    Column("due_at", Id, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("leased_until", Id, nullable=False),
    Column("progress", Text),
    Column("error", Text),
    Column("ended_at", Id),
    Column("result", Text),
)
Index("task_due", task.c.due_at)

lineage_dataset = Table(
    "lineage_dataset",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
)
Index("lineage_dataset_digest", lineage_dataset.c.metalake_id, lineage_dataset.c.digest, unique=True)

lineage_edge = Table(
    "lineage_edge",
    metadata,
    Column("target_id", Id, nullable=False),
    Column("job_digest", LargeBinary, nullable=False),
    Column("source_id", Id, nullable=False),
    Column("job_namespace", Text, nullable=False),
    Column("job_name", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("at", Id, nullable=False),
    Column("said_by", Text, nullable=False),
    Column("said_at", Id, nullable=False),
    Column("kinds", Text, nullable=False),
    PrimaryKeyConstraint("target_id", "job_digest", "source_id"),
    sqlite_with_rowid=False,
)
Index("lineage_edge_source", lineage_edge.c.source_id)

lineage_column = Table(
    "lineage_column",
    metadata,
    Column("target_id", Id, nullable=False),
    Column("job_digest", LargeBinary, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("source_id", Id, nullable=False),
    Column("target_field_id", Integer, nullable=False),
    Column("target_field", Text, nullable=False),
    Column("source_field_id", Integer, nullable=False),
    Column("source_field", Text, nullable=False),
    Column("subtype", Text, nullable=False),
    Column("direct", Boolean, nullable=False),
    PrimaryKeyConstraint("target_id", "job_digest", "ordinal"),
    sqlite_with_rowid=False,
)
Index("lineage_column_source", lineage_column.c.source_id)

sqlpp_lock = Table(
    "sqlpp_lock",
    metadata,
    Column("catalog_id", Id, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("dataverse", Name, nullable=False),
    Column("entity", Name, nullable=False),
    Column("token", Id, nullable=False),
    Column("mode", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    PrimaryKeyConstraint("catalog_id", "kind", "dataverse", "entity", "token"),
    sqlite_with_rowid=False,
)
Index("sqlpp_lock_token", sqlpp_lock.c.token)

sqlpp_lock_node = Table(
    "sqlpp_lock_node",
    metadata,
    Column("holder", Text, primary_key=True),
    Column("leased_until", Id, nullable=False),
)

sqlpp_request = Table(
    "sqlpp_request",
    metadata,
    Column("handle", Text, primary_key=True),
    Column("user_name", Text, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("client_context_id", Text, nullable=False),
    Column("statement", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("started_at", Id, nullable=False),
    Column("holder", Text, nullable=False),
    Column("alive_until", Id, nullable=False),
    Column("state", Text, nullable=False),
    Column("expires_at", Id, nullable=False),
    Column("rows_count", Id, nullable=False),
    Column("size", Id, nullable=False),
    Column("outcome", LargeBinary, nullable=False),
    Column("cancelled", Integer, nullable=False),
)
Index("sqlpp_request_user", sqlpp_request.c.user_name)
Index("sqlpp_request_holder", sqlpp_request.c.holder)

sqlpp_result = Table(
    "sqlpp_result",
    metadata,
    Column("handle", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("handle", "number"),
)

scan_plan = Table(
    "scan_plan",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_name", Text, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("table_id", Id, nullable=False),
    Column("scan", LargeBinary, nullable=False),
    Column("parts", Text, nullable=False),
    Column("cancelled", Integer, nullable=False),
    Column("expires_at", Id, nullable=False),
)
Index("scan_plan_user", scan_plan.c.user_name)
Index("scan_plan_expires", scan_plan.c.expires_at)

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
    *_audit(),
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
    *_audit(),
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
    *_audit(),
    PrimaryKeyConstraint("object_id", "field_id", "name"),
    sqlite_with_rowid=False,
)

name_migration = Table(
    "name_migration",
    metadata,
    Column("catalog_id", Id, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("separator", Text, nullable=False),
    Column("replacement", Text, nullable=False),
    Column("nests", Boolean, nullable=False),
    Column("goes_on", Boolean, nullable=False),
    Column("planned_to", Id, nullable=False),
    Column("planned_by", Text, nullable=False),
    Column("planned_at", Id, nullable=False),
)

name_change = Table(
    "name_change",
    metadata,
    Column("catalog_id", Id, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("parent_id", Id, nullable=False),
    Column("old_name", Name, nullable=False),
    Column("new_name", Name, nullable=False),
    Column("path", Text),
    Column("into_id", Id),
    Column("step", SmallInteger, nullable=False),
    PrimaryKeyConstraint("catalog_id", "node_id"),
    sqlite_with_rowid=False,
)
Index("name_change_step", name_change.c.catalog_id, name_change.c.step, name_change.c.node_id)

metalake_import = Table(
    "metalake_import",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("name", Name, nullable=False),
    Column("form", Text, nullable=False),
    Column("keeps", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("record_count", Id, nullable=False),
    Column("source", Text, nullable=False),
    Column("metalake_id", Id, nullable=False),
    Column("owner_id", Id, nullable=False),
    Column("masked", Text, nullable=False),
    Column("begun_by", Text, nullable=False),
    Column("begun_at", Id, nullable=False),
    Column("fed_at", Id, nullable=False),
)

import_object = Table(
    "import_object",
    metadata,
    Column("import_id", Id, nullable=False),
    Column("old_id", Id, nullable=False),
    Column("new_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("catalog_id", Id, nullable=False),
    Column("depth", SmallInteger, nullable=False),
    Column("provider", Text, nullable=False),
    Column("nests", Boolean, nullable=False),
    PrimaryKeyConstraint("import_id", "old_id"),
    sqlite_with_rowid=False,
)
