"""How a run ended, and what a shell is told of it.

Job: the values a caller gets back. May import the standard library only. The numbers keep clear of those that every
command has (not found, denied, conflict, unavailable), and agree with them where the reason is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class EndReason(Enum):
    """Why a run ended as it did; the word is stable and stands in JSON."""

    DONE = "done"
    """Published, or with `--hold` ready to be."""
    DATA = "data"
    """An expectation was broken."""
    CODE = "code"
    """A step's SQL or Python failed, or a source could not be read."""
    DENIED = "denied"
    """The caller lacks a right, or lost it meanwhile."""
    BUSY = "busy"
    """Another run of the pipeline is under way."""
    MOVED = "moved"
    """Somebody else wrote an output again and again, or dropped it."""
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """By the keyboard or a signal."""
    SUPERSEDED = "superseded"
    """Another process has resumed the run, and this one may not act any longer."""
    AWAY = "away"
    """The server could not be reached for longer than a run waits."""


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
"""What a shell sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run's end. `state` is the server's word for it, `message` says what was wrong and what to do."""

    run: str
    pipeline: str
    attempt: int
    state: str
    why: EndReason
    message: str
    revision: int | None = None
    """Of the catalog, when it was published."""
    rows: int = 0
    seconds: float = 0.0

    def require(self) -> RunResult:
        """This value, if the run was published or held as it was asked to. Raises RunFailed else."""
        if self.why is not EndReason.DONE:
            raise RunFailed(self)
        return self

    @property
    def exit_code(self) -> int:
        """What a shell is told."""
        return EXIT_CODES[self.why]


class RunFailed(Exception):
    """A run that did not end as it was asked to; `ended` says how. For schedulers, which know exceptions only."""

    def __init__(self, ended: RunResult) -> None:
        super().__init__(f"run {ended.run} of {ended.pipeline} {ended.state}: {ended.message}")
        self.ended = ended
