"""Who did what: the lines of the audit, those that wait to become some, and how far the feed was read for it.

Revision ID: 0035
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import audit, audit_note, audit_position

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Make the tables. The release before writes none of them; what it changes is found in the feed, without the right."""
    bind = op.get_bind()
    for table in (audit, audit_note, audit_position):
        if not sa.inspect(bind).has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Take them away."""
    bind = op.get_bind()
    for table in (audit, audit_note, audit_position):
        table.drop(bind)
