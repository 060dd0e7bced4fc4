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


class HiveServer:
    """A metastore. `bridge.port` is the port for the code under test, `port` its own."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.bridge = Bridge(self.port)
        self.warehouse = folder / "warehouse"
        (folder / "hive-site.xml").write_text(_settings(self.warehouse))
        package = find_spec("pyspark")
        assert package is not None
        assert package.origin is not None
        archives = os.pathsep.join((str(folder), str(Path(package.origin).parent / "jars" / "*")))
        java = str(find_java(cache=cache_directory()).home / "bin" / "java")
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


def _settings(warehouse: Path) -> str:
    settings = {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
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
def hive_server() -> Iterator[HiveServer]:
    """Run a metastore for the body of a `with`."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="limnos-hive-", dir=memory, ignore_cleanup_errors=True) as folder:
        server = HiveServer(Path(folder))
        try:
            server.wait()
            yield server
        finally:
            server.close()
