"""The tables beside a step's own: rows that broke its expectations, and texts of files that could not be read.

Job: their names, and which of them a step has, as far as its declaration says. May import `declaration`; it must not know of Spark nor
of servers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from limnos.pipeline.declaration import Action, Files, Load, Malformed, Parts, Pipeline, Source, Sql, Step, Stream

QUARANTINE: Final = "__quarantine"
MALFORMED: Final = "__malformed"


def beside(table: Parts, suffix: str) -> Parts:
    """Name the table beside another one."""
    return (*table[:-1], f"{table[-1]}{suffix}")


def tables_of(pipeline: Pipeline, step: Step, *, sources: Collection[str] | None = None) -> tuple[Parts, ...]:
    """The tables a step may write: its own, that of quarantined rows, that of malformed ones.

    `sources` are those that the step reads. Without them a query's are guessed by their names, which may come to a table too many.
    """
    found = [step.table]
    if any(rule.action is Action.QUARANTINE for rule in step.expectations):
        found.append(beside(step.table, QUARANTINE))
    kept = [source.name for source in pipeline.sources if _keeps(source)]
    if any(_may_read(step, name) if sources is None else name in sources for name in kept):
        found.append(beside(step.table, MALFORMED))
    return tuple(found)


def _keeps(source: Source) -> bool:
    files = source.kind.files if isinstance(source.kind, Stream) else source.kind
    return isinstance(files, Files) and files.malformed is Malformed.KEEP


def _may_read(step: Step, source: str) -> bool:
    if isinstance(step.body, Load):
        return step.body.source == source
    if isinstance(step.body, Sql):
        return re.search(rf"(?<!\w){re.escape(source)}(?!\w)", step.body.text, re.IGNORECASE) is not None
    return source in step.body.inputs.values()
