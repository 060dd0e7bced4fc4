# SPDX-License-Identifier: Apache-2.0
"""Tables of name migrations, which rename namespaces so that they may nest, and the column of the checked separator.

Revision ID: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of, create_tables, drop_tables

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Create tables and column. A store created by this release has them already. The previous release uses neither."""
    create_tables("name_migration", "name_change")
    if "separator" not in columns_of("store"):
        op.add_column("store", sa.Column("separator", sa.Text))


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    op.drop_column("store", "separator")
    drop_tables("name_change", "name_migration")
