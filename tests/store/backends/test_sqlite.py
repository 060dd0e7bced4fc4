# SPDX-License-Identifier: Apache-2.0
"""The SQLite store: savepoints of the mutations of a batch, and the connection for gate reads."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.store.activity.search_index import IndexedText
from limnos.store.backends import sqlite
from limnos.store.backends.sqlite import SqliteStore, WalIndex, open_index
from limnos.store.changes import UNKNOWN
from limnos.store.tx import Tx
from tests.backends import StoreLab, sqlite_copy, sqlite_template
from tests.store.test_clock import touch
from tests.store.world import StoreWorld, add_namespace, make_world


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store."""
    return sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def lab(template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on SQLite."""
    lab = StoreLab(sqlite_copy(template, tmp_path))
    yield lab
    lab.close()


@pytest.fixture
def world(lab: StoreLab) -> StoreWorld:
    """A metalake with two catalogs."""
    return make_world(lab)


def names(lab: StoreLab) -> set[str]:
    """Return the names of all namespaces."""
    return {row[0] for row in lab.database.sql("SELECT name FROM node WHERE name_space = 'namespace'")}


@pytest.mark.parametrize("fails", [{0}, {1}, {0, 1}, {0, 3}, {2, 3}, {0, 1, 2, 3}])
def test_failed_mutation_does_not_affect_its_batch(lab: StoreLab, world: StoreWorld, fails: set[int]) -> None:
    """Mutations of a batch that fail after a write leave nothing, whether they are first, last or alone. The others
    commit.
    """
    store = lab.store
    permit = lab.permit(world.main.id)

    def add(number: int, tx: Tx) -> Node:
        node = add_namespace(tx, world.main, f"s{number}")
        if number in fails:
            raise BadRequest(f"job {number}")
        return node

    async def together() -> list[object]:
        jobs = [store.submit(permit, lambda tx, number=number: add(number, tx)) for number in range(4)]
        results: list[object] = await asyncio.gather(*jobs, return_exceptions=True)
        return results

    results = lab.run(together())

    assert [isinstance(each, BadRequest) for each in results] == [number in fails for number in range(4)]
    assert names(lab) == {f"s{number}" for number in range(4) if number not in fails}
    ids = [each.id for each in results if isinstance(each, Node)]
    assert len(set(ids)) == len(ids)


def test_failed_lone_mutation_does_not_move_the_clock(lab: StoreLab, world: StoreWorld) -> None:
    """A mutation that fails alone in its transaction leaves the clock unchanged, and the next mutation succeeds."""
    before = lab.clock(world.main.id)

    def fail(tx: Tx) -> None:
        add_namespace(tx, world.main, "gone")
        raise BadRequest("no")

    for _ in range(2):
        with pytest.raises(BadRequest):
            lab.write(fail, zone=world.main.id)
    after = lab.clock(world.main.id)
    namespace = lab.write(lambda tx: add_namespace(tx, world.main, "kept"), zone=world.main.id)

    assert after == before
    assert (namespace.revision, names(lab)) == (before[0] + 1, {"kept"})


def test_freshness_read_does_not_see_an_open_batch(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit of a batch a gate read returns the earlier state, and right after the commit the new one."""
    store = lab.store
    zone = world.main.id
    seen: list[int] = []

    def look(point: str = "after-commit") -> None:
        if point in ("before-commit", "after-commit"):
            (clock,) = store.gate(0, ((zone, UNKNOWN),)).clocks
            seen.append(clock.revision)

    look()
    monkeypatch.setattr("limnos.store.backends.sqlite.fault_point", look)
    lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)
    look()

    before = seen[0]
    assert seen == [before, before, before + 1, before + 1]


def test_refused_mutations_share_the_transaction_of_their_batch(lab: StoreLab, world: StoreWorld) -> None:
    """Mutations that wait together commit in one transaction, whichever of them fail."""
    store = lab.store
    assert isinstance(store, SqliteStore)
    permit = lab.permit(world.main.id)

    def add(number: int, tx: Tx) -> None:
        add_namespace(tx, world.main, f"s{number}")
        if number != 3:
            raise BadRequest(f"job {number}")

    async def together() -> None:
        jobs = [store.submit(permit, lambda tx, number=number: add(number, tx)) for number in range(8)]
        await asyncio.gather(*jobs, return_exceptions=True)

    statements: list[str] = []
    store._writer.set_trace_callback(statements.append)
    lab.run(together())
    store._writer.set_trace_callback(None)

    assert names(lab) == {"s3"}
    assert [statement for statement in statements if statement.split()[0] in {"BEGIN", "COMMIT", "ROLLBACK"}] == [
        "BEGIN IMMEDIATE",
        *["ROLLBACK TO mutation"] * 7,
        "COMMIT",
    ]


