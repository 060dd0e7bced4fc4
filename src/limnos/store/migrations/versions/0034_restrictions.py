# SPDX-License-Identifier: Apache-2.0
"""Read restrictions.

Revision ID: 0034
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0034"
down_revision = "0032"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release has no restrictions."""
    create_tables("restriction")


def downgrade() -> None:
    """Drop the table of restrictions; no object is restricted afterwards."""
    drop_tables("restriction")
