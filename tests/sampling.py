"""Sampling of tests: `make test` takes one part in seven of what is large, `make test-full` takes all of it.

Three things are large: a test that runs for many parameters, the tests of a module that run on PostgreSQL too after they ran on
SQLite, and the long tests of a module, which start and kill processes. Of each, a part has a seventh and never nothing. The part
follows the commit, so seven commits in a row try nearly everything, and one commit always tries the same. Must know nothing of
any single test.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

PARTS: Final = 7
LONG: Final = "long"
"""The mark of a test that takes more than some seconds and is one of several of its kind."""
LONG_FOLDERS: Final = ("engine", "faults", "nodes", "pipeline/run")
"""Folders whose tests with servers or Spark are all long."""
CASES_MIN: Final = {"": 24, "integration": 3, "spark": 3}
"""How many parameters of a test are always run, by its suite: a fast one costs a millisecond, one with servers a second."""


def part_of_commit(folder: Path) -> int:
    """Return the part, 0 to 6, that belongs to the checked-out commit; 0 where there is no repository.

    `LIMNOS_TEST_PART` names another one.
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


def sample(items: Sequence[pytest.Item], part: int, folder: Path) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that the part runs and those that it leaves out, each in their order; `folder` holds all tests."""
    families: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        families[_family(item, folder)].append(item)
    chosen = {id(item) for (_, least), family in families.items() for item in _seventh(family, part, least=least)}
    return [item for item in items if id(item) in chosen], [item for item in items if id(item) not in chosen]


def _family(item: pytest.Item, folder: Path) -> tuple[str, int]:
    """Return what a test is sampled with, and how many of those are run at least."""
    module = item.nodeid.partition("::")[0]
    suite = next((mark for mark in ("spark", "integration") if item.get_closest_marker(mark) is not None), "")
    below = item.path.relative_to(folder).as_posix() if item.path.is_relative_to(folder) else ""
    if item.get_closest_marker(LONG) is not None or (
        suite and below.startswith(tuple(f"{each}/" for each in LONG_FOLDERS))
    ):
        return f"{module} {LONG}", 1
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if parameters.get("database") == "postgres":
        return f"{module} postgres", CASES_MIN[suite]
    return item.nodeid.partition("[")[0], CASES_MIN[suite]


def _seventh(family: list[pytest.Item], part: int, *, least: int) -> list[pytest.Item]:
    """Return each seventh test of a family, from a place that the part says, and the next ones up to `least`.

    The order is that of a hash of the names, so that neighbours, which are alike, are spread over the parts.
    """
    if len(family) <= least:
        return family
    mixed = sorted(family, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())
    own = mixed[part::PARTS]
    others = [item for shift in range(1, PARTS) for item in mixed[(part + shift) % PARTS :: PARTS]]
    return [*own, *others[: max(0, least - len(own))]]
