# SPDX-License-Identifier: Apache-2.0
"""The index of owners by principal.

Revision ID: 0040
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema.tree import owner, owner_principal

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Create the index. A store created by this release has it already. The previous release does not use it."""
    bind = op.get_bind()
    if owner_principal.name not in {each["name"] for each in sa.inspect(bind).get_indexes(owner.name)}:
        owner_principal.create(bind)


def downgrade() -> None:
    """Reverse the upgrade: drop its tables, columns and indexes."""
    owner_principal.drop(op.get_bind())
