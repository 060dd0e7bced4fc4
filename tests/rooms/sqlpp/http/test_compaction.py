# SPDX-License-Identifier: Apache-2.0
"""Compaction of datasets: the statements that schedule it, and its task's use of engine, lock and user."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from limnos.model.permits import upkeep_permit
from limnos.rooms.sqlpp.language.errors import OutcomeUnknown
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.compaction_requests import (
    CLEAN_UP,
    CLEANUP_DELAY_MS,
    CLEANUP_PLANNED,
    COMPACT,
    CompactPayload,
    files_of,
)
from limnos.rooms.sqlpp.services.execution.engine import ENGINE, NoSqlppEngine
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import drop_for_good, local, make_table, point, snapshot, table_path
from tests.iceberg_manifests import manifest_list
from tests.rooms.sqlpp.http.wire import ask, refusal, rows

INSERT = "insert into heaps ({'id': 1})"
HEAPS = ("Default", "heaps")
MANY = 64
OTHER = "of-a-newer-release"
PATIENCE_S = 600.0


class CountingEngine:
    """A fake engine whose commits state the number of files of a dataset, as Spark's do; a compaction leaves `left`
    files.
    """

    def __init__(self, node: DriverNode, files: int, *, left: int = 1, path: tuple[str, ...] = HEAPS) -> None:
        self.node = node
        self.path = path
        self.files = files
        self.left = left
        self.jobs: list[EngineJob] = []
        self.answers: list[DriverAnswer] = []
        self._numbers = itertools.count(1)

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Commit a state with this number of files."""
        self.jobs.append(job)
        if job.kind == "compact":
            self.files = self.left
        number = next(self._numbers)
        loaded = await self.node._ask("GET", table_path(*self.path), None, "admin", {})
        place = f"{loaded.json()['metadata']['location']}/metadata/{number}.avro"
        local(place).parent.mkdir(parents=True, exist_ok=True)
        local(place).write_bytes(manifest_list([], version=2))
        added = snapshot(number, manifest_list=place, parent=number - 1 or None)
        added["snapshot"]["summary"] |= {  # type: ignore[index]
            "sqlpp.statement": job.id,
            "total-data-files": str(self.files),
            "total-files-size": "100",
        }
        headers = {"authorization": f"Bearer {job.credential}", "x_limnos_lock": job.lock}
        body = {"requirements": [], "updates": [added, point(number)]}
        self.answers.append(await self.node._ask("POST", table_path(*self.path), body, None, headers))
        yield b"{}"

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


