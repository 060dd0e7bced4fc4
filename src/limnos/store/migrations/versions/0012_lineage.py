# SPDX-License-Identifier: Apache-2.0
"""Lineage: external datasets, edges, columns.

Revision ID: 0012
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0012"
down_revision = "0011"
TABLES = ("lineage_dataset", "lineage_edge", "lineage_column")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release stores no lineage."""
    create_tables(*TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*TABLES)
