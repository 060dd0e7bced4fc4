# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipelines.

Revision ID: 0067
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0067"
down_revision = "0066"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release has no schedules."""
    create_tables("pipeline_schedule")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("pipeline_schedule")
