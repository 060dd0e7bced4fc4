# SPDX-License-Identifier: Apache-2.0
"""Statements of batches on PostgreSQL: few for each mutation, and savepoints only after a mutation that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest

from limnos.model.kinds import Kind
from limnos.store.backends import postgres
from limnos.store.changes import ChangeDraft, changes_read
from limnos.store.tx import Tx
from tests.backends import PostgresServer, StoreLab
from tests.store.world import ASTRAL, StoreWorld, add_namespace, make_world

COUNT = 8


@pytest.fixture
def server_lab(postgres_server: PostgresServer) -> Iterator[StoreLab]:
    """A lab on PostgreSQL."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The beginnings of the statements on connections for writes."""
    texts: list[str] = []
    execute = psycopg.Connection.execute

    def recorded(self: psycopg.Connection, query: str, *rest: object, **named: object) -> psycopg.Cursor:
        if isinstance(query, str):  # those of the tests themselves are bytes
            texts.append(query[:40])
        return execute(self, query, *rest, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", recorded)
    return texts


def named(world: StoreWorld, name: str, runs: list[str], *, owner_id: int | None = None) -> Callable[[Tx], str]:
    """Return a mutation that creates a namespace."""

    def mutation(tx: Tx) -> str:
        runs.append(name)
        add_namespace(tx, world.main, name, owner_id=owner_id)
        return name

    return mutation


def failing(world: StoreWorld, runs: list[str], *, writes: bool) -> Callable[[Tx], str]:
    """Return a mutation that fails, before or after it wrote."""

    def mutation(tx: Tx) -> str:
        runs.append("failing")
        tx.nodes.require(world.main)
        if writes:
            add_namespace(tx, world.main, "failing")
        raise ValueError

    return mutation


def submitted(lab: StoreLab, world: StoreWorld, mutations: list[Callable[[Tx], str]]) -> list[object]:
    """Run mutations in one batch. Returns each result or exception."""
    permit = lab.permit(0, world.lake.id, world.main.id)

    async def together() -> list[object]:
        waiting = (lab.store.submit(permit, each) for each in mutations)
        return await asyncio.gather(*waiting, return_exceptions=True)

    return lab.run(together())


def names_in(lab: StoreLab, world: StoreWorld) -> list[str]:
    """Return the names below the catalog `main`."""
    rows = lab.database.sql("SELECT name FROM node WHERE zone = ? AND deleted = 0 ORDER BY name", world.main.id)
    return [row[0] for row in rows]


def test_batch_of_creations_runs_one_statement_for_each(server_lab: StoreLab, statements: list[str]) -> None:
    """A batch of creations with owners runs one statement each, four before them (locks, clocks, ids) and one after:
    neither savepoints nor statements for single changes, clocks or owners.
    """
    world, runs = make_world(server_lab), list[str]()
    submitted(server_lab, world, [named(world, "first", runs)])  # it opens the connection
    statements.clear()

    outcomes = submitted(
        server_lab, world, [named(world, f"n{number}", runs, owner_id=number + 1) for number in range(COUNT)]
    )

    assert outcomes == [f"n{number}" for number in range(COUNT)]
    assert [text for text in statements if "SAVEPOINT" in text] == []
    assert sum("INSERT INTO node" in text for text in statements) == COUNT
    assert len(statements) == COUNT + 4, statements
    owners = server_lab.database.sql(
        "SELECT o.principal_id FROM owner o JOIN node n ON n.id = o.object_id WHERE n.name LIKE 'n%' ORDER BY n.name"
    )
    assert [row[0] for row in owners] == list(range(1, COUNT + 1))


def test_failure_after_a_write_repeats_the_batch_with_savepoints(
    server_lab: StoreLab, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a mutation fails after it wrote, the batch runs again with savepoints: the others commit, nothing of it stays,
    and the following batches have savepoints until as many as stated have passed.
    """
    monkeypatch.setattr(postgres, "CAREFUL_BATCHES", 2)
    world, runs = make_world(server_lab), list[str]()

    outcomes = submitted(
        server_lab, world, [named(world, "a", runs), failing(world, runs, writes=True), named(world, "b", runs)]
    )

    assert [type(each) for each in outcomes] == [str, ValueError, str]
    assert runs == ["a", "failing", "a", "failing", "b"]
    assert names_in(server_lab, world) == ["a", "b"]
    assert server_lab.clock(world.main.id)[0] == 2
    assert sum("SAVEPOINT mutation" in text for text in statements) == 3
    for number, expected in enumerate((2, 0)):
        statements.clear()
        submitted(server_lab, world, [named(world, f"{each}{number}", runs) for each in "cd"])
        assert sum("SAVEPOINT mutation" in text for text in statements) == expected


def test_failure_before_a_write_repeats_nothing(server_lab: StoreLab, statements: list[str]) -> None:
    """A mutation that fails before it wrote has nothing to undo: every mutation of the batch runs once, without
    savepoints. So does a name that is taken, whose insert affected no row.
    """
    world, runs = make_world(server_lab), list[str]()
    submitted(server_lab, world, [named(world, "taken", runs)])
    runs.clear()

    mutations = [
        named(world, "a", runs),
        failing(world, runs, writes=False),
        named(world, "taken", runs),
        named(world, "b", runs),
    ]
    outcomes = submitted(server_lab, world, mutations)

    assert [type(each).__name__ for each in outcomes] == ["str", "ValueError", "AlreadyExists", "str"]
    assert runs == ["a", "failing", "taken", "b"]
    assert names_in(server_lab, world) == ["a", "b", "taken"]
    assert [text for text in statements if "SAVEPOINT" in text] == []


@pytest.mark.parametrize("text", ['"', "\\", "\\u0041", "{}", "a\nb\tc", ASTRAL, "%s %(zone)s :zone", "é'"])
def test_change_rows_keep_each_text(server_lab: StoreLab, text: str) -> None:
    """Names of changes are stored as they are, with quotes, backslashes, escapes and characters of any plane."""
    world = make_world(server_lab)

    def mutation(tx: Tx) -> str:
        tx.add_change(
            ChangeDraft(operation="alter", kind=Kind.NAMESPACE, node_id=1, old_name=text, new_name=text + text)
        )
        return text

    submitted(server_lab, world, [mutation, mutation])

    changes = server_lab.load(changes_read(world.main.id, 0))
    assert [(each.revision, each.old_name, each.new_name) for each in changes] == [
        (1, text, text + text),
        (2, text, text + text),
    ]
