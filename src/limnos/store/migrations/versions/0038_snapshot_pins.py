# SPDX-License-Identifier: Apache-2.0
"""Pins: snapshots that pipeline runs and scan plans are reading.

Revision ID: 0038
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release pins nothing."""
    create_tables("snapshot_pin")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("snapshot_pin")
