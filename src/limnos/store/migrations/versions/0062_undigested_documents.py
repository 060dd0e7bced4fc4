# SPDX-License-Identifier: Apache-2.0
"""An index of the documents without a digest, which the server fills in.

Revision ID: 0062
"""

from __future__ import annotations

from alembic import op

from limnos.store.schema.tree import document_undigested

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    """Create the index. A store created by this release has it."""
    document_undigested.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Drop the index: an older release leaves documents without digests as they are."""
    op.drop_index("document_undigested", "document")
