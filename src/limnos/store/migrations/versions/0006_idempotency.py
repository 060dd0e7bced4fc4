# SPDX-License-Identifier: Apache-2.0
"""Outcomes of requests with an idempotency key, by caller, with a fingerprint of the request and an expiry.

Revision ID: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of
from limnos.store.schema.base import Id
from limnos.store.schema.work import idempotency

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table. A table of the same name without the column `caller`, which no release used, is dropped."""
    bind = op.get_bind()
    inspector = sa.inspect(bind)
    if inspector.has_table(idempotency.name):
        if "caller" in columns_of(idempotency.name):
            return
        op.drop_table(idempotency.name)
    idempotency.create(bind)


def downgrade() -> None:
    """Replace the table by the empty one of the previous release."""
    op.drop_table(idempotency.name)
    op.create_table(
        idempotency.name,
        sa.Column("zone", Id, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("created_at", Id, nullable=False),
        sa.PrimaryKeyConstraint("zone", "key"),
    )
