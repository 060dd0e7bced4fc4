# SPDX-License-Identifier: Apache-2.0
"""The SQLite store: savepoints of the mutations of a batch, and the connection for gate reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.store.activity.search_index import IndexedText
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.changes import UNKNOWN
from limnos.store.tx import Tx
from tests.backends import StoreLab, sqlite_copy, sqlite_template
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
