# SPDX-License-Identifier: Apache-2.0
"""Runs Iceberg's reference server: its catalog over SQLite behind Jetty, from the kit's own archives.

Job: a Java and a class path in, the address of a running server out. The server has no authentication. Must not know
the requests.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from conformance.kit.jars import cache_directory, class_path
from limnos.model.errors import BadRequest

LOCK = Path(__file__).with_name("reference.lock")
MAIN = "org.apache.iceberg.rest.RESTCatalogServer"
READY_S = 120


class ReferenceServer(NamedTuple):
    """A running server."""

    uri: str
    pid: int


@contextmanager
def reference_server(java: Path, archives: str, *, work: Path, log: Path) -> Iterator[str]:
    """Run the server for the body of a `with`; yields its address. Its tables are below `work`."""
    with running_reference(java, archives, work=work, log=log) as server:
        yield server.uri


@contextmanager
def running_reference(java: Path, archives: str, *, work: Path, log: Path) -> Iterator[ReferenceServer]:
    """Run the server for the body of a `with`. Its names are in `names.db` below `work`, as its tables are."""
    work.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = os.pathsep.join(str(path) for path in class_path(cache_directory(), LOCK))
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:file:{work}/names.db",
        "CATALOG_WAREHOUSE": f"file:{work}/warehouse",
        "CATALOG_CLIENTS": "1",  # SQLite has one writer
    }
    command = [str(java), "-Xmx512m", "-cp", os.pathsep.join((archives, own)), MAIN]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **settings})
    try:
        uri = f"http://127.0.0.1:{port}"
        _wait_until_ready(server, uri, log)
        yield ReferenceServer(uri, server.pid)
    finally:
        server.terminate()
        server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], uri: str, log: Path) -> None:
    given_up = time.monotonic() + READY_S
    while server.poll() is None and time.monotonic() < given_up:
        try:
            with urllib.request.urlopen(f"{uri}/v1/config", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise BadRequest(f"Iceberg's reference server did not start: see {log}")
