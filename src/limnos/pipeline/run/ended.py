"""How a run ended, and what a shell is told of it.

Job: the values a caller gets back. May import the standard library only. The numbers keep clear of those that every
command has (not found, denied, conflict, unavailable), and agree with them where the reason is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Why(Enum):
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
    Why.DONE: 0,
    Why.DENIED: 4,
    Why.BUSY: 5,
    Why.MOVED: 5,
    Why.AWAY: 6,
    Why.DATA: 10,
    Why.CODE: 11,
    Why.CANCELLED: 12,
    Why.SUPERSEDED: 13,
    Why.INTERRUPTED: 130,
}
"""What a shell sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run's end. `state` is the server's word for it, `message` says what was wrong and what to do."""

    run: str
    pipeline: str
    attempt: int
    state: str
    why: Why
    message: str
    revision: int | None = None
    """Of the catalog, when it was published."""
    rows: int = 0
    seconds: float = 0.0

    def require(self) -> Ended:
        """This value, if the run was published or held as it was asked to. Raises RunFailed else."""
        if self.why is not Why.DONE:
            raise RunFailed(self)
        return self

    @property
    def exit_code(self) -> int:
        """What a shell is told."""
        return EXIT_CODES[self.why]


class RunFailed(Exception):
    """A run that did not end as it was asked to; `ended` says how. For schedulers, which know exceptions only."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(f"run {ended.run} of {ended.pipeline} {ended.state}: {ended.message}")
        self.ended = ended
