# SPDX-License-Identifier: Apache-2.0
"""Addresses that the Java processes of the engine and of the executor of maintenance can connect to.

Each role runs in a process of its own, as the server starts it, but with its Java in reach of the test.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from limnos.confinement.landlock import version
from limnos.confinement.network import SINCE
from limnos.spark.network import _socket_directory, limit_java_network, port_of

RUN = """
import json, sys
from concurrent.futures import Future
role, uri, scratch, *ports = sys.argv[1:]
if role == "engine":
    from limnos.rooms.sqlpp.engine import process
    from limnos.rooms.sqlpp.engine.wire import EngineStart
    task = Future()
    start = EngineStart(
        uri=uri, metalake="lake", master="local[2]", memory="512m", slots=2, statements_max=2, scratch=scratch,
        readable=(), writable=(), closed=(),
    )
    process._begin(start, task)
    spark = task.result()._spark
else:
    from limnos.rooms.maintenance.engine import child
    runner = child.runner_of(child.ChildStart(uri=uri, metalake="lake", token="t", master="local[2]", scratch=scratch))
    runner._started()
    spark = runner._spark
machine = spark._jvm

def connect(host, port):
    try:
        machine.java.net.Socket(host, int(port)).close()
        return "connected"
    except Exception as error:
        return "refused" if "Permission denied" in str(error) else str(error)

def listen(port):
    try:
        machine.java.net.ServerSocket(port).close()
        return "listens"
    except Exception as error:
        return "refused" if "Permission denied" in str(error) else str(error)

def fetch(port):
    try:
        machine.java.net.URL(f"http://127.0.0.1:{port}/latest/meta-data/").openConnection().connect()
        return "connected"
    except Exception as error:
        return "refused" if "Permission denied" in str(error) else str(error)

outcomes = {
    "server": connect("127.0.0.1", ports[0]),
    "other": connect("127.0.0.1", ports[1]),
    "other by name": connect("localhost", ports[1]),
    "other by URL": fetch(ports[1]),
    "fixed port": listen(int(ports[2])),
    "any port": listen(0),
    "rows": len(spark.range(50000).selectExpr("id", "repeat('x', 100) as text").toArrow()),
    "large result": sum(len(each) for each in spark.sparkContext.parallelize([1], 1).map(lambda _: "y" * (3 << 20)).collect()),
}
print(json.dumps(outcomes))
"""


@pytest.mark.spark
@pytest.mark.heavy
@pytest.mark.parametrize("role", ["engine", "executor"])
def test_java_connects_to_server_and_no_other_address(role: str, tmp_path: Path) -> None:
    """Java connects to the server's port. Every other port is refused, by address, by name and by URL. Spark's own
    connections, those of Python workers and of large results among them, work.
    """
    with ServerSockets() as (server, other):
        with socket.create_server(("127.0.0.1", 0)) as free:
            fixed = free.getsockname()[1]
        arguments = [role, f"http://127.0.0.1:{server}", str(tmp_path), str(server), str(other), str(fixed)]
        done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    is_limited = version() >= SINCE
    assert outcomes == {
        "server": "connected",
        **dict.fromkeys(("other", "other by name", "other by URL"), "refused" if is_limited else "connected"),
        "fixed port": "refused" if is_limited else "listens",
        "any port": "listens",
        "rows": 50000,
        "large result": 3 << 20,
    }


class ServerSockets:
    """Two listening sockets; the context's value is their ports."""

    def __init__(self) -> None:
        self._sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]

    def __enter__(self) -> tuple[int, int]:
        first, second = (each.getsockname()[1] for each in self._sockets)
        return first, second

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            each.close()


def test_socket_directory_has_a_short_path(tmp_path: Path) -> None:
    """A parent whose path is too long for a socket, or that is missing, is left out; without another there is none."""
    long = tmp_path / ("x" * 100)
    long.mkdir()

    directory = _socket_directory((str(long), "/no/such", "/tmp"))
    assert directory is not None
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{directory}/.{uuid4()}.sock")
    shutil.rmtree(directory)
    assert Path(directory).parent == Path("/tmp")
    assert _socket_directory((str(long),)) is None


def test_network_of_other_masters_is_not_limited(caplog: pytest.LogCaptureFixture) -> None:
    """Spark on other machines needs its network: nothing is limited, and the log says so."""
    assert limit_java_network("http://127.0.0.1:1", master="spark://h:7077") == {}
    assert "needs its network" in caplog.text


@pytest.mark.parametrize("uri,port", [("http://h:8090", 8090), ("https://h", 443), ("http://[::1]/x", 80)])
def test_port_of_a_url_is_stated_or_default(uri: str, port: int) -> None:
    """The port of a server's URL is the stated one, or that of its scheme."""
    assert port_of(uri) == port
