# SPDX-License-Identifier: Apache-2.0
"""Managed versions of Lance tables.

Revision ID: 0014
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release stores no versions."""
    create_tables("lance_version")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("lance_version")
