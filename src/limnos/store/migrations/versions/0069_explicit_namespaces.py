# SPDX-License-Identifier: Apache-2.0
"""Namespaces with objects in them are explicit: SQL++ reads them as dataverses.

Revision ID: 0069
"""

from __future__ import annotations

from alembic import op

from limnos.model.kinds import Kind

revision = "0069"
down_revision = "0068"
_MARK = (
    f"UPDATE node SET implicit = false WHERE implicit AND deleted = 0 AND kind = {int(Kind.NAMESPACE)} AND EXISTS"
    f" (SELECT 1 FROM node c WHERE c.parent_id = node.id AND c.deleted = 0 AND c.kind <> {int(Kind.NAMESPACE)})"
)


def upgrade() -> None:
    """Remove the mark of an implicit parent where other protocols put objects in it."""
    op.execute(_MARK)


def downgrade() -> None:
    """No-op: an older release reads the marks of this one."""
