"""Pipelines' declarations, their runs, the runs' steps, and what rules found.

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
    """Make the tables; a store made by this release has them from the start. The release before knows no pipelines."""
    bind = op.get_bind()
    there = sa.inspect(bind)
    for table in _TABLES:
        if not there.has_table(table.name):
            table.create(bind)


def downgrade() -> None:
    """Take them away."""
    for table in _TABLES:
        table.drop(op.get_bind())
