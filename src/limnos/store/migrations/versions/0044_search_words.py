# SPDX-License-Identifier: Apache-2.0
"""The words of objects, for searches.

Revision ID: 0044
"""

from __future__ import annotations

from alembic import op

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0044"
down_revision = "0043"
TABLES = ("search_text", "search_position", "search_lease")
FULL_TEXT = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(name, columns, comment, content='search_text',"
    " content_rowid='object_id', prefix='2 3 4 5', detail=column, tokenize=\"unicode61 remove_diacritics 0\")"
)
ON_SQLITE = (FULL_TEXT,)
ON_POSTGRESQL = (
    "ALTER TABLE search_text ADD COLUMN IF NOT EXISTS name_vector tsvector NOT NULL DEFAULT ''",
    "ALTER TABLE search_text ADD COLUMN IF NOT EXISTS all_vector tsvector NOT NULL DEFAULT ''",
    "CREATE INDEX IF NOT EXISTS search_text_name ON search_text USING gin (name_vector)",
    "CREATE INDEX IF NOT EXISTS search_text_all ON search_text USING gin (all_vector)",
)


def upgrade() -> None:
    """Create the tables, empty: the server fills them from the objects. The previous release does not use them."""
    bind = op.get_bind()
    create_tables(*TABLES)
    for statement in ON_SQLITE if bind.dialect.name == "sqlite" else ON_POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    """Drop the tables of the search index."""
    bind = op.get_bind()
    if bind.dialect.name == "sqlite":
        op.execute("DROP TABLE search_words")
    drop_tables(*TABLES)
