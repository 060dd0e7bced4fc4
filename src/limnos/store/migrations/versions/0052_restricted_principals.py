# SPDX-License-Identifier: Apache-2.0
"""Restrictions whose users, groups or roles were dropped apply to all users.

Revision ID: 0052
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
_ALL = sa.text("SELECT object_id, name, terms FROM restriction")
_LIVE = sa.text("SELECT id FROM principal WHERE deleted = 0 UNION SELECT id FROM role WHERE deleted = 0")
_PUT = sa.text("UPDATE restriction SET terms = :terms WHERE object_id = :id AND name = :name")


def upgrade() -> None:
    """Let each restriction that names a dropped principal apply to all users.

    The previous release dropped principals that restrictions name. Whom such a restriction applied to is unknown, and
    it applied to nobody after the drop.
    """
    bind = op.get_bind()
    live = {row[0] for row in bind.execute(_LIVE)}
    for object_id, name, text in bind.execute(_ALL).all():
        terms = msgspec.json.decode(text)
        if not live.issuperset(terms.get("to", ())):
            terms["to"] = []
            bind.execute(_PUT, {"terms": msgspec.json.encode(terms).decode(), "id": object_id, "name": name})


def downgrade() -> None:
    """No-op: the previous release reads these restrictions, too."""
