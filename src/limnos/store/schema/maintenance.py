"""Tables of table maintenance: what tables need, what incremental readers have read, and operations.

May import only SQLAlchemy and this room. Knows no statement.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, Text

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
