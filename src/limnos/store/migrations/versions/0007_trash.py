# SPDX-License-Identifier: Apache-2.0
"""The trash: dropped objects that can be restored.

Revision ID: 0007
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release ignores it: its drops are final, and it sweeps the grants on objects in the trash.
    """
    create_tables("trash")


def downgrade() -> None:
    """Drop the table; its objects can no longer be restored."""
    drop_tables("trash")
