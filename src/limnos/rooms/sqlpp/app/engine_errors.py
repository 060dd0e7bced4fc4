# SPDX-License-Identifier: Apache-2.0
"""Errors of statements in the SQL++ engine, as the server raises them.

Must not know processes.
"""

from __future__ import annotations

from typing import Final

from limnos.rooms.sqlpp.engine import wire
from limnos.rooms.sqlpp.language.errors import (
    DuplicateKey,
    EngineFailed,
    EngineUnavailable,
    OutcomeUnknown,
    SnapshotMoved,
    SqlppError,
    TextPosition,
)
from limnos.rooms.sqlpp.language.jobs import EngineJob

BROKEN: Final = 3102
TIMED_OUT: Final = 30


def timed_out_error() -> SqlppError:
    """Return the error of a statement that exceeded its time limit."""
    return SqlppError(TIMED_OUT, "Request timed out and will be cancelled")


def error_of(failure: wire.JobFailure) -> SqlppError:
    """Return the error of a job that failed in the engine."""
    if failure.unknown:
        return OutcomeUnknown()
    if failure.duplicate:
        return DuplicateKey(failure.message.partition(": ")[2])
    if failure.moved:
        return SnapshotMoved()
    if failure.again:
        return EngineUnavailable(failure.message, number=failure.number, retry_after_s=failure.retry_after_s)
    if failure.failed:
        return EngineFailed(failure.message)
    place = None if failure.line is None or failure.column is None else TextPosition(failure.line, failure.column)
    return SqlppError(failure.number, failure.message, place, failure.has_position)


def engine_lost_error(job: EngineJob) -> SqlppError:
    """Return the error of a job whose engine ended while it ran."""
    if job.kind in ("query", "export"):
        return EngineUnavailable("The engine ended in the middle of the statement: try again", number=BROKEN)
    return OutcomeUnknown()
