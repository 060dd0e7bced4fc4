# SPDX-License-Identifier: Apache-2.0
"""The time that runs and steps spent in each phase.

Revision ID: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
TABLES = ("pipeline_run", "run_step")


def upgrade() -> None:
    """Add `phases` to `pipeline_run` and `run_step` if missing.

    A store created by this release has both columns already. The previous release leaves them empty.
    """
    inspector = sa.inspect(op.get_bind())
    for table in TABLES:
        if "phases" not in {column["name"] for column in inspector.get_columns(table)}:
            op.add_column(table, sa.Column("phases", sa.Text))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in TABLES:
        op.drop_column(table, "phases")
