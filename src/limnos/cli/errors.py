# SPDX-License-Identifier: Apache-2.0
"""The errors that commands raise about what was typed or asked for."""

from __future__ import annotations


class UsageError(Exception):
    """Raised for a command line with contradictory or missing arguments. `hint` is the correction."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class StoppedError(Exception):
    """Raised if a command cannot be executed as requested. The command prints the message and the hint; `code`
    determines its exit code, by default 1.
    """

    def __init__(self, message: str, *, code: str = "failed", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
