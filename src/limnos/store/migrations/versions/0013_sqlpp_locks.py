# SPDX-License-Identifier: Apache-2.0
"""Locks of SQL++ statements, and leases of the nodes that hold them.

Revision ID: 0013
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0013"
down_revision = "0012"
TABLES = ("sqlpp_lock", "sqlpp_lock_node")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release runs no statements."""
    create_tables(*TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*TABLES)
