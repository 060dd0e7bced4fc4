# SPDX-License-Identifier: Apache-2.0
"""Statistics of tables on PostgreSQL: they are collected when a table has grown, over the connections of the server."""

from __future__ import annotations

import asyncio

import pytest

from limnos.store.backends.postgres import PostgresStore
from limnos.store.backends.table_statistics import outgrown_tables_query, statistics_query
from tests.backends import PostgresServer

pytestmark = pytest.mark.integration


def test_statistics_are_collected_when_a_table_has_grown(postgres_server: PostgresServer) -> None:
    """A table with rows and without statistics is named, also one whose indexes were built after a backup was loaded;
    after its statistics were collected, it is named again only when it is four times as large.
    """
    database = postgres_server.fresh_database()
    database.sql("CREATE TABLE grown (id bigint) WITH (autovacuum_enabled = off)")
    database.sql("INSERT INTO grown SELECT i FROM generate_series(1, 3000) i")
    database.sql(
        "CREATE TABLE loaded WITH (autovacuum_enabled = off) AS SELECT i AS id FROM generate_series(1, 3000) i"
    )
    database.sql("CREATE INDEX loaded_id ON loaded (id)")

    async def story() -> list[set[str]]:
        store = PostgresStore(database.address)
        named = []
        try:
            for rows in (0, 3000, 30_000):
                database.sql(f"INSERT INTO grown SELECT i FROM generate_series(1, {rows}) i")
                names = {name for (name,) in await store.find_async(outgrown_tables_query())}
                for name in names:
                    await store.find_async(statistics_query(name))
                named.append(names & {"grown", "loaded"})
        finally:
            await store.close()
        return named

    try:
        named = asyncio.run(story())
    finally:
        database.sql("DROP TABLE grown")
        database.sql("DROP TABLE loaded")

    assert named == [{"grown", "loaded"}, set(), {"grown"}]
