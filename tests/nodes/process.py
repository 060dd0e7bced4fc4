# SPDX-License-Identifier: Apache-2.0
"""Server processes for tests of nodes and faults: started by the user's command, and stopped or killed by process
id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.integration.live import LIMNOS

GONE_WITHIN_S = 300


class Process:
    """One node, which can be started, stopped, killed, paused, and started again on the same store."""

    def __init__(
        self,
        data: Path,
        *,
        log: Path,
        database: str | None = None,
        env: dict[str, str] | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        self.data = data
        self.log = log
        self.database = database
        self.env = {"LIMNOS__ACCESS__AUTHENTICATION": "simple", **(env or {})}
        self.flags = flags
        self.uri = ""
        self.is_ready = False
        """Whether the node has served requests and has not been ended since."""
        self._running: subprocess.Popen[str] | None = None

    @property
    def running(self) -> subprocess.Popen[str]:
        """Return the operating system's process. Fails before `start`."""
        assert self._running is not None, "the node was never started"
        return self._running

    @property
    def token(self) -> str:
        """Return the admin's token."""
        return (self.data / "admin.token").read_text().strip()

    def start(self) -> Process:
        """Start the node and wait until it serves."""
        self.spawn()
        return self.wait_ready()

    def wait_ready(self) -> Process:
        """Wait until the node serves."""
        uri = next((line[6:].strip() for line in self.running.stdout or () if line.startswith("ready ")), None)
        if uri is None:
            self.kill()
            raise AssertionError(f"the server did not start:\n{self.log.read_text()[-4000:]}")
        self.uri, self.is_ready = uri, True
        return self

    def spawn(self) -> subprocess.Popen[str]:
        """Start the node without waiting."""
        command = [*LIMNOS, "server", "start", "--data", str(self.data), "--listen", "127.0.0.1:0", *self.flags]
        if self.database is not None:
            command += ["--database", self.database]
        with self.log.open("ab") as errors:
            self._running = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | self.env
            )
        return self._running

    def stop(self) -> None:
        """Stop the node as a user would, and wait."""
        if self._running is None:
            return
        self._running.send_signal(signal.SIGCONT)
        self._running.terminate()
        try:
            self._running.wait(GONE_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """Kill the node with SIGKILL, and wait."""
        if self._running is None:
            return
        self._running.kill()
        self._running.wait(GONE_WITHIN_S)
        self._close()

    def wait_killed(self) -> None:
        """Wait until the node has killed itself at an armed fault point."""
        code = self.running.wait(GONE_WITHIN_S)
        self._close()
        assert code == -signal.SIGKILL, f"the node ended with {code}, not by kill -9:\n{self.log.read_text()[-4000:]}"

    def wait_paused(self) -> None:
        """Wait until the node has paused itself at an armed fault point."""
        until = time.monotonic() + GONE_WITHIN_S
        while _state(self.running.pid) != "T":
            assert time.monotonic() < until, "the node never stopped at the armed point"
            time.sleep(0.005)

    def go_on(self) -> None:
        """Resume a paused node."""
        self.running.send_signal(signal.SIGCONT)

    def _close(self) -> None:
        if self._running is not None and self._running.stdout is not None:
            self._running.stdout.close()
        self._running = None
        self.is_ready = False


def _state(pid: int) -> str:
    """Return the state letter of a process in /proc."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
