# SPDX-License-Identifier: Apache-2.0
"""The audit: records, notes that become records, and positions in the change feed.

Revision ID: 0035
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Create the tables.

    The previous release writes none of them; its changes are in the feed without access decisions.
    """
    create_tables("audit", "audit_note", "audit_position")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("audit", "audit_note", "audit_position")
