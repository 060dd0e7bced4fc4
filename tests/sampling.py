"""Sampling of tests: `make test` runs one part in seven of large groups, `make test-full` runs all tests.

Three kinds of groups are large, and each is sampled by itself: a test's parameters, the tests of a module that starts
servers, PostgreSQL or Spark, and the modules marked `heavy`, which take half a minute or more for any of their tests. A
sample is never empty. The commit selects the part: seven commits in a row try nearly everything, and a commit always
tries the same. Must know nothing of any single test.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

PARTS: Final = 7
HEAVY: Final = "heavy"
"""The mark of a module that takes half a minute or more for any of its tests."""
HEAVY_MIN: Final = 2
"""Minimum number of heavy modules that run."""
CASES_MIN: Final = {"": 10, "integration": 2, "spark": 2}
"""Minimum number of tests of a group, by suite: a fast test costs milliseconds, one with servers a second."""


def part_of_commit(folder: Path) -> int:
    """Return the part, 0 to 6, of the checked-out commit; 0 without a repository.

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


def sample(items: Sequence[pytest.Item], part: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the part and the other tests, each in their order."""
    heavy = {_module(item) for item in items if item.get_closest_marker(HEAVY) is not None}
    absent = heavy - _seventh(heavy, part, least=HEAVY_MIN)
    families: dict[tuple[str, int], list[str]] = defaultdict(list)
    for item in items:
        if _module(item) not in absent:
            families[_family(item)].append(item.nodeid)
    chosen = {name for (_, least), family in families.items() for name in _seventh(family, part, least=least)}
    return [item for item in items if item.nodeid in chosen], [item for item in items if item.nodeid not in chosen]


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _family(item: pytest.Item) -> tuple[str, int]:
    """Return a test's group, and the minimum number of its tests that run."""
    for suite in ("spark", "integration"):
        if item.get_closest_marker(suite) is not None:
            return f"{_module(item)} {suite}", CASES_MIN[suite]
    return item.nodeid.partition("[")[0], CASES_MIN[""]


def _seventh(names: Collection[str], part: int, *, least: int) -> set[str]:
    """Return every seventh name of a group, from an offset given by the part, and the next ones up to `least`.

    Names are ordered by a hash, so that similar neighbours are spread over the parts.
    """
    mixed = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    turns = [name for shift in range(PARTS) for name in mixed[(part + shift) % PARTS :: PARTS]]
    return set(turns[: max(least, len(mixed[part::PARTS]))])
