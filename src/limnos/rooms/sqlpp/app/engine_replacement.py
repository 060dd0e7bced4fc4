# SPDX-License-Identifier: Apache-2.0
"""Processes of the SQL++ engine: one takes new statements, and replaced ones end behind their last statement.

Must not know the wire protocol. A statement that the engine does not cancel is *stuck*: its thread cannot be ended, so
its process is replaced. The other statements of that process run on to their end. Until the process has ended, its
stuck statements count for their users.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from limnos.app.fair_queue import Turn
from limnos.rooms.sqlpp.app.engine_process import EngineProcess
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.engine")
DRAINING_MAX: Final = 1
"""The maximum number of replaced processes that still run statements: each of them uses the memory of an engine."""
REPLACEMENTS = Counter(
    "limnos_sqlpp_engine_replacements_total",
    "Processes of the SQL++ engine that were replaced, by reason.",
    ("reason",),
)


@dataclass(eq=False, slots=True, kw_only=True)
class RunningEngine:
    """A process with its running statements, the turns of its stuck statements, and the time of its start."""

    process: EngineProcess
    started_at: float
    has_answered: bool = False
    """Whether it has executed a job, so that Spark has started."""
    statements: set[str] = field(default_factory=set)
    stuck: list[Turn] = field(default_factory=list)
    is_due: bool = False
    """Whether it will be replaced as soon as fewer replaced processes run."""


class EngineProcesses:
    """The process that takes new statements, if one runs, and the replaced processes with running statements."""

    def __init__(self) -> None:
        self.current: RunningEngine | None = None
        self._draining: list[RunningEngine] = []

    def add(self, process: EngineProcess, *, started_at: float) -> RunningEngine:
        """Let a new process take statements."""
        self.current = RunningEngine(process=process, started_at=started_at)
        return self.current

    def end_statement(self, engine: RunningEngine, statement: str, *, turn: Turn) -> None:
        """Note that a statement has ended, and release its turn. A replaced process ends with its last one."""
        engine.statements.discard(statement)
        if turn not in engine.stuck:
            turn.release()
        if not engine.statements and (engine.is_due or engine in self._draining):
            self.end(engine)

    def add_stuck(self, engine: RunningEngine, statement: str, *, turn: Turn, reason: str) -> None:
        """Replace the process of a statement that it does not end, or that damaged it. The statement counts for its
        user until the process has ended.
        """
        engine.statements.discard(statement)
        engine.stuck.append(turn)
        if engine is self.current:
            self._replace(engine, reason=reason)
            return
        turn.return_place()
        if not engine.statements:
            self.end(engine)

    def _replace(self, engine: RunningEngine, *, reason: str) -> None:
        """Let the next statement start another process. This one ends with its last running statement.

        If `DRAINING_MAX` replaced processes run, it is replaced when one of them has ended.
        """
        if not engine.statements:
            REPLACEMENTS[reason,] += 1
            self.end(engine)
        elif len(self._draining) < DRAINING_MAX:
            REPLACEMENTS[reason,] += 1
            log.warning(
                "the engine of SQL++ is replaced", reason=reason, pid=engine.process.pid, runs=len(engine.statements)
            )
            self.current = None
            self._draining.append(engine)
            for turn in engine.stuck:
                turn.return_place()
        else:
            engine.is_due = True

    def end(self, engine: RunningEngine) -> None:
        """Kill a process, and release the turns of its stuck statements."""
        engine.process.end()
        if engine is self.current:
            self.current = None
        if engine in self._draining:
            self._draining.remove(engine)
        for turn in engine.stuck:
            turn.release()
        engine.stuck.clear()
        if self.current is not None and self.current.is_due and len(self._draining) < DRAINING_MAX:
            self.current.is_due = False
            self._replace(self.current, reason="stuck")

    def end_all(self) -> None:
        """Kill all processes."""
        for engine in (*self._draining, *filter(None, (self.current,))):
            engine.is_due = False
            self.end(engine)
