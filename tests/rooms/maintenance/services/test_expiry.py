# SPDX-License-Identifier: Apache-2.0
"""Expiry: one commit removes the snapshots that no rule keeps. After a concurrent commit the expiry is decided
again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from limnos.access.authentication import Credential
from limnos.formats.gravitino.policies import SNAPSHOT_EXPIRATION
from limnos.model.errors import CommitConflict, PermissionDenied
from limnos.rooms.maintenance.services import assessed_changes, expiry
from limnos.rooms.maintenance.services.assessing import effective_policies
from limnos.rooms.maintenance.services.expiry import ExpiryResult, table_expire
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.services.iceberg import commits
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, add_policy, assess, set_clock
from tests.rooms.pipelines.http.test_runs import started

pytestmark = pytest.mark.slow

MAIN = RequestScope("lake", "main")


def expire(node: DriverNode, *path: str, user: str = "admin") -> ExpiryResult:
    """Expire the snapshots of a table."""
    ctx = Context(node.built.services, Credential(user=user), "test")
    levels = path or ("a", "t")

    async def run() -> ExpiryResult:
        node_id = await ctx.read(MAIN, lambda view: maintained_table(view, levels).entity.id)
        policy = (await effective_policies(node.built.services, node_id)).get(SNAPSHOT_EXPIRATION)
        return await table_expire(ctx, MAIN, path=levels, planned=None if policy is None else policy.terms)

    return node.runner.run(run())


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table with twelve old snapshots."""
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, FIRST_MS + 30 * DAY_MS)
    return history_table


def test_expiry_removes_old_snapshots_without_deleting_files(table: HistoryTable) -> None:
    """An expiry removes all snapshots but the head by an ordinary commit, and deletes no data file, manifest or
    manifest list.
    """
    before = [path for path in wire.files_of(table.node) if not path.endswith(".metadata.json")]
    expiry = expire(table.node)

    assert (len(expiry.removed), expiry.left, table.ids()) == (11, 1, [12])
    assert expiry.text == "removed 11 snapshots; 1 stay"
    assert set(before) <= set(wire.files_of(table.node))
    assert expire(table.node).removed == ()


