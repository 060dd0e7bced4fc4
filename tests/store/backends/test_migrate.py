# SPDX-License-Identifier: Apache-2.0
"""Migrations: of several processes one migrates and all serve, newer stores are refused, and both databases get the
same schema.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, make_url

from limnos.store import schema
from limnos.store.backends import schema_revisions, upgrades
from limnos.store.backends.migrate import is_in_use, migrate
from limnos.store.backends.schema_revisions import WrongSchema, current_revision, head_revision
from tests.backends import FIRST_ID, Database, PostgresServer, StoreLab

pytestmark = pytest.mark.slow

_STARTS = """
import sys
from limnos.store.backends.migrate import migrate
sys.stdin.readline()
before, after = migrate(sys.argv[1])
print(before, after)
"""

NEXT = "9000"
_MIGRATION = """
from alembic import op
import sqlalchemy as sa
revision = "{next}"
down_revision = "{head}"
def upgrade():
    op.add_column("owner", sa.Column("added", sa.BigInteger, nullable=False, server_default="0"))
"""
FULL_TEXT_COLUMNS = {("search_text", "name_vector"), ("search_text", "all_vector")}
FULL_TEXT_INDEXES = {"search_text_name", "search_text_all"}
"""Objects of the full-text index on PostgreSQL, and the tables `search_words` on SQLite, which only SQL declares."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database."""
    if request.param == "sqlite":
        return Database("sqlite", str(tmp_path / "empty.db"))
    return Database("postgres", request.getfixturevalue("postgres_server").empty_database())


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A function after whose call this program is the next release, with one more migration."""
    folder = tmp_path / "versions"

    def release() -> None:
        folder.mkdir()
        (folder / f"{NEXT}_next.py").write_text(_MIGRATION.format(next=NEXT, head=head_revision()))
        monkeypatch.setattr(schema_revisions, "VERSION_FOLDERS", [*schema_revisions.VERSION_FOLDERS, folder])
        schema_revisions._revisions.cache_clear()

    yield release
    monkeypatch.undo()
    schema_revisions._revisions.cache_clear()


def test_first_migration_makes_a_store(empty: Database) -> None:
    """The migration of an empty database creates the newest schema. A second migration does nothing."""
    assert current_revision(empty.address) is None

    assert migrate(empty.address) == (None, head_revision())
    assert migrate(empty.address) == (head_revision(), head_revision())
    assert current_revision(empty.address) == head_revision()
    assert empty.sql("SELECT zone, revision, access_revision, pruned_to FROM clock") == [(0, 0, 0, 0)]
    assert empty.sql("SELECT one, format_version FROM store") == [(1, 1)]


def test_stores_have_epochs_of_their_own(empty: Database, tmp_path: Path) -> None:
    """Two new stores have different epochs, so that a view of one is never taken for a view of the other."""
    other = Database("sqlite", str(tmp_path / "other.db"))

    migrate(empty.address)
    migrate(other.address)

    assert empty.sql("SELECT epoch FROM store") != other.sql("SELECT epoch FROM store")


def test_concurrent_starts_migrate_an_empty_store_once(empty: Database) -> None:
    """Of processes that start concurrently on an empty store one migrates, the others find the schema, and all
    serve.
    """
    command = [sys.executable, "-c", _STARTS, empty.address]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    outputs = sorted(process.communicate(timeout=120)[0].split()[0] for process in started)

    assert [process.returncode for process in started] == [0, 0, 0]
    assert outputs == [head_revision(), head_revision(), "None"]
    lab = StoreLab(empty)
    assert lab.write(lambda tx: tx.next_id()) >= FIRST_ID
    lab.close()


@pytest.mark.integration
def test_user_without_rights_on_the_tables_gets_the_databases_reason(postgres_server: PostgresServer) -> None:
    """The error of a start names the table that the user may not read, not that the transaction is aborted."""
    address = postgres_server.empty_database()
    migrate(address)
    postgres_server.admin("DROP ROLE IF EXISTS limnos_stranger", "CREATE ROLE limnos_stranger LOGIN")
    stranger = make_url(address).set(username="limnos_stranger").render_as_string(hide_password=False)

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied for table"):
        migrate(stranger)


def test_store_in_use_is_noticed(empty: Database) -> None:
    """A store counts as in use while a server has it open, and no longer when it has stopped."""
    before = is_in_use(empty.address)
    migrate(empty.address)
    lab = StoreLab(empty)
    lab.write(lambda tx: tx.next_id())

    during = is_in_use(empty.address)
    lab.close()

    assert (before, during, is_in_use(empty.address)) == (False, True, False)


def test_older_store_is_brought_up_to_date(empty: Database, next_release: Callable[[], None]) -> None:
    """A store of an older release gets the current schema and keeps its content."""
    older = head_revision()
    migrate(empty.address)
    empty.sql("INSERT INTO owner (object_id, principal_id) VALUES (7, 8)")
    next_release()

    assert migrate(empty.address) == (older, NEXT)

    assert empty.sql("SELECT object_id, principal_id, added FROM owner") == [(7, 8, 0)]


@pytest.mark.integration
def test_long_read_does_not_make_requests_wait_behind_a_migration(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, next_release: Callable[[], None]
) -> None:
    """A transaction that reads for long delays the migration, but requests of running nodes go on meanwhile."""
    monkeypatch.setattr(upgrades, "LOCK_S", 1)
    database = Database("postgres", postgres_server.empty_database())
    migrate(database.address)
    older = head_revision()
    next_release()

    with psycopg.connect(database.address) as reader, ThreadPoolExecutor(1) as threads:
        reader.execute("SELECT * FROM owner")
        migration = threads.submit(migrate, database.address)
        for _ in range(3):
            time.sleep(0.7)
            with psycopg.connect(database.address) as request_connection:
                request_connection.execute("SET lock_timeout = '3s'")
                request_connection.execute("SELECT * FROM owner")
        assert not migration.done()
        reader.rollback()
        assert migration.result(60) == (older, NEXT)


def test_newer_store_is_refused(empty: Database) -> None:
    """A store of a newer release is refused, and the message names the release to start."""
    migrate(empty.address)
    empty.sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(WrongSchema, match="schema 9999, made by a newer release"):
        migrate(empty.address)

    assert current_revision(empty.address) == "9999"


def test_store_from_before_the_first_release_is_refused(empty: Database) -> None:
    """A store of a version before the first release is refused, and the message says how to keep its metalakes."""
    migrate(empty.address)
    empty.sql("UPDATE alembic_version SET version_num = '0067'")

    with pytest.raises(
        WrongSchema, match=r"schema 0067, made by a version before release 0\.1\.0.*export each metalake"
    ):
        migrate(empty.address)

    assert current_revision(empty.address) == "0067"


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "what?.db", "num#ber.db", "ünïcode.db", "a:b.db"])
def test_store_path_may_contain_any_characters(tmp_path: Path, name: str) -> None:
    """The path of an SQLite store may contain any characters."""
    path = tmp_path / name

    migrate(str(path))

    assert path.exists()
    assert current_revision(str(path)) == head_revision()


def test_both_backends_get_the_schema_of_the_code(empty: Database) -> None:
    """Tables, columns, keys, nullability and indexes of a migrated database are those that the code declares, on both
    databases.
    """
    migrate(empty.address)
    url = (
        URL.create("sqlite", database=empty.address)
        if empty.kind == "sqlite"
        else make_url(empty.address).set(drivername="postgresql+psycopg")
    )
    engine = create_engine(url)
    inspector = inspect(engine)

    for table in schema.metadata.tables.values():
        columns = {
            column["name"]: column["nullable"]
            for column in inspector.get_columns(table.name)
            if (table.name, column["name"]) not in FULL_TEXT_COLUMNS
        }
        assert columns == {column.name: bool(column.nullable) for column in table.columns}, table.name
        keys = inspector.get_pk_constraint(table.name)["constrained_columns"]
        assert keys == [column.name for column in table.primary_key.columns], table.name
        indexes = {
            (index["name"], tuple(index["column_names"]), bool(index["unique"]))
            for index in inspector.get_indexes(table.name)
            if index["name"] not in FULL_TEXT_INDEXES
        }
        assert indexes == {
            (index.name, tuple(column.name for column in index.columns), bool(index.unique)) for index in table.indexes
        }, table.name
    tables = {name for name in inspector.get_table_names() if not name.startswith("search_words")}
    assert tables == {*schema.metadata.tables, "alembic_version"}
    engine.dispose()


def test_names_are_compared_by_bytes(empty: Database) -> None:
    """Columns that contain names sort by code point, whatever the database's locale is."""
    migrate(empty.address)
    for name in ("b", "A", "é", "\ufffd", "\U0001f600"):
        empty.sql(
            "INSERT INTO token (id, user_name, name, secret_hash, created_at, revoked) VALUES (?, ?, 'n', ?, 0, ?)",
            len(name.encode()) * 1000 + ord(name[0]),
            name,
            b"",
            False,
        )

    sorted_names = [row[0] for row in empty.sql("SELECT user_name FROM token ORDER BY user_name")]

    assert sorted_names == ["A", "b", "é", "\ufffd", "\U0001f600"]


def revision_of(database: Database, revision: str) -> None:
    """Downgrade a store to an older schema."""
    engine = upgrades._engine(database.address)
    config = upgrades._config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def test_downgrade_of_the_first_migration_leaves_nothing(empty: Database) -> None:
    """The downgrade of the first migration drops all that it created; a later start creates it again."""
    migrate(empty.address)

    revision_of(empty, "base")

    assert current_revision(empty.address) is None
    assert migrate(empty.address) == (None, head_revision())
