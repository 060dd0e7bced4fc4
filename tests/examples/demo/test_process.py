# SPDX-License-Identifier: Apache-2.0
"""The demo's process restores everything that it changed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from examples.demo import process


def test_loopback_bypasses_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, loopback is added to the proxy exceptions; afterwards they are restored."""
    monkeypatch.setenv("NO_PROXY", "intranet")
    monkeypatch.delenv("no_proxy", raising=False)

    with process.direct_loopback():
        inside = (os.environ["NO_PROXY"], os.environ["no_proxy"])

    assert inside == ("intranet,127.0.0.1", "intranet,127.0.0.1")
    assert os.environ["NO_PROXY"] == "intranet"
    assert "no_proxy" not in os.environ


def test_sigterm_runs_cleanup() -> None:
    """SIGTERM becomes an exit that runs cleanup, and the handler is restored."""
    before = signal.getsignal(signal.SIGTERM)
    stop = process.StopRequest()

    with pytest.raises(SystemExit) as caught, process.terminable(stop):
        os.kill(os.getpid(), signal.SIGTERM)

    assert stop.asked
    assert caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before


def test_quiet_start_logs_stderr_of_children(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard error of a child process goes to the log, and nothing of it to the terminal."""
    with process.quiet_start(tmp_path / "log"):
        os.system("echo chatter >&2")
    os.system("echo after >&2")

    assert (tmp_path / "log").read_text() == "chatter\n"
    assert capfd.readouterr().err == "after\n"


def test_failed_quiet_start_prints_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """If the start fails, the log is printed."""

    def start() -> None:
        with process.quiet_start(tmp_path / "log"):
            os.system("echo no memory >&2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        start()

    assert capfd.readouterr().err == "no memory\n"
