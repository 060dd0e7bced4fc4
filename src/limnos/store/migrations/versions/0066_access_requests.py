# SPDX-License-Identifier: Apache-2.0
"""Open requests of users for access to objects.

Revision ID: 0066
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release has no requests."""
    create_tables("access_request")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("access_request")
