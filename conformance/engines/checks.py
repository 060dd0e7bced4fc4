# SPDX-License-Identifier: Apache-2.0
"""Checks of a single engine.

May import the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Check:
    """One check of an engine, and its result."""

    engine: str
    name: str
    passed: bool
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A running server for an engine: tokens by user, and directories for files."""

    uri: str
    admin: str
    reader: str
    work: Path
    program: str = ""
    """A service account and its secret, in the form of a client's credential."""
    restricted: str = ""
    """Token of a user to whom read restrictions apply."""
    store: str = ""
    """URL of the object store."""

    @property
    def iceberg(self) -> str:
        """URL of Iceberg REST."""
        return f"{self.uri}/iceberg"


class Checks:
    """The checks of one engine, in order."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.made: list[Check] = []

    def expect(self, name: str, ask: Callable[[], object], expected: object) -> None:
        """Run an action and compare its result. The text of an exception counts as the result."""
        try:
            result = ask()
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        self.made.append(Check(self.engine, name, result == expected, _short(result)))

    def expect_refusal(self, name: str, ask: Callable[[], object], words: str) -> None:
        """Run an action that must be refused, with these words in the reason."""
        try:
            message, refused = _short(ask()), False
        except Exception as error:
            message, refused = str(error), True
        self.made.append(Check(self.engine, name, refused and words in message, _short(message)))


def _short(value: object) -> str:
    return " ".join(str(value).split())[:600]
