# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of a node during its first start, while it creates the schema: the next start completes it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from limnos.store.backends.migrate import migrate
from tests.faults.rig import FULL
from tests.faults.store_integrity import complaints
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import OWN, PREFIX, Wire, namespace_body

DIES_MIGRATING = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from limnos.store.backends.migrate import migrate

left = int(sys.argv[2])

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *_):
    global left
    left -= statement.split()[0] in ("CREATE", "INSERT", "UPDATE", "ALTER", "DROP")
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

migrate(sys.argv[1])
"""
STATEMENTS = range(1, 100) if FULL else (6, 13, 29)
"""The numbers of the writing statements before which the migration is killed. The default has two indexes that make
names unique, and a first row.
"""
FIRST_MUTATIONS = ("metalake", "catalog", "token")
POINTS = ("locked", "written", "before-commit", "after-commit")
BOOT_MATRIX = [(mutation, point) for mutation in FIRST_MUTATIONS for point in POINTS]
BOOT_SAMPLE = (
    BOOT_MATRIX if FULL else [("metalake", "after-commit"), ("catalog", "before-commit"), ("token", "after-commit")]
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """An empty database: a URL, or None for the SQLite file in the node's own directory."""
    return request.getfixturevalue("cluster").database() if request.param == "postgresql" else None


def schema_of(database: str) -> set[tuple[object, ...]]:
    """Return the tables, columns and indexes of a store according to its system catalog."""
    if "://" not in database:
        with closing(sqlite3.connect(database)) as connection:
            return set(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall())
    with psycopg.connect(database) as connection:
        columns = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        schema_columns = connection.execute(f"{columns} WHERE table_schema = 'public'").fetchall()
        indexes = connection.execute(
            "SELECT tablename, indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'"
        )
        return set(schema_columns) | set(indexes.fetchall())


def test_killed_migration_is_completed_by_next_one(
    database: str | None, cluster: PostgresCluster, tmp_path: Path
) -> None:
    """If a migration is killed before any of its statements, the next one completes it, with the same tables and
    indexes.
    """
    sound = str(tmp_path / "sound.db") if database is None else cluster.database()
    migrate(sound)
    died = 0

    for number in STATEMENTS:
        store = str(tmp_path / f"{number}.db") if database is None else cluster.database()
        killed = subprocess.run([sys.executable, "-c", DIES_MIGRATING, store, str(number)], check=False)
        if killed.returncode == 0:
            break  # the migration has no more statements
        died += 1
        assert killed.returncode == -signal.SIGKILL
        migrate(store)
        assert schema_of(store) == schema_of(sound), f"killed before statement {number}"
        assert complaints(store) == []

    assert died >= 3


@pytest.mark.parametrize("mutation,point", BOOT_SAMPLE)
def test_killed_first_start_is_completed_by_next_start(
    database: str | None, tmp_path: Path, mutation: str, point: str
) -> None:
    """If a node is killed while it fills an empty store, the next start creates what is missing, once, and writes a
    valid token.
    """
    data = tmp_path / "data"
    fault = {"LIMNOS_FAULT": f"{point}:{FIRST_MUTATIONS.index(mutation) + 1}"}
    node = Process(data, log=tmp_path / "node.log", database=database, env=fault)
    node.spawn()
    node.wait_killed()

    node.env = {}
    node.start()

    wire = Wire(node.uri, token=node.token)
    statuses = [
        wire.ask("GET", f"{OWN}/whoami").status,
        wire.ask("POST", f"{PREFIX}/namespaces", namespace_body("a")).status,
        wire.ask("GET", "/iceberg/v1/config").status,
    ]
    wire.close()
    node.stop()
    assert statuses == [200, 200, 200]
    assert complaints(database or str(data / "limnos.db")) == []


def test_dropped_catalog_stays_dropped(tmp_path: Path) -> None:
    """A start creates what a killed first start did not, but no object that a user has dropped."""
    node = Process(tmp_path / "data", log=tmp_path / "node.log").start()
    wire = Wire(node.uri, token=node.token)
    wire.do("DELETE", "/api/metalakes/lake/catalogs/main?force=true")
    wire.close()
    node.stop()

    node.start()

    wire = Wire(node.uri, token=node.token)
    assert wire.ask("GET", "/api/metalakes/lake/catalogs/main").status == 404
    wire.close()
    node.stop()
