# SPDX-License-Identifier: Apache-2.0
"""Location claims on PostgreSQL: which mutations of two catalogs wait for each other, and the order of their locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest
from limnos.model.permits import Permit
from limnos.services.catalog.tables import TableCreate, table_insert
from limnos.services.transactions.mutations import TransactionCommand, TransactionMutation, transaction_run
from limnos.store.tx import Tx
from tests.backends import PostgresServer, StoreLab
from tests.store.test_locks import WAIT_S, PausedMutation, is_blocked
from tests.store.world import StoreWorld, add_namespace, make_world

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(postgres_server: PostgresServer) -> Iterator[StoreLab]:
    """A store lab on PostgreSQL."""
    lab = StoreLab(postgres_server.fresh_database())
    yield lab
    lab.close()


@pytest.fixture
def world(lab: StoreLab) -> StoreWorld:
    """A metalake with two catalogs."""
    return make_world(lab)


def table_create(namespace: Node, name: str, location: str, *paths: str) -> TableCreate:
    """Return a create of a table at a location that does not contain its UUID."""
    document = MetadataDocument(
        node_id=0,
        version=1,
        uuid=f"uuid-{namespace.id}-{name}",
        location=location,
        metadata_location=f"{location}/metadata/1",
        body=b"{}",
    )
    return TableCreate(
        namespace=namespace, name=name, space="table", document=document, owner_id=None, data_paths=paths
    )


def meet(
    lab: StoreLab,
    world: StoreWorld,
    first: Callable[[Node], list[TableCreate]],
    second: Callable[[Node], list[TableCreate]],
) -> tuple[int, list[object]]:
    """Hold a transaction of one catalog open after its first table, and run a transaction of the other catalog
    concurrently. Returns how many tables the second transaction had inserted when it waited for the first, and the
    results of both.
    """
    spaces = [
        lab.write(lambda tx, catalog=catalog: add_namespace(tx, catalog, "a"), zone=catalog.id)
        for catalog in (world.main, world.side)
    ]
    paused, inserted = PausedMutation(lambda _: 0), []

    def insert_first(tx: Tx, permit: Permit[Any]) -> MetadataDocument:
        document = table_insert(tx, permit)
        if not paused.entered.is_set():
            paused(tx)
        return document

    def insert_second(tx: Tx, permit: Permit[Any]) -> MetadataDocument:
        document = table_insert(tx, permit)
        inserted.append(permit.command.name)
        return document

    def work(commands: list[TableCreate], insert: Callable[[Tx, Permit[Any]], MetadataDocument], catalog: Node) -> Any:  # noqa: ANN401 - a coroutine
        steps = tuple(
            TransactionMutation(command=command, mutation=insert, place=place) for place, command in enumerate(commands)
        )
        permit = lab.permit(0, world.lake.id, catalog.id).about(TransactionCommand(steps))
        return lab.open().submit(permit, partial(transaction_run, permit=permit))

    async def both() -> tuple[int, list[object]]:
        one = asyncio.create_task(work(first(spaces[0]), insert_first, world.main))
        assert await asyncio.to_thread(paused.entered.wait, WAIT_S)
        other = asyncio.create_task(work(second(spaces[1]), insert_second, world.side))
        assert await is_blocked(lab, other)
        before = len(inserted)
        paused.go.set()
        return before, await asyncio.gather(one, other, return_exceptions=True)

    return lab.run(both())


def test_opposite_claims_of_data_paths_do_not_deadlock(lab: StoreLab, world: StoreWorld) -> None:
    """Two transactions that claim the same data paths in opposite orders do not deadlock. The second one waits before
    its first table, and is refused when the first one has committed.
    """
    before, results = meet(
        lab,
        world,
        lambda space: [
            table_create(space, "t", "file:///w/main/t", "file:///w/p"),
            table_create(space, "u", "file:///w/main/u", "file:///w/q"),
        ],
        lambda space: [
            table_create(space, "t", "file:///w/side/t", "file:///w/q"),
            table_create(space, "u", "file:///w/side/u", "file:///w/p"),
        ],
    )

    assert before == 0
    assert not isinstance(results[0], BaseException)
    assert isinstance(results[1], BadRequest)


def test_claim_of_a_parent_location_does_not_deadlock(lab: StoreLab, world: StoreWorld) -> None:
    """A table at a location above another transaction's second table waits before that table is inserted, and does not
    deadlock with it.
    """
    before, results = meet(
        lab,
        world,
        lambda space: [table_create(space, "t", "file:///w/z"), table_create(space, "u", "file:///w/c/d")],
        lambda space: [table_create(space, "t", "file:///w/c"), table_create(space, "u", "file:///w/z/y")],
    )

    assert before == 0
    assert not isinstance(results[0], BaseException)
    assert isinstance(results[1], BadRequest)


def test_two_spellings_of_a_location_share_one_lock(lab: StoreLab, world: StoreWorld) -> None:
    """Tables of two catalogs at one location in two spellings wait for each other, and only the first one gets the
    location.
    """
    before, results = meet(
        lab,
        world,
        lambda space: [table_create(space, "t", "s3://b/a%41/t")],
        lambda space: [table_create(space, "t", "s3://b/aA/t")],
    )

    assert before == 0
    assert not isinstance(results[0], BaseException)
    assert isinstance(results[1], BadRequest)
