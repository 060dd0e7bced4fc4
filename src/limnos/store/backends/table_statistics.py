# SPDX-License-Identifier: Apache-2.0
"""Statistics of tables on PostgreSQL, by which its planner estimates how many rows a condition selects.

Without statistics the planner takes `deleted = 0` for a condition that few rows meet, and reads a whole index for each
object. The database collects statistics itself, but a minute or more after many rows were written, and not at all after
a backup was loaded into it with `autovacuum` off.
"""

from __future__ import annotations

from typing import Final

from limnos.store.sql import Query, Sql

GROWTH: Final = 4
"""The factor by which a table has grown since its last statistics when they are collected again."""
OUTGROWN = Sql(
    "SELECT c.relname::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
    " AND pg_has_role(c.relowner, 'USAGE') AND pg_relation_size(c.oid) >= current_setting('block_size')::bigint *"
    f" greatest(1, c.relpages * {GROWTH}) UNION ALL SELECT c.relname::text FROM pg_class c WHERE c.relkind = 'r' AND"
    " c.relnamespace = current_schema()::regnamespace AND pg_has_role(c.relowner, 'USAGE') AND c.reltuples > 0 AND NOT"
    " EXISTS (SELECT 1 FROM pg_stats s WHERE s.schemaname = current_schema() AND s.tablename = c.relname)"
)
"""The query for tables that have outgrown their statistics, and for tables of a loaded backup, which have none."""


def outgrown_tables_query() -> Query:
    """Return the query for the names of tables that need new statistics."""
    return OUTGROWN, {}


def statistics_query(name: str) -> Query:
    """Return the statement that collects a table's statistics, unless another node does so at the moment."""
    return Sql(f'ANALYZE (SKIP_LOCKED) "{name}"'), {}
