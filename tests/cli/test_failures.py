# SPDX-License-Identifier: Apache-2.0
"""Failures of commands that work on a store or files themselves: the exit code of each kind of error."""

from __future__ import annotations

import pytest

from limnos.cli.failures import ExitCode, failure_of
from limnos.cli.hints.typed_command import TypedCommand
from limnos.model import errors


@pytest.mark.parametrize(
    "error, code",
    [
        (errors.NotFound("gone", kind="table"), ExitCode.NOT_FOUND),
        (errors.PermissionDenied("no"), ExitCode.DENIED),
        (errors.AuthenticationFailed("who"), ExitCode.DENIED),
        (errors.AlreadyExists("there", kind="table"), ExitCode.CONFLICT),
        (errors.NotEmpty("full", kind="namespace"), ExitCode.CONFLICT),
        (errors.CommitConflict("raced"), ExitCode.CONFLICT),
        (errors.ServiceUnavailable("away"), ExitCode.UNAVAILABLE),
        (errors.TooManyAttempts("often"), ExitCode.UNAVAILABLE),
        (errors.BadRequest("wrong"), ExitCode.USAGE),
        (errors.StorageFailed("refused"), ExitCode.FAILED),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: errors.LimnosError, code: ExitCode) -> None:
    """An error of the command itself has the exit code of its kind, as the same error of a server has."""
    failure = failure_of(error, TypedCommand())

    assert failure is not None
    assert (failure.exit_code, failure.message) == (code, error.message)
