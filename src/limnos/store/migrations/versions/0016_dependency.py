# SPDX-License-Identifier: Apache-2.0
"""Dependencies between SQL++ objects.

Revision ID: 0016
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release has no SQL++ objects.
    """
    create_tables("dependency")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("dependency")
