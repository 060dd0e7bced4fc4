# SPDX-License-Identifier: Apache-2.0
"""Failures in Spark as the caller sees them: refused, failed, or to be retried."""

from __future__ import annotations

import errno
import os

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.sqlpp.engine.failures import SparkStartError, WriteConflict, failure_of, start_error
from limnos.rooms.sqlpp.engine.wire import EngineStart, JobFailure
from limnos.rooms.sqlpp.language.errors import OutcomeUnknown, SqlppError
from limnos.spark import java_failures

START = EngineStart(
    uri="http://h",
    metalake="lake",
    master="local",
    memory="460m",
    slots=3,
    statements_max=2,
    scratch="/scratch",
    readable=(),
    writable=(),
    closed=(),
)


@pytest.mark.parametrize(
    "error,expected",
    [
        (SqlppError(1077, "Cannot find dataset x"), (1077, False, False)),
        (OutcomeUnknown(), (3102, False, False)),
        (ValueError("nobody foresaw it"), (3102, False, True)),
        (SparkStartError("no Java"), (3109, True, False)),
        (WriteConflict(), (3102, True, False)),
        (RuntimeError("the commit doesn't hold its lock any more"), (3102, True, False)),
        (RuntimeError("java.net.ConnectException: refused"), (3102, True, False)),
        (RuntimeError("java.io.IOException: No space left on device"), (3102, True, False)),
        (RuntimeError("ForbiddenException"), (3102, False, False)),
        (RuntimeError("[ARITHMETIC_OVERFLOW] long overflow"), (7, False, False)),
    ],
)
def test_failure_reports_whether_statement_can_be_retried(error: Exception, expected: tuple[int, bool, bool]) -> None:
    """Statements that were not executed may be repeated, unexpected errors are the engine's failure, and all others the
    statement's.
    """
    failure = failure_of(error, "job")

    assert (failure.number, failure.again, failure.failed) == expected
    assert failure.unknown is isinstance(error, OutcomeUnknown)


def test_full_disk_is_reported_with_retry_after() -> None:
    """A full disk is reported with a Retry-After time."""
    failure: JobFailure = failure_of(RuntimeError("No space left on device"), "job")

    assert (failure.retry_after_s, "No space is left on a disk that the engine writes to" in failure.message) == (
        10,
        True,
    )


@pytest.mark.parametrize(
    "error,words",
    [
        (ServiceUnavailable("No Java 17 or 21 for Spark."), "No Java 17 or 21 for Spark."),
        (OSError(errno.ENOSPC, "No space left on device", "/scratch/x"), "no space is left on the disk of /scratch"),
        (PermissionError(errno.EACCES, "Permission denied", "/java"), "/java: Permission denied"),
        (
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"),
            "Java ended before it was ready (engine.memory is 460m); the server's log has its output",
        ),
    ],
)
def test_engine_start_error_has_cause_without_traceback(error: Exception, words: str) -> None:
    """The message has the cause, without a library's traceback."""
    assert str(start_error(error, START)) == words


@pytest.mark.parametrize("blocks,files,free", [(0, 0, 0), (100, 1000, 0)])
def test_silent_java_exit_is_reported_as_full_disk(
    monkeypatch: pytest.MonkeyPatch, blocks: int, files: int, free: int
) -> None:
    """If Java ends without a message, a full disk or a full inode table is reported as the cause."""
    disk_status = os.statvfs_result((4096, 4096, 1000, blocks, blocks, files, free, free, 0, 255))
    monkeypatch.setattr(java_failures.os, "statvfs", lambda _path: disk_status)

    assert str(start_error(RuntimeError("exited"), START)) == "no space is left on the disk of /scratch"
