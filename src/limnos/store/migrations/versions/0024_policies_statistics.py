# SPDX-License-Identifier: Apache-2.0
"""Attachments of policies, and statistics of tables.

Revision ID: 0024
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release has neither."""
    create_tables("policy_object", "statistic")


def downgrade() -> None:
    """Reverse the upgrade: drop the tables statistic and policy_object."""
    drop_tables("statistic", "policy_object")
