# SPDX-License-Identifier: Apache-2.0
"""Attachments and statistics of columns, and values of tags.

Revision ID: 0025
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0025"
down_revision = "0028"
_TABLES = ("column_attachment", "tag_value", "column_statistic")


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release uses none of them."""
    create_tables(*_TABLES)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables(*_TABLES)
