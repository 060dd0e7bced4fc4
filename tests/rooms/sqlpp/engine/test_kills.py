# SPDX-License-Identifier: Apache-2.0
"""Statements over data and kill -9: the server is killed at each boundary of the commit, the engine during the commit.

By default a sample over SQLite: one kill of the server, both of the engine, one during a compaction.
`LIMNOS_TEST_FAULTS=all` runs all.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from limnos.store.faults import EXPORT_POINTS, POINTS
from tests.faults.rig import FULL, Rig
from tests.faults.store_integrity import complaints
from tests.nodes.stores import database_of
from tests.nodes.wire import Wire
from tests.rooms.sqlpp.engine.query_requests import answer_of

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

SLOW_S = 240.0
MADE = "create type Entry if not exists as { id: bigint, v: bigint? }; create dataset %s(Entry) primary key id;"
INSERT = "insert into %s ([{'id': 1, 'v': 1}, {'id': 2, 'v': 2}])"
UPSERT = "upsert into %s ([{'id': 1, 'v': 1}, {'id': 2, 'v': 2}])"
_FILES = "localfs (('path'='localhost://{files}/two.json'), ('format'='json'))"
LOAD = f"load dataset %s using {_FILES}"
COPY = f"copy into %s using {_FILES}"
UPDATE = "update %s as d set d.v = d.id where d.id < 3"
DELETE = "delete from %s as d where d.id = 3"
ENDED = "The engine ended in the middle of the statement: try again"
FEW = 4
"""The number of files from which a dataset is compacted here: more than the other tests create."""
BOTH = [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
THREE = [{"id": 1, "v": 0}, {"id": 2, "v": 0}, {"id": 3, "v": 3}]
CHANGES: dict[str, tuple[list[dict[str, int]], list[dict[str, int]]]] = {
    INSERT: ([], BOTH),
    UPSERT: ([], BOTH),
    LOAD: ([], BOTH),
    COPY: ([], BOTH),
    UPDATE: (THREE, [*BOTH, THREE[2]]),
    DELETE: (THREE, THREE[:2]),
}
"""For each statement the objects before and after it."""
MATRIX = [(word, point) for word in CHANGES for point in POINTS]
SAMPLE = MATRIX if FULL else [(UPSERT, "before-commit")]
Told = tuple[int, dict[str, object]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"] if FULL else ["sqlite"])
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node whose engine may read files of a directory."""
    base = tmp_path_factory.mktemp(request.param)
    files = base / "files"
    files.mkdir()
    (files / "two.json").write_text('{"id": 1, "v": 1}\n{"id": 2, "v": 2}\n')
    env = {
        "LIMNOS__SQLPP__FILE_ROOTS": str(files),
        "LIMNOS__SQLPP__EXPORT_ROOTS": str(base / "exports"),
        "LIMNOS__SQLPP__COMPACT_FILES": str(FEW),
    }
    with database_of(request.param) as database, Rig(base, database, env=env) as running:
        yield running


def send_statement(rig: Rig, statement: str) -> Told:
    """Send a statement to the running node."""
    return answer_of(rig.node.uri, rig.node.token, statement)


def create_dataset(rig: Rig) -> str:
    """Create a dataset, and start an engine."""
    name = f"d_{rig.tag()}"
    assert send_statement(rig, MADE % name)[0] == 200
    assert rows(rig, name) == []
    return name


def rows(rig: Rig, name: str) -> object:
    """Return the objects of a dataset. The query is repeated while it hits an engine that was just killed."""
    text = f"select value d from {name} as d order by d.id"
    status, body = send_statement(rig, text)
    while ENDED in str(body):
        status, body = send_statement(rig, text)
    assert status == 200, body
    return body["results"]


def start_statement(rig: Rig, pool: ThreadPoolExecutor, *, statement: str, commit: int = 1) -> Future[Told]:
    """Send a statement, and stop the node after the given commit has written its metadata file."""
    rig.reconnect()  # the node closes connections that were idle while an engine started
    rig.arm("file-written", count=commit, stop=True)
    answer = pool.submit(send_statement, rig, statement)
    paused(rig, answer)
    return answer


