# SPDX-License-Identifier: Apache-2.0
"""Jobs that nodes run from templates.

Revision ID: 0027
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0027"
down_revision = "0031"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release does not use it."""
    create_tables("template_job")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("template_job")
