# SPDX-License-Identifier: Apache-2.0
"""Findings, checkpoints and operations of table maintenance.

Revision ID: 0041
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0041"
down_revision = "0040"
_TABLES = ("maintenance_finding", "maintenance_checkpoint", "maintenance_operation")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release does not use them."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*_TABLES)