class FailingEngine(NoSqlppEngine):
    """A fake engine that fails in the middle of each job."""

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Fail every job."""
        raise OutcomeUnknown
        yield b""


@pytest.fixture
def lake(shared: DriverNode) -> Iterator[DriverNode]:
    """A node with a dataset."""
    services = shared.built.services
    engine = ENGINE.of(services)
    rows(shared, "create type Heap as { id: bigint }; create dataset heaps(Heap) primary key id")
    yield shared
    ENGINE.put(services, engine)
    rows(shared, "drop dataset heaps if exists; drop type Heap if exists")
    for kind in (COMPACT, CLEAN_UP):
        sql(shared, "DELETE FROM task WHERE kind = ?", kind)
    CLEANUP_PLANNED.of(services).clear()


def with_engine(node: DriverNode, files: int = MANY + 1, *, left: int = 1) -> CountingEngine:
    """Give the node a fake engine."""
    engine = CountingEngine(node, files, left=left)
    ENGINE.put(node.built.services, engine)
    return engine


def sql(node: DriverNode, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    """Execute SQL on the store."""
    with closing(sqlite3.connect(node.data / "limnos.db", timeout=30)) as connection, connection:
        return connection.execute(statement, parameters).fetchall()


def tasks(node: DriverNode) -> list[tuple[str | None, str | None, int | None]]:
    """Return error, result and end of each compaction task."""
    return sql(node, "SELECT error, result, ended_at FROM task WHERE kind = ? ORDER BY id", COMPACT)


def compaction_outcomes(node: DriverNode) -> list[tuple[str, str, str]]:
    """Return state, user and result of each compaction in `maintenance status`, newest first."""
    page = node.done("GET", f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations")["operations"]
    return [(each["state"], each["user"], each["result"]) for each in page if each["table"] == "Default.heaps"]


def worked(node: DriverNode) -> None:
    """Run the due tasks."""
    while node.runner.run(node.built.upkeep.run_one(among_long=True)):
        pass


def test_files_of_counts_files_beyond_the_necessary() -> None:
    """`files_of` is the number of data and delete files, minus the number that the total size needs. It is 0 without
    valid counts in the snapshot's summary.
    """
    summary = '"total-data-files": "70", "total-delete-files": "5", "total-files-size": "200000000"'
    state = '{"current-snapshot-id": 2, "snapshots": [{"snapshot-id": 1}, {"snapshot-id": 2, "summary": {%s}}]}'

    assert files_of((state % summary).encode()) == 72
    assert files_of((state % '"operation": "append"').encode()) == 0
    assert files_of((state % '"total-data-files": "-1"').encode()) == 0
    assert files_of(b'{"snapshots": []}') == 0


def test_few_files_create_no_compaction_task(lake: DriverNode) -> None:
    """A dataset with fewer files than the setting gets no compaction task."""
    with_engine(lake, MANY)

    rows(lake, INSERT)

    assert tasks(lake) == []


def test_many_files_are_compacted_once(lake: DriverNode) -> None:
    """Several statements create one task per dataset. The task commits under the dataset's lock, as the last writer,
    with a token that is invalid afterwards.
    """
    engine = with_engine(lake)
    rows(lake, INSERT)
    rows(lake, INSERT)
    left = tasks(lake)

    worked(lake)

    assert len(left) == 1
    assert tasks(lake) == []
    assert [job.kind for job in engine.jobs] == ["insert", "insert", "compact"]
    assert [each.status for each in engine.answers] == [200] * 3
    job = engine.jobs[-1]
    assert job.compaction is not None
    assert sql(lake, "SELECT count(*) FROM sqlpp_lock") == [(0,)]
    with_token = lake.ask("GET", table_path(*HEAPS), user=None, authorization=f"Bearer {job.credential}")
    assert with_token.status == 401
    assert compaction_outcomes(lake) == [("done", "admin", "files of the dataset were merged")]


def test_each_dataset_has_its_own_compaction(lake: DriverNode) -> None:
    """The waiting compaction of one dataset does not keep another dataset from its own."""
    with_engine(lake)
    rows(lake, INSERT)
    rows(lake, "create dataset piles(Heap) primary key id")
    ENGINE.put(lake.built.services, CountingEngine(lake, MANY + 1, path=("Default", "piles")))
    rows(lake, INSERT.replace("heaps", "piles"))
    rows(lake, "drop dataset piles")

    payloads = sql(lake, "SELECT payload FROM task WHERE kind = ? ORDER BY id", COMPACT)
    assert [msgspec.json.decode(text, type=CompactPayload).path[-1] for (text,) in payloads] == ["heaps", "piles"]


def test_long_compaction_does_not_block_the_node(lake: DriverNode) -> None:
    """During a compaction the node runs its other tasks and renews the lease of the compaction."""
    engine = with_engine(lake)
    rows(lake, INSERT)
    upkeep = lake.built.upkeep
    start_event, may_end = asyncio.Event(), asyncio.Event()
    run = engine.run

    async def slowly(job: EngineJob) -> AsyncIterator[bytes]:
        start_event.set()
        await may_end.wait()
        async for each in run(job):
            yield each

    async def story() -> list[bool]:
        compacting = asyncio.create_task(upkeep.run_one(among_long=True))
        async with asyncio.timeout(PATIENCE_S):
            await start_event.wait()
            await lake.built.services.store.submit(upkeep_permit("tester"), lambda tx: tx.tasks.create(OTHER, "{}"))
            meanwhile = [await upkeep.run_one(), await upkeep.run_one(among_long=True), bool(tasks(lake))]
            may_end.set()
            return [*meanwhile, await compacting, bool(tasks(lake))]

    engine.run = slowly  # type: ignore[method-assign]

    assert lake.runner.run(story()) == [True, False, True, True, False]
    assert sql(lake, "SELECT error FROM task WHERE kind = ?", OTHER) == [("unknown kind",)]
    sql(lake, "DELETE FROM task WHERE kind = ?", OTHER)


def test_ineffective_compaction_waits_until_files_double(lake: DriverNode) -> None:
    """If a compaction does not reduce the number of files, the next one is scheduled only when there are twice as
    many.
    """
    engine = with_engine(lake, left=MANY + 1)
    rows(lake, INSERT)
    worked(lake)

    assert [result for _, result, _ in tasks(lake)] == [f"{MANY} files remain"]
    rows(lake, INSERT)
    worked(lake)
    assert [job.kind for job in engine.jobs].count("compact") == 1
    engine.files = 3 * MANY
    rows(lake, INSERT)
    engine.left = 1
    worked(lake)
    assert [job.kind for job in engine.jobs].count("compact") == 2
    assert tasks(lake) == []


def test_compaction_needs_the_current_rights_of_the_last_writer(lake: DriverNode) -> None:
    """A compaction runs only if the last writer still has the rights at that time."""
    engine = with_engine(lake)
    grant(lake, "writer", "use_catalog use_schema select_table", kind="catalog", on="main")
    role = grant(lake, "writer", "modify_table", kind="catalog", on="main")
    assert ask(lake, INSERT, user="writer").status == 200
    lake.done("PUT", f"{API}/lake/permissions/users/writer/revoke", {"roleNames": [role]})

    worked(lake)

    assert [job.kind for job in engine.jobs] == ["insert"]
    assert [str(result)[:17] for _, result, _ in tasks(lake)] == ["not compacted: Us"]
    assert [(state, user, result[:13]) for state, user, result in compaction_outcomes(lake)] == [
        ("failed", "writer", "not compacted")
    ]


def test_task_for_a_dropped_dataset_has_no_effect(lake: DriverNode) -> None:
    """The task for a dropped dataset ends without effect, even if another dataset has its name."""
    engine = with_engine(lake)
    rows(lake, INSERT)
    rows(lake, "drop dataset heaps; create dataset heaps(Heap) primary key id")

    worked(lake)

    assert tasks(lake) == []
    assert [job.kind for job in engine.jobs] == ["insert"]


def test_task_stays_pending_on_a_node_without_an_engine(lake: DriverNode) -> None:
    """On a node without an engine, the compaction task stays pending with an error that names the missing package."""
    with_engine(lake)
    rows(lake, INSERT)
    ENGINE.put(lake.built.services, NoSqlppEngine())

    lake.runner.run(lake.built.upkeep.run_one(among_long=True))

    ((error, _, ended_at),) = tasks(lake)
    assert "pip install" in str(error)
    assert ended_at is None
    ((state, _, result),) = compaction_outcomes(lake)
    assert (state, "pip install" in result) == ("failed", True)


def test_first_writing_statement_creates_a_cleanup_task(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first writing statement on a dataset, even a failed one, creates its cleanup task of orphan files. Another
    task is created only after the period of the first.
    """
    with_engine(lake, 1)
    services = lake.built.services
    ENGINE.put(services, FailingEngine())
    refusal(lake, INSERT)
    ENGINE.put(services, with_engine(lake, 1))
    rows(lake, INSERT)
    CLEANUP_PLANNED.of(services).clear()  # as another node, or after a start
    rows(lake, INSERT)
    ((first_due, text),) = sql(lake, "SELECT due_at - created_at, payload FROM task WHERE kind = ?", CLEAN_UP)
    covers_ms = msgspec.json.decode(text, type=CompactPayload).covers_ms
    monkeypatch.setattr(services.store.time, "now_ms", lambda: covers_ms + 1)
    rows(lake, INSERT)

    assert first_due == 2 * services.defaults.sqlpp_debris_ms + CLEANUP_DELAY_MS
    dues = [due for due, _ in sql(lake, "SELECT due_at, id FROM task WHERE kind = ? ORDER BY id", CLEAN_UP)]
    assert dues[1:] == [covers_ms + 1 + first_due]


