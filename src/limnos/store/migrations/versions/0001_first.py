# SPDX-License-Identifier: Apache-2.0
"""Creates the initial schema.

Revision ID: 0001
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import metadata

revision = "0001"
down_revision = None
FIRST_ID = 1000


def upgrade() -> None:
    """Create every table, the store's row and the server's clock."""
    connection = op.get_bind()
    metadata.create_all(connection)
    if connection.dialect.name == "postgresql":
        op.execute(f"CREATE SEQUENCE limnos_id START {FIRST_ID} CACHE 1")
    epoch = secrets.randbelow(2**52)
    op.execute(sa.text(f"INSERT INTO store (one, epoch, format_version, next_id) VALUES (1, {epoch}, 1, {FIRST_ID})"))
    op.execute(sa.text("INSERT INTO clock (zone, revision, access_revision, pruned_to) VALUES (0, 0, 0, 0)"))


def downgrade() -> None:
    """Drop all tables."""
    metadata.drop_all(op.get_bind())
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP SEQUENCE limnos_id")
