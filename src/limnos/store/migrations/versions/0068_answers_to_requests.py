# SPDX-License-Identifier: Apache-2.0
"""Reasons of requests for access, and answers to them.

Revision ID: 0068
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of, create_tables, drop_tables

revision = "0068"
down_revision = "0067"


def upgrade() -> None:
    """Add the column, empty, and create the table. Requests stay open. A store created by this release has both."""
    if "reason" not in columns_of("access_request"):
        op.add_column("access_request", sa.Column("reason", sa.Text, nullable=False, server_default=""))
    create_tables("access_answer")


def downgrade() -> None:
    """Drop both: requests stay open, and answers are lost. An older release takes no answer for an open request."""
    drop_tables("access_answer")
    op.drop_column("access_request", "reason")
