# SPDX-License-Identifier: Apache-2.0
"""Database tables of long-running work: pipelines and runs, jobs, tasks, lineage, SQL++ statements, scan plans,
migrations and imports.

Must not know statements.
"""

from __future__ import annotations

from sqlalchemy import Index

from limnos.store.schema.base import table

pipeline_version = table(
    "pipeline_version",
    "pipeline_id bigint*, version bigint*, digest text, declaration text, declared_by text, declared_at bigint",
)

pipeline_run = table(
    "pipeline_run",
    "id bigint*, metalake_id bigint, pipeline_id bigint, version bigint, uuid name, user_name name, user_id bigint, "
    "state text, attempt integer, holder text, beat_at bigint, lease_ms bigint, parameters text, options text, "
    "progress text?, message text?, catalog_id bigint?, revision bigint?, started_at bigint, resumed_at bigint?, "
    "ended_at bigint?, phases text?, attempts text?",
)
Index("pipeline_run_uuid", pipeline_run.c.metalake_id, pipeline_run.c.uuid, unique=True)
Index("pipeline_run_metalake", pipeline_run.c.metalake_id, pipeline_run.c.id)
Index("pipeline_run_pipeline", pipeline_run.c.pipeline_id, pipeline_run.c.id)
Index("pipeline_run_ended", pipeline_run.c.ended_at)

template_job = table(
    "template_job",
    "id bigint*, metalake_id bigint, template_id bigint, uuid name, user_name name, user_id bigint, state text, "
    "holder text, beat_at bigint, lease_ms bigint, conf text, work text, message text?, exit_code integer?, "
    "stdout text, stderr text, stdout_bytes bigint, stderr_bytes bigint, queued_at bigint, started_at bigint?, "
    "ended_at bigint?",
)
Index("template_job_uuid", template_job.c.metalake_id, template_job.c.uuid, unique=True)
Index("template_job_metalake", template_job.c.metalake_id, template_job.c.id)
Index("template_job_template", template_job.c.template_id, template_job.c.id)
Index("template_job_state", template_job.c.state, template_job.c.id)

pipeline_schedule = table(
    "pipeline_schedule",
    "pipeline_id bigint*, metalake_id bigint, user_name name, user_id bigint, trust text, terms text, files binary, "
    "created_at bigint, due_at bigint, next_at bigint, paused boolean, reason text?, job_id bigint?, "
    "run_due_at bigint?, attempts integer",
)
Index("pipeline_schedule_metalake", pipeline_schedule.c.metalake_id, pipeline_schedule.c.pipeline_id)
Index("pipeline_schedule_due", pipeline_schedule.c.due_at)

run_step = table(
    "run_step",
    "run_id bigint*, ordinal integer, name name*, reads text, output text, state text, attempt integer, "
    "row_count bigint?, byte_count bigint?, started_at bigint?, ended_at bigint?, message text?, outputs text, "
    "inputs text, phases text?",
)

run_finding = table(
    "run_finding", "id bigint*, run_id bigint, pipeline_id bigint, step name, rule name, body text, at bigint"
)
Index("run_finding_run", run_finding.c.run_id, run_finding.c.step)
Index("run_finding_pipeline", run_finding.c.pipeline_id, run_finding.c.id)

idempotency = table(
    "idempotency",
    "zone bigint*, caller name*, key name*, fingerprint binary, operation text, status integer, object_id bigint?, "
    "body binary?, expires_at bigint",
    sqlite_with_rowid=False,
)
Index("idempotency_expires", idempotency.c.expires_at)

webhook = table(
    "webhook",
    "id bigint*, metalake_id bigint, user_name name, user_id bigint, url text, secret text, position text, "
    "created_at bigint, due_at bigint, leased_until bigint, holder text, attempts integer, stopped boolean, "
    "error text?, delivered_at bigint?, operations text?",
)
"""Webhooks. `operations` are the operations that one sends, separated by spaces; None for all changes."""

task = table(
    "task",
    "id bigint*, kind text, payload text, created_at bigint, due_at bigint, attempts integer, leased_until bigint, "
    "progress text?, error text?, ended_at bigint?, result text?, holder text?",
)
Index("task_due", task.c.due_at)

lineage_dataset = table("lineage_dataset", "id bigint*, metalake_id bigint, digest binary, namespace text, name text")
Index("lineage_dataset_digest", lineage_dataset.c.metalake_id, lineage_dataset.c.digest, unique=True)

