# SPDX-License-Identifier: Apache-2.0
"""One pass over the sources for all rules: a file is read, parsed and walked once, and its tree is dropped afterwards.

A rule about files is a `Look`: a function of one file, and the folders whose files it sees. The first look whose
results a test reads makes the pass for every look that exists by then, so the modules of tests create theirs at the
top. Knows nothing of pytest.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from tests.house.tidy import SourceFile

ROOT = Path(__file__).parents[2]
PRODUCT = ("src",)
TESTS = ("tests", "conformance")
EVERYTHING = ("src", "tests", "conformance", "bench", "scripts", "examples")
Result = TypeVar("Result")
_looks: list[Look[object]] = []


class Look(Generic[Result]):
    """A function of one file that is applied to every file of some folders, except generated ones."""

    def __init__(self, read: Callable[[SourceFile], Result], *folders: str, without: Collection[str] = ()) -> None:
        self._read = read
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._without = frozenset(without)
        self._results: dict[str, Result] | None = None
        _looks.append(self)  # type: ignore[arg-type]  # results are only stored

    @property
    def results(self) -> dict[str, Result]:
        """The result for each file by its path from the root, in the order of paths."""
        if self._results is None:
            _make_pass([look for look in _looks if look._results is None])
        assert self._results is not None
        return self._results

    def sees(self, path: str) -> bool:
        """Return whether a file, given by its path from the root, is one of those that the function is applied to."""
        return path.startswith(self._folders) and path not in self._without

    def start(self) -> None:
        """Begin with no results."""
        self._results = {}

    def take(self, source: SourceFile) -> None:
        """Apply the function to a file."""
        assert self._results is not None
        self._results[source.path] = self._read(source)


def complaints(rule: Callable[[SourceFile], Iterable[str]], *folders: str) -> Look[list[str]]:
    """Create the look of a rule that yields sentences about a file."""
    return Look(lambda source: list(rule(source)), *folders)


def sentences(look: Look[list[str]]) -> list[str]:
    """Return what a rule says about all files."""
    return [sentence for each in look.results.values() for sentence in each]


def _make_pass(looks: list[Look[object]]) -> None:
    """Apply functions to every file that at least one of them sees.

    Trees have no cycles, so the garbage collector only costs time.
    """
    for look in looks:
        look.start()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for source in _sources():
            for look in looks:
                if look.sees(source.path):
                    look.take(source)
    finally:
        if was_enabled:
            gc.enable()


def _sources() -> Iterator[SourceFile]:
    """Yield every file; it holds its tree only as long as the caller holds the file."""
    for file in sorted(file for folder in EVERYTHING for file in (ROOT / folder).rglob("*.py")):
        source = SourceFile(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
        if not source.generated:
            yield source
