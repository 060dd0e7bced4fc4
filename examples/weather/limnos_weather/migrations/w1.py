# SPDX-License-Identifier: Apache-2.0
"""The table of reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "w1"
down_revision = None


def upgrade() -> None:
    """Create the table, with one report."""
    table = op.create_table("weather_report", sa.Column("place", sa.Text), sa.Column("text", sa.Text))
    op.bulk_insert(table, [{"place": "hills", "text": "rain"}])
