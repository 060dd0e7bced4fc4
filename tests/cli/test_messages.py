# SPDX-License-Identifier: Apache-2.0
"""Rules for all texts that the command line prints, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import limnos

SOURCE = Path(limnos.__file__).parent
BARE = re.compile(
    r"\b[Tt]his\b(?=\s*[.,;:]|\s*$|\s+(?:[a-z]+s|was|with|again|to|in|of|on|at|off|below|may|can|cannot|must|would)\b)"
)
"""`this` without a noun: before a mark, a verb, or a preposition."""
NOUNS = re.compile(r"\b[Tt]his (?:address|process)\b")


def test_every_text_of_the_command_line_has_a_noun_after_this() -> None:
    """A reader of a message cannot know what a bare `this` means, so each text has the name of the thing."""
    bare = [
        f"{file.relative_to(SOURCE)}:{line}: {text}"
        for file in command_files()
        for line, text in texts_of(file)
        if BARE.search(NOUNS.sub("", text))
    ]

    assert bare == []


def command_files() -> list[Path]:
    """Return the modules of the commands, also of those in rooms."""
    return sorted({*(SOURCE / "cli").rglob("*.py"), *(SOURCE / "rooms").glob("*/cli/**/*.py")})


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of each text of a module that is no docstring, with their numbers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    described = {
        id(each.value) for node in ast.walk(tree) for each in ast.iter_child_nodes(node) if isinstance(each, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield from ((node.lineno + at, line) for at, line in enumerate(node.value.splitlines()))
