"""What a check of one engine alone is.

May import the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that an engine was asked to do, and what came of it."""

    engine: str
    name: str
    passed: bool
    told: str


@dataclass(frozen=True, slots=True)
class Lake:
    """A running server as an engine sees it: whose token for whom, and where to put files."""

    uri: str
    admin: str
    reader: str
    work: Path
    program: str = ""
    """A service account and its secret, as clients are given them."""
    store: str = ""
    """The address of the object store."""

    @property
    def iceberg(self) -> str:
        """The address of Iceberg REST."""
        return f"{self.uri}/iceberg"


class Checks:
    """The checks of one engine, in the order in which they are made."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.made: list[Check] = []

    def expect(self, name: str, ask: Callable[[], object], wanted: object) -> None:
        """Ask, and compare: what is raised counts as the answer's text."""
        try:
            told = ask()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        self.made.append(Check(self.engine, name, told == wanted, _short(told)))

    def expect_refusal(self, name: str, ask: Callable[[], object], words: str) -> None:
        """Ask for what must be refused, with these words in the reason."""
        try:
            told, refused = _short(ask()), False
        except Exception as error:
            told, refused = str(error), True
        self.made.append(Check(self.engine, name, refused and words in told, _short(told)))


def _short(told: object) -> str:
    return " ".join(str(told).split())[:600]
