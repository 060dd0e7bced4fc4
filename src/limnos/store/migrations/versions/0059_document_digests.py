# SPDX-License-Identifier: Apache-2.0
"""Digests of metadata documents.

Revision ID: 0059
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    """Add the column, without values: a document gets its digest when it is written next."""
    if "digest" not in columns_of("document"):
        op.add_column("document", sa.Column("digest", sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("document", "digest")
