"""An index of owned objects by their owners.

Revision ID: 0040
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import owner, owner_principal

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Make the index; a store made by this release has it from the start. The release before does not ask by it."""
    bind = op.get_bind()
    if owner_principal.name not in {each["name"] for each in sa.inspect(bind).get_indexes(owner.name)}:
        owner_principal.create(bind)


def downgrade() -> None:
    """Take it away."""
    owner_principal.drop(op.get_bind())
