# SPDX-License-Identifier: Apache-2.0
"""Names of metalakes in settings.

Revision ID: 0055
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0055"
down_revision = "0054"
_TABLES = ("setting_name",)


def upgrade() -> None:
    """Create the table, empty: the server's start gives existing metalakes their current names."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Drop the table: the previous release compares settings with current names."""
    drop_tables(*_TABLES)