def write_calls() -> int:
    """Return the number of write system calls of this process."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["syscw"])


def test_savepoints_write_no_temporary_file(lab: StoreLab, world: StoreWorld) -> None:
    """The copies of pages that a mutation changes under a savepoint stay in memory, however many they are."""
    store = lab.store
    assert isinstance(store, SqliteStore)
    changed_pages = "UPDATE padding SET text = text || 'x'"
    lab.database.sql("CREATE TABLE padding (text)")
    for _ in range(100):
        lab.database.sql("INSERT INTO padding VALUES (?)", "x" * 3_000)
    store._writer.execute("BEGIN IMMEDIATE")
    store._session.begin(2)
    store._session.save()

    before = write_calls()
    store._writer.execute(changed_pages)
    after = write_calls()
    store._session.keep()
    store._writer.execute("ROLLBACK")

    assert after == before


def test_a_long_mutation_runs_in_a_thread_between_the_others_of_its_batch(lab: StoreLab, world: StoreWorld) -> None:
    """A long mutation does not run on the event loop, and the others of its batch do. Its error fails it alone."""
    store, permit = lab.store, lab.permit(world.main.id)

    def add(name: str, tx: Tx) -> int:
        add_namespace(tx, world.main, name)
        if name == "refused":
            raise BadRequest(name)
        return threading.get_ident()

    async def together() -> list[object]:
        jobs = [
            store.submit(permit, partial(add, name), is_long=name in {"long", "refused"})
            for name in ("first", "long", "refused", "last")
        ]
        return await asyncio.gather(*jobs, return_exceptions=True)

    first, long, refused, last = lab.run(together())

    assert (first, last) == (threading.get_ident(), threading.get_ident())
    assert long not in {first, refused}
    assert isinstance(refused, BadRequest)
    assert names(lab) == {"first", "long", "last"}


def test_words_of_many_objects_become_one_segment(lab: StoreLab, world: StoreWorld) -> None:
    """The full-text entries of many objects are written out once."""
    texts = [
        IndexedText(object_id=number, zone=world.main.id, name=f"name{number} word", columns="", comment="")
        for number in range(50)
    ]

    lab.write(lambda tx: tx.search.replace([text.object_id for text in texts], texts), zone=world.lake.id)

    assert lab.database.sql("SELECT count(DISTINCT segid) FROM search_words_idx") == [(1,)]


VISITOR = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM store").fetchall()
connection.close()
"""


@pytest.fixture
def path(sqlite_template: Path, tmp_path: Path) -> Path:
    """The path of a migrated file."""
    return Path(sqlite_copy(sqlite_template, tmp_path).address)


def locks_on(path: Path) -> int:
    """Return the number of locks that this process holds on the file's index, according to the kernel."""
    inode = path.with_name(f"{path.name}-shm").stat().st_ino
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(row[1] == "POSIX" and row[4] == str(os.getpid()) and row[5].endswith(f":{inode}") for row in rows)


def visit(path: Path) -> None:
    """Let another process open, read and close the file. The last process that closes it deletes the log and its
    index.
    """
    subprocess.run([sys.executable, "-c", VISITOR, str(path)], check=True, timeout=60)


def test_every_commit_changes_the_header(path: Path) -> None:
    """Equal headers mean that nothing was committed. A commit by any process changes the header."""
    store = SqliteStore(path)
    before = store.moment()

    assert before is not None
    assert store.moment() == before
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE store SET next_id = next_id + 1")
    assert store.moment() not in (None, before)
    asyncio.run(store.close())


def silent_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the index unreadable, as on a file system without shared memory."""
    monkeypatch.setattr(sqlite, "_PROBE", "SELECT 1")


@pytest.mark.parametrize("tells", [True, False])
def test_locks_survive_an_unreadable_index_and_another_close(
    path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    """While a store is open the kernel has its locks, also if the index is unreadable, and after another store was
    closed.
    """
    if not tells:
        silent_index(monkeypatch)
    store = SqliteStore(path)
    neighbour = SqliteStore(path)
    asyncio.run(neighbour.close())

    assert locks_on(path) > 0
    assert (store.moment() is not None) == tells
    asyncio.run(store.close())
    assert sqlite._mappings == {}


@pytest.mark.parametrize("tells", [True, False])
def test_store_survives_open_and_close_by_other_processes(
    path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    """If other processes open and close the file, an open store keeps its log and index."""
    if not tells:
        silent_index(monkeypatch)
    (path.parent / "lab").mkdir()
    lab = StoreLab(sqlite_copy(path, path.parent / "lab"))
    file = Path(lab.database.address)
    index = file.with_name(f"{file.name}-shm")
    assert lab.write(touch) == 1
    before = index.stat().st_ino

    for revision in (2, 3):
        visit(file)
        assert lab.write(touch) == revision

    assert index.stat().st_ino == before
    assert lab.clock(0)[0] == 3
    lab.close()


def test_index_that_is_too_short_is_not_opened(tmp_path: Path) -> None:
    """An index file that is too short for a header is not kept open, because closing it later would release locks."""
    (tmp_path / "x.db-shm").write_bytes(b"short")
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(ValueError, match="no header"):
        WalIndex(tmp_path / "x.db")
    with closing(sqlite3.connect(":memory:")) as writer:
        assert open_index(tmp_path / "x.db", writer) is None

    assert len(list(Path("/proc/self/fd").iterdir())) == before
