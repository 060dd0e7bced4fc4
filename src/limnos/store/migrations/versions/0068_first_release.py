# SPDX-License-Identifier: Apache-2.0
"""Creates the schema of release 0.1.0.

The number continues that of the versions before the release: stores of the last one have this schema.

Revision ID: 0068
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

from limnos.store.schema import metadata

revision = "0068"
down_revision = None
FIRST_ID = 1000
_FULL_TEXT = (
    "CREATE VIRTUAL TABLE search_words USING fts5(name, columns, comment, content='search_text',"
    " content_rowid='object_id', prefix='2 3', columnsize=0, detail=column,"
    ' tokenize="unicode61 remove_diacritics 0")'
)
_ON_POSTGRESQL = (
    "ALTER TABLE search_text ADD COLUMN name_vector tsvector NOT NULL DEFAULT ''",
    "ALTER TABLE search_text ADD COLUMN all_vector tsvector NOT NULL DEFAULT ''",
    "CREATE INDEX search_text_name ON search_text USING gin (name_vector)",
    "CREATE INDEX search_text_all ON search_text USING gin (all_vector)",
    f"CREATE SEQUENCE limnos_id START {FIRST_ID} CACHE 1",
)


def upgrade() -> None:
    """Create every table, the full-text index, the store's row and the server's clock."""
    connection = op.get_bind()
    metadata.create_all(connection)
    for statement in (_FULL_TEXT,) if connection.dialect.name == "sqlite" else _ON_POSTGRESQL:
        op.execute(statement)
    epoch = secrets.randbelow(2**52)
    op.execute(sa.text(f"INSERT INTO store (one, epoch, format_version, next_id) VALUES (1, {epoch}, 1, {FIRST_ID})"))
    op.execute(sa.text("INSERT INTO clock (zone, revision, access_revision, pruned_to) VALUES (0, 0, 0, 0)"))


def downgrade() -> None:
    """Drop all tables."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        op.execute("DROP TABLE search_words")
    metadata.drop_all(connection)
    if connection.dialect.name == "postgresql":
        op.execute("DROP SEQUENCE limnos_id")
