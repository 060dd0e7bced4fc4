# SPDX-License-Identifier: Apache-2.0
"""Background work of a node: due work is done once, and an idle node sends no statements to the store."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app import upkeep
from limnos.app.node_builder import DATABASE_FILE
from limnos.store.activity import audit
from limnos.store.objects import name_search, trash
from tests.http.driver import node_at
from tests.http.iceberg.wire import make_space, space_path

TRASH = "/api/limnos/v1/metalakes/lake/catalogs/main/trash"
WITHIN_S = 300


def test_idle_node_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing is due, the search for tasks, their count and the delivery of changes only read."""
    with node_at(tmp_path / "data") as node:
        upkeep, run = node.built.upkeep, node.runner.run
        run(upkeep.sweep())
        while run(upkeep.run_one()) or run(upkeep.run_one(among_long=True)):
            pass
        written: list[object] = []
        monkeypatch.setattr(type(upkeep.store), "submit", lambda *arguments, **_: written.append(arguments))

        assert run(upkeep.run_one()) is False
        assert run(upkeep.run_one(among_long=True)) is False
        run(upkeep.write_audit())
        run(upkeep.count())

        assert written == []


def test_sweep_deletes_all_expired_trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep deletes all expired objects of the trash in parts, however many there are."""
    monkeypatch.setattr(trash, "SWEPT_MAX", 2)
    with node_at(tmp_path / "data") as node:
        for number in range(5):
            make_space(node, f"n{number}")
            assert node.delete(space_path(f"n{number}")).status == 204
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
            connection.execute("UPDATE trash SET expires_at = 0")

        node.runner.run(node.built.upkeep.sweep())

        assert node.get("/api/limnos/v1/metalakes/lake/catalogs/main/trash").json()["trash"] == []


def test_sweep_deletes_old_audit_and_folds_old_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep deletes all old audit records and folds all names of an older release, in parts."""
    for module in (audit, upkeep):
        monkeypatch.setattr(module, "EXPIRED_AT_ONCE", 2)
    for module in (name_search, upkeep):
        monkeypatch.setattr(module, "UNFOLDED_AT_ONCE", 2)
    with node_at(tmp_path / "data") as node:
        for number in range(5):
            make_space(node, f"n{number}")
        node.runner.run(node.built.upkeep.write_audit())
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
            old = connection.execute("UPDATE audit SET at = 0").rowcount
            unfolded = connection.execute("UPDATE node SET folded = NULL").rowcount

        node.runner.run(node.built.upkeep.sweep())

        assert min(old, unfolded) >= 5
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
            left = [
                connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
                for rows in ("audit WHERE at = 0", "node WHERE folded IS NULL")
            ]
        assert left == [0, 0]


def test_background_task_sweeps_at_start_and_on_wake(tmp_path: Path) -> None:
    """The background task sweeps when it starts, and searches for work when it is woken."""
    with node_at(tmp_path / "data") as node:
        make_space(node, "n")
        assert node.delete(space_path("n")).status == 204
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
            connection.execute("UPDATE trash SET expires_at = 0")

        async def story() -> None:
            running = asyncio.create_task(node.built.upkeep.run())
            async with asyncio.timeout(WITHIN_S):
                while (await node.answer("GET", TRASH)).json()["trash"]:  # noqa: ASYNC110 - the task has no event for it
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        node.runner.run(story())

        assert node.get(TRASH).json()["trash"] == []


def test_task_without_a_recorded_outcome_runs_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store fails when a task's outcome is recorded, the node ends the lease with its next attempt, so that the
    task does not wait for the end of the lease.
    """
    with node_at(tmp_path / "data") as node:
        work, run = node.built.upkeep, node.runner.run
        run(work.sweep())
        submit, calls = work.store.submit, list[int]()

        async def failing(*arguments: object, **more: object) -> object:
            calls.append(1)
            if len(calls) == 2:
                raise OSError(errno.EIO, "Input/output error")
            return await submit(*arguments, **more)

        monkeypatch.setattr(work.store, "submit", failing)
        monkeypatch.setattr(work, "kinds", {})  # a task of an unknown kind is recorded, and nothing else
        with pytest.raises(OSError, match="Input/output"):
            run(work.run_one())
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
            leased = connection.execute("SELECT id FROM task WHERE leased_until > 0").fetchall()
        run(work.run_one())
        with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
            ran_again = connection.execute("SELECT id FROM task WHERE error = 'unknown kind'").fetchall()

    assert len(leased) == 1
    assert ran_again == leased
