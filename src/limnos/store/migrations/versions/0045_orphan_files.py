# SPDX-License-Identifier: Apache-2.0
"""Orphan files of tables.

Revision ID: 0045
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0045"
down_revision = "0044"
_TABLES = ("maintenance_orphan_file", "maintenance_orphan_check")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release does not use them."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables."""
    drop_tables(*_TABLES)
