# SPDX-License-Identifier: Apache-2.0
"""The exit codes of all commands, in one table: docs/reference/cli.md is written from it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class ExitCode(IntEnum):
    """Exit codes of all commands. Commands on pipelines have further codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    UNAVAILABLE = 6
    REFUSED = 7
    """`access explain` only: the answer is that the action is refused."""
    INTERRUPTED = 130


class ExitCodeRow(NamedTuple):
    """A row of the table: the number, or numbers, what it means, and the codes of errors that lead to it."""

    numbers: str
    meaning: str
    errors: str = ""


TABLE: Final = (
    ExitCodeRow(f"{ExitCode.OK}", "done"),
    ExitCodeRow(
        f"{ExitCode.FAILED}",
        "failed; also a server that cannot start, or `server check` that finds why",
        "`failed`, `bad-request`, `internal`, `cannot-start`, `cannot-listen`, `certificate` and what else a server"
        " refuses",
    ),
    ExitCodeRow(
        f"{ExitCode.USAGE}", "invalid command line or setting; nothing was done", "`usage`, `illegal-name`, `config`"
    ),
    ExitCodeRow(f"{ExitCode.NOT_FOUND}", "not found", "`not-found`"),
    ExitCodeRow(
        f"{ExitCode.DENIED}", "denied: not allowed, or an invalid credential", "`forbidden`, `unauthenticated`"
    ),
    ExitCodeRow(
        f"{ExitCode.CONFLICT}", "conflict", "`already-exists`, `not-empty`, `in-use`, `commit-conflict` and more"
    ),
    ExitCodeRow(f"{ExitCode.UNAVAILABLE}", "no server, or it is too busy", "`unavailable`"),
    ExitCodeRow(
        f"{ExitCode.REFUSED}",
        "only of `access explain`: the action is refused. The explanation is on standard output",
    ),
    ExitCodeRow(
        "10 to 13",
        "only of pipeline runs: failed expectation, failed step, cancelled, resumed elsewhere"
        " ([run-pipelines.md](../guides/run-pipelines.md))",
    ),
    ExitCodeRow(f"{ExitCode.INTERRUPTED}", "interrupted"),
)
"""Every exit code, in the order of the page."""
