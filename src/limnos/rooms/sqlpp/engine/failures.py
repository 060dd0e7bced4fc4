# SPDX-License-Identifier: Apache-2.0
"""Mapping of errors of Spark and of the server to SQL++ errors.

Must not know statements. Messages of Spark and Java go to the engine's log only: the caller's message has advice,
without the source position inside a library.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from limnos.model.errors import LimnosError
from limnos.rooms.sqlpp.engine.wire import LINE_BYTES_MAX, EngineStart, JobFailure
from limnos.rooms.sqlpp.language.errors import (
    DuplicateKey,
    EngineFailed,
    EngineUnavailable,
    OutcomeUnknown,
    SnapshotMoved,
    SqlppError,
    compilation,
    too_deep,
)
from limnos.spark.allowed_classes import REFUSED, UnsafeTable
from limnos.spark.cluster import NO_EXECUTOR
from limnos.spark.java_failures import is_full

logger = logging.getLogger(__name__)

DUPLICATE: Final = "limnos.rooms.sqlpp.language.duplicate:"
"""Marker of the error that a statement raises inside Spark for a key that exists; the key follows as JSON."""

RETRY_S: Final = 10
"""Seconds after which a statement that the cluster had no executor for may be sent again."""

OVERFLOW, TIMED_OUT, CANCELLED = 7, 30, 41
NO_DATASET, BROKEN, EXTERNAL = 1050, 3102, 1108

LOCK_LOST: Final = "doesn't hold its lock"
"""The message with which the server rejects a commit of a statement that has lost its lock. A retry cannot succeed."""


class SparkStartError(Exception):
    """Raised if Spark could not be started; the message is the reason."""


class WriteConflict(Exception):
    """Raised if another writer committed first. Nothing was written, and the statement may be retried."""


def cancelled_error(job: str) -> SqlppError:
    """Return the error of a cancelled statement."""
    return SqlppError(CANCELLED, f"Request {job} has been cancelled")


def timed_out_error() -> SqlppError:
    """Return the error of a statement that exceeded its deadline."""
    return SqlppError(TIMED_OUT, "Request timed out and will be cancelled")


def no_executor_error(waited_s: float) -> SqlppError:
    """Return the error of a statement whose tasks waited for an executor of a cluster."""
    return EngineUnavailable(
        f"The Spark cluster (engine.master) has had no executor for the engine for {waited_s:.0f} s: {NO_EXECUTOR}. The"
        " statement was cancelled: try again",
        number=BROKEN,
        retry_after_s=RETRY_S,
    )


def large_result_error() -> SqlppError:
    """Return the error of a statement with a result that is too long for one frame."""
    return compilation(
        f"The statement has a result of more than {LINE_BYTES_MAX >> 20} MiB; make it return smaller ones"
    )


def failure_of(error: BaseException, job: str) -> JobFailure:
    """Convert an exception to the failure message that the engine sends to the server. Logs errors other than SQL++
    errors.
    """
    sqlpp_error = sqlpp_error_of(error)
    if sqlpp_error is not error:
        logger.info("Job %s was refused: %s", job, text_of(error)[:2000])
    if sqlpp_error is None:
        logger.error("Job %s failed", job, exc_info=error)
        sqlpp_error = EngineFailed(f"The engine could not execute the statement; its log has the reason under {job}")
    place = sqlpp_error.place
    line, column = (None, None) if place is None else place
    return JobFailure(
        number=sqlpp_error.number,
        message=sqlpp_error.message,
        line=line,
        column=column,
        has_position=sqlpp_error.has_position,
        again=isinstance(sqlpp_error, EngineUnavailable),
        duplicate=isinstance(sqlpp_error, DuplicateKey),
        unknown=isinstance(sqlpp_error, OutcomeUnknown),
        failed=isinstance(sqlpp_error, EngineFailed),
        retry_after_s=getattr(sqlpp_error, "retry_after_s", 1),
        moved=isinstance(sqlpp_error, SnapshotMoved),
    )


def start_error(error: BaseException, start: EngineStart) -> SparkStartError:
    """Convert an exception from the start of Spark to an error with the reason, such as a full disk."""
    if isinstance(error, LimnosError):
        return SparkStartError(error.message)
    if "No space left" in str(error) or is_full(start.scratch):
        return SparkStartError(f"no space is left on the disk of {start.scratch}")
    if isinstance(error, OSError):
        return SparkStartError(f"{error.filename or start.scratch}: {error.strerror or error}")
    return SparkStartError(
        f"Java ended before it was ready (engine.memory is {start.memory}); the server's log has its output"
    )


def sqlpp_error_of(error: BaseException) -> SqlppError | None:
    """Map an error to a SQL++ error; None for an unexpected error."""
    if isinstance(error, SqlppError):
        return error
    if isinstance(error, SparkStartError):
        return EngineUnavailable(f"The engine could not be started: {error}. Nothing was changed: try again")
    if isinstance(error, WriteConflict):
        return EngineUnavailable(
            "Other statements wrote to the dataset repeatedly; nothing was changed: try again", number=BROKEN
        )
    if isinstance(error, UnsafeTable):
        return SqlppError(EXTERNAL, f"External source error. {error.message}")
    if isinstance(error, RecursionError):
        return too_deep()
    if isinstance(error, MemoryError):
        return _too_large_error()
    text = text_of(error)
    if DUPLICATE in text:
        return duplicate_key_error_of(text)
    return next((make() for mark, make in _MARKS.items() if mark in text), None)


def text_of(error: BaseException) -> str:
    """Return the type and message of an error. The message of an error from Spark names its Java exception classes."""
    return f"{type(error).__name__}: {error}"


def is_conflict(error: BaseException) -> bool:
    """Return whether a commit failed because another writer committed first."""
    text = text_of(error)
    return LOCK_LOST not in text and any(mark in text for mark in _CONFLICTS)


def is_unknown(error: BaseException) -> bool:
    """Return whether the outcome of a commit is unknown after the error."""
    return "CommitStateUnknownException" in text_of(error)


def duplicate_key_error(key: Mapping[str, object]) -> SqlppError:
    """Return the error of an INSERT whose key exists."""
    return DuplicateKey(json.dumps(dict(key), ensure_ascii=False, default=str))


def duplicate_key_error_of(text: str) -> SqlppError:
    """Return the duplicate key error for the message of an exception that a MERGE raised inside Spark (see
    `DUPLICATE`).
    """
    try:
        key, _ = json.JSONDecoder().raw_decode(text.partition(DUPLICATE)[2])
    except ValueError:
        key = {}
    return duplicate_key_error(key if isinstance(key, dict) else {})


def _too_large_error() -> SqlppError:
    return compilation(
        "The statement needs more memory than the engine has for one statement, by engine.memory and "
        "engine.statements_max; make it select less"
    )


def _overflow_error() -> SqlppError:
    return SqlppError(OVERFLOW, "Overflow in a number of the query")


def is_too_complex(error: BaseException) -> bool:
    """Return whether Spark rejects a valid query because it is nested too deeply for its parser or planner."""
    text = text_of(error)
    return any(mark in text for mark in ("StackOverflowError", "FAILED_TO_PARSE_TOO_COMPLEX"))


def is_planner_bug(error: BaseException) -> bool:
    """Return whether the error is a bug of Spark's planner, in a query that is valid.

    Example: Spark pushes down a condition with a NULL among its operands.
    """
    text = text_of(error)
    return any(mark in text for mark in ("java.lang.AssertionError", "scala.MatchError", "[INTERNAL_ERROR]"))


def _denied_error() -> SqlppError:
    return SqlppError(BROKEN, "A privilege that the statement needs has been revoked")


def _gone_error() -> SqlppError:
    return SqlppError(NO_DATASET, "A dataset of the statement has been dropped, or you may no longer see it")


def _unreachable_error() -> SqlppError:
    return SqlppError(EXTERNAL, "External source error. Files of the dataset cannot be read or written")


def _lock_lost_error() -> SqlppError:
    return EngineUnavailable(
        "The statement did not renew its lock in time and lost it; nothing was changed: try again",
        number=BROKEN,
    )


def _disk_full_error() -> SqlppError:
    return EngineUnavailable(
        "No space is left on a disk that the engine writes to: free space, then try again",
        number=BROKEN,
        retry_after_s=10,
    )


def _unreadable_column_error() -> SqlppError:
    return compilation(
        "A table of the statement has columns that Iceberg cannot read: one of a name that Iceberg reserves, such as "
        "_file, or two that differ by case alone. Rename them with an Iceberg client (ALTER TABLE … RENAME COLUMN)"
    )


_MARKS: Mapping[str, Callable[[], SqlppError]] = {
    LOCK_LOST: _lock_lost_error,
    "ARITHMETIC_OVERFLOW": _overflow_error,
    "CAST_OVERFLOW": _overflow_error,
    "maxResultSize": _too_large_error,
    "Not enough memory to build and broadcast": _too_large_error,
    "Cannot broadcast the table": _too_large_error,
    "OutOfMemoryError": _too_large_error,
    "org.apache.arrow.memory.OutOfMemoryException": _too_large_error,
    "TaskResultLost": _too_large_error,  # the heap had no room for the result of a task
    "ForbiddenException": _denied_error,
    "NotAuthorizedException": _denied_error,
    "NoSuchTableException": _gone_error,
    "NoSuchNamespaceException": _gone_error,
    "TABLE_OR_VIEW_NOT_FOUND": _gone_error,
    "NotFoundException": _gone_error,
    "FileNotFoundException": _unreachable_error,
    "AccessDeniedException": _unreachable_error,
    "UnsupportedFileSystemException": _unreachable_error,
    REFUSED: _unreachable_error,
    "java.net.ConnectException": lambda: EngineUnavailable(
        "The engine could not reach the server; try again", number=BROKEN
    ),
    "No space left on device": _disk_full_error,
    "conflict with names reserved for Iceberg metadata columns": _unreadable_column_error,
    "Cannot build lower case index": _unreadable_column_error,
}
_CONFLICTS = (
    "CommitFailedException",
    "ValidationException: Found conflicting",
    "Found conflicting files",
    "Found new conflicting",
    "Cannot commit, missing data files",
)
