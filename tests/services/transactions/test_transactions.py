# SPDX-License-Identifier: Apache-2.0
"""Transactions in the services: privileges revoked meanwhile, concurrent writers, files of uncommitted changes, and a
bounded number of reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from limnos.model.errors import CommitConflict, PermissionDenied, StateUnknown
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.iceberg.commits import LOST_RACES, table_commit
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant
from limnos.services.transactions.operations import TableCommitOperation, TableCreateOperation, TransactionOperation
from limnos.services.transactions.transactions import transaction_execute
from tests.inprocess import LAKE, MAIN, Node, new_table
from tests.services.conftest import ServiceDesk

TABLES = ("t", "u", "v")
Files = dict[str, bytes]


def setting(name: str) -> list[object]:
    """Return the update that sets one property."""
    return [{"action": "set-properties", "updates": {name: "x"}}]


def together(node: Node, mark: str, *tables: str, user: str = "admin") -> Any:  # noqa: ANN401 - a coroutine
    """Set a property of several tables of namespace a."""
    operations: list[TransactionOperation] = [
        TableCommitOperation(("a", name), CommitChange([], setting(mark))) for name in tables
    ]
    return transaction_execute(node.ctx(user), MAIN, operations)


def marked(desk: ServiceDesk, mark: str) -> int:
    """Return the number of documents with a property."""
    return sum(
        mark in msgspec.json.decode(bytes(body))["properties"] for (body,) in desk.rows("SELECT body FROM document")
    )


@pytest.fixture
def three(desk: ServiceDesk) -> ServiceDesk:
    """A desk with three tables in namespace a."""
    desk.namespace("a")
    for name in TABLES:
        desk.table("a", name)
    return desk


@pytest.fixture
def files(three: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return the files that were written and not deleted."""
    stored_files: Files = {}
    services = three.node.services.files

    async def write(location: str, data: bytes, properties: object, *, first: bool = False) -> None:
        del properties, first
        await asyncio.sleep(0)
        stored_files[location] = data

    async def delete(location: str, properties: object) -> None:
        del properties
        del stored_files[location]

    monkeypatch.setattr(services, "write", write)
    monkeypatch.setattr(services, "delete", delete)
    return stored_files


def before_the_store(desk: ServiceDesk, patch: pytest.MonkeyPatch, *works: Callable[[], Any]) -> None:
    """Run callbacks between a decision and its transaction, each once."""
    left = iter(works)
    real = desk.node.store.submit

    async def submit(permit: Any, mutation: Any, *, on_begin: Any) -> Any:  # noqa: ANN401 - as the store has it
        work = next(left, None)
        if work is not None:
            await work()
        return await real(permit, mutation, on_begin=on_begin)

    patch.setattr(desk.node.store, "submit", submit)


def neighbour(desk: ServiceDesk) -> Node:
    """Another node on the same store."""
    return Node(desk.lab.open())


@pytest.mark.parametrize("revoked_table", TABLES)
def test_revoked_privilege_refuses_the_transaction(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch, revoked_table: str
) -> None:
    """If a privilege on any table is revoked after the decision, the whole transaction is refused and its files are
    deleted.
    """
    three.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    for name in TABLES:
        three.allow("bob", Kind.TABLE, f"main.a.{name}", Privilege.MODIFY_TABLE)
    three.run(together(three.node, "before", *TABLES, user="bob"))
    count = len(files)
    privilege_request = PrivilegeRequest(
        Kind.TABLE, f"main.a.{revoked_table}", ((Privilege.MODIFY_TABLE, GrantCondition.ALLOW),)
    )
    other = neighbour(three)
    before_the_store(
        three,
        monkeypatch,
        lambda: privileges_grant(
            other.ctx(), metalake=LAKE, role="of bob", privilege_request=privilege_request, grants_them=False
        ),
    )

    with pytest.raises(PermissionDenied, match=f"main.a.{revoked_table}"):
        three.run(together(three.node, "after", *TABLES, user="bob"))

    assert (marked(three, "before"), marked(three, "after")) == (3, 0)
    assert len(files) == count


