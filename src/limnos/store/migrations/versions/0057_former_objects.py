# SPDX-License-Identifier: Apache-2.0
"""Former objects of paths, from which successors of the same owner take over grants, tags and lineage.

Revision ID: 0057
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    """Create the table. A store created by this release has it already."""
    create_tables("former_object")


def downgrade() -> None:
    """Drop the table: objects then take over nothing from former ones."""
    drop_tables("former_object")