def test_due_cleanup_task_compacts_the_dataset(lake: DriverNode) -> None:
    """The due cleanup task compacts the dataset as the last writer and ends, even if there are few files."""
    engine = with_engine(lake, 2, left=2)
    rows(lake, INSERT)
    worked(lake)
    assert [job.kind for job in engine.jobs] == ["insert"]
    sql(lake, "UPDATE task SET due_at = 0 WHERE kind = ?", CLEAN_UP)

    worked(lake)

    assert [job.kind for job in engine.jobs] == ["insert", "compact"]
    assert [each.status for each in engine.answers] == [200, 200]
    assert sql(lake, "SELECT 1 FROM task WHERE kind = ?", CLEAN_UP) == []


def test_zero_settings_disable_cleanup_tasks(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If either setting is 0, a writing statement creates no cleanup task."""
    services = lake.built.services
    with_engine(lake, 1)
    for name in ("sqlpp_compact_files", "sqlpp_debris_ms"):
        with monkeypatch.context() as patch:
            patch.setattr(services, "defaults", services.defaults._replace(**{name: 0}))
            rows(lake, INSERT)

    assert sql(lake, "SELECT 1 FROM task WHERE kind = ?", CLEAN_UP) == []


def test_table_of_another_client_gets_no_tasks(lake: DriverNode) -> None:
    """A writing statement on a table that another client created makes neither a compaction nor a cleanup task."""
    path = ("Default", "plain")
    make_table(lake, *path)
    engine = CountingEngine(lake, MANY + 1, path=path)
    ENGINE.put(lake.built.services, engine)

    rows(lake, "insert into plain ({'id': 1})")
    worked(lake)
    drop_for_good(lake, table_path(*path))

    assert [job.kind for job in engine.jobs] == ["insert"]
    assert [each.status for each in engine.answers] == [200]
    assert tasks(lake) == []
    assert sql(lake, "SELECT 1 FROM task WHERE kind = ?", CLEAN_UP) == []
