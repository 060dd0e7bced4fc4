# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of server nodes.

Revision ID: 0047
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0047"
down_revision = "0046"
_TABLES = ("node_seen",)


def upgrade() -> None:
    """Create the table, empty: nodes of this release write to it, those of the previous one do not."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Drop the table of heartbeats."""
    drop_tables(*_TABLES)
