# SPDX-License-Identifier: Apache-2.0
"""A full disk, and a database file that another process has locked, on SQLite: requests are refused with a message and
leave no changes.
"""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.faults.measurements import note, timed
from tests.faults.mutations import properties_of
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import PREFIX, Wire, namespace_body, namespace_path, properties_body, table_body, table_path

HASTY = {"LIMNOS__SERVER__REQUEST_TIMEOUT_S": "1"}
IN_REACH = {"PYTHONPATH": str(Path(__file__).parent / "disk")}
MARK = "full"
"""While a file of this name exists, the disk of the node's database is full."""
Full = Callable[[Rig], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node on SQLite."""
    directory = tmp_path_factory.mktemp("full")
    with Rig(directory, None, env={**HASTY, **IN_REACH, "LIMNOS_TEST_FULL": str(directory / MARK)}) as running:
        yield running


@contextmanager
def no_space(rig: Rig) -> Iterator[None]:
    """Let writes of the database fail as on a full disk, with SQLITE_FULL."""
    mark = rig.directory / MARK
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()


@contextmanager
def no_larger_files(rig: Rig) -> Iterator[None]:
    """Let no file of the node grow beyond the present size of its write-ahead log."""
    pid = rig.node.running.pid
    size = Path(f"{rig.database}-wal").stat().st_size
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "full, reason", [(no_space, "is full"), (no_larger_files, "cannot be written (input/output error)")]
)
def test_full_disk_at_commit_returns_503_without_files(rig: Rig, full: Full, reason: str) -> None:
    """A COMMIT without disk space is 503 with that reason and leaves no file. With free space, writes succeed.

    SQLite reports a limit on the size of files as an input/output error.
    """
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    files = set(rig.node.data.rglob("*.metadata.json"))

    with full(rig):
        commit_answers = [
            rig.admin.ask("POST", table_path(tag, "t"), properties_body(**{f"p{n}": "x" * 50_000})) for n in range(3)
        ]
        create_answer, refused = timed(lambda: rig.admin.ask("POST", f"{namespace_path(tag)}/tables", table_body("u")))
        read = rig.admin.ask("GET", table_path(tag, "t"))

    assert [answer.status for answer in (*commit_answers, create_answer, read)] == [503, 503, 503, 503, 200]
    assert [each.message for each in commit_answers if f"{reason}. Nothing was changed" not in each.message] == []
    assert set(rig.node.data.rglob("*.metadata.json")) == files
    _, again = timed(lambda: rig.admin.do("POST", table_path(tag, "t"), properties_body(mark="after")))
    note(full_store_create_refused=refused, full_store_write_again=again)
    assert sorted(properties_of(rig, tag, "t")) == sorted({*properties_of(rig, tag, "t")} - {"p0", "p1", "p2"})
    assert complaints(rig.database) == []


def test_writes_waiting_too_long_for_lock_return_503(rig: Rig) -> None:
    """While another program holds the file's write lock, every write that waits too long is 503, and none is executed
    later.
    """
    tag = rig.tag()
    wires = [Wire(rig.node.uri, user="admin") for _ in range(6)]

    with closing(sqlite3.connect(rig.database, isolation_level=None)) as other, ThreadPoolExecutor(6) as threads:
        other.execute("BEGIN IMMEDIATE")
        sent = []
        for number, wire in enumerate(wires):
            sent.append(threads.submit(wire.ask, "POST", f"{PREFIX}/namespaces", namespace_body(f"{tag}{number}")))
            time.sleep(0.1)
        answers = [each.result() for each in sent]
        other.execute("ROLLBACK")

    assert [answer.status for answer in answers] == [503] * 6
    rig.admin.do(
        "POST", f"{PREFIX}/namespaces", namespace_body(tag)
    )  # writes are executed in order: the earlier ones have ended
    statuses = [rig.admin.ask("HEAD", namespace_path(f"{tag}{number}")).status for number in range(6)]
    assert statuses == [404] * 6
    for wire in wires:
        wire.close()
