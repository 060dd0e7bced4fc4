# SPDX-License-Identifier: Apache-2.0
"""Directories of files that were rewritten for restricted users.

Revision ID: 0037
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Create the table. A store created by this release has it already.

    The previous release names its directories after time periods, and does not change other directories.
    """
    create_tables("restricted_read")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("restricted_read")
