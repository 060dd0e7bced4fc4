"""Tables of table maintenance: what tables need, what incremental readers have read, operations, and orphan files.

May import only SQLAlchemy and this room. Knows no statement.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, SmallInteger, Table, Text

from limnos.store.schema.base import Id, Name, metadata

maintenance_finding = Table(
    "maintenance_finding",
    metadata,
    Column("node_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("catalog_id", Id, nullable=False),
    Column("score", Id, nullable=False),
    Column("reason", Text, nullable=False),
    Column("figures", Text, nullable=False),
    Column("version", Id, nullable=False),
    Column("found_at", Id, nullable=False),
    PrimaryKeyConstraint("node_id", "kind"),
    sqlite_with_rowid=False,
)
Index("maintenance_finding_catalog", maintenance_finding.c.catalog_id, maintenance_finding.c.node_id)

maintenance_checkpoint = Table(
    "maintenance_checkpoint",
    metadata,
    Column("reader_id", Id, nullable=False),
    Column("source", Name, nullable=False),
    Column("snapshot_id", Id, nullable=False),
    Column("at", Id, nullable=False),
    PrimaryKeyConstraint("reader_id", "source"),
    sqlite_with_rowid=False,
)
"""The snapshot of a source, by the path below its metalake, that an incremental reader has read last."""
Index("maintenance_checkpoint_source", maintenance_checkpoint.c.source)

maintenance_operation = Table(
    "maintenance_operation",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("catalog_id", Id, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("policy", Text),
    Column("result", Text),
    Column("started_at", Id, nullable=False),
    Column("ended_at", Id),
)
Index("maintenance_operation_catalog", maintenance_operation.c.catalog_id, maintenance_operation.c.id)
Index("maintenance_operation_node", maintenance_operation.c.node_id, maintenance_operation.c.id)

maintenance_orphan_file = Table(
    "maintenance_orphan_file",
    metadata,
    Column("node_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    Column("size", Id, nullable=False),
    Column("modified_ms", Id, nullable=False),
    Column("first_seen_at", Id, nullable=False),
    Column("seen_at", Id, nullable=False),
    Column("waited_ms", Id, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("node_id", "name"),
    sqlite_with_rowid=False,
)
"""Files below a table's location, by name relative to it, that its metadata does not name."""
Index("maintenance_orphan_file_state", maintenance_orphan_file.c.state, maintenance_orphan_file.c.node_id)

maintenance_orphan_check = Table(
    "maintenance_orphan_check",
    metadata,
    Column("node_id", Id, primary_key=True, autoincrement=False),
    Column("catalog_id", Id, nullable=False),
    Column("epoch", Id, nullable=False),
    Column("checked_at", Id, nullable=False),
    Column("listed", Id, nullable=False),
    Column("referenced", Id, nullable=False),
    Column("candidates", Id, nullable=False),
    Column("candidate_bytes", Id, nullable=False),
    Column("blocked", Text),
    Column("policy", Text),
)
"""The last check of each table for orphan files."""

maintenance_rewrite = Table(
    "maintenance_rewrite",
    metadata,
    Column("operation_id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("priority", Id, nullable=False),
    Column("asked_at", Id, nullable=False),
    Column("due_at", Id, nullable=False),
    Column("attempts", Id, nullable=False),
    Column("options", Text, nullable=False),
)
"""An operation that rewrites files and waits for an executor, or is leased by one. The row goes when it ends."""
Index("maintenance_rewrite_metalake", maintenance_rewrite.c.metalake_id, maintenance_rewrite.c.due_at)

maintenance_lease = Table(
    "maintenance_lease",
    metadata,
    Column("node_id", Id, primary_key=True, autoincrement=False),
    Column("operation_id", Id, nullable=False),
    Column("token_id", Id, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", Id, nullable=False),
    Column("commits", Id, nullable=False),
)
"""The one operation that may change a table's files or snapshots now. The key makes it the only one."""
