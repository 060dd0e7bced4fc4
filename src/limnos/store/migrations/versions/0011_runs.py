"""Declarations of pipelines, their runs and steps, and findings of expectations.

Revision ID: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import pipeline_run, pipeline_version, run_finding, run_step

revision = "0011"
down_revision = "0010"
_TABLES = (pipeline_version, pipeline_run, run_step, run_finding)


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release knows no pipelines."""
    bind = op.get_bind()
    inspector = sa.inspect(bind)
    for table in _TABLES:
        if not inspector.has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    for table in _TABLES:
        table.drop(op.get_bind())
