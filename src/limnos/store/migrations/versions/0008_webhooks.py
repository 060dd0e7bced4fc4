# SPDX-License-Identifier: Apache-2.0
"""Webhooks. The unused outbox is dropped: rows of the change feed are sent (decision record).

Revision ID: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import create_tables, drop_tables
from limnos.store.schema.base import Id

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the table `webhook`, and drop `event_outbox`. The previous release uses neither."""
    bind = op.get_bind()
    create_tables("webhook")
    if sa.inspect(bind).has_table("event_outbox"):
        op.drop_table("event_outbox")


def downgrade() -> None:
    """Drop the table `webhook`, and create the empty table `event_outbox`."""
    drop_tables("webhook")
    op.create_table(
        "event_outbox",
        sa.Column("zone", Id, primary_key=True, autoincrement=False),
        sa.Column("revision", Id, primary_key=True, autoincrement=False),
        sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("event", sa.LargeBinary, nullable=False),
    )
