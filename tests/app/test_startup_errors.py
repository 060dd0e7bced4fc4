# SPDX-License-Identifier: Apache-2.0
"""Startup errors: every failure prints three lines and no traceback."""

from __future__ import annotations

import errno
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from limnos.app.request_defaults import warehouse_of
from limnos.app.server import migrate
from limnos.app.server_checks import check
from limnos.app.startup_errors import explain_startup_errors, masked_address, startup_error_of
from limnos.config import Settings
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection
from limnos.config.storage import StorageSection
from limnos.model.errors import BadRequest, CannotStart
from tests.backends import PostgresServer
from tests.client.test_session import free_port

pytestmark = pytest.mark.slow

STORE = "postgresql://ana:hunter2@db.example.com:5432/lake"


def settings_of(data: Path, *, listen: str | None = None, database: str | None = None) -> Settings:
    """Return settings of a server that would start, apart from the test's changes."""
    return Settings(
        server=ServerSection(data=str(data), listen=listen or f"127.0.0.1:{free_port()}"),
        database=DatabaseSection.model_validate({"url": database}),
    )


@pytest.fixture
def used_address() -> Iterator[str]:
    """An address at which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def newer_store(data: Path) -> None:
    """Create a store, and mark it as one of a later release."""
    migrate(settings_of(data))
    with sqlite3.connect(data / "limnos.db") as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    file.close()


def run(*words: str, cwd: Path, level: str = "info") -> subprocess.CompletedProcess[str]:
    """Run a command in its own process."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LIMNOS")}
    environ["LIMNOS__LOG__LEVEL"] = level
    command = [sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environ, timeout=60)


@pytest.mark.parametrize("command", ["start", "migrate"])
def test_unreachable_database_prints_three_lines(command: str, tmp_path: Path) -> None:
    """If PostgreSQL is unreachable, the command prints what failed, the cause and the next step, and nothing else."""
    address = f"postgres://ana:hunter2@127.0.0.1:{free_port()}/lake"
    listen = ["--listen", f"127.0.0.1:{free_port()}"]

    done = run("server", command, "--data", "d", "--database", address, *listen, cwd=tmp_path)

    what, why, advice = done.stderr.splitlines()
    assert done.returncode == 1
    assert what.startswith("error: The store postgresql://127.0.0.1:")
    assert why.startswith("  why: no database answers there")
    assert advice.startswith("  next: start it")
    assert "hunter2" not in done.stderr


def test_data_directory_that_is_a_file_prints_three_lines(tmp_path: Path) -> None:
    """If the data directory is a file, the message says so with its path."""
    (tmp_path / "d").write_text("x")

    done = run("server", "start", "--data", "d", "--listen", f"127.0.0.1:{free_port()}", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: The data directory d cannot be used",
        "  why: a file has that name",
        "  next: name another directory with --data DIR",
    ]


@pytest.mark.parametrize(
    "wrong,why",
    [
        ("/", "it is the root of the file system"),
        ("file:", "it names no directory"),
        ("tables", "it is not a location"),
    ],
)
def test_invalid_warehouse_prints_three_lines(wrong: str, why: str, tmp_path: Path) -> None:
    """For an invalid warehouse the message has the value, its flag, the cause and the remedy, and nothing is
    created.
    """
    done = run(
        "server", "start", "--data", "d", "--listen", f"127.0.0.1:{free_port()}", "--warehouse", wrong, cwd=tmp_path
    )

    what, reason, advice = done.stderr.splitlines()
    assert done.returncode == 2
    assert what == f"error: setting 'storage.warehouse' (flag --warehouse): '{wrong}' cannot be the warehouse"
    assert reason.startswith(f"  why: {why}")
    assert reason.endswith("write for example /srv/tables, file:///srv/tables or s3://bucket/tables")
    assert advice.startswith("  next: ")
    assert not (tmp_path / "d").exists()


def test_address_in_use_prints_three_lines(tmp_path: Path, used_address: str) -> None:
    """An address in use is reported before anything is created."""
    done = run("server", "start", "--data", "d", "--listen", used_address, cwd=tmp_path)

    what, why, advice = done.stderr.splitlines()
    assert (done.returncode, what, why) == (
        1,
        f"error: Cannot listen on {used_address}",
        "  why: Address already in use",
    )
    assert "--listen" in advice
    assert not (tmp_path / "d").exists()


def test_trace_is_logged_at_debug(tmp_path: Path) -> None:
    """With log level debug the traceback is logged, and the three lines come last."""
    (tmp_path / "d").write_text("x")

    done = run("server", "start", "--data", "d", "--listen", f"127.0.0.1:{free_port()}", cwd=tmp_path, level="debug")

    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-3] == "error: The data directory d cannot be used"


def test_failure_after_the_start_keeps_its_message(tmp_path: Path) -> None:
    """A failure after the start, and an unexpected one, keep their own messages."""

    def serve() -> None:
        with explain_startup_errors(settings_of(tmp_path), "x") as start:
            start.is_over = True
            raise OSError(errno.ENOSPC, "disk")

    with pytest.raises(OSError, match="disk"):
        serve()
    with pytest.raises(KeyError), explain_startup_errors(settings_of(tmp_path), "x"):
        raise KeyError("x")
    with pytest.raises(BadRequest), explain_startup_errors(settings_of(tmp_path), "x"):
        raise BadRequest("x")


