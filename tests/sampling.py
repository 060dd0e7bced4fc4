# SPDX-License-Identifier: Apache-2.0
"""Sampling of tests: `make test` runs one part in seven of large groups, `make test-full` runs all tests.

Five kinds of groups are large, and each is sampled separately: a test's parameters; the tests of a module marked
`slow`, which take half a second each; those of a module that starts servers, PostgreSQL or Spark; these modules
themselves, of which one in seven runs in each folder; and the modules marked `heavy`, which take half a minute or more
for any of their tests, and of which one in twenty-eight runs. A sample is never empty. The commit selects the part: 0
to 195, of which the remainder by seven selects tests and the quotient selects modules. Some hundred commits run nearly
everything, and a commit always runs the same. Must know nothing of any single test.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

SEVENTHS: Final = 7
HEAVY_TURNS: Final = 28
PARTS: Final = SEVENTHS * HEAVY_TURNS
"""Tests and modules are selected independently; otherwise a test that exists only in a deselected module would never
run.
"""
HEAVY: Final = "heavy"
"""The mark of a module that takes half a minute or more for any of its tests."""
SLOW: Final = "slow"
"""The mark of a module without servers whose tests take half a second or more each."""
HEAVY_MIN: Final = 2
"""Minimum number of heavy modules that run."""
SERVER_MODULES: Final = 1
"""Number of selected modules of seven in a folder, of those that start servers, PostgreSQL or Spark."""
CASES_MIN: Final = {"": 10, "slow": 1, "integration": 2, "spark": 2, "heavy": 1}
"""Minimum number of tests of a group, by suite: a fast test costs milliseconds, one with servers a second."""


FEW: Final = 4
"""With `--few` one module of so many is collected."""
_SERVERS: Final = ("spark", "integration")


def part_of_commit(folder: Path) -> int:
    """Return the part, 0 to 195, of the checked-out commit; 0 without a repository.

    `LIMNOS_TEST_PART` selects another one.
    """
    if named := os.environ.get("LIMNOS_TEST_PART"):
        return int(named) % PARTS
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(commit, 16) % PARTS


def is_of_few(module: str, part: int) -> bool:
    """Return whether a module, given by its path from the root, is in the part that `--few` collects."""
    return int.from_bytes(hashlib.sha256(module.encode()).digest()[:4]) % FEW == part % FEW


def sample(items: Sequence[pytest.Item], part: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the part and the other tests, each in their order."""
    absent = _absent_tests(items, part // SEVENTHS)
    families: dict[tuple[str, int], list[str]] = defaultdict(list)
    for item in items:
        if item.nodeid not in absent:
            families[_family(item)].append(item.nodeid)
    chosen = {name for (_, least), family in families.items() for name in _share(family, part % SEVENTHS, least=least)}
    return [item for item in items if item.nodeid in chosen], [item for item in items if item.nodeid not in chosen]


def _absent_tests(items: Sequence[pytest.Item], turn: int) -> set[str]:
    """Return the tests of modules that do not run: most heavy ones, and some of those that start servers."""
    heavy: set[str] = set()
    folders: dict[str, set[str]] = defaultdict(set)
    for item in items:
        module = _module(item)
        if item.get_closest_marker(HEAVY) is not None:
            heavy.add(module)
        elif _server_suite(item) is not None:
            folders[module.rpartition("/")[0]].add(module)
    run = _share(heavy, turn, least=HEAVY_MIN, turns=HEAVY_TURNS)
    for modules in folders.values():
        run |= _share(modules, turn % SEVENTHS, shares=SERVER_MODULES, least=1)
    return {
        item.nodeid
        for item in items
        if _module(item) not in run and (item.get_closest_marker(HEAVY) is not None or _server_suite(item) is not None)
    }


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _server_suite(item: pytest.Item) -> str | None:
    """Return the suite of a test that starts servers, PostgreSQL or Spark."""
    return next((suite for suite in _SERVERS if item.get_closest_marker(suite) is not None), None)


def _family(item: pytest.Item) -> tuple[str, int]:
    """Return a test's group, and the minimum number of its tests that run."""
    suite = next((mark for mark in (HEAVY, *_SERVERS, SLOW) if item.get_closest_marker(mark) is not None), None)
    if suite is not None:
        return f"{_module(item)} {suite}", CASES_MIN[suite]
    return item.nodeid.partition("[")[0], CASES_MIN[""]


def _share(names: Collection[str], turn: int, *, least: int, shares: int = 1, turns: int = SEVENTHS) -> set[str]:
    """Return every seventh name of a group, or several sevenths, from an offset given by the turn; or another part, if
    there are more turns than seven.

    The next ones follow up to `least`. Names are ordered by a hash, so that similar neighbors are distributed over the
    turns.
    """
    mixed = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    in_turn = [name for shift in range(turns) for name in mixed[(turn + shift) % turns :: turns]]
    size = sum(len(mixed[(turn + shift) % turns :: turns]) for shift in range(shares))
    return set(in_turn[: max(least, size)])


def times_by_folder(durations: Iterable[tuple[str, float]]) -> list[str]:
    """Return a line for each folder below tests/: its seconds, its tests and its longest module; the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    modules: dict[tuple[str, str], float] = defaultdict(float)
    names: dict[str, set[str]] = defaultdict(set)
    for nodeid, duration in durations:
        module = nodeid.partition("::")[0]
        folder = module.split("/")[1]
        seconds[folder] += duration
        modules[folder, module] += duration
        names[folder].add(nodeid)
    longest = {folder: module for _, (folder, module) in sorted((total, key) for key, total in modules.items())}
    return [
        f"{total:8.1f} s {len(names[folder]):6} tests  {folder}: {longest[folder]} takes"
        f" {modules[folder, longest[folder]]:.1f} s"
        for folder, total in sorted(seconds.items(), key=lambda entry: -entry[1])
    ]