def test_unrelated_privilege_change_rebuilds_no_metadata(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only privileges of other users changed, the transaction is authorized again and no metadata file is
    rebuilt.
    """
    three.users("carl")
    privilege_request = PrivilegeRequest(Kind.TABLE, "main.a.t", ((Privilege.SELECT_TABLE, GrantCondition.ALLOW),))
    three.allow("carl", Kind.TABLE, "main.a.u", Privilege.SELECT_TABLE)
    other = neighbour(three)
    before_the_store(
        three,
        monkeypatch,
        lambda: privileges_grant(other.ctx(), metalake=LAKE, role="of carl", privilege_request=privilege_request),
    )
    lost = LOST_RACES[()]

    three.run(together(three.node, "mine", *TABLES))

    assert marked(three, "mine") == 3
    assert (len(files), LOST_RACES[()]) == (3, lost)


def test_rival_commit_rebuilds_only_that_tables_metadata(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another node has committed to one table, only that table's metadata is rebuilt, and its first file is
    deleted.
    """
    other = neighbour(three)
    before_the_store(
        three,
        monkeypatch,
        lambda: table_commit(other.ctx(), MAIN, namespace=("a",), name="u", requirements=[], updates=setting("rival")),
    )
    written: list[str] = []
    write = three.node.services.files.write

    async def noting(location: str, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as it is
        written.append(location)
        await write(location, *args, **options)

    monkeypatch.setattr(three.node.services.files, "write", noting)

    three.run(together(three.node, "mine", *TABLES))

    assert (marked(three, "mine"), marked(three, "rival")) == (3, 1)
    assert (len(written), len(files)) == (4, 3)
    assert {location for (location,) in three.rows("SELECT metadata_location FROM document")} == set(files)


def test_table_with_only_requirements_must_be_unchanged(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table for which the transaction has only requirements must be unchanged at the commit."""
    ((uuid,),) = three.rows("SELECT uuid FROM document WHERE node_id = (SELECT id FROM node WHERE name = 'u')")
    asserted: list[object] = [
        {"type": "assert-table-uuid", "uuid": uuid},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
    ]
    other = neighbour(three)
    column = {"id": 2, "name": "y", "required": False, "type": "long"}
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}, column]}
    updates: list[object] = [
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    before_the_store(
        three,
        monkeypatch,
        lambda: table_commit(other.ctx(), MAIN, namespace=("a",), name="u", requirements=[], updates=updates),
    )
    operations: list[TransactionOperation] = [
        TableCommitOperation(("a", "t"), CommitChange([], setting("mine"))),
        TableCommitOperation(("a", "u"), CommitChange(asserted, [])),
    ]

    with pytest.raises(CommitConflict, match=r"table a.u: current schema changed.*assert-current-schema-id"):
        three.run(transaction_execute(three.node.ctx(), MAIN, operations))

    assert (marked(three, "mine"), files) == (0, {})


def test_unknown_commit_outcome_deletes_no_file(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the outcome of the commit is unknown, no file is deleted."""

    async def submit(*_: Any, on_begin: Callable[[], None]) -> None:  # noqa: ANN401 - as the store has it
        on_begin()
        raise StateUnknown("The connection was lost during COMMIT")

    monkeypatch.setattr(three.node.store, "submit", submit)

    with pytest.raises(StateUnknown):
        three.run(together(three.node, "mine", *TABLES))

    assert len(files) == 3


@pytest.mark.parametrize("is_mutation_begun", [False, True])
def test_cancelled_request_deletes_its_files_before_the_mutation(
    three: ServiceDesk, files: Files, monkeypatch: pytest.MonkeyPatch, is_mutation_begun: bool
) -> None:
    """A request that is cancelled before the store begins the mutation deletes its files; if it is cancelled later,
    they stay. The queue is free afterwards.
    """
    waiting = asyncio.Event()

    async def submit(*_: Any, on_begin: Callable[[], None]) -> None:  # noqa: ANN401 - as the store has it
        if has_begun:
            on_begin()
        waiting.set()
        await asyncio.sleep(60)

    has_begun = is_mutation_begun
    monkeypatch.setattr(three.node.store, "submit", submit)

    async def story() -> None:
        task = asyncio.create_task(together(three.node, "mine", *TABLES))
        await asyncio.wait_for(waiting.wait(), 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(20):
            await asyncio.sleep(0)

    three.run(story())

    assert len(files) == (3 if is_mutation_begun else 0)
    assert len(three.node.services.lines) == 0


def test_tables_in_opposite_orders_do_not_deadlock(three: ServiceDesk) -> None:
    """Transactions that name the same tables in opposite orders do not deadlock, and no metadata is built in vain."""
    lost = LOST_RACES[()]

    async def crowd() -> None:
        orders = (TABLES, TABLES[::-1], (*TABLES[1:], TABLES[0]))
        await asyncio.gather(*(together(three.node, f"p{number}", *orders[number % 3]) for number in range(24)))

    three.run(asyncio.wait_for(crowd(), 300))

    assert [marked(three, f"p{number}") for number in range(24)] == [3] * 24
    assert LOST_RACES[()] == lost
    assert len(three.node.services.lines) == 0


def test_facts_of_many_tables_are_loaded_in_few_reads(three: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing facts of two hundred tables are loaded in a few reads."""
    names = [f"n{number}" for number in range(200)]
    three.run(
        transaction_execute(
            three.node.ctx(), MAIN, [TableCreateOperation(("a", name), new_table(name)) for name in names]
        )
    )
    other = neighbour(three)
    rounds: list[int] = []
    fetch = other.gate.fetch

    async def counting(*args: Any) -> Any:  # noqa: ANN401 - as it is
        rounds.append(1)
        return await fetch(*args)

    monkeypatch.setattr(other.gate, "fetch", counting)

    three.run(together(other, "mine", *names))

    assert marked(three, "mine") == 200
    assert len(rounds) < 10
