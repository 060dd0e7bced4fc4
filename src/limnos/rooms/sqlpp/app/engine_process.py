# SPDX-License-Identifier: Apache-2.0
"""A process of the SQL++ engine: spawned in its own session, configured by a message, killed with its children.

Must not know statements: a job is a socket. The process gets only listed environment variables and no secret.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from limnos.app.engine_scratch import ScratchDirectory
from limnos.app.engine_settings import PASSED_ON, make_writable_directories
from limnos.rooms.sqlpp.engine import wire
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.engine")
MODULE: Final = "limnos.rooms.sqlpp.engine.process"


class EngineProcess:
    """A running engine: process, control socket and scratch directory.

    The constructor creates missing writable directories within the server's data directory. It raises OSError if the
    process cannot start.
    """

    def __init__(self, start: wire.EngineStart, *, settings: Mapping[str, str] | None = None) -> None:
        make_writable_directories(start.writable, closed=start.closed)
        self._scratch = ScratchDirectory()
        self.scratch = self._scratch.path
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict(settings or {})
        environment |= {"TMPDIR": self.scratch, "PYTHONUNBUFFERED": "1"}
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self.pid = _spawn(theirs, environment)
        except OSError:
            ours.close()
            self._scratch.remove()
            raise
        self.control = ours
        self._is_ended = False
        engine_start = structs.replace(start, scratch=self.scratch)
        ours.sendall(wire.encode_frame(wire.JOB, msgspec.msgpack.encode(engine_start)))

    def job(self) -> socket.socket:
        """Return this process's end of a socket for one job. Raises OSError if the engine has ended."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self.control, [b"j"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours

    def end(self) -> None:
        """Kill the engine's process and all processes that it started, and remove the scratch directory.

        Only the first call does something: another process may have the id afterwards. A process that had ended by
        itself is logged with its exit code, the negative number of a signal.
        """
        if self._is_ended:
            return
        self._is_ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # before its control socket ends, at which it would end by itself
        self.control.close()
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
            if (code := os.waitstatus_to_exitcode(status)) != -signal.SIGKILL:
                log.warning("the engine of SQL++ has ended by itself", pid=self.pid, exit_code=code)
        self._scratch.remove()


def _spawn(control: socket.socket, environment: Mapping[str, str]) -> int:
    """Spawn the engine's module with a socket as its standard input. Returns the process id."""
    command = [sys.executable, "-P", "-m", MODULE]
    actions = [(os.POSIX_SPAWN_DUP2, control.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsid=True)
