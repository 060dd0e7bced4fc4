"""Tables of long work: pipelines and runs, jobs, tasks, lineage, SQL++ statements, scan plans, migrations and imports.

May import only SQLAlchemy and this room. Knows no statement.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, SmallInteger, Table, Text

from limnos.store.schema.base import Id, Name, metadata

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

restricted_read = Table(
    "restricted_read",
    metadata,
    Column("directory", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("table_id", Id, nullable=False),
    Column("binding", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("plans", Integer, nullable=False),
    Column("bytes", Id, nullable=False),
    Column("expires_at", Id, nullable=False),
    PrimaryKeyConstraint("directory", "user_name", "user_id"),
)
Index("restricted_read_table", restricted_read.c.table_id)
Index("restricted_read_user", restricted_read.c.user_name)
Index("restricted_read_expires", restricted_read.c.expires_at)

snapshot_pin = Table(
    "snapshot_pin",
    metadata,
    Column("run_id", Id, nullable=False),
    Column("name", Text, nullable=False),
    Column("table_id", Id, nullable=False),
    Column("snapshots", Text, nullable=False),
    Column("expires_at", Id, nullable=False),
    PrimaryKeyConstraint("run_id", "name", "table_id"),
)
Index("snapshot_pin_table", snapshot_pin.c.table_id)
Index("snapshot_pin_expires", snapshot_pin.c.expires_at)

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

search_text = Table(
    "search_text",
    metadata,
    Column("object_id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False),
    Column("name", Text, nullable=False),
    Column("columns", Text, nullable=False),
    Column("comment", Text, nullable=False),
)
"""The words of objects, for searches. SQLite has a full-text table over it, PostgreSQL two columns of its own."""
Index("search_text_zone", search_text.c.zone)

search_position = Table(
    "search_position",
    metadata,
    Column("zone", Id, primary_key=True, autoincrement=False),
    Column("epoch", Id, nullable=False),
    Column("revision", Id, nullable=False),
    Column("scan_after", Id),
)
"""Up to which change of a zone its words are stored. `scan_after` is the last object read while all are read anew."""

search_lease = Table(
    "search_lease",
    metadata,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("leased_until", Id, nullable=False),
)
