# SPDX-License-Identifier: Apache-2.0
"""The database tables, defined in SQLAlchemy Core. Migrations create the tables; other modules write SQL as text.

Must not know statements. Names sort by code point on every backend (`COLLATE "C"` on PostgreSQL; SQLite's BINARY is the
same for UTF-8).
"""

from limnos.store.schema import access, maintenance, tree, work
from limnos.store.schema.base import metadata

__all__ = ["access", "maintenance", "metadata", "tree", "work"]
