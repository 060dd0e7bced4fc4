# SPDX-License-Identifier: Apache-2.0
"""Restrictions of former objects of a path, and an index of denials.

Revision ID: 0056
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import create_tables, drop_tables
from limnos.store.schema.access import grant, grant_denied

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    """Create the table and the index. A store created by this release has them already."""
    create_tables("former_restriction")
    bind = op.get_bind()
    if grant_denied.name not in {each["name"] for each in sa.inspect(bind).get_indexes(grant.name)}:
        grant_denied.create(bind)


def downgrade() -> None:
    """Drop the table and the index: new objects then take over nothing from former ones of their path."""
    grant_denied.drop(op.get_bind())
    drop_tables("former_restriction")
