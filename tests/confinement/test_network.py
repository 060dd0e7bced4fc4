# SPDX-License-Identifier: Apache-2.0
"""The TCP ports of a thread and its children. Whole in processes of their own, because limits cannot be undone."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from limnos.confinement import network
from limnos.confinement.network import SINCE, limit_network, start_with_limited_network, version

CHILD = """
import json, socket, sys
outcomes = {}
for name, port in json.loads(sys.argv[1]).items():
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        outcomes[name] = "connected"
    except OSError as error:
        outcomes[name] = type(error).__name__
for name, port in (("any", 0), ("fixed", int(sys.argv[2]))):
    try:
        socket.create_server(("127.0.0.1", port)).close()
        outcomes[name] = "listens"
    except OSError as error:
        outcomes[name] = type(error).__name__
print(json.dumps(outcomes))
"""


def test_process_connects_to_allowed_ports_only() -> None:
    """A process that is started with a limited network connects to the allowed port and not to another, and listens on
    free ports only. The thread that starts it keeps its network.
    """
    with socket.create_server(("127.0.0.1", 0)) as allowed, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"allowed": allowed.getsockname()[1], "other": other.getsockname()[1]}
        with socket.create_server(("127.0.0.1", 0)) as free:
            fixed = free.getsockname()[1]
        command = [sys.executable, "-c", CHILD, json.dumps(ports), str(fixed)]
        process = start_with_limited_network(
            lambda: subprocess.Popen(command, stdout=subprocess.PIPE), connect=(ports["allowed"],), bind=(0,)
        )
        output, _ = process.communicate()
        socket.create_connection(other.getsockname()).close()

    outcomes = json.loads(output)
    assert (outcomes.pop("allowed"), outcomes.pop("any")) == ("connected", "listens")
    is_limited = version() >= SINCE
    assert outcomes == {
        "other": "PermissionError" if is_limited else "connected",
        "fixed": "PermissionError" if is_limited else "listens",
    }


def test_limit_returns_false_without_rules_for_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a kernel that has no rules for TCP nothing is limited, and the result says so."""
    monkeypatch.setattr(network, "version", lambda: SINCE - 1)

    assert limit_network(connect=(1,)) is False
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_errors_of_the_start_are_raised() -> None:
    """An error of the start is raised in the caller's thread."""
    with pytest.raises(FileNotFoundError):
        start_with_limited_network(lambda: subprocess.Popen(["/no/such/program"]), connect=(), bind=())