lineage_edge = table(
    "lineage_edge",
    "target_id bigint*, job_digest binary*, source_id bigint*, job_namespace text, job_name text, run text, "
    "parent text, at bigint, said_by text, said_at bigint, kinds text",
    sqlite_with_rowid=False,
)
Index("lineage_edge_source", lineage_edge.c.source_id)

lineage_column = table(
    "lineage_column",
    "target_id bigint*, job_digest binary*, ordinal integer*, source_id bigint, target_field_id integer, "
    "target_field text, source_field_id integer, source_field text, subtype text, direct boolean",
    sqlite_with_rowid=False,
)
Index("lineage_column_source", lineage_column.c.source_id)

sqlpp_lock = table(
    "sqlpp_lock",
    "catalog_id bigint*, kind integer*, dataverse name*, entity name*, token bigint*, mode integer, wanted integer, "
    "holder text",
    sqlite_with_rowid=False,
)
Index("sqlpp_lock_token", sqlpp_lock.c.token)

sqlpp_lock_node = table("sqlpp_lock_node", "holder text*, leased_until bigint")

sqlpp_request = table(
    "sqlpp_request",
    "handle text*, user_name text, user_id bigint, request_id text, client_context_id text, statement text, "
    "mode text, started_at bigint, holder text, alive_until bigint, state text, expires_at bigint, rows_count bigint, "
    "size bigint, outcome binary, cancelled integer",
)
Index("sqlpp_request_user", sqlpp_request.c.user_name)
Index("sqlpp_request_holder", sqlpp_request.c.holder)

sqlpp_result = table("sqlpp_result", "handle text*, number integer*, body binary")

scan_plan = table(
    "scan_plan",
    "id text*, user_name text, user_id bigint, table_id bigint, scan binary, parts text, cancelled integer, "
    "expires_at bigint",
)
Index("scan_plan_user", scan_plan.c.user_name)
Index("scan_plan_expires", scan_plan.c.expires_at)

restricted_read = table(
    "restricted_read",
    "directory text*, user_name text*, user_id bigint*, table_id bigint, binding text, plan text, plans integer, "
    "bytes bigint, expires_at bigint",
)
Index("restricted_read_table", restricted_read.c.table_id)
Index("restricted_read_user", restricted_read.c.user_name)
Index("restricted_read_expires", restricted_read.c.expires_at)

snapshot_pin = table("snapshot_pin", "run_id bigint*, name text*, table_id bigint*, snapshots text, expires_at bigint")
Index("snapshot_pin_table", snapshot_pin.c.table_id)
Index("snapshot_pin_expires", snapshot_pin.c.expires_at)

name_migration = table(
    "name_migration",
    "catalog_id bigint*, state text, separator text, replacement text, nests boolean, goes_on boolean, "
    "planned_to bigint, planned_by text, planned_at bigint",
)

name_change = table(
    "name_change",
    "catalog_id bigint*, node_id bigint*, parent_id bigint, old_name name, new_name name, path text?, "
    "into_id bigint?, step smallint",
    sqlite_with_rowid=False,
)
Index("name_change_step", name_change.c.catalog_id, name_change.c.step, name_change.c.node_id)

metalake_import = table(
    "metalake_import",
    "id bigint*, name name, form text, keeps boolean, state text, record_count bigint, source text, "
    "metalake_id bigint, owner_id bigint, masked text, begun_by text, begun_at bigint, fed_at bigint",
)

import_object = table(
    "import_object",
    "import_id bigint*, old_id bigint*, new_id bigint, kind smallint, catalog_id bigint, depth smallint, "
    "provider text, nests boolean",
    sqlite_with_rowid=False,
)

search_text = table("search_text", "object_id bigint*, zone bigint, name text, columns text, comment text")
"""The words of objects, for searches. SQLite has an additional full-text table, PostgreSQL two additional columns."""

search_word = table("search_word", "word text*")
"""The distinct words of objects, for spelling help. Words that occur in no object anymore are deleted, except those
with letters other than Latin, Greek and Cyrillic.
"""

search_position = table(
    "search_position",
    "zone bigint*, epoch bigint, revision bigint, scan_after bigint?, scan_folded name?, scan_id bigint?",
)
"""The last change of a zone whose words are stored. While all objects are read again, `scan_after` is the id of the
last object read. Only nodes of an older release, beside this one during an upgrade, use `scan_folded` and `scan_id`.
"""

node_seen = table(
    "node_seen",
    "id text*, name text, version text, started_at bigint, seen_at bigint, clock_offset_ms bigint, failing text?",
)
"""Server nodes with their last heartbeat, by the store's clock. `failing` is a JSON list of failing loops."""

search_lease = table("search_lease", "one smallint*, holder text, leased_until bigint")
