# SPDX-License-Identifier: Apache-2.0
"""A run of a pipeline keeps a record of its earlier attempts.

Revision ID: 0071
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0071"
down_revision = "0070"


def upgrade() -> None:
    """Add the attempts before a resume; those of runs resumed before are not known. A new store has the column."""
    if "attempts" not in {each["name"] for each in sa.inspect(op.get_bind()).get_columns("pipeline_run")}:
        op.add_column("pipeline_run", sa.Column("attempts", sa.Text(), nullable=True))


def downgrade() -> None:
    """No-op: an older release does not read the column."""