def paused(rig: Rig, answer: Future[Told] | None = None) -> None:
    """Wait until the node has stopped at the armed point, before an answer arrives."""
    node = psutil.Process(rig.node.running.pid)
    until = time.monotonic() + SLOW_S
    while node.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < until, "no commit was reached"
        assert answer is None or not answer.done(), answer.result()
        time.sleep(0.02)


def go_on(rig: Rig) -> None:
    """Continue the node."""
    os.kill(rig.node.running.pid, signal.SIGCONT)


def text(statement: str, name: str, *, rig: Rig) -> str:
    """Return a statement about a dataset."""
    return (statement % name).replace("{files}", str(rig.directory / "files"))


def called(value: str) -> str:
    """Return the name of a case."""
    return value.partition(" ")[0]


@pytest.mark.parametrize("statement,point", SAMPLE, ids=called)
def test_server_killed_in_commit_keeps_store_consistent(rig: Rig, statement: str, point: str) -> None:
    """After a restart the statement was executed completely or not at all, the store is consistent, and the statement
    can be repeated.
    """
    name = create_dataset(rig)
    before, after = CHANGES[statement]
    if before:
        assert send_statement(rig, f"insert into {name} ({before})")[0] == 200
    whole = text(statement, name, rig=rig)

    with ThreadPoolExecutor(1) as pool:
        answer = start_statement(rig, pool, statement=whole)
        if point == "file-written":
            rig.node.kill()
        else:
            rig.arm(point, after_audit=False)  # it is stopped and does not answer
            go_on(rig)
            rig.node.wait_killed()
        with suppress(OSError):
            assert answer.result(SLOW_S)[0] != 200
    rig.start()

    assert complaints(rig.database) == []
    stored_objects = rows(rig, name)
    assert stored_objects in (before, after)
    if point == "after-commit":
        assert stored_objects == after
    status, body = send_statement(rig, whole)
    refused = stored_objects == after and statement in (INSERT, LOAD)
    assert (status, "duplicate keys into" in str(body)) == ((400, True) if refused else (200, False)), body
    assert rows(rig, name) == after


@pytest.mark.parametrize("point", POINTS if FULL else ["after-commit"])
def test_killed_create_dataset_as_query_creates_no_dataset(rig: Rig, point: str) -> None:
    """If the server is killed in the commit of the objects, no dataset has the name, a task drops the rest, and the
    statement can be repeated.
    """
    name = create_dataset(rig)
    assert send_statement(rig, INSERT % name)[0] == 200
    whole = f"create dataset {name}_all(Entry) primary key id as select value d from {name} as d"
    names = f"select value d.DatasetName from Metadata.`Dataset` as d where d.DatasetName like '{name}_all%'"

    with ThreadPoolExecutor(1) as pool:
        answer = start_statement(rig, pool, statement=whole, commit=2)  # the first one creates the table
        if point == "file-written":
            rig.node.kill()
        else:
            rig.arm(point, after_audit=False)
            go_on(rig)
            rig.node.wait_killed()
        with suppress(OSError):
            assert answer.result(SLOW_S)[0] != 200
    rig.start()

    assert complaints(rig.database) == []
    left = send_statement(rig, names)[1]["results"]
    assert isinstance(left, list)
    assert len(left) == 1
    assert left[0].startswith(f"{name}_all_unfinished_")
    rig.sql("UPDATE task SET due_at = 0 WHERE kind = 'drop-unfinished-dataset'")
    until = time.monotonic() + SLOW_S
    while send_statement(rig, names)[1]["results"]:
        assert time.monotonic() < until, rig.rows("SELECT error FROM task WHERE kind = 'drop-unfinished-dataset'")
        time.sleep(0.2)
    assert send_statement(rig, whole)[0] == 200
    assert rows(rig, f"{name}_all") == BOTH
    assert complaints(rig.database) == []


