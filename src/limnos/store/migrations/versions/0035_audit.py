"""The audit: records, notes that become records, and positions in the change feed.

Revision ID: 0035
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import audit, audit_note, audit_position

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Create the tables. The previous release writes none of them; its changes are in the feed, without rights."""
    bind = op.get_bind()
    for table in (audit, audit_note, audit_position):
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    bind = op.get_bind()
    for table in (audit, audit_note, audit_position):
        table.drop(bind)
