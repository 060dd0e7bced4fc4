# SPDX-License-Identifier: Apache-2.0
"""Operations that rewrite files of tables, their leases, and tokens limited to one table.

Revision ID: 0046
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of, create_tables, drop_tables

revision = "0046"
down_revision = "0045"
_TABLES = ("maintenance_rewrite", "maintenance_lease")


def upgrade() -> None:
    """Create the tables and the column. A store created by this release has them already."""
    create_tables(*_TABLES)
    if "table_id" not in columns_of("token"):
        op.add_column("token", sa.Column("table_id", sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop the tables and the column, and delete the tokens limited to one table: the previous release would accept
    them for all tables.
    """
    op.execute("DELETE FROM token WHERE purpose = 'operation'")
    op.drop_column("token", "table_id")
    drop_tables(*_TABLES)
