# SPDX-License-Identifier: Apache-2.0
"""Kill -9 at each boundary of a batch of three mutations on SQLite: they commit together or not at all."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.faults.mutations import Case, namespace_chain, table_commit, table_create
from tests.faults.rig import FULL, Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import ConnectionLost, Wire

BATCH = (namespace_chain, table_create, table_commit)
POINTS = ["begin", "locked", *(f"{point}:{n}" for point in ("permitted", "written") for n in (1, 2, 3)), "drafted"]
MATRIX = [*POINTS, "before-commit", "after-commit"]
SAMPLE = MATRIX if FULL else ["permitted:3", "written:2", "before-commit", "after-commit"]
QUEUED_WITHIN_S = 300
ON_THE_WAY_S = 0.3
"""Seconds from the metadata file, or from the arrival of a request without one, to the queue; in reality
microseconds.
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One node on SQLite for the module."""
    with Rig(tmp_path_factory.mktemp("batch"), None) as running:
        yield running


@contextmanager
def hold_write_lock(database: str) -> Iterator[None]:
    """Hold the file's write lock, so that mutations sent meanwhile are queued and become one batch."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def metadata_files(rig: Rig) -> set[Path]:
    """Return all metadata files below the node's data directory."""
    return set(rig.node.data.rglob("*.metadata.json"))


def send_together(rig: Rig, cases: list[Case]) -> list[int | None]:
    """Send mutations so that they share one batch. Returns the status of each, None if its connection broke."""

    def send(case: Case) -> int | None:
        wire = Wire(rig.node.uri, user="admin")
        try:
            return wire.ask(case.method, case.path, case.body).status
        except ConnectionLost:
            return None
        finally:
            wire.close()

    before = metadata_files(rig)
    with ThreadPoolExecutor(len(cases)) as threads:
        with hold_write_lock(rig.database):
            sent = [threads.submit(send, case) for case in cases]
            until = time.monotonic() + QUEUED_WITHIN_S
            while rig.node.running.poll() is None and len(metadata_files(rig) - before) < len(cases) - 1:
                assert time.monotonic() < until, "the mutations did not reach the store"
                time.sleep(0.01)
            time.sleep(ON_THE_WAY_S)
        return [each.result() for each in sent]


@pytest.mark.parametrize("point", SAMPLE)
def test_killed_batch_is_whole_or_absent(rig: Rig, point: str) -> None:
    """After a kill inside a batch of three, all three are committed if it was after the commit, and none if it was
    before. Each can be repeated.
    """
    cases = [mutation(rig) for mutation in BATCH]
    name, _, count = point.partition(":")
    rig.arm(name, count=int(count or 1))

    answers = send_together(rig, cases)

    rig.node.wait_killed()
    assert answers == [None, None, None]
    assert complaints(rig.database) == []
    rig.start()
    assert [case.is_done() for case in cases] == [point == "after-commit"] * 3
    for case in cases:
        done = case.is_done()
        again = rig.admin.ask(case.method, case.path, case.body)
        assert again.status in (case.again if done else (200,)), f"repeated: {again}"
        assert case.is_done()
    assert complaints(rig.database) == []


def test_batch_commits_together(rig: Rig) -> None:
    """Mutations that are queued during another process's write become one batch with one commit time."""
    cases = [mutation(rig) for mutation in BATCH]
    ((catalog, before),) = rig.rows(
        "SELECT zone, revision FROM clock WHERE zone = (SELECT id FROM node WHERE kind = 2 AND name = 'main')"
    )

    answers = send_together(rig, cases)

    assert answers == [200, 200, 200]
    assert all(case.is_done() for case in cases)
    times = rig.rows(f"SELECT at, count(*) FROM change WHERE zone = {catalog} AND revision > {before} GROUP BY at")
    assert len(times) == 1, f"not one batch: {times}"
