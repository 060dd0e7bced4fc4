# SPDX-License-Identifier: Apache-2.0
"""An index of audit records in the order of their times.

Revision ID: 0065
"""

from __future__ import annotations

from alembic import op

from limnos.store.schema import metadata

revision = "0065"
down_revision = "0064"


def upgrade() -> None:
    """Create the index. A store created by this release has it."""
    (index,) = (each for each in metadata.tables["audit"].indexes if each.name == "audit_time")
    index.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Do nothing: the index serves an older release as well."""
