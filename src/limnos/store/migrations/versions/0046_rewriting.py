"""Operations that rewrite files of tables, their leases, and tokens that open one table.

Revision ID: 0046
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import maintenance_lease, maintenance_rewrite

revision = "0046"
down_revision = "0045"
_TABLES = (maintenance_rewrite, maintenance_lease)


def upgrade() -> None:
    """Create the tables and the column. A store created by this release has them already."""
    bind = op.get_bind()
    for table in _TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)
    if "table_id" not in {column["name"] for column in sa.inspect(bind).get_columns("token")}:
        op.add_column("token", sa.Column("table_id", sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop them, with the tokens: the previous release would take them for tokens that open everything."""
    op.execute("DELETE FROM token WHERE purpose = 'operation'")
    op.drop_column("token", "table_id")
    for table in _TABLES:
        table.drop(op.get_bind())
