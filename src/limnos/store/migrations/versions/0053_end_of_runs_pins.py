# SPDX-License-Identifier: Apache-2.0
"""End times of the snapshots that pipeline runs pin.

Revision ID: 0053
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
WEEK_MS = 604_800_000
"""The default of the setting `iceberg.keep_pinned_s`."""


def upgrade() -> None:
    """Let the pins of present runs end in a week."""
    end = sa.text("UPDATE snapshot_pin SET expires_at = :end WHERE run_id <> 0 AND expires_at = 0")
    op.execute(end.bindparams(end=int(time.time() * 1000) + WEEK_MS))


def downgrade() -> None:
    """Remove the end times."""
    op.execute("UPDATE snapshot_pin SET expires_at = 0 WHERE run_id <> 0")
