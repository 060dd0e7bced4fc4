"""The rules of names as pure functions: source text in, complaints out. test_words.py applies them to the tree.

A class is a noun, and stands for one thing. Words that only this code base had are not to come back.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tests.house.tidy import SourceFile

MODULES_MAX: Final = 3
"""In so many modules a class name may stand."""
PARTICIPLE: Final = re.compile(r"_?[A-Z][a-z]+(?:ed|ing)")
IRREGULAR: Final = frozenset(
    [
        "Bound",
        "Bought",
        "Broken",
        "Brought",
        "Built",
        "Caught",
        "Chosen",
        "Done",
        "Drawn",
        "Found",
        "Given",
        "Gone",
        "Grown",
        "Held",
        "Hidden",
        "Kept",
        "Known",
        "Laid",
        "Led",
        "Left",
        "Lent",
        "Lost",
        "Made",
        "Meant",
        "Met",
        "Paid",
        "Read",
        "Said",
        "Seen",
        "Sent",
        "Set",
        "Shown",
        "Sought",
        "Spent",
        "Stood",
        "Taken",
        "Thought",
        "Told",
        "Understood",
        "Written",
    ]
)
NOUNS: Final[Mapping[str, str]] = {
    "Listing": "a noun of its own",
    "String": "a noun",
    "Negated": "EXPLAIN prints it as the name of a plan's node",
    "Quantified": "EXPLAIN prints it as the name of a plan's node",
}
"""Names of one word that end like participles, and why they may."""
PRIVATE: Final[Mapping[str, str]] = {
    "scene": "request view",
    "scenes": "request views",
    "deed": "transaction mutation",
    "deeds": "transaction mutations",
    "sight": "visible object",
    "sights": "visible objects",
    "shadows": "placeholder nodes",
}
"""Words that only this code base had, and those of the field."""


def participles(files: Iterable[SourceFile]) -> Iterator[str]:
    """Complain of classes named by a participle alone: it says what happened, and not to what."""
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef) and node.name not in NOUNS and _is_participle(node.name):
                yield f"{file.path}:{node.lineno}: class {node.name} is a participle; name the thing, as in ListRequest"


def _is_participle(name: str) -> bool:
    return PARTICIPLE.fullmatch(name) is not None or name.lstrip("_") in IRREGULAR


def repeated(files: Iterable[SourceFile]) -> Iterator[str]:
    """Complain of class names that stand in too many modules."""
    modules: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(file.module)
    for name, found in sorted(modules.items()):
        if len(found) > MODULES_MAX:
            yield f"class {name} stands in {len(found)} modules, {MODULES_MAX} at most: {', '.join(sorted(found))}"


def private(path: str, text: str) -> Iterator[str]:
    """Complain of private words in a source or a page, in names as in prose."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[A-Za-z]+", line):
            if (better := PRIVATE.get(word.lower())) is not None and "out of sight" not in line:
                yield f"{path}:{number}: {word} is a word of ours alone; say {better}"
