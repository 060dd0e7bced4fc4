# SPDX-License-Identifier: Apache-2.0
"""A stopping server exits, even while requests are blocked."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import urllib.request
from pathlib import Path

from limnos.client import Client
from tests.integration.live import serving


def test_stop_does_not_wait_for_stuck_storage(tmp_path: Path) -> None:
    """With creates that are blocked by an unresponsive object store, SIGTERM ends the process after the drain time."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        flags = ("--allow-root", "s3://b", "--allow-endpoint", endpoint)
        with serving(tmp_path / "data", *flags) as server:
            with Client(server.uri, token=server.token) as client:
                client.catalogs.create(
                    "stuck",
                    properties={
                        "warehouse": "s3://b/w",
                        "s3.endpoint": endpoint,
                        "s3.region": "x",
                        "s3.access-key-id": "k",
                        "s3.secret-access-key": "s",
                    },
                )
                ask(server.uri, server.token, "namespaces", {"namespace": ["a"]})
                body = {"name": "t", "schema": {"type": "struct", "fields": []}}
                for _ in range(3):
                    threading.Thread(
                        target=ask, args=(server.uri, server.token, "namespaces/a/tables", body), daemon=True
                    ).start()
                silent.settimeout(30)
                connection, _ = silent.accept()
            os.kill(server.pid, signal.SIGTERM)
            with connection:
                server.process.wait(timeout=300)

    assert server.process.returncode == 0


def ask(uri: str, token: str, path: str, body: object) -> None:
    """Send a request to the blocked catalog; whether it is answered does not matter."""
    request = urllib.request.Request(
        f"{uri}/iceberg/v1/lake.stuck/{path}",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except OSError:
        return
