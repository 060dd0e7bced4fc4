# SPDX-License-Identifier: Apache-2.0
"""A Hive metastore for tests: the real one, from PySpark's archives, with an in-memory database.

Clients reach it through a bridge, so that it can be silenced or cut. It starts once per test process; each test uses
its own schema names.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from limnos.spark.jars import cache_directory
from limnos.spark.java import find_java
from tests.bridges import Bridge, free_ports

STARTS_S = 240
_MEMORY = Path("/dev/shm")
LOCK_TABLES = """
CREATE TABLE TXNS (TXN_ID bigint PRIMARY KEY, TXN_STATE char(1) NOT NULL, TXN_STARTED bigint NOT NULL,
    TXN_LAST_HEARTBEAT bigint NOT NULL, TXN_USER varchar(128) NOT NULL, TXN_HOST varchar(128) NOT NULL,
    TXN_AGENT_INFO varchar(128), TXN_META_INFO varchar(128), TXN_HEARTBEAT_COUNT integer);
CREATE TABLE TXN_COMPONENTS (TC_TXNID bigint, TC_DATABASE varchar(128) NOT NULL, TC_TABLE varchar(128),
    TC_PARTITION varchar(767), TC_OPERATION_TYPE char(1) NOT NULL);
CREATE TABLE HIVE_LOCKS (HL_LOCK_EXT_ID bigint NOT NULL, HL_LOCK_INT_ID bigint NOT NULL, HL_TXNID bigint,
    HL_DB varchar(128) NOT NULL, HL_TABLE varchar(128), HL_PARTITION varchar(767), HL_LOCK_STATE char(1) NOT NULL,
    HL_LOCK_TYPE char(1) NOT NULL, HL_LAST_HEARTBEAT bigint NOT NULL, HL_ACQUIRED_AT bigint,
    HL_USER varchar(128) NOT NULL, HL_HOST varchar(128) NOT NULL, HL_HEARTBEAT_COUNT integer,
    HL_AGENT_INFO varchar(128), HL_BLOCKEDBY_EXT_ID bigint, HL_BLOCKEDBY_INT_ID bigint,
    PRIMARY KEY (HL_LOCK_EXT_ID, HL_LOCK_INT_ID));
CREATE TABLE NEXT_LOCK_ID (NL_NEXT bigint NOT NULL);
INSERT INTO NEXT_LOCK_ID VALUES (1);
CREATE TABLE NEXT_TXN_ID (NTXN_NEXT bigint NOT NULL);
INSERT INTO NEXT_TXN_ID VALUES (1);
CREATE TABLE AUX_TABLE (MT_KEY1 varchar(128) NOT NULL, MT_KEY2 bigint NOT NULL, MT_COMMENT varchar(255),
    PRIMARY KEY (MT_KEY1, MT_KEY2));
"""


class HiveServer:
    """A metastore. `bridge.port` is the port for the code under test, `port` its own."""

    def __init__(self, folder: Path, *, has_locks: bool = False) -> None:
        (self.port,) = free_ports(1)
        self.bridge = Bridge(self.port)
        self.warehouse = folder / "warehouse"
        package = find_spec("pyspark")
        assert package is not None
        assert package.origin is not None
        archives = os.pathsep.join((str(folder), str(Path(package.origin).parent / "jars" / "*")))
        java = str(find_java(cache=cache_directory()).home / "bin" / "java")
        database = f"{folder}/names" if has_locks else "memory:metastore"
        (folder / "hive-site.xml").write_text(_settings(self.warehouse, database))
        if has_locks:
            _create_lock_tables(java, archives, database=database, folder=folder)
        command = [
            java,
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Djava.io.tmpdir={folder}",
            f"-Dderby.stream.error.file={folder}/derby.log",
            "-cp",
            archives,
            "org.apache.hadoop.hive.metastore.HiveMetaStore",
            "-p",
            str(self.port),
        ]
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)

    def wait(self) -> None:
        """Wait until it answers."""
        ends = time.monotonic() + STARTS_S
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                with self.client() as client:
                    client.get_all_databases()
            except Exception:
                time.sleep(0.2)
            else:
                return
        raise AssertionError(f"the metastore does not start: {self._log.read_text()[-2000:]}")

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Return a client without the bridge."""
        socket = TSocket("127.0.0.1", self.port)
        socket.setTimeout(120_000)
        transport = TBufferedTransport(socket)
        transport.open()
        try:
            yield Client(TBinaryProtocolAccelerated(transport))
        finally:
            transport.close()

    def close(self) -> None:
        """Stop it."""
        self.bridge.close()
        self._process.kill()
        self._process.wait()


def _create_lock_tables(java: str, archives: str, *, database: str, folder: Path) -> None:
    """Create the tables of locks, which the metastore does not create itself. Commits of Iceberg take locks."""
    script = folder / "locks.sql"
    script.write_text(f"CONNECT 'jdbc:derby:{database};create=true';\n{LOCK_TABLES}EXIT;\n")
    home = f"-Dderby.stream.error.file={folder}/derby.log"
    done = subprocess.run(
        [java, home, "-cp", archives, "org.apache.derby.tools.ij", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=STARTS_S,
    )
    assert "ERROR" not in done.stdout + done.stderr, done.stdout + done.stderr


def _settings(warehouse: Path, database: str) -> str:
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{database};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "datanucleus.connectionPoolingType": "none",
        "hive.metastore.warehouse.dir": f"file://{warehouse}",
        "hive.async.log.enabled": "false",
        "hive.stats.autogather": "false",
    }
    properties = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    return f"<configuration>{''.join(properties)}</configuration>"


@contextmanager
def hive_server(*, has_locks: bool = False) -> Iterator[HiveServer]:
    """Run a metastore for the body of a `with`; with the tables of locks if commits are made there."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="limnos-hive-", dir=memory, ignore_cleanup_errors=True) as folder:
        server = HiveServer(Path(folder), has_locks=has_locks)
        try:
            server.wait()
            yield server
        finally:
            server.close()
