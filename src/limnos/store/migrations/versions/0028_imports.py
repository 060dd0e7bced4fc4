# SPDX-License-Identifier: Apache-2.0
"""Running imports, and the mapping from the file's ids to new ids.

Revision ID: 0028
"""

from __future__ import annotations

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0028"
down_revision = "0024"


def upgrade() -> None:
    """Create the tables. A store created by this release has them already. The previous release uses neither."""
    create_tables("metalake_import", "import_object")


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    drop_tables("import_object", "metalake_import")