def test_check_reports_all_problems_together(tmp_path: Path, used_address: str) -> None:
    """The check reports an address in use, a directory that is a file, and an unreachable database together."""
    (tmp_path / "d").write_text("x")
    away = f"postgresql://127.0.0.1:{free_port()}/lake"

    problems = check(settings_of(tmp_path / "d", listen=used_address, database=away))

    assert [problem.message.split()[:3] for problem in problems] == [
        ["Cannot", "listen", "on"],
        ["The", "data", "directory"],
        ["The", "store", masked_address(away)],
    ]
    assert all(problem.why and problem.advice for problem in problems)


def test_check_reports_nothing_if_server_could_start(tmp_path: Path) -> None:
    """If the server could start, the check reports nothing, also when it is repeated, and leaves the address free."""
    settings = settings_of(tmp_path / "d")

    assert check(settings) == []
    migrate(settings)
    assert check(settings) == []


def test_store_of_a_newer_release_is_reported(tmp_path: Path) -> None:
    """A store with the schema of a later release is reported, and is neither opened nor changed."""
    newer_store(tmp_path)

    with pytest.raises(CannotStart, match="cannot be used by this release") as caught:
        migrate(settings_of(tmp_path))

    assert "9999" in caught.value.why
    assert "newer release" in caught.value.advice
    assert "9999" in check(settings_of(tmp_path))[0].why


@pytest.mark.integration
def test_missing_database_is_reported(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A missing PostgreSQL database is reported, with the advice to create it."""
    address = re.sub(r"/limnos_\d+", "/nosuch", postgres_server.empty_database())

    (problem,) = check(settings_of(tmp_path, database=address))

    assert "no database of that name" in problem.why
    assert "createdb" in problem.advice


def test_silent_database_is_reported_as_unreachable(tmp_path: Path) -> None:
    """A database that accepts the connection and never answers is reported as unreachable after a timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung_up = threading.Timer(90, silent.close)  # without its own timeout the check would only end by this one
        hung_up.start()
        address = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/lake"
        (problem,) = check(settings_of(tmp_path, database=address))
        in_time = hung_up.is_alive()
        hung_up.cancel()

    assert in_time
    assert "no database answers there" in problem.why


def sql(message: str) -> Exception:
    """Return the exception that SQLAlchemy raises for a driver's error."""
    return OperationalError("SELECT 1", {}, psycopg.OperationalError(message))


@pytest.mark.parametrize(
    "error,why,advice",
    [
        (
            sql('connection failed: FATAL:  password authentication failed for user "ana"'),
            "refused user or password",
            "PASSWORD",
        ),
        (sql('FATAL:  role "ana" does not exist'), "no such user", "createuser"),
        (sql("failed to resolve host 'nowhere'"), "cannot be resolved", "host"),
        (sql("connection timeout expired"), "no database answers", "start it"),
        (sql("cannot execute CREATE TABLE in a read-only transaction"), "read-only copy", "primary"),
        (sql("permission denied for table alembic_version"), "no rights on the store's tables", "SELECT, INSERT"),
        (sql("permission denied for schema public"), "may not create tables", "right to create"),
        (sql("something new\nLINE 1"), "something new", "server check"),
        (sqlite3.DatabaseError("file is not a database"), "not an SQLite database", "--data"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "cannot be written", "--data"),
        (sqlite3.OperationalError("unable to open database file"), "cannot be opened", "--data"),
        (sqlite3.OperationalError("database is locked"), "another program", "end that program"),
        (sqlite3.OperationalError("database or disk is full"), "disk is full", "make room"),
        (PermissionError(errno.EACCES, "Permission denied", "d"), "may not write", "--data"),
        (OSError(errno.EROFS, "Read-only file system", "d"), "read-only", "--data"),
        (OSError(errno.ENOSPC, "No space left on device", "d"), "disk is full", "make room"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "d"), "part of its path is a file", "--data"),
        (ConnectionRefusedError(111, "Connection refused"), "no database answers", "start it"),
    ],
)
def test_system_and_database_errors_have_cause_and_remedy(
    error: Exception, why: str, advice: str, tmp_path: Path
) -> None:
    """Errors of the operating system and of databases are reported with their meaning and the remedy, and without
    passwords.
    """
    startup_error = startup_error_of(error, settings_of(tmp_path), STORE)

    assert startup_error is not None
    assert why in startup_error.why
    assert advice in startup_error.advice
    assert "\n" not in startup_error.message + startup_error.why + startup_error.advice
    assert "hunter2" not in startup_error.message


@pytest.mark.parametrize(
    "warehouse,expected",
    [
        (None, "file://{data}/warehouse"),
        ("s3://lake/tables/", "s3://lake/tables"),
        ("/srv/tables", "file:///srv/tables"),
    ],
)
def test_default_catalogs_are_below_configured_warehouse(warehouse: str | None, expected: str, tmp_path: Path) -> None:
    """Catalogs without their own warehouse are below the warehouse of the settings, or else in the data directory."""
    settings = Settings(server=ServerSection(data=str(tmp_path)), storage=StorageSection(warehouse=warehouse))

    assert warehouse_of(settings) == expected.format(data=tmp_path)
