# SPDX-License-Identifier: Apache-2.0
"""Declarations of pipelines, their runs and steps, and findings of expectations.

Revision ID: 0011
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0011"
down_revision = "0010"
_TABLES = ("pipeline_version", "pipeline_run", "run_step", "run_finding")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release has no pipelines."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*_TABLES)
