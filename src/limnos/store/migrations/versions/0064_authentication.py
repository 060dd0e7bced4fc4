# SPDX-License-Identifier: Apache-2.0
"""The mode of authentication of a store without the setting: stores of earlier releases keep `simple`.

Revision ID: 0064
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    """Add the column. A store with a change was served by an earlier release, whose default was `simple`."""
    if "authentication" not in columns_of("store"):
        op.add_column("store", sa.Column("authentication", sa.Text, nullable=True))
    op.execute("UPDATE store SET authentication = 'simple' WHERE EXISTS (SELECT 1 FROM clock WHERE revision > 0)")


def downgrade() -> None:
    """Drop the column: the default of an older release is `simple` for each store."""
    op.drop_column("store", "authentication")
