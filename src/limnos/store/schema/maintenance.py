# SPDX-License-Identifier: Apache-2.0
"""Database tables of table maintenance: findings, checkpoints of incremental readers, operations, and orphan files.

Must not know statements.
"""

from __future__ import annotations

from sqlalchemy import Index

from limnos.store.schema.base import table

maintenance_finding = table(
    "maintenance_finding",
    "node_id bigint*, kind text*, catalog_id bigint, score bigint, reason text, figures text, version bigint, "
    "found_at bigint",
    sqlite_with_rowid=False,
)
Index("maintenance_finding_catalog", maintenance_finding.c.catalog_id, maintenance_finding.c.node_id)

maintenance_checkpoint = table(
    "maintenance_checkpoint", "reader_id bigint*, source name*, snapshot_id bigint, at bigint", sqlite_with_rowid=False
)
"""The last snapshot of a source that an incremental reader has read; the source is the path below its metalake."""
Index("maintenance_checkpoint_source", maintenance_checkpoint.c.source)

maintenance_operation = table(
    "maintenance_operation",
    "id bigint*, catalog_id bigint, node_id bigint, kind text, state text, user_name text, policy text?, "
    "result text?, started_at bigint, ended_at bigint?, bytes bigint?, leased_at bigint?",
)
"""`bytes` estimates the bytes that an operation rewrites; `leased_at` is the time of its last lease."""
Index("maintenance_operation_leased", maintenance_operation.c.leased_at)
Index("maintenance_operation_catalog", maintenance_operation.c.catalog_id, maintenance_operation.c.id)
Index("maintenance_operation_node", maintenance_operation.c.node_id, maintenance_operation.c.id)

maintenance_orphan_file = table(
    "maintenance_orphan_file",
    "node_id bigint*, name name*, size bigint, modified_ms bigint, first_seen_at bigint, seen_at bigint, "
    "waited_ms bigint, state smallint, reason text",
    sqlite_with_rowid=False,
)
"""Files below a table's location, by name relative to it, that its metadata does not name."""
Index("maintenance_orphan_file_state", maintenance_orphan_file.c.state, maintenance_orphan_file.c.node_id)

maintenance_orphan_check = table(
    "maintenance_orphan_check",
    "node_id bigint*, catalog_id bigint, epoch bigint, checked_at bigint, listed bigint, referenced bigint, "
    "candidates bigint, candidate_bytes bigint, blocked text?, policy text?",
)
"""The last check of each table for orphan files."""

maintenance_rewrite = table(
    "maintenance_rewrite",
    "operation_id bigint*, metalake_id bigint, priority bigint, asked_at bigint, due_at bigint, attempts bigint, "
    "options text",
)
"""An operation that rewrites files and waits for an executor, or is leased by one. The row is deleted when it ends."""
Index("maintenance_rewrite_metalake", maintenance_rewrite.c.metalake_id, maintenance_rewrite.c.due_at)

maintenance_lease = table(
    "maintenance_lease",
    "node_id bigint*, operation_id bigint, token_id bigint, holder text, expires_at bigint, commits bigint",
)
"""The one operation that may currently change a table's files or snapshots; the table is the key."""
