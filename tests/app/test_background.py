# SPDX-License-Identifier: Apache-2.0
"""All background work of a node: each loop survives every error of the store, and no loop is written elsewhere."""

from __future__ import annotations

import ast
import asyncio
import errno
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

import limnos
from limnos.app import upkeep
from limnos.app.node_beats import NodeBeats
from limnos.app.node_builder import ServerNode
from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.model.errors import ServiceUnavailable
from tests import clocks
from tests.http.driver import DriverNode, node_at
from tests.installed import has_room, room_part

pytestmark = pytest.mark.slow

SOURCE: Final = Path(limnos.__file__).parent
ERRORS = {
    "read error": OSError(errno.EIO, "Input/output error"),
    "disk error": sqlite3.OperationalError("disk I/O error"),
    "damage": sqlite3.DatabaseError("database disk image is malformed"),
    "renamed table": psycopg.errors.UndefinedTable('relation "webhook" does not exist'),
    "unexpected": RuntimeError("unexpected"),
    "busy": ServiceUnavailable("The store is busy"),
    "silence": TimeoutError("The database did not answer in time"),
}
SILENT_S: Final = 3.5
"""The time until a read or write of a silent store ends, in seconds."""
FAULT_S: Final = 30.0
JobExecutor = room_part("limnos.rooms.jobs.app.executor:JobExecutor")
job_settings_of = room_part("limnos.rooms.jobs.app.job_commands:job_settings_of")
SearchIndexing = room_part("limnos.rooms.search.app.search_indexing:SearchIndexing")
MaintenanceProcess = room_part("limnos.rooms.maintenance.app.maintenance_process:MaintenanceProcess")
pauses_loop = room_part("limnos.rooms.maintenance.server:pauses_loop")
LOOPS: Final = {
    "audit records",
    "heartbeats",
    "jobs",
    "long tasks",
    "maintenance",
    "maintenance pauses",
    "search index",
    "store upkeep",
    "tasks",
    "times in the store",
    "leases of ended processes",
    "webhooks",
}
"""The loops of a node that runs jobs and maintenance. A certificate has a further one, and so have statements."""


class EmptyResult(dict[str, int]):
    """The result of every read and write of a store without work: false, empty and without items."""


class FaultyStore:
    """Replaces a node's reads and writes: they fail with an error until `error` is None, and then find no work. A
    silent store fails after some seconds.
    """

    def __init__(self, node: ServerNode, error: Exception, patch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = error
        for owner, name in (
            (node.services.gate, "look_up"),
            (node.services.gate, "find"),
            (node.services.store, "submit"),
        ):
            patch.setattr(owner, name, self._answer)

    async def _answer(self, *_: object, **__: object) -> EmptyResult:
        error = self.error
        if isinstance(error, TimeoutError):
            await asyncio.sleep(SILENT_S)
        if error is not None:
            raise error
        return EmptyResult()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node on SQLite."""
    with node_at(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_every_loop_survives_every_error_of_the_store(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """While the store fails for some seconds with any error, each loop of the node is known as failing. Within a
    minute afterwards all of them work again, without a restart.
    """
    built, services = node.built, node.built.services
    store = FaultyStore(built, error, monkeypatch)
    monkeypatch.setattr(upkeep, "locations_refresh", lambda _: store._answer())  # it counts what it reads
    runs: list[Callable[[], Awaitable[None]]] = [
        built.upkeep.run,
        built.deliveries.run,
        NodeBeats(services).run,
    ]
    if SearchIndexing is not None:
        runs.append(SearchIndexing(services).run)
    if JobExecutor is not None:
        runs.append(JobExecutor(services, job_settings_of(Settings()), running_max=2).run)
    if MaintenanceProcess is not None:
        runs.append(MaintenanceProcess(services, Settings(), uri="http://127.0.0.1:1").run)
    if pauses_loop is not None:
        runs.append(lambda: pauses_loop(LoopStart(services, Settings(), socket.socket)))
    parts = {
        "jobs": JobExecutor,
        "maintenance": MaintenanceProcess,
        "maintenance pauses": pauses_loop,
        "search index": SearchIndexing,
    }
    loops = LOOPS - {name for name, part in parts.items() if part is None}

    async def story() -> tuple[set[str], set[str], list[bool]]:
        tasks = [asyncio.create_task(run()) for run in runs]
        await asyncio.sleep(FAULT_S)
        failing_meanwhile = {each.name for each in services.loops.failures()}
        store.error = None
        await asyncio.sleep(60)
        failing_after = {each.name for each in services.loops.failures()}
        ended = [task.done() for task in tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return failing_meanwhile, failing_after, ended

    failing_meanwhile, failing_after, ended = clocks.run(story())

    assert failing_meanwhile == loops
    assert failing_after == set()
    assert not any(ended)


REPEATS: Final = {
    "app/deliveries.py:_send_pages": "an item of work: its error is stored in the webhook, which is leased again",
    "rooms/maintenance/app/maintenance_process.py:_extend": "survives every error, and lives as long as one process",
    "rooms/jobs/app/scheduled_pipelines.py:_extend": "survives every error, and lives as long as one job",
    "app/serving.py:_announce": "waits for a flag of uvicorn, and writes to a pipe",
    "app/slow_start.py:run_patiently": "a step of the start, with a deadline; its error ends the process",
    "rooms/maintenance/services/assessing.py:_assess_all": "a step of a task, between two pages of tables",
    "services/iceberg/reports.py:_write_soon": "ends when the queue is empty; survives every error",
    "services/iceberg/spans/executors.py:write_with_executors": "a step of a plan, which has a limit of idle time",
    "services/request/audit_lines.py:_write_soon": "ends when the queue is empty; survives every error",
    "services/request/concurrency/commit_watcher.py:_look_on": "gives every error to the waiting requests",
    "rooms/sqlpp/services/requests/running_requests.py:cancel": "a request, with a deadline",
}
"""Functions that repeat work after pauses, and are no background loop, each with the reason."""


def _repeats(function: ast.AsyncFunctionDef) -> bool:
    """Return whether a function pauses in a `while` loop without recording its attempts."""
    bodies = [ast.unparse(each) for each in ast.walk(function) if isinstance(each, ast.While)]
    is_paused = any("asyncio.sleep(" in body and "asyncio.sleep(0)" not in body for body in bodies)
    return is_paused and ".attempt(" not in ast.unparse(function)


def test_no_loop_is_written_elsewhere() -> None:
    """Functions that repeat work after pauses are background loops, except for the listed ones."""
    repeating = set()
    for package in ("app", "files", "http", "rooms", "services", "store", "view"):
        for path in (SOURCE / package).rglob("*.py"):
            for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(each, ast.AsyncFunctionDef) and _repeats(each):
                    repeating.add(f"{path.relative_to(SOURCE)}:{each.name}")

    absent = {each for each in REPEATS if each.startswith("rooms/") and not has_room(each.split("/")[1])}
    assert repeating == set(REPEATS) - absent
