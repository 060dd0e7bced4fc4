"""Jobs of templates that nodes run by themselves.

Revision ID: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import template_job

revision = "0027"
down_revision = "0031"


def upgrade() -> None:
    """Make the table; a store made by this release has it from the start. The release before does not ask for it."""
    if not sa.inspect(op.get_bind()).has_table(template_job.name):
        template_job.create(op.get_bind())


def downgrade() -> None:
    """Take it away."""
    template_job.drop(op.get_bind())
