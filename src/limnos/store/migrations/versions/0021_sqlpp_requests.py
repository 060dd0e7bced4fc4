# SPDX-License-Identifier: Apache-2.0
"""Long requests of the query service, and results that clients fetch later.

Revision ID: 0021
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0021"
down_revision = "0020"
TABLES = ("sqlpp_request", "sqlpp_result")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release stores no results."""
    create_tables(*TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*TABLES)
