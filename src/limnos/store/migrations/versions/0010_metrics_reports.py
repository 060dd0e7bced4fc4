"""Metrics reports of clients about scans and commits.

Revision ID: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import metrics_report

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release keeps no reports."""
    bind = op.get_bind()
    if not sa.inspect(bind).has_table(metrics_report.name):
        metrics_report.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    metrics_report.drop(op.get_bind())
