# SPDX-License-Identifier: Apache-2.0
"""Metrics reports of clients about scans and commits.

Revision ID: 0010
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release stores no reports."""
    create_tables("metrics_report")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("metrics_report")
