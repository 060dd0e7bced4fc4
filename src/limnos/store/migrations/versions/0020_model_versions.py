"""Versions of models and their aliases.

Revision ID: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import model_alias, model_version

revision = "0020"
down_revision = "0016"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release has no models."""
    for table in (model_version, model_alias):
        if not sa.inspect(op.get_bind()).has_table(table.name):
            table.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in (model_alias, model_version):
        table.drop(op.get_bind())
