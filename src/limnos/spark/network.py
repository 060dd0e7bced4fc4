# SPDX-License-Identifier: Apache-2.0
"""The network of the Java process that PySpark starts: the server and Spark's own ports, nothing else.

Must not know statements and operations. Table metadata that users write names files, and Iceberg, Hadoop and Java open
addresses for them.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from limnos.confinement.landlock import version
from limnos.confinement.network import EPHEMERAL, SINCE, start_with_limited_network

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)
_HOST: Final = "127.0.0.1"
_SHORT_DIRECTORY: Final = "/tmp"  # noqa: S108 - a new directory in it; confined processes have a /tmp of their own
_PARENT_MAX: Final = 50
"""The maximum length of a parent directory in bytes: a socket's path has at most 107, and Spark adds 42 to it."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PORT_SETTINGS: Final = ("spark.driver.port", "spark.driver.blockManager.port")


def limit_java_network(uri: str, *, master: str) -> dict[str, str]:
    """Limit the TCP connections of each Java process that PySpark starts from now on in this process, and of what Java
    starts, to the port of the server at `uri` and to ports of Spark's own. It may listen on these and on free ports.

    Returns settings that Spark must start with: its own ports, and Unix sockets for its Python workers. Returns none,
    and limits nothing, if `master` is not on this machine or the kernel has no rules for TCP; the log then says so.
    """
    if not master.startswith("local[") and master != "local":
        logger.warning("Spark at %s needs its network: Java may connect to every address", master)
        return {}
    if version() < SINCE:
        logger.warning("This kernel has no Landlock rules for TCP (Linux 6.7): Java may connect to every address")
        return {}
    directory = _socket_directory((tempfile.gettempdir(), _SHORT_DIRECTORY))
    if directory is None:
        logger.warning("No temporary directory has a path short enough for sockets: Java may connect to every address")
        return {}
    free_ports = _free_ports(len(_PORT_SETTINGS))
    _start_java_with((port_of(uri), *free_ports), listening=(EPHEMERAL, *free_ports))
    ports = dict(zip(_PORT_SETTINGS, map(str, free_ports), strict=True))
    return ports | {
        "spark.port.maxRetries": "0",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def _socket_directory(parents: Iterable[str]) -> str | None:
    """Create a directory for Spark's sockets in the first of the directories where that is possible. Returns its path;
    None if every path is too long or no directory can be written.
    """
    for parent in parents:
        if len(os.fsencode(parent)) <= _PARENT_MAX:
            with suppress(OSError):
                return tempfile.mkdtemp(prefix="s", dir=parent)
    return None


def port_of(uri: str) -> int:
    """Return the port of a server's URL."""
    parts = urlsplit(uri)
    return parts.port or _DEFAULT_PORTS[parts.scheme]


def _free_ports(count: int) -> tuple[int, ...]:
    """Return different free ports of the loopback interface."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((_HOST, 0))) for _ in range(count)]
        return tuple(each.getsockname()[1] for each in sockets)


def _start_java_with(ports: Iterable[int], *, listening: Iterable[int]) -> None:
    """Make PySpark start Java in a thread with a limited network."""
    from pyspark import java_gateway  # noqa: PLC0415 - in the extra

    gateway: Any = java_gateway
    start = gateway.Popen

    def start_java(*arguments: object, **options: object) -> object:
        return start_with_limited_network(
            lambda: start(*arguments, **options), connect=tuple(ports), bind=tuple(listening)
        )

    gateway.Popen = start_java
