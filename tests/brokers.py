# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker for tests: the real one, from archives pinned in `kafka.lock`, in one Java process.

It has three listeners: one through a bridge, so that it can be silenced or cut; a direct one for the test; and one with
users and passwords. It starts once per test process; each test uses its own topic names.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from conformance.kit.jars import class_path
from limnos.spark.jars import cache_directory
from limnos.spark.java import find_java
from tests.bridges import Bridge, free_ports

LOCK = Path(__file__).with_name("kafka.lock")
USER, PASSWORD = "limnos", "kafka-s3cret"
STARTS_S = 120
_MEMORY = Path("/dev/shm")
_ID = "MkU3OEVBNTcwNTJENDM2Qg"


class KafkaServer:
    """A broker. `bridge.port` is its advertised port, `port` the direct one, `login_port` the one for users."""

    def __init__(self, folder: Path) -> None:
        self.port, self.login_port, controller, inner = free_ports(4)
        self.bridge = Bridge(inner)
        settings = folder / "server.properties"
        settings.write_text(_settings(folder, (inner, self.bridge.port), self.port, self.login_port, controller))
        java = str(find_java(cache=cache_directory()).home / "bin" / "java")
        archives = os.pathsep.join(str(each) for each in class_path(cache_directory(), LOCK))
        command = [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", archives]
        subprocess.run(
            [*command, "kafka.tools.StorageTool", "format", "-t", _ID, "-c", str(settings)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(settings)], stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers."""
        ends = time.monotonic() + STARTS_S
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                self.client().list_topics(timeout=10)
            except Exception:
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"the broker does not start: {self._log.read_text()[-2000:]}")

    def client(self) -> AdminClient:
        """Return a client on the direct listener."""
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})

    def close(self) -> None:
        """Stop it."""
        self.bridge.close()
        self._process.kill()
        self._process.wait()


def _settings(folder: Path, bridged: tuple[int, int], port: int, login_port: int, controller: int) -> str:
    inner, outer = bridged
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": (
            f"BRIDGED://127.0.0.1:{inner},DIRECT://127.0.0.1:{port},LOGIN://127.0.0.1:{login_port},CONTROLLER://127.0.0.1:{controller}"
        ),
        "advertised.listeners": f"BRIDGED://127.0.0.1:{outer},DIRECT://127.0.0.1:{port},LOGIN://127.0.0.1:{login_port}",
        "listener.security.protocol.map": (
            "BRIDGED:PLAINTEXT,DIRECT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "DIRECT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "data",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "offsets.topic.replication.factor": 1,
        "log.index.size.max.bytes": 4096,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


@contextmanager
def kafka_server() -> Iterator[KafkaServer]:
    """Run a broker for the body of a `with`."""
    memory = (
        _MEMORY if os.access(_MEMORY, os.W_OK) else None
    )  # thousands of small files, none of which has to be durable
    with tempfile.TemporaryDirectory(prefix="limnos-kafka-", dir=memory, ignore_cleanup_errors=True) as folder:
        server = KafkaServer(Path(folder))
        try:
            server.wait()
            yield server
        finally:
            server.close()
