# SPDX-License-Identifier: Apache-2.0
"""Server-side scan plans that clients have not fetched completely.

Revision ID: 0033
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0033"
down_revision = "0035"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release plans no scans."""
    create_tables("scan_plan")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("scan_plan")
