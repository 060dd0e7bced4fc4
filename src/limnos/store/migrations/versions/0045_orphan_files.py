"""Orphan files of tables.

Revision ID: 0045
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import maintenance_orphan_check, maintenance_orphan_file

revision = "0045"
down_revision = "0044"
_TABLES = (maintenance_orphan_file, maintenance_orphan_check)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release does not use them."""
    bind = op.get_bind()
    for table in _TABLES:
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables."""
    for table in _TABLES:
        table.drop(op.get_bind())