@pytest.mark.parametrize("point", EXPORT_POINTS if FULL else [EXPORT_POINTS[1]])
def test_export_of_killed_server_is_complete_or_absent(rig: Rig, point: str) -> None:
    """The directory of COPY TO has all files or does not exist. In the second case the statement can be repeated."""
    name = create_dataset(rig)
    assert send_statement(rig, INSERT % name)[0] == 200
    target = rig.directory / "exports" / name
    path = f'path ("localhost://{target}", to_string(n)) over (partition by d.id as n)'
    whole = f'copy {name} as d to localfs {path} with {{"format": "json"}}'
    rig.reconnect()
    rig.arm(point, count=2 if point == EXPORT_POINTS[0] else 1)

    with suppress(OSError):
        assert send_statement(rig, whole)[0] != 200
    rig.node.wait_killed()
    rig.start()

    assert complaints(rig.database) == []
    assert exported(target) == (BOTH if point == EXPORT_POINTS[2] else None)
    status, body = send_statement(rig, whole)
    assert (status, "non-empty directory" in str(body)) == (
        (400, True) if point == EXPORT_POINTS[2] else (200, False)
    ), body
    assert exported(target) == BOTH


def exported(target: Path) -> list[object] | None:
    """Return the objects in the files of a directory, in order; None if it does not exist."""
    if not target.exists():
        return None
    return [json.loads(line) for file in sorted(target.rglob("part-*")) for line in file.read_text().splitlines()]


def kill_engines(rig: Rig) -> int:
    """Kill the engines of a node. Returns their number when all of their processes have ended: those in a namespace end
    a moment after the one outside.
    """
    children = psutil.Process(rig.node.running.pid).children()
    engines = [each for each in children if "limnos.rooms.sqlpp.engine.process" in each.cmdline()]
    inner = [process for each in engines for process in each.children(recursive=True)]
    for each in engines:
        os.kill(each.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(inner, timeout=SLOW_S)
    assert alive == []
    return len(engines)


@pytest.mark.parametrize("returning", ["", " returning 1"])
def test_commit_completes_after_engine_is_killed(rig: Rig, returning: str) -> None:
    """The commit proceeds without the engine, and the caller learns that the statement was executed, but gets no
    results.
    """
    name = create_dataset(rig)

    with ThreadPoolExecutor(1) as pool:
        answer = start_statement(rig, pool, statement=INSERT % name + returning)
        engines = kill_engines(rig)
        go_on(rig)
        status, body = answer.result(SLOW_S)

    assert engines == 1
    assert rows(rig, name) == BOTH
    if returning:
        assert status != 200
        assert "The statement was executed" in str(body["errors"])
    else:
        assert (status, body.get("errors")) == (200, None)


@pytest.mark.parametrize("dies", ["engine", "server"] if FULL else ["server"])
def test_killed_compaction_loses_no_row(rig: Rig, dies: str) -> None:
    """If engine or server is killed during the commit of a compaction, every row exists once, and finally there are few
    files.
    """
    name = create_dataset(rig)
    for number in range(FEW):
        assert send_statement(rig, f"insert into {name} ({{'id': {number}}})")[0] == 200
    rig.arm("file-written", count=2, stop=True)  # the first commit is the statement's own

    status, body = send_statement(rig, f"insert into {name} ({{'id': {FEW}}})")
    paused(rig)
    if dies == "engine":
        kill_engines(rig)
        go_on(rig)
    else:
        rig.node.kill()
        rig.sql("UPDATE task SET leased_until = 0 WHERE kind = 'compact-dataset'")  # as if its lease had expired
        rig.start()
    stored_objects = rows(rig, name)
    until = time.monotonic() + SLOW_S
    while rig.rows("SELECT 1 FROM task WHERE kind = 'compact-dataset'"):
        assert time.monotonic() < until, rig.rows("SELECT error, result FROM task WHERE kind = 'compact-dataset'")
        time.sleep(0.2)

    assert (status, body.get("errors")) == (200, None)
    assert stored_objects == [{"id": number} for number in range(FEW + 1)]
    assert rows(rig, name) == stored_objects
    with closing(Wire(rig.node.uri, user="admin")) as wire:  # the rig's own connection was idle for long
        table = wire.ask("GET", f"/iceberg/v1/lake.main/namespaces/Default/tables/{name}").body["metadata"]
    current = next(one for one in table["snapshots"] if one["snapshot-id"] == table["current-snapshot-id"])  # type: ignore[index]
    assert current["summary"]["total-data-files"] == "1"
    assert complaints(rig.database) == []
