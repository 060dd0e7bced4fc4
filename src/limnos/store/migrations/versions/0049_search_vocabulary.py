# SPDX-License-Identifier: Apache-2.0
"""The words that searches may suggest for misspelled ones.

Revision ID: 0049
"""

from __future__ import annotations

from alembic import op

from limnos.store.migrations.steps import create_tables, drop_tables

revision = "0049"
down_revision = "0048"
TABLE = "search_word"
FROM_SQLITE = (
    "INSERT INTO search_word (word) SELECT term FROM temp.search_terms WHERE length(term) BETWEEN 4 AND 32"
    " ON CONFLICT DO NOTHING"
)
FROM_POSTGRESQL = (
    "INSERT INTO search_word (word) SELECT DISTINCT word FROM search_text, unnest(tsvector_to_array(all_vector)) word"
    " WHERE length(word) BETWEEN 4 AND 32 ON CONFLICT DO NOTHING"
)
ON_SQLITE = (
    "CREATE VIRTUAL TABLE temp.search_terms USING fts5vocab(main, search_words, row)",
    FROM_SQLITE,
    "DROP TABLE temp.search_terms",
)
ON_POSTGRESQL = (FROM_POSTGRESQL,)


def upgrade() -> None:
    """Create the table, and insert the words of the search index."""
    create_tables(TABLE)
    for statement in ON_SQLITE if op.get_bind().dialect.name == "sqlite" else ON_POSTGRESQL:
        op.execute(statement)
    op.execute("DELETE FROM search_position")  # index all objects again, because names of containers are now marked


def downgrade() -> None:
    """Drop the table of suggested words."""
    drop_tables(TABLE)
