# SPDX-License-Identifier: Apache-2.0
"""Versions of models and their aliases.

Revision ID: 0020
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0020"
down_revision = "0016"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release has no versions of
    models.
    """
    create_tables("model_version", "model_alias")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("model_alias", "model_version")
