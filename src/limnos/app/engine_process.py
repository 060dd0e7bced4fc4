"""One process of the engine of SQL++: spawned in a session of its own, told where to start, ended with all that it started.

May import the wire of `engine` and this room. Knows no statement: a job is a socket. Its environment holds what it needs by name and no secret.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from limnos.app.engine_scratch import ScratchDirectory
from limnos.engine import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE: Final = "limnos.engine.process"
PASSED_ON: Final = ("LANG", "LC_ALL", "PATH", "PYTHONPATH", "HOME", "XDG_CACHE_HOME", "JAVA_HOME")
"""Variables of the server's own environment that an engine gets; its settings come beside them."""


class EngineProcess:
    """An engine: its process, its control socket, its scratch directory. Raises OSError when it cannot be started."""

    def __init__(self, start: wire.EngineStart, *, settings: Mapping[str, str] | None = None) -> None:
        for directory in start.writable:
            if any(Path(directory).is_relative_to(own) for own in start.closed):  # what is not there cannot be allowed
                Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
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
        told = structs.replace(start, scratch=self.scratch)
        ours.sendall(wire.encode_frame(wire.JOB, msgspec.msgpack.encode(told)))

    def job(self) -> socket.socket:
        """A socket for one job. Raises OSError when the process has gone."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self.control, [b"j"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours

    def end(self) -> None:
        """End the process and all that it started, whatever they are at."""
        self.control.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._scratch.remove()


def _spawn(control: socket.socket, environment: Mapping[str, str]) -> int:
    """Start the module with a socket as its standard input; returns the process's id."""
    command = [sys.executable, "-P", "-m", MODULE]
    actions = [(os.POSIX_SPAWN_DUP2, control.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsid=True)