def test_expiry_waits_until_the_positions_of_readers_are_known(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No snapshot expires until all changed tables are assessed, since one of them may read this table incrementally;
    the result says so.
    """
    with monkeypatch.context() as patch:
        patch.setattr(assessed_changes, "TABLES_PER_REQUEST", 1)
        waiting = expire(table.node)

    assert (waiting.removed, len(table.ids())) == ((), 12)
    assert "positions of incremental readers" in waiting.text
    assert len(expire(table.node).removed) == 11


def test_expiry_without_expired_snapshots_commits_nothing(table: HistoryTable) -> None:
    """An expiry that finds no expired snapshot commits nothing."""
    expire(table.node)
    location = table.node.get(table.path)["metadata-location"]
    expire(table.node)
    assert table.node.get(table.path)["metadata-location"] == location


def test_table_property_can_keep_more_snapshots_than_the_policy(table: HistoryTable) -> None:
    """The numbers of the policy apply, unless a table property keeps more snapshots."""
    add_policy(table.node, "p", "system_iceberg_snapshot_expiration", {"retainLast": 4}, on="main", kind="catalog")
    expire(table.node)
    assert table.ids() == [9, 10, 11, 12]
    update = wire.set_properties(**{"history.expire.min-snapshots-to-keep": "3"})
    add_policy(table.node, "q", "system_iceberg_snapshot_expiration", {"retainLast": 2}, on="main.a.t", kind="table")
    assert wire.commit(table.node, "a", "t", updates=[update]).status == 200
    expire(table.node)
    assert table.ids() == [10, 11, 12]


def test_snapshots_needed_by_a_run_are_retained(table: HistoryTable) -> None:
    """Snapshots that a run needs are kept, even if the run begins between decision and commit."""
    pins = {"pins": [{"table": ["main", "a", "t"], "snapshot": 300, "fingerprint": None}]}
    started(table.node, options=pins)
    assert 300 not in expire(table.node).removed
    assert table.ids() == [3, 12]


def test_pin_between_decision_and_commit_repeats_the_decision(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of an expiry reads pins that were written after the decision, and the expiry is then decided again."""
    pins = {"pins": [{"table": ["main", "a", "t"], "snapshot": 300, "fingerprint": None}]}
    expiry = expire_around(table, monkeypatch, lambda: started(table.node, options=pins))
    assert 300 not in expiry.removed
    assert table.ids() == [3, 12]


def test_snapshot_tagged_between_decision_and_commit_is_retained(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag set after the decision keeps its snapshot, because the commit requires the version of the decision."""
    expire_around(
        table,
        monkeypatch,
        lambda: wire.commit(table.node, "a", "t", updates=[wire.point(5, "kept", "tag")]),
    )
    assert table.ids() == [5, 12]
    assert "kept" in wire.metadata_of(table.node, "a", "t")["refs"]  # type: ignore[operator]


def test_expiry_that_loses_several_races_changes_nothing(table: HistoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expiry that loses several races ends without a change of the table."""
    numbers = iter(range(100))

    def other() -> None:
        update = wire.set_properties(x=str(next(numbers)))
        assert wire.commit(table.node, "a", "t", updates=[update]).status == 200

    with pytest.raises(CommitConflict):
        expire_around(table, monkeypatch, other, times=100)
    assert len(table.ids()) == 12
    assert next(numbers) == expiry.TRIES_MAX


def expire_around(
    table: HistoryTable, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], *, times: int = 1
) -> ExpiryResult:
    """Run an expiry with a callback that runs between decision and commit, this number of times."""
    commit, reached, left = expiry.table_commit, asyncio.Event(), [times]
    go = asyncio.Event()

    async def commit_later(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        if left[0]:
            left[0] -= 1
            reached.set()
            await go.wait()
            go.clear()
        return await commit(*args, **named)

    monkeypatch.setattr(expiry, "table_commit", commit_later)
    runner = table.node.runner
    ctx = Context(table.node.built.services, Credential(user="admin"), "test")

    async def begin() -> asyncio.Task[ExpiryResult]:
        return asyncio.create_task(table_expire(ctx, MAIN, path=("a", "t")))

    async def reach(task: asyncio.Task[ExpiryResult]) -> bool:
        waiting = asyncio.create_task(reached.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return not task.done()

    async def end(task: asyncio.Task[ExpiryResult]) -> ExpiryResult:
        return await task

    task = runner.run(begin())
    while runner.run(reach(task)):
        reached.clear()
        act()
        go.set()
    return runner.run(end(task))


def test_last_read_snapshot_is_retained_for_a_week(lake: DriverNode) -> None:
    """The last snapshot that an incremental reader has read is kept for a week, whatever the reader's last report."""
    source, reader = HistoryTable(lake), HistoryTable(lake, "out")
    source.append(12)
    clock = set_clock(lake, FIRST_MS + 30 * DAY_MS)
    reader.append(**{"limnos.inputs": json.dumps({"main.a.t": 400})})
    clock.at_ms = FIRST_MS + 6 * DAY_MS
    expire(lake)
    assert source.ids() == list(range(4, 13))  # the reader reads the snapshots in this order
    clock.at_ms = FIRST_MS + 8 * DAY_MS
    expire(lake)
    assert source.ids() == [12]


@pytest.mark.parametrize("when", ["before the assessment", "after the assessment"])
def test_snapshots_for_a_reader_in_the_trash_are_retained(lake: DriverNode, when: str) -> None:
    """Snapshots that a reader in the trash would read next are kept, because it may be restored."""
    source, reader = HistoryTable(lake), HistoryTable(lake, "out")
    source.append(12)
    clock = set_clock(lake, FIRST_MS + 6 * DAY_MS)
    reader.append(**{"limnos.inputs": json.dumps({"main.a.t": 400})})
    if when == "after the assessment":
        assess(lake)
    assert lake.delete(wire.table_path("a", "out")).status == 204
    expire(lake)
    assert source.ids() == list(range(4, 13))
    clock.at_ms = FIRST_MS + 8 * DAY_MS
    expire(lake)
    assert source.ids() == [12]


def test_readers_and_restricted_users_cannot_expire_snapshots(table: HistoryTable) -> None:
    """Readers cannot expire snapshots, nor can restricted users who may modify the table."""
    node = table.node
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    with pytest.raises(PermissionDenied):
        expire(node, user="reader")
    grant(node, "writer", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    address = "/api/limnos/v1/metalakes/lake/objects/TABLE/main.a.t/restrictions/r"
    node.done("PUT", address, {"masks": {"city": "replace-with-null"}})
    with pytest.raises(PermissionDenied):
        expire(node, user="writer")
    assert len(table.ids()) == 12


def test_gc_disabled_table_loses_no_snapshots(table: HistoryTable) -> None:
    """With gc.enabled=false nothing is removed, and the result says so."""
    update = wire.set_properties(**{"gc.enabled": "false"})
    assert wire.commit(table.node, "a", "t", updates=[update]).status == 200
    assert expire(table.node).text == "gc.enabled is false"
    assert len(table.ids()) == 12


def test_commit_for_an_older_version_is_a_conflict(table: HistoryTable) -> None:
    """A commit for an older version is a conflict, even if its requirements hold."""
    ctx = Context(table.node.built.services, Credential(user="admin"), "test")
    work = commits.table_commit(
        ctx, MAIN, namespace=("a",), name="t", requirements=[], updates=[wire.set_properties(x="1")], version=3
    )
    with pytest.raises(CommitConflict):
        table.node.runner.run(work)
