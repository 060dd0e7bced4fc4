"""The tables beside a step's own: rows that broke its expectations, and texts of files that could not be read.

Job: their names, and which of them a step has, as far as its declaration says. May import `declaration`; it must not know of Spark nor
of servers.
"""

from __future__ import annotations

from typing import Final

from limnos.pipeline.declaration import Action, Files, Load, Malformed, Parts, Pipeline, Step

QUARANTINE: Final = "__quarantine"
MALFORMED: Final = "__malformed"


def beside(table: Parts, suffix: str) -> Parts:
    """Name the table beside another one."""
    return (*table[:-1], f"{table[-1]}{suffix}")


def tables_of(pipeline: Pipeline, step: Step) -> tuple[Parts, ...]:
    """The tables a step may write: its own, that of quarantined rows, that of malformed ones."""
    found = [step.table]
    if any(rule.action is Action.QUARANTINE for rule in step.expectations):
        found.append(beside(step.table, QUARANTINE))
    if isinstance(step.body, Load) and _keeps(pipeline, step.body.source):
        found.append(beside(step.table, MALFORMED))
    return tuple(found)


def _keeps(pipeline: Pipeline, source: str) -> bool:
    kind = next((each.kind for each in pipeline.sources if each.name == source), None)
    return isinstance(kind, Files) and kind.malformed is Malformed.KEEP
