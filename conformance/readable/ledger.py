# SPDX-License-Identifier: Apache-2.0
"""The ledger of differences, `ledger.toml`: what readers lack, and what we refuse although all readers take it.

Job: the file in, its rules out. May import nothing of this package. It must not know how documents are read or made.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

_VERSION = re.compile('"format-version":([0-9]+)')
FILE = Path(__file__).with_name("ledger.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A valid part of documents that a reader does not know, and what it would know in its place."""

    name: str
    reader: str
    part: re.Pattern[str]
    instead: str
    versions: tuple[int, ...] = (1, 2, 3)
    """The format versions of a table in which the part is valid."""

    def replace(self, document: str) -> tuple[str, int]:
        """Return a document with the reader's part instead of this one, and how often it was replaced."""
        version = _VERSION.search(document)
        if version is not None and int(version[1]) not in self.versions:
            return document, 0
        return self.part.subn(self.instead, document)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message of ours for requests whose result all readers take."""

    name: str
    message: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rules. Each one has its reason in the file."""

    lacks: tuple[Lack, ...]
    refusals: tuple[Refusal, ...]

    def known_to(self, reader: str, document: str) -> tuple[str, list[str]]:
        """Return a document with what a reader knows instead of the valid parts that it does not know, and the names of
        the rules that changed it. A reader that still refuses it has another reason.
        """
        names = []
        for rule in self.lacks:
            if reader.startswith(rule.reader):
                document, count = rule.replace(document)
                names += [rule.name] if count else []
        return document, names

    def refusal(self, message: str) -> str | None:
        """Return the name of the rule for our message, or None."""
        return next((rule.name for rule in self.refusals if rule.message.search(message)), None)


def load_ledger(text: str) -> Ledger:
    """Return the rules of a ledger. Raises ValueError for a rule without a reason."""
    tables = tomllib.loads(text)
    rules = [*tables["lack"], *tables["refusal"]]
    if unexplained := [rule["name"] for rule in rules if not rule.get("reason")]:
        raise ValueError(f"no reason: {', '.join(unexplained)}")
    return Ledger(
        tuple(
            Lack(
                name=r["name"],
                reader=r["reader"],
                part=re.compile(r["part"]),
                instead=r["instead"],
                versions=tuple(r.get("versions", (1, 2, 3))),
            )
            for r in tables["lack"]
        ),
        tuple(Refusal(r["name"], re.compile(r["message"])) for r in tables["refusal"]),
    )
