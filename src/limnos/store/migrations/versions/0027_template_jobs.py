"""Jobs that nodes run from templates.

Revision ID: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import template_job

revision = "0027"
down_revision = "0031"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release does not use it."""
    if not sa.inspect(op.get_bind()).has_table(template_job.name):
        template_job.create(op.get_bind())


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    template_job.drop(op.get_bind())
