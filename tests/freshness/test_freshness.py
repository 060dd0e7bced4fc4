# SPDX-License-Identifier: Apache-2.0
"""The main property: no node ever gives a stale answer, whatever happens on other nodes.

Random mutations run through the services on two nodes of one store, with random questions meanwhile, and the feed is
pruned while a node is idle. After every step each view is compared with SQL, fact by fact (`harness`). The sample takes
some seconds for each database. `LIMNOS_FRESHNESS_STEPS=5000 pytest tests/freshness/test_freshness.py` runs longer
sequences, and `LIMNOS_FRESHNESS_SEED=n` runs other ones. A failure names the step; the same seed reproduces it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.backends import Database, PostgresServer, sqlite_copy
from tests.freshness.harness import Tally, play

STEPS = int(os.environ.get("LIMNOS_FRESHNESS_STEPS", "0"))
SEED = int(os.environ.get("LIMNOS_FRESHNESS_SEED", "1"))

pytestmark = pytest.mark.heavy


@pytest.fixture
def file(sqlite_template: Path, tmp_path: Path) -> Database:
    """The path of a new SQLite file."""
    return sqlite_copy(sqlite_template, tmp_path)


def assert_lively(tally: Tally, steps: int) -> None:
    """Check that enough happened in a sequence, because otherwise it proves nothing."""
    assert tally.mutations > steps / 3
    assert tally.facts > steps * 20
    assert tally.answers > steps * 3
    assert len(tally.operations) > 6


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_views_are_exact_under_mutations_and_late_reads(file: Database, seed: int) -> None:
    """With all kinds of mutations and reads that complete late, the invariants of facts, answers, rights and ids
    hold.
    """
    steps = STEPS or 300

    tally = play(file, seed, steps)

    assert_lively(tally, steps)
    assert tally.rights > steps / 4


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_answers_and_privileges_are_exact_under_concurrency(file: Database, seed: int) -> None:
    """With many concurrent requests on a few tables, their names, owners and grants, every answer was true at some
    moment and every commit had its privilege.
    """
    steps = STEPS or 200

    tally = play(file, seed, steps, focus=True)

    assert_lively(tally, steps)
    assert tally.rights > steps / 4


@pytest.mark.room("lance")
@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
def test_views_are_exact_for_lance_tables(file: Database, seed: int) -> None:
    """With a catalog of Lance tables beside one of Iceberg tables, and declares, renames, moves, drops,
    deregistrations, grants and changes of catalogs, the invariants hold.
    """
    steps = STEPS or 250

    tally = play(file, seed, steps, lance=True)

    assert_lively(tally, steps)
    assert tally.rights > steps / 5
    assert min(tally.operations.get(each, 0) for each in ("lance_declare", "lance_drop", "lance_rename")) > 3


@pytest.mark.parametrize("focus", [False, True])
def test_views_are_exact_with_immediate_sqlite_reads(file: Database, focus: bool) -> None:
    """The invariants hold with SQLite's own gate, which answers without waiting and reads nothing while the file is
    unchanged.
    """
    steps = STEPS or 300

    tally = play(file, SEED, steps, inline=True, focus=focus)

    assert_lively(tally, steps)


@pytest.mark.integration
@pytest.mark.parametrize("focus", [False, True])
def test_views_are_exact_on_postgresql(postgres_server: PostgresServer, focus: bool) -> None:
    """On PostgreSQL, in real time, each node's view equals SQL's answers after every step."""
    steps = STEPS or 80

    tally = play(postgres_server.fresh_database(), SEED, steps, focus=focus)

    assert_lively(tally, steps)
