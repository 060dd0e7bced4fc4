# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping server processes, with small scripts in place of the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from examples.demo import server
from limnos.model.errors import ServiceUnavailable

GOOD = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
sys.stderr.write(" ".join(sys.argv[1:]))
sys.stderr.flush()
print("limnos 0.1.0", flush=True)
print("ready http://127.0.0.1:4711", flush=True)
print("stray line", flush=True)
while True:
    time.sleep(0.05)
"""
BROKEN = "import sys; sys.stderr.write('the port is taken\\n'); sys.exit(3)"


def instead(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Run a script in place of the server's command."""
    monkeypatch.setattr(server, "_LIMNOS", (sys.executable, "-c", script))


def alive(pid: int) -> bool:
    """Return whether a process with that id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_server_address_is_read_and_server_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address comes from the `ready` line; after the body the process has ended and its log is kept."""
    instead(monkeypatch, GOOD)
    log = tmp_path / "logs" / "server.log"

    with server.running_server(tmp_path / "data", log=log) as running:
        inside = alive(running.pid)

    assert running.uri == "http://127.0.0.1:4711"
    assert inside
    assert not alive(running.pid)
    assert log.read_text() == f"server start --data {tmp_path / 'data'} --listen 127.0.0.1:0"


def test_server_is_stopped_when_the_body_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the body stops the server."""
    instead(monkeypatch, GOOD)
    seen: list[int] = []

    def body() -> None:
        with server.running_server(tmp_path / "data", log=tmp_path / "log") as running:
            seen.append(running.pid)
            raise ValueError("body")

    with pytest.raises(ValueError, match="body"):
        body()

    assert not alive(seen[0])


def test_server_that_ends_early_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a server that does not start has its exit code and the end of its log."""
    instead(monkeypatch, BROKEN)

    with pytest.raises(ServiceUnavailable) as caught, server.running_server(tmp_path / "data", log=tmp_path / "log"):
        pass

    assert "exit code 3" in caught.value.message
    assert "the port is taken" in caught.value.message
