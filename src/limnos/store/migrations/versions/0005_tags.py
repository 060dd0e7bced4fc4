# SPDX-License-Identifier: Apache-2.0
"""Attachments of tags. Tags themselves are nodes, which exist already.

Revision ID: 0005
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table. A store created by this release has it already. The previous release ignores it."""
    create_tables("tag_object")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("tag_object")
