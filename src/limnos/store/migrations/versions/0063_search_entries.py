# SPDX-License-Identifier: Apache-2.0
"""A smaller full-text table on SQLite, and the words of objects without their index by zone.

Revision ID: 0063
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"
_INDEX, _TABLE = "search_text_zone", "search_text"
_FULL_TEXT = (
    "CREATE VIRTUAL TABLE search_words USING fts5(name, columns, comment, content='search_text',"
    " content_rowid='object_id', {options}, detail=column, tokenize=\"unicode61 remove_diacritics 0\")"
)
_NEW, _OLD = "prefix='2 3', columnsize=0", "prefix='2 3 4 5'"


def upgrade() -> None:
    """Create the full-text table anew, empty, and delete the stored words: the server indexes all objects again."""
    if any(index["name"] == _INDEX for index in sa.inspect(op.get_bind()).get_indexes(_TABLE)):
        op.drop_index(_INDEX, _TABLE)
    _recreate(_NEW)


def downgrade() -> None:
    """Create the full-text table of the older release, empty, and the index: that release indexes all objects."""
    _recreate(_OLD)
    op.create_index(_INDEX, _TABLE, ["zone"])


def _recreate(options: str) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute("DROP TABLE search_words")
    op.execute("DELETE FROM search_text")
    op.execute("DELETE FROM search_position")
    op.execute(_FULL_TEXT.format(options=options))
