# SPDX-License-Identifier: Apache-2.0
"""Sampling of tests: the parts together cover every test, no part omits a group, and a commit always selects the same
tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.sampling import (
    CASES_MIN,
    FEW,
    HEAVY_MIN,
    HEAVY_TURNS,
    PARTS,
    SERVER_MODULES,
    SEVENTHS,
    is_of_few,
    part_of_commit,
    sample,
    times_by_folder,
)


def item(nodeid: str, *marks: str) -> SimpleNamespace:
    """A fake test item with the attributes that sampling reads."""
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if name in marks else None)


def chosen(items: list[SimpleNamespace], part: int) -> list[str]:
    """Return the names of the tests of a part."""
    return [each.nodeid for each in sample(cast("list[pytest.Item]", items), part)[0]]


@pytest.mark.parametrize(
    "items, least",
    [
        ([item(f"m.py::t[{n}]") for n in range(400)], CASES_MIN[""]),
        ([item(f"m.py::t[{n}]", "integration") for n in range(40)], CASES_MIN["integration"]),
        ([item(f"m.py::t{n}", "integration") for n in range(40)], CASES_MIN["integration"]),
        ([item(f"m.py::t{n}", "spark", "integration") for n in range(12)], CASES_MIN["spark"]),
        ([item(f"m.py::t{n}[{n % 2}]", "slow") for n in range(40)], CASES_MIN["slow"]),
        ([item(f"m{n}.py::t", "spark", "heavy") for n in range(12)], HEAVY_MIN),
    ],
    ids=["parameters", "parameters-with-servers", "with-servers", "with-spark", "slow", "heavy-modules"],
)
def test_parts_of_large_group_are_even_and_cover_it(items: list[SimpleNamespace], least: int) -> None:
    """No part is empty or much larger than a seventh, and every test is in a part."""
    parts = [chosen(items, part) for part in range(PARTS)]

    assert {name for part in parts for name in part} == {each.nodeid for each in items}
    assert all(least <= len(part) <= max(least, len(items) / SEVENTHS + 1) for part in parts)
    assert parts[::50] == [chosen(items, part) for part in range(0, PARTS, 50)]


@pytest.mark.parametrize(
    "items",
    [
        [item(f"m.py::t{n}") for n in range(50)],
        [item(f"m.py::t[{n}]", "spark") for n in range(2)],
        [item(f"f{n}/m.py::t", "integration") for n in range(50)],
        [item(f"m{n}.py::t", "heavy") for n in range(2)],
    ],
    ids=["different-fast-tests", "few-parameters", "folders", "few-heavy-modules"],
)
def test_fast_tests_and_small_groups_always_run(items: list[SimpleNamespace]) -> None:
    """Fast tests, small groups and one test of each folder are in each part, in order."""
    for part in range(PARTS):
        assert chosen(items, part) == [each.nodeid for each in items]


def test_heavy_module_is_sampled_like_others() -> None:
    """Of a selected heavy module a seventh of the tests run; of other heavy modules none."""
    modules = HEAVY_MIN * HEAVY_TURNS
    items = [item(f"m{module}.py::t{n}", "integration", "heavy") for module in range(modules) for n in range(14)]

    for part in range(PARTS):
        assert len(chosen(items, part)) == HEAVY_MIN * 2


def test_two_sevenths_of_server_modules_run() -> None:
    """Fast tests of these modules always run, and every test is in some part."""
    servers = [item(f"f/m{module}.py::t{n}", "integration") for module in range(21) for n in range(14)]
    fast = [item(f"f/m{module}.py::fast") for module in range(21)]
    parts = [chosen([*servers, *fast], part) for part in range(PARTS)]

    assert {name for part in parts for name in part} == {each.nodeid for each in [*servers, *fast]}
    for part in parts:
        assert len({name.partition("::")[0] for name in part if "fast" not in name}) == 3 * SERVER_MODULES
        assert sum("fast" in name for name in part) == len(fast)


def test_part_is_derived_from_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part is the commit's hash modulo the number of parts; it is 0 without a repository, and a variable replaces
    the hash.
    """
    monkeypatch.delenv("LIMNOS_TEST_PART", raising=False)
    here = Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True).stdout

    assert part_of_commit(tmp_path) == 0
    assert part_of_commit(here) == int(commit, 16) % PARTS

    monkeypatch.setenv("LIMNOS_TEST_PART", "151")
    assert part_of_commit(here) == 151 % PARTS


def test_times_of_folders_are_sums() -> None:
    """A folder has the seconds of set-up, test and end of all its tests, and the module that takes the longest."""
    durations = [("tests/a/test_x.py::t", 1.0), ("tests/a/test_x.py::t", 2.0), ("tests/a/test_y.py::t", 0.5)]
    durations += [("tests/b/test_z.py::t", 9.0)]

    assert times_by_folder(durations) == [
        "     9.0 s      1 tests  b: tests/b/test_z.py takes 9.0 s",
        "     3.5 s      2 tests  a: tests/a/test_x.py takes 3.0 s",
    ]


def test_few_modules_of_all_parts_are_every_module() -> None:
    """`--few` collects about a quarter of the modules, and each module for a quarter of the parts."""
    modules = [f"tests/http/test_{number}.py" for number in range(400)]
    parts = [[each for each in modules if is_of_few(each, part)] for part in range(PARTS)]

    assert all(len(modules) / FEW / 2 < len(part) < len(modules) / FEW * 2 for part in parts)
    assert {sum(each in part for part in parts) for each in modules} == {PARTS // FEW}
