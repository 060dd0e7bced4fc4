"""The main property: no node ever gives a stale answer, whatever happens on the others.

Two nodes over one store, random mutations through the services on either, random questions meanwhile, a feed that
is pruned while a node sleeps; after every step each view is compared, fact by fact, with SQL (`harness`). The
sample here takes some seconds for each backend. `LIMNOS_FRESHNESS_STEPS=5000 pytest
tests/freshness/test_freshness.py` plays longer stories; `LIMNOS_FRESHNESS_SEED=n` plays others. A failure names
the step; the same seed tells the same story.
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
    """A fresh SQLite file."""
    return sqlite_copy(sqlite_template, tmp_path)


def assert_lively(tally: Tally, steps: int) -> None:
    """A story in which nothing happens proves nothing."""
    assert tally.mutations > steps / 3
    assert tally.facts > steps * 20
    assert tally.answers > steps * 3
    assert len(tally.operations) > 6


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_views_are_exact_whatever_happens(file: Database, seed: int) -> None:
    """Everything that can happen to a lake, with reads that land late: facts, answers, rights and ids hold."""
    steps = STEPS or 300

    tally = play(file, seed, steps)

    assert_lively(tally, steps)
    assert tally.rights > steps / 4


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_nothing_slips_through_in_a_crowd(file: Database, seed: int) -> None:
    """Many at once around a few tables, their names, owners and grants: every answer was true, every commit was
    right.
    """
    steps = STEPS or 200

    tally = play(file, seed, steps, focus=True)

    assert_lively(tally, steps)
    assert tally.rights > steps / 4


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
def test_views_are_exact_about_lance_tables(file: Database, seed: int) -> None:
    """A catalog of Lance tables beside one of Iceberg's: declared, renamed, moved, dropped, forgotten, with
    namespaces, grants and catalogs that change.
    """
    steps = STEPS or 250

    tally = play(file, seed, steps, lance=True)

    assert_lively(tally, steps)
    assert tally.rights > steps / 5
    assert min(tally.operations.get(each, 0) for each in ("lance_declare", "lance_drop", "lance_rename")) > 3


@pytest.mark.parametrize("focus", [False, True])
def test_views_are_exact_when_reads_answer_at_once(file: Database, focus: bool) -> None:
    """The same with SQLite's own gate, which answers without waiting, and not at all while the file is quiet."""
    steps = STEPS or 300

    tally = play(file, SEED, steps, inline=True, focus=focus)

    assert_lively(tally, steps)


@pytest.mark.integration
@pytest.mark.parametrize("focus", [False, True])
def test_views_are_exact_on_postgresql(postgres_server: PostgresServer, focus: bool) -> None:
    """The same on PostgreSQL, in real time: after every step each node's view is what SQL says."""
    steps = STEPS or 80

    tally = play(postgres_server.fresh_database(), SEED, steps, focus=focus)

    assert_lively(tally, steps)
