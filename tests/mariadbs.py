# SPDX-License-Identifier: Apache-2.0
"""A MariaDB server for tests: the real one, from an archive pinned in `mariadb.lock`.

Clients reach it through a bridge, so that it can be silenced or cut. It starts once per test process; each test uses
its own database names.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql

from conformance.kit.jars import class_path
from limnos.spark.jars import cache_directory
from tests.bridges import Bridge, free_ports

LOCK = Path(__file__).with_name("mariadb.lock")
USER, PASSWORD = "limnos", "maria-s3cret"
STARTS_S = 120
_MEMORY = Path("/dev/shm")
_SCRIPTS = ("mariadb_system_tables.sql", "mariadb_performance_tables.sql", "mariadb_system_tables_data.sql")
_WANTED = ("/bin/mariadbd", "/share/english/", "/share/charsets/", *(f"/share/{name}" for name in _SCRIPTS))


class MariaServer:
    """A server. `bridge.port` is the port for the code under test, `port` its own."""

    def __init__(self, folder: Path, *, small: bool = False) -> None:
        (self.port,) = free_ports(1)
        self.bridge = Bridge(self.port)
        base = _unpacked(folder / "base")
        (folder / "data").mkdir()
        command = [
            str(base / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={base}",
            f"--datadir={folder / 'data'}",
            f"--lc-messages-dir={base / 'share'}",
            f"--tmpdir={folder}",
            f"--socket={folder / 's'}",
            "--innodb-log-file-size=8M",
            "--innodb-buffer-pool-size=32M",
            "--innodb-fast-shutdown=2",
            "--skip-name-resolve",
            f"--lower-case-table-names={int(small)}",
            *(["--user=root"] if os.geteuid() == 0 else []),
        ]
        self._log = folder / "log"
        with self._log.open("wb") as log:
            subprocess.run([*command, "--bootstrap"], input=_tables(base).encode(), check=True, stdout=log, stderr=log)
            here = ["--bind-address=127.0.0.1", f"--port={self.port}", "--innodb-flush-log-at-trx-commit=0"]
            self._process = subprocess.Popen([*command, *here], stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers."""
        ends = time.monotonic() + STARTS_S
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                self.sql("SELECT 1")
            except pymysql.Error:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"the server does not start: {self._log.read_text()[-2000:]}")

    def sql(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Run statements directly in the server. Returns the rows of the last one."""
        with (
            closing(
                pymysql.connect(host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, autocommit=True)
            ) as connection,
            connection.cursor() as cursor,
        ):
            for each in statements:
                cursor.execute(each)
            return tuple(cursor.fetchall())

    def close(self) -> None:
        """Stop it."""
        self.bridge.close()
        self._process.kill()
        self._process.wait()


def _unpacked(place: Path) -> Path:
    """Unpack the files that a server needs."""
    (archive,) = class_path(cache_directory(), LOCK)
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            path_part = next((each for each in _WANTED if each in name), None)
            if path_part is not None and not name.endswith("/"):
                target = place / name[name.index(path_part) + 1 :]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(files.read(name))
    (place / "bin" / "mariadbd").chmod(0o755)
    return place


def _tables(base: Path) -> str:
    scripts = "\n".join((base / "share" / name).read_text() for name in _SCRIPTS)
    user = (
        f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
    )
    return f"CREATE DATABASE mysql;\nUSE mysql;\n{scripts}\nFLUSH PRIVILEGES;\n{user}"


@contextmanager
def maria_server(*, small: bool = False) -> Iterator[MariaServer]:
    """Run a server for the body of a `with`. `small`: it stores names in lower case."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="limnos-maria-", dir=memory, ignore_cleanup_errors=True) as folder:
        server = MariaServer(Path(folder), small=small)
        try:
            server.wait()
            yield server
        finally:
            server.close()
