"""Running imports, and the mapping from the file's ids to new ids.

Revision ID: 0028
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import import_object, metalake_import

revision = "0028"
down_revision = "0024"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release uses neither."""
    inspector = sa.inspect(op.get_bind())
    for table in (metalake_import, import_object):
        if not inspector.has_table(table.name):
            table.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in (import_object, metalake_import):
        table.drop(op.get_bind())
