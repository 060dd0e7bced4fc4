# SPDX-License-Identifier: Apache-2.0
"""Protection of objects from drops.

Revision ID: 0009
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release protects nothing."""
    create_tables("protection")


def downgrade() -> None:
    """Drop the table of protection; no object is protected afterwards."""
    drop_tables("protection")
