# SPDX-License-Identifier: Apache-2.0
"""The result of a run, and its exit code.

`RunResult` is returned by a run; `RunFailed` is raised by `RunResult.require`. Exit codes from 10 on are those of runs;
denied, conflict and unavailable have the exit codes of all commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class EndReason(Enum):
    """The reason why a run ended. The values are stable and appear in JSON."""

    DONE = "done"
    """Published, or with `--hold` ready to be published."""
    DATA = "data"
    """An expectation was broken."""
    CODE = "code"
    """A step's SQL or Python failed, a source could not be read, or the server refused a request or is out of space."""
    DENIED = "denied"
    """The caller lacked or lost a right."""
    BUSY = "busy"
    """Another run of the pipeline was in progress."""
    MOVED = "moved"
    """Another client wrote an output repeatedly, or dropped it."""
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Interrupted by Ctrl-C or a signal."""
    SUPERSEDED = "superseded"
    """Another process resumed the run, so this process stopped."""
    AWAY = "away"
    """The server was unreachable for longer than the run waits."""


EXIT_CODES = {
    EndReason.DONE: 0,
    EndReason.DENIED: 4,
    EndReason.BUSY: 5,
    EndReason.MOVED: 5,
    EndReason.AWAY: 6,
    EndReason.DATA: 10,
    EndReason.CODE: 11,
    EndReason.CANCELLED: 12,
    EndReason.SUPERSEDED: 13,
    EndReason.INTERRUPTED: 130,
}
"""The exit code of the command for each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run. `state` is the run's state in the server's record; `message` has the problem and advice."""

    run: str
    pipeline: str
    attempt: int
    state: str
    why: EndReason
    message: str
    revision: int | None = None
    """The revision of the catalog at which the run was published."""
    rows: int = 0
    seconds: float = 0.0

    def require(self) -> RunResult:
        """Return the result if the run was published or held as requested. Raises RunFailed otherwise."""
        if self.why is not EndReason.DONE:
            raise RunFailed(self)
        return self

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 if the run ended as requested, else the code of its `EndReason`."""
        return EXIT_CODES[self.why]


class RunFailed(Exception):
    """Raised if the run did not end as requested; `ended` has the result. Schedulers that detect failures by exceptions
    use it.
    """

    def __init__(self, ended: RunResult) -> None:
        super().__init__(f"run {ended.run} of {ended.pipeline} {ended.state}: {ended.message}")
        self.ended = ended
