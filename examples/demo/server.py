# SPDX-License-Identifier: Apache-2.0
"""Server processes of the demo.

Job: start `limnos server start` as a user does, wait until it prints `ready URL`, and stop it in every case. May import
the standard library and `model`. It must not know the use of the server.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from limnos.model.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

READY = "ready "
_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 20
_TAIL_LINES = 15
# The command `limnos` need not be on PATH: this is what it runs.
_LIMNOS = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server: its base URL and its process id."""

    uri: str
    pid: int


@contextmanager
def running_server(data: Path, *, log: Path, flags: Sequence[str] = ()) -> Iterator[RunningServer]:
    """Serve the store in `data` on a free loopback port, with additional flags, for the body of a `with`; the server's
    log is written to `log`.

    Raises Unavailable with the end of the log if the server does not start.
    """
    data.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [*_LIMNOS, "server", "start", "--data", str(data), "--listen", "127.0.0.1:0", *flags]
    with log.open("wb") as errors:
        # In its own session: Ctrl-C reaches only the demo, which then stops its servers in order.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        lines: queue.Queue[str | None] = queue.Queue()
        pump = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
        pump.start()
        try:
            yield RunningServer(uri=_wait_until_ready(process, lines, log), pid=process.pid)
        finally:
            _stop(process)
            pump.join(timeout=_STOP_TIMEOUT_S)


def _wait_until_ready(process: subprocess.Popen[str], lines: queue.Queue[str | None], log: Path) -> str:
    while True:
        try:
            line = lines.get(timeout=_START_TIMEOUT_S)
        except queue.Empty:
            raise ServiceUnavailable(f"The server was not ready within {_START_TIMEOUT_S} s.{_tail(log)}") from None
        if line is None:
            raise ServiceUnavailable(
                f"The server ended with exit code {process.wait()} before it was ready.{_tail(log)}"
            )
        if line.startswith(READY):
            return line.removeprefix(READY).strip()


def _pump(source: IO[str], lines: queue.Queue[str | None]) -> None:
    """Forward all lines to the end, so that a server that prints more never blocks on a full pipe; then close it."""
    with source:
        for line in source:
            lines.put(line)
    lines.put(None)


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    return "".join(f"\n  {line}" for line in (f"Its log ({log}) ends:", *lines)) if lines else f" Its log is {log}."
