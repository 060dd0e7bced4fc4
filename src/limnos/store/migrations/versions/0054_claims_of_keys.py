# SPDX-License-Identifier: Apache-2.0
"""Columns for claims that last as long as credentials, and for locations that had files before they were claimed.

Revision ID: 0054
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from limnos.store.migrations.steps import columns_of

revision = "0054"
down_revision = "0053"
_TABLE, _INDEX = "place", "place_keys_until"
_COLUMNS = {"keys_until": sa.BigInteger, "had_files": sa.Boolean}


def upgrade() -> None:
    """Add the columns, empty: existing locations are claimed without end, and their objects keep their credentials.

    A store created by this release has them already.
    """
    present = columns_of(_TABLE)
    for name, kind in _COLUMNS.items():
        if name not in present:
            op.add_column(_TABLE, sa.Column(name, kind, nullable=True))
    if _INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(_TABLE)}:
        condition = sa.text("keys_until IS NOT NULL")
        op.create_index(_INDEX, _TABLE, ["keys_until"], sqlite_where=condition, postgresql_where=condition)


def downgrade() -> None:
    """Drop the columns. Claims of staged creates stay until the next release ends them."""
    op.drop_index(_INDEX, _TABLE)
    for name in _COLUMNS:
        op.drop_column(_TABLE, name)
